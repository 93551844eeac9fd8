#include "folding.hpp"

#include "cma_search.hpp"
#include "evolution.hpp"
#include "fold.hpp"
#include "nelder_mead.hpp"
#include "screened.hpp"
#include "swarm.hpp"

#include <algorithm>
#include <optional>

namespace finch::search {
namespace {

constexpr std::size_t whole_history = std::size_t{1} << 30U;  ///< every copy that came to an island counts
constexpr double most_model_share = 0.01;                     ///< of an evaluation

/// Of a `search.start` that somebody asks for.
std::size_t usual_first_points(const Space& space) {
    return std::max<std::size_t>(6, 2 * space.size());
}

class Evolution final : public Propagator {
public:
    Evolution(const EvolutionOptions& options, const Space& space, std::uint64_t seed)
        : plan_{
              .space = space, .seed = seed, .cma_share = options.cma_share, .mutation_share = options.mutation_share} {}

    Offspring breed(const Population& population, int island, const Stage& stage, RandomStream& random) override {
        if (!state_) {
            plan_.evaluations = stage.evaluations;
            plan_.workers = stage.workers;
            state_.emplace(EvolutionState(plan_));
        }
        return state_->over(population, island).breed(stage, random);
    }
    std::size_t population() const noexcept override { return whole_history; }
    std::size_t first_points() const noexcept override { return usual_first_points(plan_.space); }

private:
    EvolutionPlan plan_;
    std::optional<Fold<EvolutionState>> state_;
};

class Screened final : public Propagator {
public:
    Screened(const ScreenedOptions& options, const Space& space, std::uint64_t seed)
        : plan_{.space = space, .seed = seed, .most_points = options.most_points} {}

    Offspring breed(const Population& population, int island, const Stage& stage, RandomStream& random) override {
        if (!state_) {
            plan_.island = island;
            plan_.evaluations = stage.evaluations;
            state_.emplace(ScreenedState(plan_));
        }
        return state_->over(population, island).breed(stage, in_training_on(population, island), random);
    }
    std::size_t population() const noexcept override { return whole_history; }
    std::size_t first_points() const noexcept override { return usual_first_points(plan_.space); }
    bool looks_at_training() const noexcept override { return true; }

private:
    ScreenedPlan plan_;
    std::optional<Fold<ScreenedState>> state_;
};

class Cma final : public Propagator {
public:
    Cma(const CmaEsOptions& options, const Space& space, std::uint64_t seed)
        : plan_{.space = space, .seed = seed, .options = options} {}

    Offspring breed(const Population& population, int island, const Stage& stage, RandomStream& random) override {
        if (!state_) {
            plan_.island = island;
            plan_.workers = stage.workers;
            state_.emplace(CmaState(plan_));
        }
        return state_->over(population, island).breed(stage, random);
    }
    std::size_t population() const noexcept override { return whole_history; }
    std::size_t first_points() const noexcept override { return usual_first_points(plan_.space); }

private:
    CmaPlan plan_;
    std::optional<Fold<CmaState>> state_;
};

class Swarm final : public Propagator {
public:
    Swarm(const SwarmOptions& options, const Space& space, std::uint64_t seed)
        : plan_{.space = space, .seed = seed, .options = options} {}

    Offspring breed(const Population& population, int island, const Stage& stage, RandomStream& random) override {
        if (!state_) {
            plan_.workers = stage.workers;
            state_.emplace(SwarmState(plan_));
        }
        return state_->over(population, island).breed(stage, in_training_on(population, island), random);
    }
    std::size_t population() const noexcept override { return whole_history; }
    std::size_t first_points() const noexcept override { return SwarmState::size(plan_.options, 1); }
    bool looks_at_training() const noexcept override { return true; }

private:
    SwarmPlan plan_;
    std::optional<Fold<SwarmState>> state_;
};

class NelderMead final : public Propagator {
public:
    NelderMead(const NelderMeadOptions& options, const Space& space, std::uint64_t seed)
        : plan_{.space = space, .seed = seed, .options = options} {
        static_cast<void>(NelderMeadState(plan_));  // refuses what it cannot search
    }

    Offspring breed(const Population& population, int island, const Stage& stage, RandomStream& random) override {
        if (!state_) {
            plan_.island = island;
            plan_.workers = stage.workers;
            state_.emplace(NelderMeadState(plan_));
        }
        return state_->over(population, island).breed(stage, in_training_on(population, island), random);
    }
    std::size_t population() const noexcept override { return whole_history; }
    std::size_t first_points() const noexcept override { return usual_first_points(plan_.space); }
    bool looks_at_training() const noexcept override { return true; }

private:
    NelderMeadPlan plan_;
    std::optional<Fold<NelderMeadState>> state_;
};

/// How long an island's evaluations took.
struct Durations {
    double results = 0;
    double timed = 0;
    double seconds = 0;  ///< of the timed ones, in all

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
        : options_(options), screened_({}, space, seed), evolution_({}, space, seed) {}

    Offspring breed(const Population& population, int island, const Stage& stage, RandomStream& random) override {
        // Where not all results are told to all, births say how many there are.
        is_screened_ = stage.births < static_cast<std::uint64_t>(options_.most_screened + stage.workers) &&
                       is_worth_a_model(population, island);
        return is_screened_ ? screened_.breed(population, island, stage, random)
                            : evolution_.breed(population, island, stage, random);
    }
    std::size_t population() const noexcept override { return whole_history; }
    std::size_t first_points() const noexcept override { return screened_.first_points(); }
    bool looks_at_training() const noexcept override { return is_screened_; }

private:
    [[nodiscard]] bool is_worth_a_model(const Population& population, int island) {
        const Durations& durations = durations_.over(population, island);
        const double known = std::min(durations.results, static_cast<double>(ScreenedOptions{}.most_points));
        const double model = options_.model_seconds * known * known;
        return population.settled_on(island) < static_cast<std::size_t>(options_.most_screened) &&
               (durations.timed == 0 || model < most_model_share * durations.seconds / durations.timed);
    }

    AutomaticOptions options_;
    Screened screened_;
    Evolution evolution_;
    bool is_screened_ = true;
    Fold<Durations> durations_{Durations{}};
};

}  // namespace

std::vector<const Individual*> in_training_on(const Population& population, int island) {
    std::vector<const Individual*> found;
    for (const Individual* individual : population.unfinished()) {
        if (population.island_now(individual->island) == island && !individual->is_repeat()) {
            found.push_back(individual);
        }
    }
    return found;
}

std::unique_ptr<Propagator> make(const EvolutionOptions& options, const Space& space, std::uint64_t seed) {
    return std::make_unique<Evolution>(options, space, seed);
}

std::unique_ptr<Propagator> make(const ScreenedOptions& options, const Space& space, std::uint64_t seed) {
    return std::make_unique<Screened>(options, space, seed);
}

std::unique_ptr<Propagator> make(const AutomaticOptions& options, const Space& space, std::uint64_t seed) {
    return std::make_unique<Automatic>(options, space, seed);
}

std::unique_ptr<Propagator> make(const CmaEsOptions& options, const Space& space, std::uint64_t seed) {
    return std::make_unique<Cma>(options, space, seed);
}

std::unique_ptr<Propagator> make(const SwarmOptions& options, const Space& space, std::uint64_t seed) {
    return std::make_unique<Swarm>(options, space, seed);
}

std::unique_ptr<Propagator> make(const NelderMeadOptions& options, const Space& space, std::uint64_t seed) {
    return std::make_unique<NelderMead>(options, space, seed);
}

}  // namespace finch::search
