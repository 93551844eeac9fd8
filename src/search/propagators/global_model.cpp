#include "global_model.hpp"

#include "acquisition.hpp"
#include "normal.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_set>
#include <utility>

// The model is a Gaussian process of ranks (Snoek, Larochelle and Adams 2012). Proposals minimise the lower confidence
// bound μ − κσ of Cox and John (1992) with an exponentially distributed κ (Hutter, Hoos and Leyton-Brown 2012).
// Individuals in training are part of the data, with their predicted means as values (the kriging believer of
// Ginsbourger, Le Riche and Carraro 2010).
namespace finch::search {
namespace {

constexpr int candidate_count = 200;
constexpr double uniform_candidates = 0.3;
constexpr double bred_from_share = 0.2;   ///< fraction of the best results, from which the other candidates are bred
constexpr double mutated_genes = 1.5;     ///< mean number of mutated genes per candidate
constexpr double gradients_by_genes = 2;  ///< a proposal follows gradients with this probability × genes / results
constexpr std::size_t most_fitted = 100;  ///< maximum number of results to which the scales are fitted
constexpr double no_quadratic = 1e-300;
constexpr GaussianScales median{
    .length = 0.7, .signal = 1, .linear = no_quadratic, .quadratic = no_quadratic, .noise = 0.01};
constexpr GaussianPrior prior{.median = median,
                              .deviation = {.length = 1, .signal = 1, .linear = 1, .quadratic = 1, .noise = 2},
                              .start = median,
                              .least_noise = 1e-6};

/// A point with all fixed and inactive genes moved to their canonical positions. Any other position of a fixed or
/// inactive gene would add a meaningless distance to other points.
struct CanonicalPoint {
    CanonicalPoint(const Space& space, const Eigen::VectorXd& x) : point(x), varies(Eigen::ArrayXd::Ones(x.size())) {
        const Genome genome = from_unit(space, UnitGenome(x.begin(), x.end()));
        const std::vector<bool> active = active_genes(space, genome);
        for (std::size_t gene = 0; gene < genome.size(); ++gene) {
            if (!active[gene] || is_fixed(space.genes[gene])) {
                point[static_cast<Eigen::Index>(gene)] = to_unit(space.genes[gene], genome[gene]);
                varies[static_cast<Eigen::Index>(gene)] = 0;
            }
        }
    }
    Eigen::VectorXd point;
    Eigen::ArrayXd varies;  ///< by gene: 1 if the gene varies, otherwise 0
};

/// Returns the ranks of `values` as quantiles of a normal distribution. Equal values share one rank.
Eigen::VectorXd ranks(const Eigen::VectorXd& values) {
    std::vector<Eigen::Index> order(static_cast<std::size_t>(values.size()));
    std::iota(order.begin(), order.end(), Eigen::Index{0});
    std::sort(order.begin(), order.end(), [&](Eigen::Index a, Eigen::Index b) { return values[a] < values[b]; });
    Eigen::VectorXd found(values.size());
    for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
        while (end < order.size() && values[order[end]] == values[order[begin]]) {
            ++end;
        }
        const double rank = 0.5 * static_cast<double>(begin + end);
        for (std::size_t i = begin; i < end; ++i) {
            found[order[i]] = normal_quantile(rank / static_cast<double>(order.size()));
        }
    }
    return found;
}

}  // namespace

GlobalModel::GlobalModel(const Space& space, std::size_t most_points, std::size_t objectives)
    : space_(space),
      free_(free_genes(space)),
      most_points_(most_points),
      models_(numbers_of(space), prior, static_cast<Eigen::Index>(objectives)) {}

GlobalModel::Data GlobalModel::data(const std::vector<const Seen*>& results, std::size_t most_points) const {
    std::vector<const Seen*> used = results;
    if (results.size() > most_points) {
        const auto best = results.begin() + static_cast<std::ptrdiff_t>(most_points / 2);
        std::vector<const Seen*> newest(best, results.end());
        // Results are stored in the order of their arrival, so newer results have larger addresses.
        std::sort(newest.begin(), newest.end(), std::greater<>());
        newest.resize(most_points - most_points / 2);
        std::unordered_set<const Seen*> is_used(newest.begin(), newest.end());
        is_used.insert(results.begin(), best);
        std::erase_if(used, [&](const Seen* seen) { return !is_used.contains(seen); });
    }
    std::vector<UnitGenome> points;
    Eigen::MatrixXd values(models_.objectives(), std::ssize(used));
    for (const Seen* seen : used) {
        values.col(std::ssize(points)) = seen->values;
        points.push_back(seen->point);
    }
    for (Eigen::Index row = 0; row < values.rows(); ++row) {
        values.row(row) = ranks(values.row(row));
    }
    return {columns(points, space_.size()), values};
}

