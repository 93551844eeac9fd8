#include "local_model.hpp"

#include "lbfgs.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <numeric>
#include <utility>

// The metric is that of CMA-ES (Hansen 2016), with its covariance shrunk towards the diagonal; the window and the
// raw losses are those of trust regions (Eriksson et al. 2019), whose radius is drawn here for each birth.
namespace finch::search {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr std::size_t most_results = 150;  ///< of the window
constexpr double of_all_results = 0.9;
constexpr double of_coefficients = 2.5;  ///< of the quadratic's, that the window has results
constexpr double training_reach = 20;    ///< beyond, those in training tell the model nothing
constexpr std::size_t centre_candidates = 10;
constexpr double least_radius = 0.3;
constexpr double most_radius = 6;
constexpr int start_count = 100;
constexpr std::size_t climbs = 3;
constexpr int climb_iterations = 20;
constexpr int rounds = 2;
constexpr double changed_choices = 0.7;  ///< of a start, about

constexpr double first_step = 0.3;  ///< of a climb, in radii
constexpr int most_halvings = 20;   ///< of the way to what breaks a constraint
constexpr double least_loss_deviation = 1e-300;

GaussianPriors priors_of(std::size_t numbers) {
    return {
        .length = std::sqrt(static_cast<double>(numbers)), .noise = 0.001, .noise_deviation = 3, .least_noise = 1e-7};
}

}  // namespace

/// The window, with z = A⁻¹ (x − best) for the numbers, choices as they are.
class LocalModel::Frame {
public:
    Frame(const Rows& rows, const std::vector<const Seen*>& results) : rows_(rows), best_(results.front()->point) {
        const std::size_t numbers = rows.numbers.size();
        const std::size_t coefficients = (numbers + 1) * (numbers + 2) / 2;
        const auto wanted = std::min(static_cast<std::size_t>(of_coefficients * static_cast<double>(coefficients)),
                                     static_cast<std::size_t>(of_all_results * static_cast<double>(results.size())));
        const std::size_t count = std::min({results.size(), most_results, std::max(2 * (numbers + 1), wanted)});
        learn_metric(results, std::min(results.size(), std::max(numbers + 1, count / 2)));
        points.resize(static_cast<Index>(numbers + rows.choices.size()), static_cast<Index>(count));
        values.resize(static_cast<Index>(count));
        for (std::size_t i = 0; i < count; ++i) {
            points.col(static_cast<Index>(i)) = z_of(results[i]->point);
            values[static_cast<Index>(i)] = results[i]->loss;
        }
        // In two steps, as losses may be as large as numbers come.
        values.array() -= values[0];
        values /= std::max(least_loss_deviation, values.maxCoeff());
        values.array() -= values.mean();
        values /= std::max(least_loss_deviation, std::sqrt(values.squaredNorm() / static_cast<double>(count)));
    }

    [[nodiscard]] Index numbers() const { return std::ssize(rows_.numbers); }
    [[nodiscard]] VectorXd z_of(const UnitGenome& point) const {
        VectorXd z(std::ssize(rows_.numbers) + std::ssize(rows_.choices));
        z.head(numbers()) = to_z_ * (part(point) - part(best_));
        for (std::size_t i = 0; i < rows_.choices.size(); ++i) {
            z[numbers() + static_cast<Index>(i)] = point[rows_.choices[i]];
        }
        return z;
    }
    [[nodiscard]] UnitGenome point_of(const VectorXd& z) const {
        UnitGenome point = best_;
        const VectorXd x = unclamped(z).cwiseMax(0).cwiseMin(1);
        for (std::size_t i = 0; i < rows_.numbers.size(); ++i) {
            point[rows_.numbers[i]] = x[static_cast<Index>(i)];
        }
        for (std::size_t i = 0; i < rows_.choices.size(); ++i) {
            point[rows_.choices[i]] = z[numbers() + static_cast<Index>(i)];
        }
        return point;
    }
    /// `z` moved into the unit cube; and what becomes of a gradient there.
    [[nodiscard]] VectorXd inside(const VectorXd& z) const { return z_of(point_of(z)); }
    [[nodiscard]] VectorXd gradient_at(const VectorXd& z, const VectorXd& gradient) const {
        const VectorXd x = unclamped(z);
        const VectorXd is_inside = (x.array() >= 0 && x.array() <= 1).cast<double>();
        return to_x_.transpose() * is_inside.cwiseProduct(to_z_.transpose() * gradient.head(numbers()));
    }

    [[nodiscard]] const UnitGenome& best() const { return best_; }

    MatrixXd points;  ///< of the window, best first
    VectorXd values;  ///< their losses, standardised

private:
    [[nodiscard]] VectorXd part(const UnitGenome& point) const {
        VectorXd x(numbers());
        for (std::size_t i = 0; i < rows_.numbers.size(); ++i) {
            x[static_cast<Index>(i)] = point[rows_.numbers[i]];
        }
        return x;
    }
    [[nodiscard]] VectorXd unclamped(const VectorXd& z) const { return part(best_) + to_x_ * z.head(numbers()); }

