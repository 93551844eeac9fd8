#include "finch/search/propagator.hpp"

#include <utility>

namespace finch::search {
namespace {

class RandomSearch final : public Propagator {
public:
    explicit RandomSearch(Space space) : space_(std::move(space)) {}

    Offspring breed(const Population&, int, const Stage&, RandomStream& random) override {
        return {random_genome(space_, random), {}, Operator::random};
    }

private:
    Space space_;
};

}  // namespace

std::unique_ptr<Propagator> make(const RandomSearchOptions&, const Space& space, std::uint64_t) {
    return std::make_unique<RandomSearch>(space);
}

bool supports_costs(const PropagatorOptions& options) noexcept {
    return std::holds_alternative<GeneticOptions>(options) || std::holds_alternative<RandomSearchOptions>(options) ||
           std::holds_alternative<EvolutionOptions>(options) || std::holds_alternative<ScreenedOptions>(options) ||
           std::holds_alternative<AutomaticOptions>(options);
}

std::unique_ptr<Propagator> make_propagator(const PropagatorOptions& options, const Space& space, std::uint64_t seed) {
    return std::visit([&](const auto& kind) { return make(kind, space, seed); }, options);
}

std::vector<const Individual*> in_training_on(const Population& population, int island) {
    std::vector<const Individual*> found;
    for (const Individual* individual : population.unfinished()) {
        if (population.island_now(individual->island) == island && !individual->is_repeat()) {
            found.push_back(individual);
        }
    }
    return found;
}

}  // namespace finch::search
