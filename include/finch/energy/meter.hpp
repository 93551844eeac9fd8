#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

/// Energy use of one rank: from the counter of its GPU (NVML), from the counters of its node's CPUs (RAPL), or an
/// estimate.
namespace finch::energy {

class Meter {
public:
    virtual ~Meter() = default;
    /// Returns the joules since some fixed moment, or NaN if the counter cannot be read. If several ranks share the
    /// counter, returns this rank's part. `now`: steady seconds. Call read() at least once a minute, because RAPL's
    /// counters wrap within minutes.
    [[nodiscard]] virtual double read(double now) = 0;
};

/// A meter, or the reason why there is no meter.
struct Found {
    std::unique_ptr<Meter> meter{};
    std::string name{};      ///< "measured by the CPUs (RAPL)"; empty: no meter
    std::string problem{};   ///< why nothing is measured
    bool is_closed = false;  ///< RAPL: the counters exist, but this user may not read them
};

/// Returns a meter that assumes a constant power of `watts`.
[[nodiscard]] Found make_estimate(double watts);

/// Opens the RAPL counters of the node's CPU packages: the zones intel-rapl:N in the folder `powercap` whose name
/// begins with package-. AMD processors use the same names. The meter returns the energy of the packages divided by
/// `ranks`. Subzones (intel-rapl:N:M) and psys, which includes the packages, are not counted. On most servers the
/// counters of the packages do not include the memory.
/// Source: the kernel's Documentation/power/powercap/powercap.rst.
[[nodiscard]] Found open_rapl(const std::filesystem::path& powercap, int ranks);

/// Opens the energy counter of the GPU with this UUID, which nvmlDeviceGetTotalEnergyConsumption reads. Volta and later
/// GPUs have the counter, but parts of a GPU do not. The meter returns the energy of the GPU divided by `ranks`.
/// `library` comes with the driver and is opened at run time.
[[nodiscard]] Found open_nvml(const std::string& library, const std::string& uuid, int ranks);

/// The locations of the counters. In tests, the environment variables FINCH_TEST_RAPL and FINCH_TEST_NVML set other
/// locations.
std::filesystem::path powercap_folder();
std::string nvml_library();

/// The devices of a rank.
struct Place {
    std::string gpu{};                 ///< UUID; empty: the rank computes on CPUs
    int ranks_on_gpu = 1;              ///< ranks of the run that share the GPU
    int ranks_on_node = 1;             ///< ranks of the run on the same node
    std::optional<double> watts = {};  ///< power of the rank, used if nothing is measured
};

/// Opens the counter of the GPU, or of the CPU packages if the rank computes on CPUs. If the counter is not available,
/// returns an estimate from `place.watts`. Returns no meter if `place.watts` is not set either.
[[nodiscard]] Found open_meter(const Place& place);

}  // namespace finch::energy
