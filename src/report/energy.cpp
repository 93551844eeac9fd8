#include "finch/report/energy.hpp"

#include "finch/base/enum_words.hpp"
#include "finch/base/format.hpp"
#include "finch/base/words.hpp"

#include <numeric>
#include <vector>

namespace finch::report {

double EnergyTotals::all() const noexcept {
    return std::accumulate(joules.begin(), joules.end(), 0.0);
}

bool EnergyTotals::is_known() const noexcept {
    return all() > 0;
}

EnergyTotals energy_totals(const search::Population& population) {
    EnergyTotals totals;
    for (const auto& [id, one] : population.individuals()) {
        if (one.energy.is_known()) {
            totals.joules.at(static_cast<std::size_t>(one.energy.source)) += one.energy.joules;
        } else if (one.training_seconds > 0 || one.finished_training()) {
            ++totals.unknown;
        }
    }
    return totals;
}

std::string energy_text(const EnergyTotals& totals) {
    if (!totals.is_known()) {
        return "";
    }
    std::vector<std::string> parts;
    for (std::size_t i = 0; i < totals.joules.size(); ++i) {
        if (totals.joules.at(i) > 0) {
            parts.push_back(fmt::format("{:.3g} % {}", 100 * totals.joules.at(i) / totals.all(),
                                        source_text(static_cast<energy::Source>(i))));
        }
    }
    const std::string unknown = totals.unknown > 0 ? "; not known of " + counted(totals.unknown, "individual") : "";
    return fmt::format("{}, {}{}", energy::joules_text(totals.all()), fmt::join(parts, ", "), unknown);
}

std::string source_text(energy::Source source) {
    switch (source) {
        case energy::Source::unknown:
            return "not known";
        case energy::Source::none:
            return "none";
        case energy::Source::estimated:
            return "estimated";
        case energy::Source::measured_cpu:
            return "measured on CPUs";
        case energy::Source::measured_gpu:
            return "measured on GPUs";
        case energy::Source::mixed:
            return "from several sources";
    }
    return "";
}

}  // namespace finch::report
