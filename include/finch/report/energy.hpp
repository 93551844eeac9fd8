#pragma once

#include "finch/energy/energy.hpp"
#include "finch/search/population.hpp"

#include <array>
#include <cstddef>
#include <string>

namespace finch::report {

/// What the individuals of a run took.
struct EnergyTotals {
    std::array<double, words_of(energy::Source{}).size()> joules{};  ///< by source
    std::size_t unknown = 0;  ///< individuals that were trained, of unknown joules

    [[nodiscard]] double all() const noexcept;
    [[nodiscard]] bool is_known() const noexcept;  ///< any of it
};

/// Those in training count with what their last snapshot knows.
[[nodiscard]] EnergyTotals energy_totals(const search::Population& population);

/// "measured on GPUs".
[[nodiscard]] std::string source_text(energy::Source source);

/// "1.24 kWh, 80 % measured on GPUs, 20 % estimated; not known of 3 individuals"; empty where nothing is known.
[[nodiscard]] std::string energy_text(const EnergyTotals& totals);

}  // namespace finch::report
