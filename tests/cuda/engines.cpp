// The engines that cuDNN chooses for Finch's convolutions on an A100, an H100 and a B200. cuDNN plans for a described
// device, without a GPU and without a driver. The choices must equal the table tests/cuda/engines.txt. A new version of
// cuDNN needs a new table:
//
//   FINCH_WRITE_ENGINES=tests/cuda/engines.txt build/tests/test_engines
#include "cuda/engine_table.hpp"

#include <algorithm>
#include <cstdlib>
#include <doctest/doctest.h>

using namespace finch;
using namespace finch::engine_table;

namespace {

struct Architecture {
    const char* name;
    int sm_version, multiprocessors;
    std::int64_t shared_memory, memory, cache;  ///< bytes
};
constexpr std::array architectures{Architecture{"A100", 80, 108, 166912, 42949672960, 41943040},
                                   Architecture{"H100", 90, 132, 232448, 84978434048, 52428800},
                                   Architecture{"B200", 100, 148, 232448, 191503138816, 132644864}};

/// Describes a device as cuDNN serialises it. cuDNN requires every key.
DescribedDevice described(const Architecture& device) {
    return {
        fmt::format(
            R"({{"deviceVer":{}0,"multiProcessorCount":{},"warpSize":32,"maxSharedMemoryPerBlock":49152,)"
            R"("maxSharedMemoryPerBlockOptin":{},"reservedSharedMemoryPerBlock":1024,"maxRegistersPerSM":65536,)"
            R"("maxCtasPerSM":32,"maxThreadsPerBlock":1024,"maxThreadsPerSM":2048,"regsPerBlock":65536,)"
            R"("totalGlobalMem":{},"smClockRateKHz":1980000,"l2CacheSize":{},"maxBlockSize":[1024,1024,64],)"
            R"("memClockRateKHz":2619000,"maxGridSize":[2147483647,65535,65535],"supportCoopLaunch":1,)"
            R"("pciDeviceId":0,"isTccDriver":0,"cudaDeviceId":0,"driverVer":13000,"deviceName":"{}"}})",
            device.sm_version, device.multiprocessors, device.shared_memory, device.memory, device.cache, device.name),
        device.sm_version};
}

std::int64_t padded(std::int64_t channels, std::int64_t unit) {
    const std::int64_t wider = (channels + unit - 1) / unit * unit;
    return wider <= std::max<std::int64_t>(16, 2 * channels) ? wider : channels;
}

/// Checks that no other form of the request has a better engine than a generic one: fused or not, with channels padded
/// to multiples of 4, 8, 16 and 32, and with more workspace.
void check_unavoidable(Libraries& libraries, const ConvolutionShape& shape, CudnnRequest request) {
    const bool may_fuse = request.pass == ConvolutionPass::forward &&
                          (shape.activation == Activation::none || shape.activation == Activation::relu);
    request.most_workspace = std::int64_t{16} << 30;
    for (const std::int64_t unit : {1, 4, 8, 16, 32}) {
        if (shape.groups == 1) {
            request.shape.channels_in = padded(shape.channels_in, unit);
            request.shape.channels_out = padded(shape.channels_out, unit);
        }
        for (const bool is_fused : {false, may_fuse}) {
            request.is_fused = is_fused;
            const auto pass = plan_cudnn_pass(libraries, request);
            CAPTURE(unit);
            CAPTURE(is_fused);
            CHECK((!pass || is_generic(*pass)));
        }
    }
}

}  // namespace

TEST_CASE("cuDNN's engines: the chosen ones are those of the table, precompiled and not avoidably generic") {
    const Table table = read_table();
    const char* const written = std::getenv("FINCH_WRITE_ENGINES");
    std::ofstream file(written != nullptr ? written : "/dev/null");
    file << fmt::format(
        "# The engines that cuDNN chooses. Device: batch x height x width x channels, filters; precision\n"
        "# = forward; gradient of x; gradient of weights. Written by tests/cuda/engines.cpp.\n"
        "cuDNN {}\n",
        cudnn_version());
    if (table.cudnn_version != cudnn_version()) {
        MESSAGE("the table is for cuDNN " << table.cudnn_version << ", this is " << cudnn_version());
    }
    for (const Architecture& architecture : architectures) {
        Libraries libraries(described(architecture));
        const Rows rows = rows_of(libraries, architecture.name, [&](const auto& shape, const EngineChoice& choice) {
            CAPTURE(std::string(architecture.name));
            CAPTURE(text_of(shape));
            CAPTURE(choice.name);
            CHECK((choice.request.pass != ConvolutionPass::weight_gradient ||
                   choice.request.type == TensorType::float32 || shape.y_type == TensorType::bfloat16));
            CHECK(static_cast<std::int64_t>(choice.pass->workspace_bytes()) <= choice.request.most_workspace);
            if (is_generic(*choice.pass)) {
                check_unavoidable(libraries, shape, choice.request);
            }
        });
        for (const auto& [key, row] : rows) {
            file << key << " = " << row << "\n";
            if (table.cudnn_version == cudnn_version() && written == nullptr) {
                CAPTURE(key);
                const auto known = table.rows.find(key);
                CHECK((known == table.rows.end() ? "" : known->second) == row);
            }
        }
    }
}
