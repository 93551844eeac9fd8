// A stand-in for the part of NVML that Finch uses, with known values. Codes and signatures are from nvml.h.
#include <chrono>
#include <cstdlib>
#include <string>

namespace {

constexpr int not_supported = 3;
constexpr int not_found = 6;

int counts = 0;
int is_silent = not_supported;

}  // namespace

extern "C" {

int fake_nvml_users = 0;
unsigned long long fake_nvml_millijoules = 0;
int fake_nvml_failure = 0;  // result of the next calls that read the energy; 0: success

int nvmlInit_v2() {
    ++fake_nvml_users;
    return 0;
}

int nvmlShutdown() {
    --fake_nvml_users;
    return 0;
}

const char* nvmlErrorString(int result) {
    return result == not_supported ? "Not Supported" : result == not_found ? "Not Found" : "Unknown Error";
}

int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
    const std::string name = uuid;
    const bool is_rehearsed = name == "GPU-00000000-0000-0000-0000-000000000001";  // rehearsal's first GPU
    *device = name == "GPU-counting" || is_rehearsed ? &counts : name == "GPU-silent" ? &is_silent : nullptr;
    return *device == nullptr ? not_found : 0;
}

// Returns the energy that the test has set. If FINCH_FAKE_NVML_WATTS is set, the counter increases with this power.
int nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* millijoules) {
    if (fake_nvml_failure != 0) {
        return fake_nvml_failure;
    }
    const char* const watts = std::getenv("FINCH_FAKE_NVML_WATTS");
    const std::chrono::duration<double> now = std::chrono::steady_clock::now().time_since_epoch();
    *millijoules = watts == nullptr ? fake_nvml_millijoules
                                    : static_cast<unsigned long long>(1e3 * std::atof(watts) * now.count());
    return *static_cast<int*>(device);
}
}
