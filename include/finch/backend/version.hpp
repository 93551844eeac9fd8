#pragma once

#include <string>

namespace finch::backend {

/// "2.6.3, AVX-512": oneDNN's version and the widest instructions that it uses here.
[[nodiscard]] std::string onednn_version();

/// GPUs that the CUDA backend was built for, as CMake names them, with spaces between: "80-real 90"; empty if it is
/// not built.
[[nodiscard]] std::string cuda_architectures();

}  // namespace finch::backend
