#include "screened.hpp"

#include "folding_propagator.hpp"
#include "normal.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

// Jones, Schonlau and Welch 1998; Snoek, Larochelle and Adams 2012; those in training stand where the model expects
// them (the kriging believer of Ginsbourger, Le Riche and Carraro 2010).
namespace finch::search {
namespace {

constexpr double at_random = 0.05;  ///< of the births
constexpr int candidate_count = 200;
constexpr double uniform_candidates = 0.3;
constexpr double bred_from_share = 0.2;           ///< that the other candidates are bred from
constexpr double mutated_genes = 1.5;             ///< about, of a candidate
constexpr std::size_t enough_of_high_rungs = 10;  ///< lower ones are then left out
constexpr std::uint32_t most_predictions = 10;    ///< for one birth; then chance finds what is not ruled out
constexpr double fit_again_after = 0.125;         ///< of the results

Eigen::MatrixXd columns(const std::vector<UnitGenome>& points, std::size_t genes) {
    Eigen::MatrixXd matrix(static_cast<Eigen::Index>(genes), std::ssize(points));
    for (std::size_t i = 0; i < points.size(); ++i) {
        matrix.col(static_cast<Eigen::Index>(i)) =
            Eigen::Map<const Eigen::VectorXd>(points[i].data(), static_cast<Eigen::Index>(genes));
    }
    return matrix;
}

}  // namespace

ScreenedState::ScreenedState(ScreenedPlan plan)
    : plan_(std::move(plan)), free_(free_genes(plan_.space)), process_(plan_.space) {
    const std::size_t genes = plan_.space.size();
    const auto quarter = static_cast<std::size_t>(plan_.evaluations / 4);
    first_points_ =
        std::max<std::size_t>(6, plan_.evaluations > 0 ? std::min(2 * free_.size(), quarter) : 2 * free_.size());
    for (std::size_t gene = 0; gene < genes; ++gene) {
        RandomStream random = stream(gene, 0);
        strata_.push_back(random.permutation(static_cast<std::uint32_t>(first_points_)));
    }
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
    seen_.push_back({to_unit(plan_.space, individual.genome), comparable_loss(individual), standing(individual).rung,
                     individual.id});
    known_.insert(individual.genome);
    if (seen_.size() >= next_fit_) {
        next_fit_ =
            seen_.size() +
            std::max<std::size_t>(3, static_cast<std::size_t>(fit_again_after * static_cast<double>(seen_.size())));
        const Data known = data();
        const int tries = known.values.size() < 100 ? 50 : known.values.size() < 200 ? 25 : 15;
        RandomStream random(plan_.seed, Purpose::breeding_state, individual.id.value, 2);
        process_.fit(known.points, known.values, tries, random);
    }
}

// A training that was pruned beside an equal one that was not, by chance, would stand far from it: the model knows the
// highest rungs alone, as in BOHB (Falkner, Klein and Hutter 2018).
std::vector<std::size_t> ScreenedState::by_loss() const {
    std::vector<std::size_t> order(seen_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [this](std::size_t a, std::size_t b) { return seen_[a].loss < seen_[b].loss; });
    if (order.size() > enough_of_high_rungs) {
        const std::int32_t lowest = seen_[order[enough_of_high_rungs - 1]].rung;
        const bool are_enough = std::isfinite(seen_[order[enough_of_high_rungs - 1]].loss);
        std::erase_if(order, [&](std::size_t i) { return are_enough && seen_[i].rung < lowest; });
    }
    return order;
}

ScreenedState::Data ScreenedState::data() const {
    const std::vector<std::size_t> order = by_loss();
    const auto most = static_cast<std::size_t>(plan_.options.most_points);
    std::vector<char> is_used(seen_.size(), order.size() <= most ? 1 : 0);
    if (order.size() > most) {
        std::vector<char> is_left_out(seen_.size(), 1);
        std::for_each(order.begin(), order.end(), [&](std::size_t i) { is_left_out[i] = 0; });
        std::for_each(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(most / 2),
                      [&](std::size_t i) { is_used[i] = 1; });
        std::size_t left = most - most / 2;
        for (std::size_t i = seen_.size(); i-- > 0 && left > 0;) {
            left -= is_used[i] == 0 && is_left_out[i] == 0 ? 1 : 0;
            is_used[i] = 1;
        }
    }
    std::vector<std::size_t> used;
    std::copy_if(order.begin(), order.end(), std::back_inserter(used), [&](std::size_t i) { return is_used[i] != 0; });
    std::vector<UnitGenome> points;
    Eigen::VectorXd values(std::ssize(used));
    const auto failed = static_cast<std::size_t>(
        std::count_if(used.begin(), used.end(), [this](std::size_t i) { return !std::isfinite(seen_[i].loss); }));
    const std::size_t ranked = used.size() - failed;
    for (std::size_t place = 0; place < used.size(); ++place) {
        points.push_back(seen_[used[place]].point);
        const double from_best = place < ranked ? static_cast<double>(place)
                                                : static_cast<double>(ranked) + static_cast<double>(failed - 1) / 2;
        values[static_cast<Eigen::Index>(place)] =
            normal_quantile((from_best + 0.5) / static_cast<double>(used.size()));
    }
    return {columns(points, plan_.space.size()), values};
}

GaussianProcess ScreenedState::model(const std::vector<const Individual*>& in_training) const {
    GaussianProcess process = process_;
    Data known = data();
    process.condition(known.points, known.values);
    if (!in_training.empty()) {
        std::vector<UnitGenome> points;
        for (const Individual* individual : in_training) {
            points.push_back(to_unit(plan_.space, individual->genome));
        }
        const Eigen::MatrixXd expected = columns(points, plan_.space.size());
        const Eigen::VectorXd mean = process.predict(expected).mean;
        Data all{Eigen::MatrixXd(known.points.rows(), known.points.cols() + expected.cols()),
                 Eigen::VectorXd(known.values.size() + mean.size())};
        all.points << known.points, expected;
        all.values << known.values, mean;
        process.condition(all.points, all.values);
    }
    return process;
}

/// Uniform ones, and children of the best fifth: half of them of two parents, with about mutated_genes changed.
std::vector<ScreenedState::Candidate> ScreenedState::candidates(RandomStream& random) const {
    const std::vector<std::size_t> order = by_loss();
    const std::size_t parents = std::min(
        order.size(),
        std::max<std::size_t>(5, static_cast<std::size_t>(bred_from_share * static_cast<double>(order.size()))));
    const auto drawn = [&random](std::size_t count) { return static_cast<std::size_t>(random.below(count)); };
    std::vector<Candidate> found;
    for (int candidate = 0; candidate < candidate_count; ++candidate) {
        if (candidate < uniform_candidates * candidate_count) {
            found.push_back({random_genome(plan_.space, random)});
            continue;
        }
        const Seen& parent = seen_[order[std::min(drawn(parents), drawn(parents))]];
        UnitGenome point = parent.point;
        Id second;
        if (random.uniform() < 0.5) {
            const Seen& other = seen_[order[drawn(parents)]];
            second = other.id;
            for (const std::size_t gene : free_) {
                point[gene] = random.uniform() < 0.5 ? other.point[gene] : point[gene];
            }
        }
        bool is_changed = false;
        while (!is_changed) {
            for (const std::size_t gene : free_) {
                if (random.uniform() < mutated_genes / static_cast<double>(free_.size())) {
                    point[gene] = mutate_unit(plan_.space.genes[gene], point[gene], 8, 0.15, random);
                    is_changed = true;
                }
            }
        }
        found.push_back({child_genome(plan_.space, point, parent.point, random), {parent.id, second}});
    }
    return found;
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
    if (seen_.size() < enough || random.uniform() < at_random) {
        offspring.genome = random_genome(plan_.space, random);
        return offspring;
    }
    const double kappa = -std::log(1 - random.uniform());
    std::set<Genome> known;
    for (const Individual* individual : in_training) {
        known.insert(individual->genome);
    }
    std::vector<Candidate> unknown;
    std::vector<UnitGenome> points;
    for (Candidate& candidate : candidates(random)) {
        if (!known_.contains(candidate.genome) && !known.contains(candidate.genome) &&
            all_hold(stage.constraints, plan_.space, candidate.genome)) {
            points.push_back(to_unit(plan_.space, candidate.genome));
            unknown.push_back(std::move(candidate));
        }
    }
    if (unknown.empty()) {
        offspring.genome = random_genome(plan_.space, random);
        return offspring;
    }
    if (stage.attempt >= most_predictions) {
        const std::size_t drawn = random.below(unknown.size());  // the model knows nothing of what is ruled out
        offspring.genome = std::move(unknown[drawn].genome);
        offspring.parents = unknown[drawn].parents;
        offspring.bred_by = offspring.parents[0] == Id{} ? Operator::random : Operator::crossover;
        return offspring;
    }
    const auto predicted = model(in_training).predict(columns(points, plan_.space.size()));
    Eigen::Index chosen = 0;
    (predicted.mean - kappa * predicted.deviation).minCoeff(&chosen);
    offspring.genome = std::move(unknown[static_cast<std::size_t>(chosen)].genome);
    offspring.parents = unknown[static_cast<std::size_t>(chosen)].parents;
    offspring.bred_by = Operator::model_screened;
    return offspring;
}

std::unique_ptr<Propagator> make(const ScreenedOptions& options, const Space& space, std::uint64_t seed) {
    return std::make_unique<FoldingPropagator<ScreenedState, ScreenedOptions>>(options, space, seed);
}

}  // namespace finch::search
