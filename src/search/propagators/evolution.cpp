#include "evolution.hpp"

#include "folding_propagator.hpp"
#include "front_evolution.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace finch::search {
namespace {

constexpr std::size_t live_starts = 2;
constexpr double start_sigma = 0.2;
constexpr std::int64_t generations_of_an_optimum = 30;  ///< a start that ends earlier has not found an optimum
constexpr int far_tries = 30;
constexpr double two_phases_from = 10'000;  ///< number of evaluations of the island
constexpr double first_phase = 0.25;        ///< fraction of the budget
constexpr double evaluations_unless_known = 5'000;
// The more evaluations run at the same time, the fewer generations there are, and the better is a model that learns all
// genes from one generation.
constexpr double most_additive_share = 0.5;
constexpr double least_additive_workers = 64;  ///< with fewer, and so with one, searches do not depend on time
constexpr double least_additive_share = 0.02;  ///< a smaller share is not worth the model's time and memory
constexpr double additive_share_each = 25;     ///< share of the additive model / (workers / evaluations)
constexpr std::int32_t additive_fits = 8;      ///< per generation
constexpr std::int32_t least_fitted_after = 64;

/// Returns the number of the slot that individual `id` founds. The number is a hash of the id, so it does not depend on
/// the order of the results.
std::int32_t slot_of(Id id) {
    return static_cast<std::int32_t>((id.value * 0x9E3779B97F4A7C15U) >> 33U);
}

double additive_share(double workers, double evaluations) {
    const double share = std::min(most_additive_share, additive_share_each * workers / evaluations);
    return workers < least_additive_workers || share < least_additive_share ? 0 : share;
}

}  // namespace

EvolutionState::EvolutionState(EvolutionPlan plan)
    : plan_(std::move(plan)),
      cma_share_(plan_.options.cma_share),
      free_(free_genes(plan_.space)),
      evaluations_(plan_.evaluations > 0 ? static_cast<double>(plan_.evaluations) : evaluations_unless_known),
      additive_share_(additive_share(plan_.workers, evaluations_)),
      best_loss_(std::numeric_limits<double>::infinity()) {
    phase_ends_ = evaluations_ >= two_phases_from ? std::vector{first_phase, 1.0} : std::vector{1.0};
    for (const std::size_t i : free_) {
        if (!is_choice(plan_.space.genes[i])) {
            moved_.push_back(i);
        }
    }
    if (moved_.size() < 2) {
        cma_share_ = 0;
    }
    add_phase((1 - cma_share_) * evaluations_ * phase_ends_.front(), {});
}

void EvolutionState::take(const Individual& individual, bool born_here) {
    ++taken_;
    durations_.take(individual);
    budget_used_ = std::max(budget_used_, born_here ? individual.breeding.budget_used : 0.0);
    begin_phases(individual.id);
    const UnitGenome point = to_unit(plan_.space, individual.genome);
    const double loss = comparable_loss(individual);
    if (loss < best_loss_) {
        best_loss_ = loss;
        best_point_ = point;
    }
    const Breeding& breeding = individual.breeding;
    const bool is_of_a_phase =
        born_here &&
        (individual.bred_by == Operator::random || individual.bred_by == Operator::crossover ||
         individual.bred_by == Operator::differential_evolution || individual.bred_by == Operator::additive_model);
    if (is_of_a_phase) {
        const std::size_t phase = phase_of(breeding);
        const double begin = phase == 0 ? 0 : phase_ends_[phase - 1];
        RandomStream random(plan_.seed, Purpose::breeding_state, individual.id.value);
        phases_[phase].take({point, loss, individual.id, slot_of(individual.id)}, breeding,
                            (budget_used_ - begin) / (phase_ends_[phase] - begin), random);
    } else if (born_here && individual.bred_by == Operator::model_screened) {
        take_over({point, loss, individual.id, slot_of(individual.id)});
    } else if (born_here && individual.bred_by == Operator::cma_es) {
        take_from_cma(individual, point, loss);
    } else {
        phases_.back().inject({point, loss, individual.id, slot_of(individual.id)});
    }
    if (additive_share_ > 0 && (is_of_a_phase || phases_.size() == 1)) {
        additive_[phase_of(breeding)].take(point, loss);
    }
    begin_starts(individual.id);
}

