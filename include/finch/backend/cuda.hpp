#pragma once

#include "finch/backend/device.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace finch::backend {

/// Description of a CUDA device, obtained without using it.
struct DeviceDescription {
    int index = 0;           ///< among those that this process sees
    std::string uuid;        ///< "GPU-8-4-4-4-12", the same in every process and whatever hides devices
    std::string name;        ///< "NVIDIA H200"
    std::string pci_bus_id;  ///< "0000:1b:00.0"
    std::int64_t memory_bytes = 0;
    int capability = 0;              ///< 10 · major + minor: 90 for Hopper
    std::vector<bool> reaches = {};  ///< by index: whether it reads that device's memory directly
    bool operator==(const DeviceDescription&) const = default;
};

/// The devices that this process sees; empty without a driver, without a device, or where the backend is not built.
[[nodiscard]] std::vector<DeviceDescription> cuda_devices();
/// Why there are none, in CUDA's words; empty if there is one.
[[nodiscard]] std::string cuda_problem();

/// Versions as their libraries tell them, 1000 · major + 10 · minor or the library's own; 0 if there is none.
struct CudaVersions {
    bool built = false;  ///< whether this program has the backend
    int driver = 0;      ///< the CUDA version that the driver serves
    int runtime = 0;
    std::int64_t cudnn = 0;        ///< 91900 for 9.19.0
    std::int64_t cudnn_built = 0;  ///< that of the headers
    std::int64_t cublas = 0;
    std::string problem = {};  ///< cuda_problem()
    bool operator==(const CudaVersions&) const = default;
};
/// Loads the libraries, which take 150 MB, to ask them.
[[nodiscard]] CudaVersions cuda_versions();

/// Which kernels a device uses: for measurements and tests.
enum class CudaPath { automatic, library, direct };

/// Like make_cuda_device(index), with a choice of kernels. `direct` falls back to the libraries for shapes that Finch's
/// own kernels do not suit.
[[nodiscard]] std::unique_ptr<Device> make_cuda_device(int index, CudaPath path);

}  // namespace finch::backend
