// The only file that includes cudnn-frontend, which takes half a minute to compile.
#include "cudnn_plan.hpp"

#include "finch/base/error.hpp"
#include "finch/base/log.hpp"

#include <cudnn_frontend.h>
#include <unordered_map>
#include <utility>
#include <vector>

namespace finch::backend::cuda {
namespace {

namespace fe = cudnn_frontend;
using Dimensions = std::vector<std::int64_t>;
using TensorPointer = std::shared_ptr<fe::graph::Tensor_attributes>;

constexpr std::int64_t x_id = 1;
constexpr std::int64_t weights_id = 2;
constexpr std::int64_t bias_id = 3;
constexpr std::int64_t y_id = 4;

fe::DataType_t type_of(TensorType type) {
    return type == TensorType::bfloat16  ? fe::DataType_t::BFLOAT16
           : type == TensorType::float16 ? fe::DataType_t::HALF
                                         : fe::DataType_t::FLOAT;
}

/// Returns the strides of (n, c, h, w) in NHWC.
Dimensions strides_of(const Dimensions& sizes) {
    const auto [c, h, w] = std::tuple(sizes[1], sizes[2], sizes[3]);
    return {h * w * c, 1, w * c, c};
}

/// The cuDNN graph of a request. All tensors have their sizes, strides and ids.
class RequestGraph {
public:
    explicit RequestGraph(const CudnnRequest& request) : request_(request) {
        graph_->set_io_data_type(type_of(request.type))
            .set_intermediate_data_type(fe::DataType_t::FLOAT)
            .set_compute_data_type(fe::DataType_t::FLOAT);
        const ConvolutionShape& s = request.shape;
        const Dimensions x{s.batch, s.channels_in, s.height, s.width};
        const Dimensions weights{s.channels_out, s.channels_in / s.groups, s.kernel, s.kernel};
        const Dimensions y{s.batch, s.channels_out, s.height_out(), s.width_out()};
        switch (request.pass) {
            case ConvolutionPass::forward:
                write(bias_and_activation(graph_->conv_fprop(read("x", x, x_id), read("weights", weights, weights_id),
                                                             geometry<fe::graph::Conv_fprop_attributes>())),
                      y, y_id);
                break;
            case ConvolutionPass::data_gradient:
                write(graph_->conv_dgrad(read("grad_y", y, y_id), read("weights", weights, weights_id),
                                         geometry<fe::graph::Conv_dgrad_attributes>()),
                      x, x_id);
                break;
            case ConvolutionPass::weight_gradient:
                write(graph_->conv_wgrad(read("grad_y", y, y_id), read("x", x, x_id),
                                         geometry<fe::graph::Conv_wgrad_attributes>()),
                      weights, weights_id);
                break;
        }
    }

    [[nodiscard]] std::shared_ptr<fe::graph::Graph> graph() const { return graph_; }

private:
    template <class Attributes>
    [[nodiscard]] Attributes geometry() const {
        const ConvolutionShape& s = request_.shape;
        Attributes attributes;
        attributes.set_pre_padding({s.padding_before, s.padding_before});
        attributes.set_post_padding({s.padding_after, s.padding_after});
        attributes.set_stride({s.stride, s.stride});
        attributes.set_dilation({s.dilation, s.dilation});
        return attributes;
    }

    TensorPointer read(const char* name, const Dimensions& sizes, std::int64_t id) {
        return graph_->tensor(
            fe::graph::Tensor_attributes().set_name(name).set_dim(sizes).set_stride(strides_of(sizes)).set_uid(id));
    }
    void write(const TensorPointer& tensor, const Dimensions& sizes, std::int64_t id) {
        tensor->set_output(true).set_uid(id).set_data_type(type_of(request_.type)).set_dim(sizes);
        tensor->set_stride(strides_of(sizes));
    }

    TensorPointer bias_and_activation(TensorPointer sums) {
        if (!request_.is_fused) {
            return sums;
        }
        const TensorPointer bias = read("bias", {1, request_.shape.channels_out, 1, 1}, bias_id);
        bias->set_data_type(fe::DataType_t::FLOAT);
        sums = graph_->pointwise(sums, bias, pointwise(fe::PointwiseMode_t::ADD));
        if (request_.shape.activation == Activation::relu) {
            sums = graph_->pointwise(sums, pointwise(fe::PointwiseMode_t::RELU_FWD));
        }
        return sums;
    }
    static fe::graph::Pointwise_attributes pointwise(fe::PointwiseMode_t mode) {
        return fe::graph::Pointwise_attributes().set_mode(mode);
    }