std::size_t EvolutionState::phase_of(const Breeding& breeding) const {
    return std::min(static_cast<std::size_t>(std::max(breeding.phase, 0)), phases_.size() - 1);
}

void EvolutionState::add_phase(double evaluations, UnitGenome centre) {
    phases_.emplace_back(plan_.space, evaluations, std::move(centre));
    additive_.emplace_back(static_cast<std::size_t>(std::max(least_fitted_after, plan_.workers / additive_fits)));
}

/// Adds an individual that was bred by a model to the population. Points of a model are clustered, so the differences
/// between them are small. The number of members from a model is therefore limited to the model's share of the budget,
/// but at least one.
void EvolutionState::take_over(DifferentialEvolution::Member member) {
    DifferentialEvolution& phase = phases_.back();
    const std::size_t size = phases_.front().first_size();
    const auto place = std::upper_bound(of_model_.begin(), of_model_.end(), member,
                                        [](const auto& a, const auto& b) { return a.loss < b.loss; });
    const bool is_heir = static_cast<std::size_t>(place - of_model_.begin()) < promoted_;
    of_model_.insert(place, member);
    if (is_heir) {
        phase.inject(std::move(member), of_model_.at(promoted_).id);
    }
    const auto members = static_cast<double>(size);
    const double share = std::clamp(static_cast<double>(++bred_by_model_) / evaluations_, 1 / members, 1.0);
    const auto most = static_cast<std::size_t>(std::lround(share * members));
    for (; promoted_ < std::min(most, of_model_.size()); ++promoted_) {
        phase.inject(of_model_.at(promoted_));
    }
    of_model_.resize(std::min(of_model_.size(), size));
}

/// Adds a result to the CMA-ES start that bred it. If a start holds the best result of all, this result is added to the
/// population every few generations. A start that has ended is removed.
void EvolutionState::take_from_cma(const Individual& individual, const UnitGenome& point, double loss) {
    const auto start = std::find_if(starts_.begin(), starts_.end(),
                                    [&](const Start& one) { return one.number == individual.breeding.slot; });
    if (start == starts_.end()) {
        return;
    }
    start->best = loss < start->cma.best_loss() ? individual.id : start->best;
    start->cma.take(moved_part(point), std::min(loss, std::numeric_limits<double>::max()));
    if (!start->cma.is_between_generations()) {
        return;
    }
    const UnitGenome best = with_moved_part(start->others, start->cma.best_point());
    if (start->cma.generations() % 5 == 0 && start->cma.best_loss() <= best_loss_) {
        phases_.back().inject({best, start->cma.best_loss(), start->best, slot_of(individual.id)});
    }
    if (start->cma.has_ended() || start->cma.is_hopeless(best_loss_)) {
        if (start->cma.generations() > generations_of_an_optimum) {
            known_optima_.push_back(best);
        }
        starts_.erase(start);
    }
}

void EvolutionState::begin_phases(Id cause) {
    while (phases_.size() < phase_ends_.size() && budget_used_ >= phase_ends_[phases_.size() - 1]) {
        if (!phases_.back().members().empty()) {
            known_optima_.push_back(phases_.back().members().front().point);
        }
        const double evaluations = (1 - cma_share_) * static_cast<double>(plan_.evaluations) *
                                   (phase_ends_[phases_.size()] - phase_ends_[phases_.size() - 1]);
        RandomStream random(plan_.seed, Purpose::breeding_state, cause.value, 1);
        add_phase(evaluations, far_point(random));
    }
}

void EvolutionState::begin_starts(Id cause) {
    if (cma_share_ <= 0 || 2 * taken_ < plan_.workers) {
        return;
    }
    const auto genes = static_cast<double>(moved_.size());
    const int samples =
        std::max(4 + static_cast<int>(3 * std::log(genes)), static_cast<int>(cma_share_ * plan_.workers / 2));
    while (starts_.size() < live_starts) {
        const auto number = starts_begun_++;
        RandomStream random(plan_.seed, Purpose::breeding_state, cause.value, 2 + static_cast<std::uint32_t>(number));
        const UnitGenome middle = far_point(random);
        starts_.push_back({number, best_point_.empty() ? middle : best_point_, Id{},
                           CmaEs(moved_part(middle), start_sigma, {.samples = samples})});
    }
}