void GlobalModel::fit(const std::vector<const Seen*>& results) {
    const Data known = data(results, std::min(most_points_, most_fitted));
    models_.fit(known.points, known.values);
}

Eigen::VectorXd GlobalModel::predict(const std::vector<const Seen*>& results, const Eigen::MatrixXd& points) const {
    ObjectiveModels models = models_;
    const Data known = data(results);
    models.condition(known.points, known.values, {});
    return models.lower_bounds(points, 0);
}

/// Returns uniformly random candidates, and children of the best fifth of the results. Half of the children have two
/// parents, the other half one parent. About mutated_genes genes of each child are changed.
std::vector<Proposal> GlobalModel::candidates(const std::vector<const Seen*>& results, RandomStream& random) const {
    const auto share = static_cast<std::size_t>(bred_from_share * static_cast<double>(results.size()));
    const std::size_t parents = std::min(results.size(), std::max<std::size_t>(5, share));
    const auto drawn = [&random](std::size_t count) { return static_cast<std::size_t>(random.below(count)); };
    std::vector<Proposal> found;
    for (int candidate = 0; candidate < candidate_count; ++candidate) {
        if (candidate < uniform_candidates * candidate_count) {
            found.push_back({random_genome(space_, random)});
            continue;
        }
        const Seen& parent = *results[std::min(drawn(parents), drawn(parents))];
        UnitGenome point = parent.point;
        Id second;
        if (random.uniform() < 0.5) {
            const Seen& other = *results[drawn(parents)];
            second = other.id;
            for (const std::size_t gene : free_) {
                point[gene] = random.uniform() < 0.5 ? other.point[gene] : point[gene];
            }
        }
        bool is_changed = false;
        while (!is_changed) {
            for (const std::size_t gene : free_) {
                if (random.uniform() < mutated_genes / static_cast<double>(free_.size())) {
                    point[gene] = mutate_unit(space_.genes[gene], point[gene], 8, 0.15, random);
                    is_changed = true;
                }
            }
        }
        found.push_back({child_genome(space_, point, parent.point, random), {parent.id, second}});
    }
    return found;
}

std::optional<Proposal> GlobalModel::propose(const std::vector<const Seen*>& results, const Eigen::VectorXd& direction,
                                             const std::vector<UnitGenome>& in_training, const Allowed& allowed,
                                             bool looks, RandomStream& random) const {
    const double kappa = -std::log(1 - random.uniform());
    std::vector<Proposal> unknown;
    std::vector<UnitGenome> points;
    for (Proposal& candidate : candidates(results, random)) {
        if (allowed.accepts(candidate.genome)) {
            points.push_back(to_unit(space_, candidate.genome));
            unknown.push_back(std::move(candidate));
        }
    }
    if (unknown.empty()) {
        return std::nullopt;
    }
    if (!looks) {
        return unknown[static_cast<std::size_t>(random.below(unknown.size()))];
    }
    ObjectiveModels models = models_;
    const Data known = data(results);
    models.condition(known.points, known.values, along(direction, known.values));
    models.believe(columns(in_training, space_.size()));
    const Eigen::MatrixXd starts = columns(points, space_.size());
    const Eigen::VectorXd bounds = models.lower_bounds(starts, kappa);
    Eigen::Index chosen = 0;
    bounds.minCoeff(&chosen);
    // While few results are known, gradients find better points than random candidates do. From 200 results on,
    // gradients are always worse.
    if (random.uniform() * static_cast<double>(results.size()) <
        gradients_by_genes * static_cast<double>(free_.size())) {
        const Acquisition acquisition{
            .bound =
                [&](const Eigen::VectorXd& x, Eigen::VectorXd& gradient) {
                    const CanonicalPoint canonical(space_, x);
                    const double bound = models.lower_bound(canonical.point, kappa, gradient);
                    gradient.array() *= canonical.varies;
                    return bound;
                },
            .box = {Eigen::VectorXd::Zero(starts.rows()), Eigen::VectorXd::Ones(starts.rows())},
            .choices = {},
            .inside = [&](const Eigen::VectorXd& x) { return CanonicalPoint(space_, x).point; },
            .genome_at =
                [&](const Eigen::VectorXd& x, Eigen::Index start) {
                    return child_genome(space_, UnitGenome(x.begin(), x.end()), points[static_cast<std::size_t>(start)],
                                        random);
                },
            .point_of = [&](const Genome& genome) { return columns({to_unit(space_, genome)}, space_.size()); }};
        if (auto found = optimize(acquisition, starts, bounds, allowed); found && found->bound < bounds[chosen]) {
            return Proposal{std::move(found->genome), unknown[static_cast<std::size_t>(found->start)].parents};
        }
    }
    return unknown[static_cast<std::size_t>(chosen)];
}

}  // namespace finch::search
