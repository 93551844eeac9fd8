#pragma once

#include "finch/backend/operation.hpp"

#include <map>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>

/// oneDNN as Finch uses it: version 2 of its C++ interface, which version 3 changed, is spoken in this folder alone.
namespace finch::backend::cpu {

using Tag = dnnl::memory::format_tag;

/// The engine and the stream that everything runs on.
struct Library {
    dnnl::engine engine{dnnl::engine::kind::cpu, 0};
    dnnl::stream stream{engine};
};

[[nodiscard]] dnnl::memory::desc floats(const dnnl::memory::dims& shape, Tag layout);

/// Memory that lies at `data`, which must outlive its use.
[[nodiscard]] dnnl::memory at(const Library& library, const dnnl::memory::desc& layout, const float* data);

/// Memory of oneDNN's own, zeroed: blocked layouts have padding, which must not hold what was there before.
[[nodiscard]] dnnl::memory zeroed(const Library& library, const dnnl::memory::desc& layout);

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

/// grad_y becomes the gradient before the activation, given y behind it. In place; `count` floats.
void apply_derivative(Activation activation, const float* y, float* grad_y, std::size_t count);

/// Plans by shape, made once and shared by all operations of that shape.
template <class Shape, class Plan>
class PlanCache {
public:
    [[nodiscard]] std::shared_ptr<const Plan> get(const Library& library, const Shape& shape) {
        std::shared_ptr<const Plan>& plan = plans_[shape];
        if (!plan) {
            plan = std::make_shared<const Plan>(library, shape);
        }
        return plan;
    }

private:
    std::map<Shape, std::shared_ptr<const Plan>> plans_;
};

}  // namespace finch::backend::cpu
