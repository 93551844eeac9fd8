#include "screened.hpp"

#include "folding_propagator.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

// For each birth, one of two Gaussian processes is chosen at random: global_model.cpp or local_model.cpp.
namespace finch::search {
namespace {

constexpr double at_random = 0.02;    ///< fraction of the births without a model
constexpr double if_all_fail = 0.25;  ///< the same if all individuals fail; times the squared fraction of failures
constexpr double local_share = 0.5;   ///< fraction of the births by a model
constexpr double global_fit_after = 0.125;  ///< relative growth of the number of results until the next fit
constexpr double local_fit_after = 0.06;
constexpr std::size_t enough_of_high_rungs = 10;  ///< with so many results, lower rungs are left out
constexpr double least_weight = 1e-3;             ///< of an objective in a direction
constexpr std::uint32_t most_predictions = 10;    ///< genomes per birth by a model; later ones are drawn at random

}  // namespace

ScreenedState::ScreenedState(ScreenedPlan plan)
    : plan_(std::move(plan)),
      free_(free_genes(plan_.space)),
      first_points_(first_points(plan_.options, plan_.space, plan_.evaluations)),
      global_(plan_.space, static_cast<std::size_t>(plan_.options.most_points), 1 + plan_.costs.size()),
      local_(plan_.space, plan_.workers) {
    const std::size_t genes = plan_.space.size();
    for (std::size_t gene = 0; gene < genes; ++gene) {
        RandomStream random = stream(gene, 0);
        strata_.push_back(random.permutation(static_cast<std::uint32_t>(first_points_)));
    }
}

std::size_t ScreenedState::first_points(const ScreenedOptions& /*options*/, const Space& space,
                                        std::int64_t evaluations) {
    const std::size_t wanted = 2 * free_genes(space).size();
    const auto quarter = static_cast<std::size_t>(evaluations / 4);
    return std::max<std::size_t>(6, evaluations > 0 ? std::min(wanted, quarter) : wanted);
}

RandomStream ScreenedState::stream(std::uint64_t which, std::uint32_t purpose) const {
    return {plan_.seed, Purpose::breeding_state, (static_cast<std::uint64_t>(plan_.island) << 32U) + which, purpose};
}

UnitGenome ScreenedState::first_point(std::uint64_t number) const {
    RandomStream random = stream(number, 1);
    UnitGenome point(plan_.space.size());
    for (std::size_t gene = 0; gene < point.size(); ++gene) {
        point[gene] = (strata_[gene][number] + random.uniform()) / static_cast<double>(first_points_);
    }
    return point;
}

void ScreenedState::take(const Individual& individual, bool /*born_here*/) {
    const ObjectiveValues point = point_of(individual, plan_.costs);
    Eigen::VectorXd values(1 + std::ssize(plan_.costs));
    std::copy_n(point.values.begin(), values.size(), values.begin());
    values[0] = comparable_loss(individual);
    const double loss = values.allFinite() ? values[0] : std::numeric_limits<double>::infinity();
    if (!(loss < least_pruned)) {
        values.setConstant(loss);  // the costs of a training that failed or was pruned look better than they are
    }
    const std::uint64_t before = seen_.empty() ? 1 : seen_.back().history;
    const std::uint64_t history =
        RandomStream(before, Purpose::breeding_state, individual.id.value ^ std::bit_cast<std::uint64_t>(loss))
            .below(std::uint64_t{1} << 63U);
    seen_.push_back(
        {to_unit(plan_.space, individual.genome), loss, values, standing(individual).rung, individual.id, history});
    known_.insert(individual.genome);
    failures_ += std::isfinite(loss) ? 0 : 1;
}

// Of two equally good trainings, one may be pruned by chance and then rank far behind the other. The models therefore
// use only the highest rungs, as in BOHB (Falkner, Klein and Hutter 2018).
std::vector<const Seen*> ScreenedState::best_first(std::size_t count, const Scalarisation& scalarisation) const {
    std::vector<std::pair<double, const Seen*>> keys;
    for (std::size_t i = 0; i < count; ++i) {
        const Seen& seen = seen_[i];
        keys.emplace_back(seen.loss < least_pruned ? scalarisation.of(seen.values) : seen.loss, &seen);
    }
    std::stable_sort(keys.begin(), keys.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<const Seen*> order;
    std::transform(keys.begin(), keys.end(), std::back_inserter(order), [](const auto& key) { return key.second; });
    if (order.size() > enough_of_high_rungs) {
        const Seen& lowest = *order[enough_of_high_rungs - 1];
        std::erase_if(order, [&](const Seen* seen) { return std::isfinite(lowest.loss) && seen->rung < lowest.rung; });
    }
    return order;
}

Eigen::VectorXd ScreenedState::middle() const {
    return Eigen::VectorXd::Ones(1 + std::ssize(plan_.costs));
}

Scalarisation ScreenedState::scalarisation(std::size_t count, const Eigen::VectorXd& direction) const {
    Eigen::MatrixXd values(direction.size(), static_cast<Eigen::Index>(count));
    Eigen::Index columns = 0;
    for (std::size_t i = 0; i < count && direction.size() > 1; ++i) {
        if (seen_[i].loss < least_pruned) {
            values.col(columns++) = seen_[i].values;
        }
    }
    return along(direction, values.leftCols(columns));
}

void ScreenedState::fit_global() const {
    const std::size_t count = fitted_results(seen_.size(), 4, global_fit_after);
    if (global_history_ != seen_[count - 1].history) {
        global_history_ = seen_[count - 1].history;
        global_.fit(best_first(count, scalarisation(count, middle())));
    }
}

void ScreenedState::fit_local(const std::vector<const Seen*>& results, const Scalarisation& scalarisation) const {
    const std::size_t count = fitted_results(seen_.size(), 4, local_fit_after);
    // With several objectives, each direction has another window of results.
    if (!plan_.costs.empty() || local_history_ != seen_[count - 1].history || !local_.varies_as_for(*results.front())) {
        local_history_ = seen_[count - 1].history;
        local_.fit(results, best_first(count, scalarisation));
    }
}

Offspring ScreenedState::breed(const Stage& stage, const std::vector<const Individual*>& in_training,
                               RandomStream& random) const {
    Offspring offspring;
    offspring.breeding.budget_used = stage.budget_used;
    if (free_.empty()) {
        offspring.genome = random_genome(plan_.space, random);
        return offspring;
    }
    if (stage.births < first_points_) {
        offspring.genome =
            stage.attempt == 0 ? from_unit(plan_.space, first_point(stage.births)) : random_genome(plan_.space, random);
        return offspring;
    }
    const std::size_t enough = std::min(first_points_, std::max<std::size_t>(4, first_points_ / 2));
    const double failed = failures_ / static_cast<double>(std::max<std::size_t>(1, seen_.size()));
    // If many individuals fail regardless of their genes, a failure says nothing about similar genes.
    if (seen_.size() < enough || random.uniform() < std::max(at_random, if_all_fail * failed * failed)) {
        offspring.genome = random_genome(plan_.space, random);
        return offspring;
    }
    Allowed allowed{plan_.space, known_, {}, stage.constraints};
    std::vector<UnitGenome> points;
    for (const Individual* individual : in_training) {
        allowed.in_training.insert(individual->genome);
        points.push_back(to_unit(plan_.space, individual->genome));
    }
    Eigen::VectorXd direction = middle();
    for (Eigen::Index row = 0; row < direction.size() && direction.size() > 1; ++row) {
        direction[row] = std::max(least_weight, std::abs(random.normal()));
    }
    direction.normalize();
    const Scalarisation combined = scalarisation(seen_.size(), direction);
    const std::vector<const Seen*> results = best_first(seen_.size(), combined);
    // A genome may be ruled out for reasons that the models do not know. After ten attempts, the genome is therefore
    // drawn at random.
    const bool looks = stage.attempt < most_predictions;
    std::optional<Proposal> proposal;
    if (looks && random.uniform() < local_share) {
        fit_local(results, combined);
        proposal = local_.propose(results, combined, points, allowed, random);
    }
    if (!proposal) {
        fit_global();
        proposal = global_.propose(results, direction, points, allowed, looks, random);
    }
    if (!proposal) {
        offspring.genome = random_genome(plan_.space, random);
        return offspring;
    }
    offspring.genome = std::move(proposal->genome);
    offspring.parents = proposal->parents;
    offspring.bred_by = looks                          ? Operator::model_screened
                        : offspring.parents[0] == Id{} ? Operator::random
                                                       : Operator::crossover;
    return offspring;
}

std::unique_ptr<Propagator> make(const ScreenedOptions& options, const Space& space, std::uint64_t seed) {
    return std::make_unique<FoldingPropagator<ScreenedState, ScreenedOptions>>(options, space, seed);
}

}  // namespace finch::search