    /// From the covariance of the best `count`, weighted as CMA-ES does.
    void learn_metric(const std::vector<const Seen*>& results, std::size_t count) {
        VectorXd weights(static_cast<Index>(count));
        for (Index i = 0; i < weights.size(); ++i) {
            weights[i] = std::log(static_cast<double>(count) + 1) - std::log(static_cast<double>(i) + 1);
        }
        weights /= weights.sum();
        MatrixXd best(numbers(), weights.size());
        for (Index i = 0; i < weights.size(); ++i) {
            best.col(i) = part(results[static_cast<std::size_t>(i)]->point);
        }
        best.colwise() -= VectorXd(best * weights);
        MatrixXd covariance = best * weights.asDiagonal() * best.transpose();
        const VectorXd variances = covariance.diagonal();
        const auto genes = static_cast<double>(numbers());
        const double shrinkage = genes / (genes + static_cast<double>(count));
        covariance *= 1 - shrinkage;
        covariance.diagonal() += shrinkage * variances;
        covariance.diagonal().array() += 1e-6 * variances.sum() / genes + 1e-14;
        const Eigen::SelfAdjointEigenSolver<MatrixXd> solved(covariance);
        const VectorXd deviations = solved.eigenvalues().cwiseMax(1e-16).cwiseSqrt();
        to_x_ = solved.eigenvectors() * deviations.asDiagonal();
        to_z_ = deviations.cwiseInverse().asDiagonal() * solved.eigenvectors().transpose();
    }

    const Rows& rows_;
    UnitGenome best_;
    MatrixXd to_x_;
    MatrixXd to_z_;
};

LocalModel::LocalModel(const Space& space) : space_(space), is_asked_for_(space.size()) {
    const auto note = [this](const std::vector<Condition>& conditions) {
        for (const Condition& condition : conditions) {
            is_asked_for_[condition.gene] = true;
        }
    };
    for (const Gene& gene : space.genes) {
        note(gene.when);
        std::for_each(gene.uses.begin(), gene.uses.end(), note);
    }
}

/// Numbers that have a meaning in the best result, and choices that no condition asks for.
LocalModel::Rows LocalModel::rows_of(const Seen& best) const {
    const std::vector<bool> active = active_genes(space_, from_unit(space_, best.point));
    Rows rows;
    for (const std::size_t gene : free_genes(space_)) {
        if (active[gene] && !is_choice(space_.genes[gene])) {
            rows.numbers.push_back(gene);
        } else if (active[gene] && !is_asked_for_[gene]) {
            rows.choices.push_back(gene);
        }
    }
    return rows;
}

/// Whether they differ in a choice that conditions ask for.
bool LocalModel::are_of_one_branch(const UnitGenome& a, const UnitGenome& b) const {
    for (std::size_t gene = 0; gene < space_.size(); ++gene) {
        if (is_asked_for_[gene] && is_choice(space_.genes[gene]) && a[gene] != b[gene]) {
            return false;
        }
    }
    return true;
}

/// Complete ones of the best one's branch.
std::vector<const Seen*> LocalModel::branch_of(const Seen& best, const std::vector<const Seen*>& results) const {
    std::vector<const Seen*> branch;
    std::copy_if(results.begin(), results.end(), std::back_inserter(branch), [&](const Seen* seen) {
        return seen->loss < least_pruned && are_of_one_branch(seen->point, best.point);
    });
    return branch;
}

void LocalModel::fit(const std::vector<const Seen*>& results, const std::vector<const Seen*>& fitted) {
    const Seen& best = *results.front();
    rows_ = rows_of(best);
    branch_ = best.point;
    std::vector<char> choices(rows_.numbers.size() + rows_.choices.size(), 1);
    std::fill_n(choices.begin(), rows_.numbers.size(), char{0});
    process_.emplace(std::move(choices), priors_of(rows_.numbers.size()), true);
    const std::vector<const Seen*> branch = branch_of(best, fitted);
    if (!rows_.numbers.empty() && branch.size() >= rows_.numbers.size() + 2) {
        const Frame frame(rows_, branch);
        process_->fit(frame.points, frame.values);
    }
}

bool LocalModel::varies_as_for(const Seen& best) const {
    return process_ && rows_ == rows_of(best) && are_of_one_branch(branch_, best.point);
}

