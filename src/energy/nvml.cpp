// The NVIDIA Management Library (NVML) is opened at run time, because a machine without a driver does not have NVML.
// This file repeats the few necessary declarations of nvml.h, so that the build does not need CUDA. NVML keeps these
// declarations compatible between versions.
#include "finch/base/format.hpp"
#include "finch/base/handle.hpp"
#include "finch/energy/meter.hpp"

#include <dlfcn.h>
#include <limits>
#include <utility>

namespace finch::energy {
namespace {

using Result = int;             // nvmlReturn_t, an enum; 0: NVML_SUCCESS
using Device = struct Opaque*;  // nvmlDevice_t
constexpr Result success = 0;

/// The loaded library and the functions that Finch uses. NVML stays initialised for the lifetime of this object.
class Nvml {
public:
    Nvml() = default;
    Nvml(const Nvml&) = delete;
    Nvml& operator=(const Nvml&) = delete;
    ~Nvml() {
        if (is_initialized_) {
            shut_down_();
        }
    }

    /// Loads and initialises the library. Returns an empty text on success, otherwise the reason for the failure.
    [[nodiscard]] std::string open(const std::string& name) {
        library_.reset(::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL));
        if (!library_) {
            return ::dlerror();
        }
        for (const bool found :
             {load(initialize_, "nvmlInit_v2"), load(shut_down_, "nvmlShutdown"), load(error_text_, "nvmlErrorString"),
              load(device_by_uuid_, "nvmlDeviceGetHandleByUUID"),
              load(total_energy_, "nvmlDeviceGetTotalEnergyConsumption")}) {
            if (!found) {
                return name + " is no NVML of a driver that this program knows";
            }
        }
        const Result result = initialize_();
        is_initialized_ = result == success;
        return is_initialized_ ? "" : "nvmlInit: " + text(result);
    }

    [[nodiscard]] Result find(const std::string& uuid, Device& device) const {
        return device_by_uuid_(uuid.c_str(), &device);
    }
    /// Reads the GPU's energy in millijoules since the driver was loaded.
    [[nodiscard]] Result read(Device device, unsigned long long& millijoules) const {
        return total_energy_(device, &millijoules);
    }
    [[nodiscard]] std::string text(Result result) const { return error_text_(result); }

private:
    template <class Function>
    [[nodiscard]] bool load(Function& function, const char* name) {
        function = reinterpret_cast<Function>(::dlsym(library_.get(), name));
        return function != nullptr;
    }

    UniqueHandle<PointerTraits<void*, ::dlclose>> library_;
    bool is_initialized_ = false;
    Result (*initialize_)() = nullptr;
    Result (*shut_down_)() = nullptr;
    const char* (*error_text_)(Result) = nullptr;
    Result (*device_by_uuid_)(const char*, Device*) = nullptr;
    Result (*total_energy_)(Device, unsigned long long*) = nullptr;
};

class NvmlMeter : public Meter {
public:
    NvmlMeter(std::unique_ptr<Nvml> nvml, Device device, int ranks)
        : nvml_(std::move(nvml)), device_(device), ranks_(ranks) {}

    [[nodiscard]] double read(double /*now*/) override {
        unsigned long long millijoules = 0;
        const bool counts = nvml_->read(device_, millijoules) == success;
        return counts ? 1e-3 * static_cast<double>(millijoules) / ranks_ : std::numeric_limits<double>::quiet_NaN();
    }

private:
    std::unique_ptr<Nvml> nvml_;
    Device device_;
    int ranks_;
};

}  // namespace

Found open_nvml(const std::string& library, const std::string& uuid, int ranks) {
    auto nvml = std::make_unique<Nvml>();
    if (std::string problem = nvml->open(library); !problem.empty()) {
        return {.problem = std::move(problem)};
    }
    Device device = nullptr;
    if (const Result result = nvml->find(uuid, device); result != success) {
        return {.problem = fmt::format("NVML does not know the GPU {}: {}", uuid, nvml->text(result))};
    }
    unsigned long long millijoules = 0;
    if (const Result result = nvml->read(device, millijoules); result != success) {
        return {.problem = fmt::format("the GPU {} does not count its energy: {}", uuid, nvml->text(result))};
    }
    return {.meter = std::make_unique<NvmlMeter>(std::move(nvml), device, ranks),
            .name = "measured by the GPUs (NVML)"};
}

}  // namespace finch::energy
