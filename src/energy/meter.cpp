#include "finch/energy/meter.hpp"

#include "finch/base/format.hpp"

#include <cstdlib>

namespace finch::energy {
namespace {

class Estimate : public Meter {
public:
    explicit Estimate(double watts) : watts_(watts) {}
    [[nodiscard]] double read(double now) override { return watts_ * now; }

private:
    double watts_;
};

std::string variable_or(const char* variable, const char* usual) {
    const char* const value = std::getenv(variable);
    return value != nullptr ? value : usual;
}

}  // namespace

std::filesystem::path powercap_folder() {
    return variable_or("FINCH_TEST_RAPL", "/sys/class/powercap");
}
std::string nvml_library() {
    return variable_or("FINCH_TEST_NVML", "libnvidia-ml.so.1");
}

Found make_estimate(double watts) {
    return {.meter = std::make_unique<Estimate>(watts),
            .name = fmt::format("estimated with {:g} W for each rank (workers.watts)", watts)};
}

Found open_meter(const Place& place) {
    Found found = place.gpu.empty() ? open_rapl(powercap_folder(), place.ranks_on_node)
                                    : open_nvml(nvml_library(), place.gpu, place.ranks_on_gpu);
    if (!found.meter && place.watts) {
        Found estimate = make_estimate(*place.watts);
        estimate.problem = std::move(found.problem);
        return estimate;
    }
    return found;
}

}  // namespace finch::energy
