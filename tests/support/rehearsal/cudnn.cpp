// Replaces src/backend/cuda/cudnn_plan.cpp and cuDNN in tests. Computes convolution passes in simple loops, in the
// requested layout and data type.
#include "support/rehearsal/control.hpp"
#include "support/rehearsal/engines.hpp"
#include "support/rehearsal/kernel_entry.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <iterator>
#include <utility>
#include <vector>

using namespace finch::backend;
using namespace finch::backend::cuda;

namespace finch::rehearsal {
namespace {

std::function<bool(const CudnnRequest&)> has_engine = [](const CudnnRequest&) { return true; };
std::vector<Engine> engines{Engine{}};
std::vector<CudnnRequest> planned_requests;
int plans = 0;
int kept_plans = 0;

/// Returns the first engine that is not barred for the request and does not need too much workspace, or null.
const Engine* allowed_engine(const CudnnRequest& request) {
    const std::vector<cudnnBackendNumericalNote_t> barred = barred_notes(request.shape);
    const auto is_allowed = [&](const Engine& engine) {
        return engine.workspace_bytes <= request.most_workspace &&
               request.shape.channels_in % engine.channels_unit == 0 &&
               request.shape.channels_out % engine.channels_unit == 0 &&
               std::none_of(engine.notes.begin(), engine.notes.end(), [&](cudnnBackendNumericalNote_t note) {
                   return std::find(barred.begin(), barred.end(), note) != barred.end();
               });
    };
    const auto found = std::find_if(engines.begin(), engines.end(), is_allowed);
    return found == engines.end() ? nullptr : &*found;
}

/// A four-dimensional tensor (n, c, h, w) in device memory.
class View {
public:
    View(void* data, TensorType type, std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w)
        : data_(data), type_(type), n_(n), c_(c), h_(h), w_(w) {}

