#pragma once

#include "finch/backend/operation.hpp"

#include <cstddef>
#include <map>
#include <memory>
#include <new>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>

/// The only use of oneDNN is in this folder. The differences between versions 2 and 3 of its C++ interface are only in
/// this file and in library.cpp.
namespace finch::backend::cpu {

using Tag = dnnl::memory::format_tag;

/// Returns the result of `work`. Converts oneDNN's out-of-memory error to std::bad_alloc. All calls of oneDNN go
/// through this function.
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

struct Library;

/// Memory that the operations of a device share. The operations run one after another, and each one overwrites the data
/// of the previous one.
class Scratch {
public:
    /// Throws std::bad_alloc.
    void reserve(const Library& library, std::size_t bytes);
    [[nodiscard]] const dnnl::memory& memory() const { return memory_; }
    /// Returns null if nothing was reserved.
    [[nodiscard]] std::byte* data() const {
        return bytes_ > 0 ? static_cast<std::byte*>(memory_.get_data_handle()) : nullptr;
    }

private:
    dnnl::memory memory_;
    std::size_t bytes_ = 0;
};

/// The oneDNN engine and stream of all operations.
struct Library {
    dnnl::engine engine{dnnl::engine::kind::cpu, 0};
    dnnl::stream stream{engine};
    /// The scratch memory within primitives. oneDNN's own scratch memory belongs to the thread that made a primitive,
    /// but the OpenMP thread that executes a lane can change.
    mutable Scratch scratchpad;
};

/// True if this processor has these instructions and the environment variable DNNL_MAX_CPU_ISA allows them.
[[nodiscard]] bool may_use(dnnl::cpu_isa instructions) noexcept;

[[nodiscard]] dnnl::memory::desc floats(const dnnl::memory::dims& shape, Tag layout);
/// Returns a description of the same tensor in the same layout, with bfloat16 numbers.
[[nodiscard]] dnnl::memory::desc rounded(const dnnl::memory::desc& floats);

/// Returns a memory object for the memory at `data`, which must outlive the object.
[[nodiscard]] dnnl::memory at(const Library& library, const dnnl::memory::desc& layout, const void* data);

/// Allocates zeroed oneDNN memory. Blocked layouts have padding, which must not contain old data.
[[nodiscard]] dnnl::memory zeroed(const Library& library, const dnnl::memory::desc& layout);

void execute(const Library& library, const dnnl::primitive& primitive, std::unordered_map<int, dnnl::memory> arguments);

/// Returns the oneDNN attributes of all primitives: execute() provides the scratch memory.
[[nodiscard]] dnnl::primitive_attr attributes();
/// Returns attributes that also fuse an activation into an operation.
[[nodiscard]] dnnl::primitive_attr with(Activation activation);

/// Returns the description of an operation. In version 2 of oneDNN, next_impl() of a plan reads the description, which
/// must outlive the plan.
template <class Primitive, class... Arguments>
[[nodiscard]] auto describe(const Arguments&... arguments) {
#if DNNL_VERSION_MAJOR < 3
    return typename Primitive::desc(arguments...);
#else
    return std::tuple(arguments...);
#endif
}

/// Returns oneDNN's first plan of an operation. `last` is the attributes of a forward pass, or the forward plan that a
/// backward pass needs as a hint. The hint has no activation, since the backward plans have none.
template <class Primitive, class Description, class Last>
[[nodiscard]] typename Primitive::primitive_desc plan(const Library& library, const Description& description,
                                                      const Last& last) {
#if DNNL_VERSION_MAJOR < 3
    if constexpr (std::is_same_v<Last, dnnl::primitive_attr>) {
        return {description, last, library.engine};
    } else {
        return {description, attributes(), library.engine, last};
    }
#else
    return std::apply(
        [&](const auto&... arguments) {
            if constexpr (std::is_same_v<Last, dnnl::primitive_attr>) {
                return typename Primitive::primitive_desc(library.engine, arguments..., last);
            } else {
                return typename Primitive::primitive_desc(library.engine, arguments..., last, attributes());
            }
        },
        description);
#endif
}

/// Returns the plans of an elementwise function of `values` and of its derivative.
[[nodiscard]] std::pair<dnnl::eltwise_forward::primitive_desc, dnnl::eltwise_backward::primitive_desc> plan_elementwise(
    const Library& library, dnnl::algorithm algorithm, float alpha, const dnnl::memory::desc& values);

/// A copy between two layouts of one tensor. Made once, run often.
class Reorder {
public:
    Reorder(const Library& library, const dnnl::memory::desc& from, const dnnl::memory::desc& to);
    void run(const Library& library, const dnnl::memory& from, const dnnl::memory& to) const;

private:
    dnnl::reorder reorder_;
};

/// Plans by shape. Each plan is made once and shared by all operations of its shape.
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
