#pragma once

#include "finch/energy/energy.hpp"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

/// What tells one rank how much energy it uses: the counter of its GPU (NVML), those of its node's CPUs (RAPL), or a
/// power that the configuration gives.
namespace finch::energy {

/// Counts the joules of one rank: of a counter that it shares with others, its part.
class Meter {
public:
    virtual ~Meter() = default;
    [[nodiscard]] virtual Source source() const noexcept = 0;
    /// Joules since some fixed moment. `now`: steady seconds. Nothing where they cannot be read now.
    [[nodiscard]] virtual std::optional<double> read(double now) = 0;
};

/// Where counters are found. FINCH_TEST_RAPL and FINCH_TEST_NVML are for the tests: another folder and library.
struct Places {
    std::filesystem::path powercap = "/sys/class/powercap";
    std::string nvml = "libnvidia-ml.so.1";
    [[nodiscard]] static Places of_this_process();
};

/// A meter, or why there is none.
struct Found {
    std::unique_ptr<Meter> meter{};
    std::string problem{};
    int packages = 0;        ///< of RAPL, that are read
    bool is_closed = false;  ///< of RAPL: there are counters, which this user may not read
};

/// `watts` all the time.
[[nodiscard]] std::unique_ptr<Meter> make_estimate(double watts);

/// The node's packages in `powercap` (the kernel's powercap framework: intel-rapl:N with the name package-…, of AMD's
/// processors too), each `ranks`-th part. Their parts (intel-rapl:N:M) are in them, and psys has them in it: neither is
/// added. Counters of microjoules that begin again at max_energy_range_uj. The memory's energy is in none of them on
/// most servers. The reading must be repeated before a counter has gone round: some minutes.
[[nodiscard]] Found open_rapl(const std::filesystem::path& powercap, int ranks);

/// The GPU with this UUID, of which a rank has the `ranks`-th part: nvmlDeviceGetTotalEnergyConsumption, which Volta
/// and later GPUs have; not parts of a GPU (MIG). The library comes with the driver and is looked for at run time.
[[nodiscard]] Found open_nvml(const std::string& library, const std::string& uuid, int ranks);

/// What a rank computes with.
struct Wishes {
    std::string gpu{};                 ///< UUID; empty: it computes on CPUs
    int ranks_on_gpu = 1;              ///< of the run
    int ranks_on_node = 1;             ///< of the run
    std::optional<double> watts = {};  ///< of the rank, where nothing is measured
};

/// The first of these that there is: the GPU's counter, or on CPUs the packages'; an estimate; none. `problem` says why
/// nothing is measured.
[[nodiscard]] Found open_meter(const Wishes& wishes, const Places& places);

/// What a machine can measure; for people.
struct Available {
    int packages = 0;                          ///< whose counters can be read
    std::string rapl_problem{};                ///< why none
    bool rapl_is_closed = false;               ///< there are counters, which this user may not read
    std::vector<std::string> nvml_problems{};  ///< by GPU; empty: it is measured
    bool operator==(const Available&) const = default;
};
[[nodiscard]] Available find_available(const std::vector<std::string>& gpus, const Places& places);

}  // namespace finch::energy
