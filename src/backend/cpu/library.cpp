#include "library.hpp"

#include <cstring>

namespace finch::backend::cpu {

bool may_use(dnnl::cpu_isa instructions) noexcept {
    const auto needed = static_cast<unsigned>(instructions);
    return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & needed) == needed;
}

dnnl::memory::desc floats(const dnnl::memory::dims& shape, Tag layout) {
    return {shape, dnnl::memory::data_type::f32, layout};
}

dnnl::memory::desc rounded(const dnnl::memory::desc& floats) {
#if DNNL_VERSION_MAJOR < 3
    dnnl::memory::desc result = floats;
    result.data.data_type = dnnl_bf16;
    return result;
#else
    constexpr auto bfloat16 = dnnl::memory::data_type::bf16;
    if (floats.get_format_kind() == dnnl::memory::format_kind::any) {
        return {floats.get_dims(), bfloat16, Tag::any};
    }
    return {floats.get_dims(), bfloat16, floats.get_strides()};
#endif
}

dnnl::memory at(const Library& library, const dnnl::memory::desc& layout, const void* data) {
    return call([&] { return dnnl::memory(layout, library.engine, const_cast<void*>(data)); });
}

dnnl::memory zeroed(const Library& library, const dnnl::memory::desc& layout) {
    dnnl::memory memory = call([&] { return dnnl::memory(layout, library.engine); });
    if (layout.get_size() > 0) {
        std::memset(memory.get_data_handle(), 0, layout.get_size());
    }
    return memory;
}

void execute(const Library& library, const dnnl::primitive& primitive,
             std::unordered_map<int, dnnl::memory> arguments) {
    const auto scratchpad = dnnl_primitive_desc_query_md(primitive.get_primitive_desc(), dnnl_query_scratchpad_md, 0);
    if (const std::size_t bytes = dnnl_memory_desc_get_size(scratchpad); bytes > 0) {
        library.scratchpad.reserve(library, bytes);
        arguments.emplace(DNNL_ARG_SCRATCHPAD, library.scratchpad.memory());
    }
    call([&] { primitive.execute(library.stream, arguments); });
}

dnnl::primitive_attr attributes() {
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    return attributes;
}

namespace {

dnnl::primitive_attr with(dnnl::algorithm activation) {
    dnnl::post_ops behind;
#if DNNL_VERSION_MAJOR < 3
    behind.append_eltwise(1.0F, activation, 0.0F, 0.0F);
#else
    behind.append_eltwise(activation, 0.0F, 0.0F);
#endif
    dnnl::primitive_attr result = attributes();
    result.set_post_ops(behind);
    return result;
}

}  // namespace

dnnl::primitive_attr with(Activation activation) {
    switch (fused(activation)) {
        case FusedActivation::none:
            break;
        case FusedActivation::relu:
            return with(dnnl::algorithm::eltwise_relu);
        case FusedActivation::sigmoid:
            return with(dnnl::algorithm::eltwise_logistic);
        case FusedActivation::tanh:
            return with(dnnl::algorithm::eltwise_tanh);
    }
    return attributes();
}

std::pair<dnnl::eltwise_forward::primitive_desc, dnnl::eltwise_backward::primitive_desc> plan_elementwise(
    const Library& library, dnnl::algorithm algorithm, float alpha, const dnnl::memory::desc& values) {
    using Forward = dnnl::eltwise_forward;
    using Backward = dnnl::eltwise_backward;
    constexpr auto training = dnnl::prop_kind::forward_training;
    // Version 3 takes one description of the input and one of the output.
#if DNNL_VERSION_MAJOR < 3
    const auto forward = describe<Forward>(training, algorithm, values, alpha, 0.0F);
    const auto backward = describe<Backward>(algorithm, values, values, alpha, 0.0F);
#else
    const auto forward = describe<Forward>(training, algorithm, values, values, alpha, 0.0F);
    const auto backward = describe<Backward>(algorithm, values, values, values, alpha, 0.0F);
#endif
    const auto forward_plan = plan<Forward>(library, forward, attributes());
    return {forward_plan, plan<Backward>(library, backward, forward_plan)};
}

Reorder::Reorder(const Library& library, const dnnl::memory::desc& from, const dnnl::memory::desc& to)
    : reorder_(dnnl::reorder::primitive_desc(library.engine, from, library.engine, to, attributes())) {}

void Reorder::run(const Library& library, const dnnl::memory& from, const dnnl::memory& to) const {
    execute(library, reorder_, {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
}

void Scratch::reserve(const Library& library, std::size_t bytes) {
    if (bytes > bytes_) {
        memory_ = dnnl::memory();
        bytes_ = 0;
        const dnnl::memory::desc plain({static_cast<dnnl::memory::dim>(bytes)}, dnnl::memory::data_type::u8, Tag::x);
        memory_ = call([&] { return dnnl::memory(plain, library.engine); });
        bytes_ = bytes;
    }
}

}  // namespace finch::backend::cpu
