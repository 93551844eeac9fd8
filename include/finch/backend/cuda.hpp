#pragma once

#include "finch/backend/device.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace finch::backend {

/// Properties of a CUDA device. cuda_devices() queries the properties without making the device current.
struct DeviceDescription {
    int index = 0;           ///< index among the devices that this process sees
    std::string uuid;        ///< "GPU-8-4-4-4-12", the same in every process, even if some devices are hidden
    std::string name;        ///< "NVIDIA H200"
    std::string pci_bus_id;  ///< "0000:1b:00.0"
    std::int64_t memory_bytes = 0;
    int capability = 0;              ///< 10 · major + minor: 90 for Hopper
    std::vector<bool> reaches = {};  ///< by index: true if this device can read that device's memory directly
    bool operator==(const DeviceDescription&) const = default;
};

/// Returns the devices that this process sees. The list is empty if there is no driver or no device, or if the CUDA
/// backend is not built.
[[nodiscard]] std::vector<DeviceDescription> cuda_devices();
/// Returns CUDA's error message if there is no device, otherwise an empty text.
[[nodiscard]] std::string cuda_problem();

/// Library versions as the libraries report them: either 1000 · major + 10 · minor, or the library's own encoding. The
/// version of a missing library is 0.
struct CudaVersions {
    bool built = false;  ///< true if this program has the CUDA backend
    int driver = 0;      ///< the CUDA version that the driver supports
    int runtime = 0;
    std::int64_t cudnn = 0;        ///< 91900 for 9.19.0
    std::int64_t cudnn_built = 0;  ///< version of the headers
    std::int64_t cublas = 0;
    std::string problem = {};  ///< cuda_problem()
    bool operator==(const CudaVersions&) const = default;
};
/// Loads the libraries (150 MB) and queries their versions.
[[nodiscard]] CudaVersions cuda_versions();

/// The kernels that a device uses. Measurements and tests choose the kernels explicitly.
enum class CudaPath { automatic, library, direct };

/// Like make_cuda_device(index), with an explicit choice of kernels. `direct` falls back to cuDNN and cuBLASLt for
/// shapes that Finch's own kernels do not support.
[[nodiscard]] std::unique_ptr<Device> make_cuda_device(int index, CudaPath path, int ranks = 1);

}  // namespace finch::backend
