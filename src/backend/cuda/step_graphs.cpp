#include "step_graphs.hpp"

#include "finch/base/log.hpp"

#include <exception>

namespace finch::backend::cuda {
namespace {

/// The number of steps in the larger of the two graphs. A graph of this size makes the host's 3 µs per launch
/// negligible, and its instantiation takes only milliseconds (100 nodes: 0.13 ms).
constexpr std::int64_t many = 32;

UniqueGraph captured(cudaStream_t stream, std::int64_t times, const std::function<void()>& work) {
    FINCH_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    std::exception_ptr failure;
    try {
        for (std::int64_t i = 0; i < times; ++i) {
            work();
        }
    } catch (...) {
        failure = std::current_exception();
    }
    cudaGraph_t graph = nullptr;
    const cudaError_t code = cudaStreamEndCapture(stream, &graph);  // a stream that captures rejects all other calls
    UniqueGraph owned(graph);
    if (failure) {
        static_cast<void>(cudaGetLastError());
        std::rethrow_exception(failure);
    }
    FINCH_CUDA(code);
    return owned;
}

/// Allocates all memory of the graph, so that no launch fails for lack of memory.
UniqueGraphExec instantiate(cudaStream_t stream, const UniqueGraph& graph) {
    cudaGraphExec_t exec = nullptr;
    FINCH_CUDA(cudaGraphInstantiate(&exec, graph.get(), 0));
    UniqueGraphExec owned(exec);
    FINCH_CUDA(cudaGraphUpload(exec, stream));
    return owned;
}

}  // namespace

std::size_t StepGraphs::capture(cudaStream_t stream, const std::function<void()>& work) {
    const UniqueGraph graph = captured(stream, 1, work);
    std::size_t nodes = 0;
    FINCH_CUDA(cudaGraphGetNodes(graph.get(), nullptr, &nodes));
    once_ = instantiate(stream, graph);
    return nodes;
}

void StepGraphs::launch(cudaStream_t stream, std::int64_t times, const std::function<void()>& work) {
    if (times >= many && !many_ && many_fits_) {
        try {
            many_ = instantiate(stream, captured(stream, many, work));
        } catch (const std::exception& error) {
            many_fits_ = false;
            spdlog::warn("a graph of {} steps cannot be made, so a graph of one step is launched each time: {}", many,
                         error.what());
        }
    }
    for (; many_ && times >= many; times -= many) {
        FINCH_CUDA(cudaGraphLaunch(many_.get(), stream));
    }
    for (; times > 0; --times) {
        FINCH_CUDA(cudaGraphLaunch(once_.get(), stream));
    }
}

}  // namespace finch::backend::cuda
