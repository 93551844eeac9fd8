#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

/// How much energy one rank uses: by the counter of its GPU (NVML), those of its node's CPUs (RAPL), or an estimate.
namespace finch::energy {

class Meter {
public:
    virtual ~Meter() = default;
    /// Joules since some fixed moment; of a counter that the rank shares with others, its part. NaN: cannot be read.
    /// `now`: steady seconds. RAPL's counters wrap within minutes: read it every minute.
    [[nodiscard]] virtual double read(double now) = 0;
};

/// A meter, or why there is none.
struct Found {
    std::unique_ptr<Meter> meter{};
    std::string name{};      ///< "measured by the CPUs (RAPL)"; empty: no meter
    std::string problem{};   ///< why nothing is measured
    bool is_closed = false;  ///< of RAPL: there are counters, which this user may not read
};

/// `watts` all the time.
[[nodiscard]] Found make_estimate(double watts);

/// The node's packages in `powercap` (intel-rapl:N with the name package-…, of AMD's processors too), each `ranks`-th
/// part. Without their parts (intel-rapl:N:M) and psys, which has them in it; on most servers without the memory.
/// Source: the kernel's Documentation/power/powercap/powercap.rst.
[[nodiscard]] Found open_rapl(const std::filesystem::path& powercap, int ranks);

/// The GPU with this UUID, of which a rank has the `ranks`-th part: nvmlDeviceGetTotalEnergyConsumption (Volta and
/// later; not parts of a GPU). `library` comes with the driver and is opened at run time.
[[nodiscard]] Found open_nvml(const std::string& library, const std::string& uuid, int ranks);

/// Locations of the counters. FINCH_TEST_RAPL and FINCH_TEST_NVML, for tests, name others.
std::filesystem::path powercap_folder();
std::string nvml_library();

/// The devices of a rank.
struct Place {
    std::string gpu{};                 ///< UUID; empty: it computes on CPUs
    int ranks_on_gpu = 1;              ///< of the run
    int ranks_on_node = 1;             ///< of the run
    std::optional<double> watts = {};  ///< of the rank, where nothing is measured
};

/// The first of these that there is: the GPU's counter, or on CPUs the packages'; an estimate; none.
[[nodiscard]] Found open_meter(const Place& place);

}  // namespace finch::energy