    const CudnnRequest& request_;
    std::shared_ptr<fe::graph::Graph> graph_ = std::make_shared<fe::graph::Graph>();
};

std::vector<fe::NumericalNote_t> unwanted(const ConvolutionShape& shape) {
    std::vector<fe::NumericalNote_t> notes;
    for (const cudnnBackendNumericalNote_t note : barred_notes(shape)) {
        notes.push_back(fe::detail::convert_from_cudnn_type(note));
    }
    return notes;
}

/// Makes cuDNN plan for the described device. Then planning needs neither a handle nor a driver.
fe::error_t describe(fe::graph::Graph& graph, const DescribedDevice& device) {
    const auto properties = std::make_shared<fe::DeviceProperties>();
    fe::error_t status =
        properties->deserialize(std::vector<std::uint8_t>(device.properties.begin(), device.properties.end()));
    graph.set_device_properties(properties);
    graph.set_sm_version(device.sm_version);
    return status;
}

class PlannedPass : public CudnnPass {
public:
    PlannedPass(Libraries& libraries, std::shared_ptr<fe::graph::Graph> graph, bool is_fused)
        : libraries_(libraries), graph_(std::move(graph)), is_fused_(is_fused) {
        std::int64_t bytes = 0;
        if (graph_->get_workspace_size(bytes).is_good()) {
            workspace_bytes_ = static_cast<std::size_t>(std::max<std::int64_t>(0, bytes));
        }
        static_cast<void>(graph_->get_plan_name(engine_));
    }

    [[nodiscard]] std::size_t workspace_bytes() const override { return workspace_bytes_; }
    [[nodiscard]] std::string engine() const override { return engine_; }
    void run(cudaStream_t stream, const CudnnTensors& tensors, void* workspace) override {
        std::unordered_map<std::int64_t, void*> places{
            {x_id, tensors.x}, {weights_id, tensors.weights}, {y_id, tensors.y}};
        if (is_fused_) {
            places[bias_id] = tensors.bias;
        }
        cudnnHandle_t handle = libraries_.cudnn();
        FINCH_CUDNN(cudnnSetStream(handle, stream));
        if (auto status = graph_->execute(handle, places, workspace); status.is_bad()) {
            throw ApiError("cuDNN, " + engine_ + ": " + status.get_message());
        }
    }

private:
    Libraries& libraries_;
    std::shared_ptr<fe::graph::Graph> graph_;
    bool is_fused_;
    std::size_t workspace_bytes_ = 0;
    std::string engine_;
};

}  // namespace

std::unique_ptr<CudnnPass> plan_cudnn_pass(Libraries& libraries, const CudnnRequest& request) {
    const auto graph = RequestGraph(request).graph();
    const DescribedDevice* const described = libraries.described_device();
    auto status = described != nullptr ? describe(*graph, *described) : fe::error_t();
    if (status.is_good()) {
        status = graph->validate();
    }
    if (status.is_good()) {
        status =
            described != nullptr ? graph->build_operation_graph() : graph->build_operation_graph(libraries.cudnn());
    }
    if (status.is_good()) {
        status = graph->create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK});
    }
    if (status.is_good()) {
        graph->deselect_numeric_notes(unwanted(request.shape));
        graph->deselect_behavior_notes({fe::BehaviorNote_t::RUNTIME_COMPILATION});
        graph->deselect_workspace_greater_than(request.most_workspace);
        status = graph->check_support();
    }
    if (status.is_good()) {
        status = graph->build_plans(fe::BuildPlanPolicy_t::HEURISTICS_CHOICE);
    }
    if (status.is_bad()) {
        spdlog::debug("cuDNN has no engine: {}", status.get_message());
        static_cast<void>(cudaGetLastError());
        return nullptr;
    }
    return std::make_unique<PlannedPass>(libraries, graph, request.is_fused);
}

}  // namespace finch::backend::cuda
