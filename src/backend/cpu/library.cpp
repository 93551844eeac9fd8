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
    dnnl::memory::desc result = floats;
    result.data.data_type = dnnl_bf16;
    return result;
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
             const std::unordered_map<int, dnnl::memory>& arguments) {
    call([&] { primitive.execute(library.stream, arguments); });
}

dnnl::primitive_attr with(Activation activation) {
    dnnl::primitive_attr attributes;
    dnnl::post_ops behind;
    switch (fused(activation)) {
        case FusedActivation::none:
            return attributes;
        case FusedActivation::relu:
            behind.append_eltwise(1.0F, dnnl::algorithm::eltwise_relu, 0.0F, 0.0F);
            break;
        case FusedActivation::sigmoid:
            behind.append_eltwise(1.0F, dnnl::algorithm::eltwise_logistic, 0.0F, 0.0F);
            break;
        case FusedActivation::tanh:
            behind.append_eltwise(1.0F, dnnl::algorithm::eltwise_tanh, 0.0F, 0.0F);
            break;
    }
    attributes.set_post_ops(behind);
    return attributes;
}

Reorder::Reorder(const Library& library, const dnnl::memory::desc& from, const dnnl::memory::desc& to)
    : reorder_(dnnl::reorder::primitive_desc(library.engine, from, library.engine, to)) {}

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
