#pragma once

#include "finch/backend/operation.hpp"

#include <cstddef>
#include <map>
#include <memory>
#include <new>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <unordered_map>

/// oneDNN as Finch uses it: version 2 of its C++ interface, which version 3 changed, is spoken in this folder alone.
namespace finch::backend::cpu {

using Tag = dnnl::memory::format_tag;

/// What `work` returns. oneDNN's own error for a lack of memory becomes std::bad_alloc: everything that calls oneDNN
/// goes through here.
template <class Work>
auto call(Work&& work) {
    try {
        return work();
    } catch (const dnnl::error& error) {
        if (error.status == dnnl_out_of_memory) {
            throw std::bad_alloc();
        }
        throw;
    }
}

/// The engine and the stream that everything runs on.
struct Library {
    dnnl::engine engine{dnnl::engine::kind::cpu, 0};
    dnnl::stream stream{engine};
};

/// Whether this processor has these instructions, and oneDNN's own DNNL_MAX_CPU_ISA does not forbid them.
[[nodiscard]] bool may_use(dnnl::cpu_isa instructions) noexcept;

[[nodiscard]] dnnl::memory::desc floats(const dnnl::memory::dims& shape, Tag layout);
/// The same tensor in the same layout, of numbers of bfloat16.
[[nodiscard]] dnnl::memory::desc rounded(const dnnl::memory::desc& floats);

/// Memory that lies at `data`, which must outlive its use.
[[nodiscard]] dnnl::memory at(const Library& library, const dnnl::memory::desc& layout, const void* data);

/// Memory of oneDNN's own, zeroed: blocked layouts have padding, which must not hold what was there before.
[[nodiscard]] dnnl::memory zeroed(const Library& library, const dnnl::memory::desc& layout);

void execute(const Library& library, const dnnl::primitive& primitive,
             const std::unordered_map<int, dnnl::memory>& arguments);

/// A fused activation behind an operation.
[[nodiscard]] dnnl::primitive_attr with(Activation activation);

/// Copies between two layouts of one tensor; made once, run often.
class Reorder {
public:
    Reorder(const Library& library, const dnnl::memory::desc& from, const dnnl::memory::desc& to);
    void run(const Library& library, const dnnl::memory& from, const dnnl::memory& to) const;

private:
    dnnl::reorder reorder_;
};

/// Memory that the operations of a device share, which run one after the other: what one leaves in it is gone with the
/// next.
class Scratch {
public:
    /// Throws std::bad_alloc.
    void reserve(const Library& library, std::size_t bytes);
    /// Null if nothing was reserved.
    [[nodiscard]] std::byte* data() const {
        return bytes_ > 0 ? static_cast<std::byte*>(memory_.get_data_handle()) : nullptr;
    }

private:
    dnnl::memory memory_;
    std::size_t bytes_ = 0;
};

/// Plans by shape, made once and shared by all operations of that shape.
template <class Shape, class Plan>
class PlanCache {
public:
    [[nodiscard]] std::shared_ptr<const Plan> get(const Library& library, const Shape& shape) {
        std::shared_ptr<const Plan>& plan = plans_[shape];
        if (!plan) {
            plan = call([&] { return std::make_shared<const Plan>(library, shape); });
        }
        return plan;
    }

private:
    std::map<Shape, std::shared_ptr<const Plan>> plans_;
};

}  // namespace finch::backend::cpu
