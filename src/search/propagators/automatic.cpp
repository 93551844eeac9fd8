#include "durations.hpp"
#include "folding_propagator.hpp"
#include "screened.hpp"

#include <algorithm>

namespace finch::search {
namespace {

constexpr double genes_of_twice = 40;  ///< with this many genes, a model takes twice as long

/// The number and the durations of an island's results.
struct Results {
    double count = 0;
    Durations durations = {};

    void take(const Individual& one, bool /*born_here*/) {
        ++count;
        durations.take(one);
    }
};

class Automatic final : public Propagator {
public:
    Automatic(const AutomaticOptions& options, const Space& space, std::uint64_t seed)
        : options_(options),
          genes_(space.size()),
          screened_({}, space, seed),
          evolution_(make(EvolutionOptions{}, space, seed)) {}

    Offspring breed(const Population& population, int island, const Stage& stage, RandomStream& random) override {
        // A leader may not receive all results of its island. The number of births then tells how many results there
        // are.
        // With many concurrent evaluations, nearly all births up to most_screened would be bred from the results of one
        // generation, and the individuals in training would make the models slow.
        is_screened_ = 2 * stage.workers <= options_.most_screened &&
                       stage.births < static_cast<std::uint64_t>(options_.most_screened + stage.workers) &&
                       is_worth_a_model(population, island, stage.workers);
        return is_screened_ ? screened_.breed(population, island, stage, random)
                            : evolution_->breed(population, island, stage, random);
    }
    std::size_t first_points(std::int64_t evaluations) const noexcept override {
        return screened_.first_points(evaluations);
    }
    bool looks_at_training() const noexcept override { return is_screened_; }

private:
    [[nodiscard]] bool is_worth_a_model(const Population& population, int island, double in_training) {
        const Results& results = results_.over(population, island);
        const double known = std::min(results.count, static_cast<double>(ScreenedOptions{}.most_points)) + in_training;
        const double models = 1 + static_cast<double>(population.costs().size());
        const double model = models * options_.model_seconds * known * known;
        return population.finished_on(island) < static_cast<std::size_t>(options_.most_screened) &&
               results.durations.allow(model * (1 + static_cast<double>(genes_) / genes_of_twice));
    }

    AutomaticOptions options_;
    std::size_t genes_;
    FoldingPropagator<ScreenedState, ScreenedOptions> screened_;
    std::unique_ptr<Propagator> evolution_;
    bool is_screened_ = true;
    Fold<Results> results_{Results{}};
};

}  // namespace

std::unique_ptr<Propagator> make(const AutomaticOptions& options, const Space& space, std::uint64_t seed) {
    return std::make_unique<Automatic>(options, space, seed);
}

}  // namespace finch::search
