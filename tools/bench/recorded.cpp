#include "recorded.hpp"

#include "finch/config/config.hpp"
#include "finch/store/resume.hpp"

#include <algorithm>
#include <stdexcept>

namespace finch::bench {

Recorded read_recorded(const std::string& run) {
    const auto recovered = store::recover(store::RunDirectory(run), OnDamage::leave);
    if (!recovered) {
        throw std::runtime_error("no run in " + run);
    }
    search::Population population(search::ExchangeKind::none, 1);
    recovered->merge_into(population);
    Recorded recorded{.space = config::parse(recovered->facts.config, run).space, .trainings = {}};
    for (const auto& [id, individual] : population.individuals()) {
        if (!individual.curve.empty()) {
            recorded.trainings.push_back({individual.genome, individual.curve, individual.is_complete(),
                                          individual.parameters, individual.joules});
            recorded.epochs = std::max(recorded.epochs, individual.curve.size());
        }
    }
    return recorded;
}

}  // namespace finch::bench