    /// Returns whether the tensor is in device memory and has cuDNN's alignment of 16 bytes.
    [[nodiscard]] bool is_device_memory() const {
        const auto size = static_cast<std::size_t>(n_ * c_ * h_ * w_) * (type_ == TensorType::float32 ? 4 : 2);
        return rehearsal::is_device_memory(data_, size) && reinterpret_cast<std::uintptr_t>(data_) % 16 == 0;
    }
    [[nodiscard]] double get(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) const {
        const std::size_t at = place(n, c, h, w);
        switch (type_) {
            case TensorType::float32:
                break;
            case TensorType::bfloat16:
                return static_cast<double>(__bfloat162float(static_cast<const __nv_bfloat16*>(data_)[at]));
            case TensorType::float16:
                return static_cast<double>(__half2float(static_cast<const __half*>(data_)[at]));
        }
        return static_cast<double>(static_cast<const float*>(data_)[at]);
    }
    void set(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w, double value) const {
        const std::size_t at = place(n, c, h, w);
        const auto narrow = static_cast<float>(value);
        switch (type_) {
            case TensorType::float32:
                static_cast<float*>(data_)[at] = narrow;
                break;
            case TensorType::bfloat16:
                static_cast<__nv_bfloat16*>(data_)[at] = __float2bfloat16(narrow);
                break;
            case TensorType::float16:
                static_cast<__half*>(data_)[at] = __float2half_rn(narrow);
                break;
        }
    }

private:
    [[nodiscard]] std::size_t place(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) const {
        return static_cast<std::size_t>(((n * h_ + h) * w_ + w) * c_ + c);
    }
    void* data_;
    TensorType type_;
    std::int64_t n_, c_, h_, w_;
};

struct Tensors {
    View x, weights, y;
    const float* bias;
};

std::int64_t group_in(const ConvolutionShape& s) {
    return s.channels_in / s.groups;
}

/// Calls `each(n, out, row, column, in, index in kernel, row of x, column of x)` for every product of the convolution.
template <class Each>
void for_each_product(const ConvolutionShape& s, Each&& each) {
    for (std::int64_t n = 0; n < s.batch; ++n)
        for (std::int64_t o = 0; o < s.channels_out; ++o)
            for (std::int64_t r = 0; r < s.height_out(); ++r)
                for (std::int64_t c = 0; c < s.width_out(); ++c)
                    for (std::int64_t i = 0; i < group_in(s); ++i)
                        for (std::int64_t k = 0; k < s.kernel * s.kernel; ++k) {
                            const std::int64_t row = r * s.stride - s.padding_before + k / s.kernel * s.dilation;
                            const std::int64_t column = c * s.stride - s.padding_before + k % s.kernel * s.dilation;
                            if (row >= 0 && row < s.height && column >= 0 && column < s.width) {
                                each(n, o, r, c, o / (s.channels_out / s.groups) * group_in(s) + i, k, row, column);
                            }
                        }
}

void compute(const CudnnRequest& request, const Tensors& t) {
    const ConvolutionShape& s = request.shape;
    std::vector<double> sums;
    const auto add = [&](std::int64_t at, double product) { sums[static_cast<std::size_t>(at)] += product; };
    if (request.pass == ConvolutionPass::forward) {
        sums.resize(static_cast<std::size_t>(s.batch * s.channels_out * s.height_out() * s.width_out()));
        for_each_product(s, [&](auto n, auto o, auto r, auto c, auto i, auto k, auto row, auto column) {
            add(((n * s.channels_out + o) * s.height_out() + r) * s.width_out() + c,
                t.x.get(n, i, row, column) * t.weights.get(o, i % group_in(s), k / s.kernel, k % s.kernel));
        });
        for (std::int64_t at = 0; at < std::ssize(sums); ++at) {
            const std::int64_t o = at / s.width_out() / s.height_out() % s.channels_out;
            const double sum = sums[static_cast<std::size_t>(at)];
            const double biased = request.is_fused ? sum + static_cast<double>(t.bias[o]) : sum;
            const bool is_cut = request.is_fused && s.activation == Activation::relu && biased < 0;
            t.y.set(at / s.width_out() / s.height_out() / s.channels_out, o, at / s.width_out() % s.height_out(),
                    at % s.width_out(), is_cut ? 0 : biased);
        }
    } else if (request.pass == ConvolutionPass::data_gradient) {
        sums.resize(static_cast<std::size_t>(s.batch * s.channels_in * s.height * s.width));
        for_each_product(s, [&](auto n, auto o, auto r, auto c, auto i, auto k, auto row, auto column) {
            add(((n * s.channels_in + i) * s.height + row) * s.width + column,
                t.y.get(n, o, r, c) * t.weights.get(o, i % group_in(s), k / s.kernel, k % s.kernel));
        });
        for (std::int64_t at = 0; at < std::ssize(sums); ++at) {
            t.x.set(at / s.width / s.height / s.channels_in, at / s.width / s.height % s.channels_in,
                    at / s.width % s.height, at % s.width, sums[static_cast<std::size_t>(at)]);
        }
    } else {
        sums.resize(static_cast<std::size_t>(s.weights()));
        for_each_product(s, [&](auto n, auto o, auto r, auto c, auto i, auto k, auto row, auto column) {
            add((o * group_in(s) + i % group_in(s)) * s.kernel * s.kernel + k,
                t.y.get(n, o, r, c) * t.x.get(n, i, row, column));
        });
        for (std::int64_t at = 0; at < std::ssize(sums); ++at) {
            t.weights.set(at / s.kernel / s.kernel / group_in(s), at / s.kernel / s.kernel % group_in(s),
                          at / s.kernel % s.kernel, at % s.kernel, sums[static_cast<std::size_t>(at)]);
        }
    }
}

class PlainPass : public CudnnPass {
public:
    PlainPass(const CudnnRequest& request, const Engine& engine) : request_(request), engine_(engine) { ++kept_plans; }
    ~PlainPass() override { --kept_plans; }
    PlainPass(const PlainPass&) = delete;
    PlainPass& operator=(const PlainPass&) = delete;
    [[nodiscard]] std::size_t workspace_bytes() const override {
        return static_cast<std::size_t>(engine_.workspace_bytes);
    }
    [[nodiscard]] std::string engine() const override { return engine_.name; }
    void run(cudaStream_t stream, const CudnnTensors& tensors, void* workspace) override {
        const ConvolutionShape& s = request_.shape;
        const Tensors t{{tensors.x, request_.type, s.batch, s.channels_in, s.height, s.width},
                        {tensors.weights, request_.type, s.channels_out, group_in(s), s.kernel, s.kernel},
                        {tensors.y, request_.type, s.batch, s.channels_out, s.height_out(), s.width_out()},
                        static_cast<const float*>(tensors.bias)};
        if (!t.x.is_device_memory() || !t.weights.is_device_memory() || !t.y.is_device_memory() ||
            !is_device_memory(workspace, workspace_bytes()) ||
            (request_.is_fused && reinterpret_cast<std::uintptr_t>(tensors.bias) % 16 != 0)) {
            throw ApiError("the stand-in of cuDNN was given memory that is not the device's, too little, or askew");
        }
        submit(stream, [request = request_, t, workspace, bytes = workspace_bytes()] {
            std::memset(workspace, 0xff, bytes);  // so that no caller can rely on its contents
            compute(request, t);
        });
    }

private:
    CudnnRequest request_;
    Engine engine_;
};

}  // namespace

void offer_engines(std::function<bool(const CudnnRequest&)> offered) {
    has_engine = std::move(offered);
    planned_requests.clear();
}
void set_engines(std::vector<Engine> of) {
    engines = std::move(of);
    planned_requests.clear();
}
const std::vector<CudnnRequest>& requests() {
    return planned_requests;
}
int plans_made() {
    return plans;
}
int plans_kept() {
    return kept_plans;
}

}  // namespace finch::rehearsal

namespace finch::backend::cuda {

/// Returns whether cuDNN has an engine for requests of this kind (tests/cuda/engines.txt).
bool is_known(const CudnnRequest& request) {
    const ConvolutionShape& shape = request.shape;
    const bool is_whole = request.type == TensorType::float32 || shape.groups > 1 ||
                          (shape.channels_in % 8 == 0 && shape.channels_out % 8 == 0);
    const bool may_be_fused = request.type == TensorType::float32 && request.pass == ConvolutionPass::forward &&
                              (shape.activation == Activation::none || shape.activation == Activation::relu);
    // Engines of cuDNN need equal padding before and after.
    return is_whole && (!request.is_fused || may_be_fused) && shape.padding_before == shape.padding_after;
}

std::unique_ptr<CudnnPass> plan_cudnn_pass(Libraries&, const CudnnRequest& request) {
    const rehearsal::Engine* engine = rehearsal::allowed_engine(request);
    if (!is_known(request) || !rehearsal::has_engine(request) || engine == nullptr) {
        return nullptr;
    }
    ++rehearsal::plans;
    rehearsal::planned_requests.push_back(request);
    return std::make_unique<rehearsal::PlainPass>(request, *engine);
}

}  // namespace finch::backend::cuda

extern "C" {

cudnnStatus_t cudnnCreate(cudnnHandle_t*) {
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t) {
    return CUDNN_STATUS_SUCCESS;
}
size_t cudnnGetVersion() {
    return CUDNN_VERSION;
}
const char* cudnnGetErrorString(cudnnStatus_t) {
    return "an error of the stand-in";
}

}  // extern "C"
