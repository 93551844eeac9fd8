#include "finch/energy/meter.hpp"

#include <cstdlib>
#include <utility>

namespace finch::energy {
namespace {

class Estimate : public Meter {
public:
    explicit Estimate(double watts) : watts_(watts) {}
    [[nodiscard]] Source source() const noexcept override { return Source::estimated; }
    [[nodiscard]] std::optional<double> read(double now) override { return watts_ * now; }

private:
    double watts_;
};

}  // namespace

Places Places::of_this_process() {
    Places places;
    if (const char* folder = std::getenv("FINCH_TEST_RAPL")) {
        places.powercap = folder;
    }
    if (const char* library = std::getenv("FINCH_TEST_NVML")) {
        places.nvml = library;
    }
    return places;
}

std::unique_ptr<Meter> make_estimate(double watts) {
    return std::make_unique<Estimate>(watts);
}

Found open_meter(const Wishes& wishes, const Places& places) {
    Found found = wishes.gpu.empty() ? open_rapl(places.powercap, wishes.ranks_on_node)
                                     : open_nvml(places.nvml, wishes.gpu, wishes.ranks_on_gpu);
    if (!found.meter && wishes.watts) {
        found.meter = make_estimate(*wishes.watts);
    }
    return found;
}

Available find_available(const std::vector<std::string>& gpus, const Places& places) {
    Available available;
    const Found cpus = open_rapl(places.powercap, 1);
    available.packages = cpus.packages;
    available.rapl_problem = cpus.problem;
    available.rapl_is_closed = cpus.is_closed;
    for (const std::string& uuid : gpus) {
        available.nvml_problems.push_back(open_nvml(places.nvml, uuid, 1).problem);
    }
    return available;
}

}  // namespace finch::energy
