#include "finch/base/files.hpp"
#include "finch/base/format.hpp"
#include "finch/energy/meter.hpp"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

namespace finch::energy {
namespace {

namespace fs = std::filesystem;

/// Returns the number of microjoules in a sysfs file. The result is exact up to 2^53. If the file cannot be read,
/// returns std::nullopt and writes the reason to `problem`.
std::optional<double> read_number(const fs::path& path, std::string& problem) {
    errno = 0;
    std::ifstream file(path);
    std::uint64_t number = 0;
    if (!(file >> number)) {
        problem =
            fmt::format("{}: {}", path.string(), file.is_open() ? "is no number of microjoules" : std::strerror(errno));
        return std::nullopt;
    }
    return static_cast<double>(number);
}

/// The energy counter of one processor, in microjoules.
struct Package {
    fs::path counter;
    double range = 0;  ///< after this value the counter restarts at 0
    double last = 0;
    double total = 0;  ///< since the meter was opened
};

class RaplMeter : public Meter {
public:
    RaplMeter(std::vector<Package> packages, int ranks) : packages_(std::move(packages)), ranks_(ranks) {}

    [[nodiscard]] double read(double /*now*/) override {
        double microjoules = 0;
        std::string problem;
        for (Package& package : packages_) {
            const auto counted = read_number(package.counter, problem);
            if (!counted) {
                return std::numeric_limits<double>::quiet_NaN();
            }
            const bool has_wrapped = *counted < package.last;
            package.total += *counted - package.last + (has_wrapped ? package.range : 0);
            package.last = *counted;
            microjoules += package.total;
        }
        return 1e-6 * microjoules / ranks_;
    }

private:
    std::vector<Package> packages_;
    int ranks_;
};

/// True if the zone with this `name` belongs to a processor, or is psys, which includes all processors. False for the
/// zone of a part of a processor.
bool is_zone(const std::string& name) {
    constexpr std::string_view prefix = "intel-rapl:";
    return name.starts_with(prefix) && name.size() > prefix.size() &&
           name.find_first_not_of("0123456789", prefix.size()) == std::string::npos;
}

std::vector<fs::path> zones_in(const fs::path& powercap) {
    std::vector<fs::path> zones;
    try {
        zones = list_folder(powercap);
    } catch (const StorageError&) {
        // An unreadable folder is treated like an empty folder.
    }
    std::erase_if(zones, [](const fs::path& path) { return !is_zone(path.filename().string()); });
    return zones;
}

}  // namespace

Found open_rapl(const fs::path& powercap, int ranks) {
    Found found;
    std::vector<Package> packages;
    for (const fs::path& zone : zones_in(powercap)) {
        std::string name;
        if (!(std::ifstream(zone / "name") >> name) || !name.starts_with("package-")) {
            continue;
        }
        Package package{.counter = zone / "energy_uj"};
        const auto range = read_number(zone / "max_energy_range_uj", found.problem);
        const auto now = range ? read_number(package.counter, found.problem) : std::nullopt;
        if (!now) {
            found.is_closed = range && errno == EACCES;
            return found;  // without all packages the node is not measured
        }
        package.range = *range;
        package.last = *now;
        packages.push_back(std::move(package));
    }
    if (packages.empty()) {
        found.problem = fmt::format("{}: no processor has a counter of its energy there", powercap.string());
        return found;
    }
    return {.meter = std::make_unique<RaplMeter>(std::move(packages), ranks), .name = "measured by the CPUs (RAPL)"};
}

}  // namespace finch::energy
