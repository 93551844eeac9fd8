#pragma once

#include "finch/base/format.hpp"
#include "finch/base/words.hpp"
#include "finch/search/population.hpp"

#include <cmath>
#include <string>

namespace finch::report {

/// Returns an energy as text: "12.3 J", "456 kJ" or "7.89 kWh", with three digits, or "-" for NaN (unknown).
inline std::string joules_text(double joules) {
    if (std::isnan(joules)) {
        return "-";
    }
    const double value = joules < 1e3 ? joules : joules < 1e6 ? joules / 1e3 : joules / 3.6e6;
    const int decimals = value < 0.9995 ? 3 : value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    return fmt::format("{:.{}f} {}", value, decimals, joules < 1e3 ? "J" : joules < 1e6 ? "kJ" : "kWh");
}

/// The energy of all individuals of a run; of unfinished individuals, the energy up to their last snapshot.
struct RunJoules {
    double sum = 0;
    std::int64_t unknown = 0;  ///< number of trained individuals with unknown energy

    explicit RunJoules(const search::Population& population) {
        for (const auto& [id, one] : population.individuals()) {
            const bool is_known = !std::isnan(one.joules);
            sum += is_known ? one.joules : 0;
            unknown += !is_known && (one.training_seconds > 0 || one.finished_training()) ? 1 : 0;
        }
    }
    /// Returns the total energy as text: "1.24 kWh; not known of 3 individuals"; empty if no energy is known.
    [[nodiscard]] std::string text() const {
        const std::string rest = unknown > 0 ? "; not known of " + counted(unknown, "individual") : "";
        return sum > 0 ? joules_text(sum) + rest : "";
    }
};

}  // namespace finch::report
