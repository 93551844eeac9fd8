#include "evolution.hpp"
#include "folding_propagator.hpp"
#include "screened.hpp"

#include <algorithm>

namespace finch::search {
namespace {

constexpr double most_model_share = 0.25;  ///< fraction of the time of an evaluation
constexpr double genes_of_twice = 40;      ///< with this many genes, a model takes twice as long

/// The durations of an island's evaluations.
struct Durations {
    double results = 0;
    double timed = 0;
    double seconds = 0;  ///< sum over the timed evaluations

    void take(const Individual& one, bool /*born_here*/) {
        ++results;
        if (one.started > 0 && one.finished >= one.started) {
            seconds += one.finished - one.started;
            ++timed;
        }
    }
};

class Automatic final : public Propagator {
public:
    Automatic(const AutomaticOptions& options, const Space& space, std::uint64_t seed)
        : options_(options), genes_(space.size()), screened_({}, space, seed), evolution_({}, space, seed) {}

    Offspring breed(const Population& population, int island, const Stage& stage, RandomStream& random) override {
        // A leader may not receive all results of its island. The number of births then tells how many results there
        // are.
        is_screened_ = stage.births < static_cast<std::uint64_t>(options_.most_screened + stage.workers) &&
                       is_worth_a_model(population, island, stage.workers);
        return is_screened_ ? screened_.breed(population, island, stage, random)
                            : evolution_.breed(population, island, stage, random);
    }
    std::size_t population() const noexcept override { return screened_.population(); }
    std::size_t first_points(std::int64_t evaluations) const noexcept override {
        return screened_.first_points(evaluations);
    }
    bool looks_at_training() const noexcept override { return is_screened_; }

private:
    [[nodiscard]] bool is_worth_a_model(const Population& population, int island, double in_training) {
        const Durations& durations = durations_.over(population, island);
        const double known =
            std::min(durations.results, static_cast<double>(ScreenedOptions{}.most_points)) + in_training;
        const double model = options_.model_seconds * known * known;
        return population.finished_on(island) < static_cast<std::size_t>(options_.most_screened) &&
               (durations.timed == 0 || model * (1 + static_cast<double>(genes_) / genes_of_twice) <
                                            most_model_share * durations.seconds / durations.timed);
    }

    AutomaticOptions options_;
    std::size_t genes_;
    FoldingPropagator<ScreenedState, ScreenedOptions> screened_;
    FoldingPropagator<EvolutionState, EvolutionOptions> evolution_;
    bool is_screened_ = true;
    Fold<Durations> durations_{Durations{}};
};

}  // namespace

std::unique_ptr<Propagator> make(const AutomaticOptions& options, const Space& space, std::uint64_t seed) {
    return std::make_unique<Automatic>(options, space, seed);
}

}  // namespace finch::search