Offspring EvolutionState::breed(const Stage& stage, RandomStream& random) const {
    Offspring offspring = bred(stage, random);
    offspring.breeding.budget_used = stage.budget_used;
    return offspring;
}

Offspring EvolutionState::bred(const Stage& stage, RandomStream& random) const {
    if (free_.empty()) {
        return {.genome = random_genome(plan_.space, random)};
    }
    const std::size_t last = phases_.size() - 1;
    if (!starts_.empty() && random.uniform() < cma_share_) {
        const Start& start = starts_[static_cast<std::size_t>(random.below(starts_.size()))];
        return {.genome = from_unit(plan_.space, with_moved_part(start.others, start.cma.sample(random))),
                .bred_by = Operator::cma_es,
                .breeding = {.phase = static_cast<std::int32_t>(last), .slot = start.number}};
    }
    // With few generations, the first phase has not found its optimum when it ends, so it continues.
    const bool continues = last > 0 && random.uniform() < additive_share_;
    const std::size_t number = continues ? last - 1 : last;
    Offspring offspring = bred_in(number, stage, random);
    offspring.breeding.phase = static_cast<std::int32_t>(number);
    return offspring;
}

Offspring EvolutionState::bred_in(std::size_t number, const Stage& stage, RandomStream& random) const {
    const DifferentialEvolution& phase = phases_[number];
    const AdditiveModel& additive = additive_[number];
    const bool begins = phases_.size() == 1 ? stage.births < phase.first_size() : !phase.is_filled();
    if (begins || phase.members().size() < 4) {
        return {.genome = from_unit(plan_.space, phase.first_point(plan_.space, random))};
    }
    const bool is_modelled =
        additive.is_ready() && durations_.allow(additive.seconds()) && random.uniform() < additive_share_;
    if (is_modelled) {
        return phase.modelled(plan_.space, additive, random);
    }
    const bool mutates = phases_.size() == 1 && random.uniform() < plan_.options.mutation_share;
    return mutates ? phase.mutant(plan_.space, random) : phase.trial(plan_.space, random);
}

/// Draws some random points, and returns the point that is farthest from all known optima.
UnitGenome EvolutionState::far_point(RandomStream& random) const {
    UnitGenome farthest = random_point(plan_.space.size(), random);
    double most = -1;
    for (int attempt = 0; attempt < far_tries && !known_optima_.empty(); ++attempt) {
        const UnitGenome point = random_point(plan_.space.size(), random);
        double nearest = std::numeric_limits<double>::infinity();
        for (const UnitGenome& optimum : known_optima_) {
            nearest = std::min(nearest, squared_distance(plan_.space, point, optimum));
        }
        if (nearest > most) {
            most = nearest;
            farthest = point;
        }
    }
    return farthest;
}

UnitGenome EvolutionState::moved_part(const UnitGenome& point) const {
    UnitGenome part;
    for (const std::size_t i : moved_) {
        part.push_back(point[i]);
    }
    return part;
}

UnitGenome EvolutionState::with_moved_part(UnitGenome point, const UnitGenome& moved) const {
    for (std::size_t i = 0; i < moved_.size(); ++i) {
        point[moved_[i]] = moved[i];
    }
    return point;
}

namespace {

class Evolution final : public Propagator {
public:
    Evolution(const EvolutionOptions& options, const Space& space, std::uint64_t seed)
        : space_(space), one_(options, space, seed) {}

    Offspring breed(const Population& population, int island, const Stage& stage, RandomStream& random) override {
        return population.costs().empty() ? one_.breed(population, island, stage, random)
                                          : bred_from_front(population, island, space_, random);
    }
    std::size_t first_points(std::int64_t evaluations) const noexcept override {
        return one_.first_points(evaluations);
    }

private:
    Space space_;
    FoldingPropagator<EvolutionState, EvolutionOptions> one_;
};

}  // namespace

std::unique_ptr<Propagator> make(const EvolutionOptions& options, const Space& space, std::uint64_t seed) {
    return std::make_unique<Evolution>(options, space, seed);
}

}  // namespace finch::search
