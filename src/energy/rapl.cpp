// The kernel's powercap framework (Documentation/power/powercap/powercap.rst).
#include "finch/base/files.hpp"
#include "finch/base/format.hpp"
#include "finch/base/parsed.hpp"
#include "finch/energy/meter.hpp"

#include <array>
#include <cerrno>
#include <cstdint>
#include <fcntl.h>
#include <string_view>
#include <unistd.h>
#include <utility>

namespace finch::energy {
namespace {

namespace fs = std::filesystem;

/// What stands in a file of sysfs, without its end of line; nothing, and why in `problem`, where it cannot be read.
std::optional<std::string> read_line(const fs::path& path, std::string& problem) {
    std::string why;
    const FileDescriptor file = open_regular(path, O_RDONLY, why);
    std::array<char, 64> text{};
    const auto count = file ? ::read(file.get(), text.data(), text.size()) : -1;
    if (count < 0) {
        problem = fmt::format("{}: {}", path.string(), why.empty() ? std::string("cannot be read") : why);
        return std::nullopt;
    }
    std::string_view line(text.data(), static_cast<std::size_t>(count));
    return std::string(line.substr(0, line.find('\n')));
}

/// Exact in a double up to 2^53, which no counter comes to.
std::optional<double> read_number(const fs::path& path, std::string& problem) {
    const auto line = read_line(path, problem);
    if (!line) {
        return std::nullopt;
    }
    const auto number = parsed<std::uint64_t>(*line);
    if (!number) {
        problem = fmt::format("{}: \"{}\" is no number of microjoules", path.string(), *line);
        return std::nullopt;
    }
    return static_cast<double>(*number);
}

/// One processor's counter of microjoules.
struct Package {
    fs::path counter;
    double range = 0;  ///< it begins again at 0 behind this
    double last = 0;
    double total = 0;  ///< since it was opened
};

class RaplMeter : public Meter {
public:
    RaplMeter(std::vector<Package> packages, int ranks) : packages_(std::move(packages)), ranks_(ranks) {}

    [[nodiscard]] Source source() const noexcept override { return Source::measured_cpu; }

    [[nodiscard]] std::optional<double> read(double /*now*/) override {
        double microjoules = 0;
        for (Package& package : packages_) {
            std::string problem;
            const auto counted = read_number(package.counter, problem);
            if (!counted) {
                return std::nullopt;
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

/// A processor, or what is around all of them (psys); no part of a processor.
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
        // As if there were none.
    }
    std::erase_if(zones, [](const fs::path& path) { return !is_zone(path.filename().string()); });
    return zones;
}

}  // namespace

Found open_rapl(const fs::path& powercap, int ranks) {
    Found found;
    std::vector<Package> packages;
    for (const fs::path& zone : zones_in(powercap)) {
        const auto name = read_line(zone / "name", found.problem);
        if (!name || !name->starts_with("package-")) {
            continue;
        }
        Package package{.counter = zone / "energy_uj"};
        const auto range = read_number(zone / "max_energy_range_uj", found.problem);
        errno = 0;
        const auto now = range ? read_number(package.counter, found.problem) : std::nullopt;
        if (!now) {
            found.is_closed = errno == EACCES;
            return found;  // some of the packages are no measurement of the node
        }
        package.range = *range;
        package.last = *now;
        packages.push_back(std::move(package));
    }
    if (packages.empty()) {
        found.problem = fmt::format("{}: no processor has a counter of its energy there", powercap.string());
        return found;
    }
    found.packages = static_cast<int>(packages.size());
    found.problem.clear();
    found.meter = std::make_unique<RaplMeter>(std::move(packages), ranks);
    return found;
}

}  // namespace finch::energy