std::optional<Proposal> LocalModel::propose(const std::vector<const Seen*>& results,
                                            const std::vector<UnitGenome>& in_training, const Allowed& allowed,
                                            RandomStream& random) const {
    const std::vector<const Seen*> branch = branch_of(*results.front(), results);
    if (rows_.numbers.empty() || branch.size() < rows_.numbers.size() + 2) {
        return std::nullopt;
    }
    const Frame frame(rows_, branch);
    const Index numbers = frame.numbers();
    GaussianProcess process = *process_;
    process.condition(frame.points, frame.values);

    // Those in training, as the model expects them to end.
    std::vector<VectorXd> near;
    for (const UnitGenome& point : in_training) {
        const VectorXd z = frame.z_of(point);
        if (are_of_one_branch(point, frame.best()) && z.head(numbers).cwiseAbs().maxCoeff() <= training_reach) {
            near.push_back(z);
        }
    }
    MatrixXd points(frame.points.rows(), frame.points.cols() + std::ssize(near));
    points.leftCols(frame.points.cols()) = frame.points;
    for (std::size_t i = 0; i < near.size(); ++i) {
        points.col(frame.points.cols() + static_cast<Index>(i)) = near[i];
    }
    const Index candidates = std::min<Index>(centre_candidates, frame.points.cols());
    const VectorXd expected = process.predict(points).mean;
    Index centre = 0;
    expected.head(candidates).minCoeff(&centre);
    if (!near.empty()) {
        VectorXd values(points.cols());
        values << frame.values, expected.tail(std::ssize(near));
        process.condition(points, values);
    }

    const VectorXd middle = frame.points.col(centre);
    const double radius = least_radius * std::pow(most_radius / least_radius, random.uniform());
    const double kappa = -std::log(1 - random.uniform());
    const auto genome_at = [&](const VectorXd& z) {
        return child_genome(space_, frame.point_of(z), frame.best(), random);
    };
    MatrixXd starts(points.rows(), start_count);
    const auto drawn = [&] { return random.below(static_cast<std::uint64_t>(frame.points.cols())); };
    Index count = 0;
    for (int start = 0; start < start_count; ++start) {
        VectorXd z = middle;
        if (start > 0) {
            if (start % 4 == 0) {
                z = frame.points.col(static_cast<Index>(std::min(drawn(), drawn())));
            }
            const double reach = radius * random.uniform();
            for (Index row = 0; row < numbers; ++row) {
                z[row] = std::clamp(z[row] + reach * random.normal(), middle[row] - radius, middle[row] + radius);
            }
            for (std::size_t i = 0; i < rows_.choices.size(); ++i) {
                if (random.uniform() < changed_choices / static_cast<double>(rows_.choices.size())) {
                    const Gene& gene = space_.genes[rows_.choices[i]];
                    z[numbers + static_cast<Index>(i)] = to_unit(gene, random_value(gene, random));
                }
            }
            z = frame.inside(z);
        }
        if (allowed.constraints.empty() || allowed.holds(genome_at(z))) {
            starts.col(count++) = z;
        }
    }
    if (count == 0) {
        return std::nullopt;
    }
    const auto predicted = process.predict(starts.leftCols(count));
    const VectorXd bounds = predicted.mean - kappa * predicted.deviation;
    std::vector<Index> order(static_cast<std::size_t>(count));
    std::iota(order.begin(), order.end(), Index{0});
    std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) { return bounds[a] < bounds[b]; });

    const Box box{middle.head(numbers).array() - radius, middle.head(numbers).array() + radius};
    std::optional<Proposal> found;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t climb = 0; climb < std::min(climbs, order.size()); ++climb) {
        const VectorXd start = starts.col(order[climb]);
        VectorXd z = start;
        double bound = bounds[order[climb]];
        VectorXd gradient;
        for (int round = 0; round < rounds; ++round) {
            const auto bound_at = [&](const VectorXd& moved, VectorXd& of_moved) {
                VectorXd whole = z;
                whole.head(numbers) = moved;
                const double value = process.lower_bound(frame.inside(whole), kappa, gradient);
                of_moved = frame.gradient_at(whole, gradient);
                return value;
            };
            VectorXd moved = z.head(numbers);
            bound = minimize(bound_at, box, climb_iterations, first_step * radius, moved);
            z.head(numbers) = moved;
            z = frame.inside(z);
            if (!exchange_choices(process, kappa, z, bound)) {
                break;
            }
        }
        Genome genome = genome_at(z);
        for (int halving = 0; halving < most_halvings && !allowed.holds(genome); ++halving) {
            z.head(numbers) = 0.5 * (z.head(numbers) + start.head(numbers));
            bound = process.lower_bound(z, kappa, gradient);
            genome = genome_at(z);
        }
        if (bound < least && allowed.is_unknown(genome) && allowed.holds(genome)) {
            least = bound;
            found = {std::move(genome), {branch[static_cast<std::size_t>(centre)]->id, Id{}}};
        }
    }
    return found;
}

/// Each choice for another option where that is better. Whether any was.
bool LocalModel::exchange_choices(const GaussianProcess& process, double kappa, VectorXd& z, double& bound) const {
    bool is_changed = false;
    VectorXd gradient;
    for (std::size_t i = 0; i < rows_.choices.size(); ++i) {
        const Gene& gene = space_.genes[rows_.choices[i]];
        const Index row = std::ssize(rows_.numbers) + static_cast<Index>(i);
        for (std::uint64_t option = 0; option < *value_count(gene); ++option) {
            VectorXd other = z;
            other[row] = to_unit(gene, static_cast<double>(option));
            if (other[row] == z[row]) {
                continue;
            }
            if (const double value = process.lower_bound(other, kappa, gradient); value < bound - 1e-9) {
                bound = value;
                z = std::move(other);
                is_changed = true;
            }
        }
    }
    return is_changed;
}

}  // namespace finch::search
