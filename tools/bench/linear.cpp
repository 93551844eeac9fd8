// Compares two forms of a linear layer over an NHWC image in oneDNN, on one thread. The first form reads the image in
// its NHWC layout. The GEMM that oneDNN generates for this form uses the stack pointer as a data pointer. The second
// form reads flat rows, which AVX-512 machines compute with brgemm. The second form permutes the columns of the weights
// before the step and the columns of their gradients after the step. The forms take turns. Prints the processor time in
// µs, as median [least … most] of nine turns.
//
//   ninja -C build bench_linear && OMP_NUM_THREADS=1 build/bench_linear
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <vector>

namespace {

using Tag = dnnl::memory::format_tag;
using Shape = dnnl::memory::dims;

struct Layer {
    std::int64_t batch, channels, side, units;
    [[nodiscard]] std::int64_t pixels() const { return side * side; }
    [[nodiscard]] std::int64_t features() const { return channels * pixels(); }
};

dnnl::memory::desc floats(const Shape& shape, Tag layout) {
    return {shape, dnnl::memory::data_type::f32, layout};
}

/// Permutes `in` of shape (units, from, to) into `out` of shape (units, to, from).
void permute(const std::vector<float>& in, std::vector<float>& out, std::int64_t from, std::int64_t to) {
    const std::int64_t units = std::ssize(in) / (from * to);
    for (std::int64_t u = 0; u < units; ++u) {
        for (std::int64_t t = 0; t < to; ++t) {
            for (std::int64_t f = 0; f < from; ++f) {
                out[static_cast<std::size_t>((u * to + t) * from + f)] =
                    in[static_cast<std::size_t>((u * from + f) * to + t)];
            }
        }
    }
}

/// The layer in one of the two forms. A form is the shape of the input, (batch, …), the layout of the input, and the
/// layout of the weights before oneDNN packs them.
class Form {
public:
    Form(const Layer& layer, Shape x, Tag x_layout, Tag weights_layout) {
        const auto in = floats(x, x_layout);
        x.front() = layer.units;
        const auto any = floats(x, Tag::any);
        const auto plain = floats(x, weights_layout);
        const auto bias = floats({layer.units}, Tag::x);
        const auto out = floats({layer.batch, layer.units}, Tag::nc);
        const dnnl::inner_product_forward::primitive_desc forward(
            {dnnl::prop_kind::forward_training, in, any, bias, out}, engine_);
        const dnnl::inner_product_backward_weights::primitive_desc weights({in, any, bias, out}, engine_, forward);
        const dnnl::inner_product_backward_data::primitive_desc data({in, any, out}, engine_, forward);
        name = std::string(forward.impl_info_str()) + ", " + weights.impl_info_str() + ", " + data.impl_info_str();
        forward_ = dnnl::inner_product_forward(forward);
        backward_weights_ = dnnl::inner_product_backward_weights(weights);
        backward_data_ = dnnl::inner_product_backward_data(data);
        x_ = make(in);
        y_ = make(out);
        bias_ = make(bias);
        plain_ = make(plain);
        of_forward_ = make(forward.weights_desc());
        of_data_ = make(data.weights_desc());
        gradient_ = make(weights.diff_weights_desc());
        pack_forward_ = dnnl::reorder(plain_, of_forward_);
        pack_data_ = dnnl::reorder(plain_, of_data_);
        unpack_ = dnnl::reorder(gradient_, plain_);
    }

    void forward() {
        forward_.execute(
            stream_, {{DNNL_ARG_SRC, x_}, {DNNL_ARG_WEIGHTS, of_forward_}, {DNNL_ARG_BIAS, bias_}, {DNNL_ARG_DST, y_}});
    }
    /// Packs the weights, runs the forward pass and both backward passes, and unpacks the gradients.
    void step() {
        pack_forward_.execute(stream_, plain_, of_forward_);
        pack_data_.execute(stream_, plain_, of_data_);
        forward();
        backward_weights_.execute(stream_, {{DNNL_ARG_SRC, x_},
                                            {DNNL_ARG_DIFF_DST, y_},
                                            {DNNL_ARG_DIFF_WEIGHTS, gradient_},
                                            {DNNL_ARG_DIFF_BIAS, bias_}});
        backward_data_.execute(stream_,
                               {{DNNL_ARG_DIFF_DST, y_}, {DNNL_ARG_WEIGHTS, of_data_}, {DNNL_ARG_DIFF_SRC, x_}});
        unpack_.execute(stream_, gradient_, plain_);
    }

    std::string name;

private:
    [[nodiscard]] dnnl::memory make(const dnnl::memory::desc& layout) {
        dnnl::memory memory(layout, engine_);
        auto* values = static_cast<float*>(memory.get_data_handle());
        std::fill(values, values + layout.get_size() / sizeof(float), 0.01F);
        return memory;
    }

    dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
    dnnl::stream stream_{engine_};
    dnnl::primitive forward_, backward_weights_, backward_data_;
    dnnl::reorder pack_forward_, pack_data_, unpack_;
    dnnl::memory x_, y_, bias_, plain_, of_forward_, of_data_, gradient_;
};

/// Returns the processor time of this thread per call of `work`, in µs.
template <class Work>
double microseconds(int times, Work&& work) {
    const auto now = [] {
        std::timespec time{};
        ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
        return 1e6 * static_cast<double>(time.tv_sec) + 1e-3 * static_cast<double>(time.tv_nsec);
    };
    const double begin = now();
    for (int i = 0; i < times; ++i) {
        work();
    }
    return (now() - begin) / times;
}

void compare(const Layer& layer) {
    Form image(layer, {layer.batch, layer.channels, layer.side, layer.side}, Tag::nhwc, Tag::oihw);
    Form rows(layer, {layer.batch, layer.features()}, Tag::nc, Tag::oi);
    std::vector<float> canonical(static_cast<std::size_t>(layer.units * layer.features()));
    std::vector<float> permuted(canonical.size());
    const int times = std::max(3, static_cast<int>(1'000'000'000 / (layer.batch * layer.features() * layer.units)) / 8);
    std::array<std::vector<double>, 4> times_of;
    for (int turn = 0; turn < 9; ++turn) {
        times_of[0].push_back(microseconds(times, [&] { image.forward(); }));
        times_of[1].push_back(microseconds(times, [&] { rows.forward(); }));
        times_of[2].push_back(microseconds(times, [&] { image.step(); }));
        times_of[3].push_back(microseconds(times, [&] {
            permute(canonical, permuted, layer.channels, layer.pixels());
            rows.step();
            permute(permuted, canonical, layer.pixels(), layer.channels);
        }));
    }
    std::printf("batch %ld, %ldx%ldx%ld -> %ld: image (%s), rows (%s)\n", layer.batch, layer.side, layer.side,
                layer.channels, layer.units, image.name.c_str(), rows.name.c_str());
    for (std::size_t i = 0; i < times_of.size(); ++i) {
        std::sort(times_of[i].begin(), times_of[i].end());
        std::printf("  %-7s %-5s %8.1f [%.1f … %.1f]\n", i < 2 ? "forward" : "step", i % 2 == 0 ? "image" : "rows",
                    times_of[i][4], times_of[i].front(), times_of[i].back());
    }
}

}  // namespace

int main() {
    for (const Layer& layer : {Layer{8, 10, 28, 10}, Layer{64, 10, 28, 10}, Layer{256, 10, 28, 10},
                               Layer{64, 32, 14, 128}, Layer{64, 64, 7, 512}}) {
        compare(layer);
    }
}
