#include "local_model.hpp"

#include "acquisition.hpp"

#include <algorithm>
#include <array>
#include <cmath>

// The metric is the covariance of the best results (Larrañaga and Lozano 2002, EMNA) with the weights of CMA-ES (Hansen
// 2016), shrunk towards the diagonal. The selection of results (the window) and the use of raw losses follow
// trust-region methods (Eriksson et al. 2019), but here each birth draws its own radius.
namespace finch::search {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr std::size_t most_results = 150;  ///< maximum number of results in the window
constexpr std::size_t enough_results = 8;  ///< minimum number for a model, however many genes there are
constexpr double of_all_results = 0.9;
/// Number of results in the model's window per coefficient of a quadratic. One result per two workers is added.
constexpr double of_coefficients = 2.5;
constexpr double training_reach = 20;  ///< in deviations: individuals in training that are farther away are left out
constexpr double most_excess = 1e3;    ///< excess over the best loss / excess of the median: larger losses are left out
constexpr Index centre_candidates = 10;
constexpr double least_radius = 0.3;
constexpr double most_radius = 6;
constexpr Index start_count = 100;
constexpr double changed_choices = 0.7;  ///< mean number of changed choices per start
constexpr double least_deviation = 1e-300;

/// A fit begins at scales with which a quadratic explains all values. A fit that begins at the medians of the prior
/// often fails to find a quadratic that explains the values.
GaussianPrior prior_of(Index numbers) {
    const double length = std::sqrt(static_cast<double>(numbers));
    return {.median = {.length = length, .signal = 1, .linear = 0.3, .quadratic = 0.1, .noise = 0.001},
            .deviation = {.length = 1, .signal = 1, .linear = 2, .quadratic = 2, .noise = 3},
            .start = {.length = length, .signal = 0.05, .linear = 1, .quadratic = 1, .noise = 1e-5},
            .least_noise = 1e-7};
}

/// Values of an objective with mean 0 and deviation 1, and the mean and deviation before.
struct Standardised {
    explicit Standardised(const VectorXd& all) : values(0.5 * all) {  // halved, so that no difference overflows
        const double least = values.minCoeff();
        values.array() -= least;
        const double range = std::max(least_deviation, values.maxCoeff());
        values /= range;
        const double middle = values.mean();
        values.array() -= middle;
        const double spread = std::max(least_deviation, values.norm() / std::sqrt(static_cast<double>(values.size())));
        values /= spread;
        mean = 2 * (least + range * middle);
        deviation = 2 * range * spread;
        deviation = deviation > 0 ? deviation : 1;
    }
    VectorXd values;
    double mean = 0;
    double deviation = 1;
};

}  // namespace

/// The window of results that the model uses. Numeric genes have the coordinates z = A⁻¹ (x − best); choices are not
/// transformed.
struct LocalModel::Window {
    const Rows& rows;
    UnitGenome best;
    VectorXd x_best = x_of(best);
    MatrixXd to_x = MatrixXd::Identity(x_best.size(), x_best.size());  ///< A
    MatrixXd to_z = to_x;
    std::vector<const Seen*> results = {};  ///< best first
    MatrixXd points = {};
    MatrixXd values = {};  ///< their standardised values, one row per objective
    VectorXd mean = {};    ///< of each objective, before the values were standardised
    VectorXd deviation = {};

    [[nodiscard]] VectorXd x_of(const UnitGenome& point) const {
        VectorXd x(std::ssize(rows.genes));
        std::transform(rows.genes.begin(), rows.genes.end(), x.begin(), [&](std::size_t gene) { return point[gene]; });
        return x;
    }
    [[nodiscard]] VectorXd z_of(const VectorXd& x) const {
        VectorXd z = x;
        z.head(rows.numbers) -= x_best.head(rows.numbers);
        return to_z * z;
    }
    [[nodiscard]] VectorXd unclamped(const VectorXd& z) const {
        VectorXd x = to_x * z;
        x.head(rows.numbers) += x_best.head(rows.numbers);
        return x;
    }
    [[nodiscard]] UnitGenome point_of(const VectorXd& z) const {
        UnitGenome point = best;
        const VectorXd x = unclamped(z);
        for (std::size_t i = 0; i < rows.genes.size(); ++i) {
            point[rows.genes[i]] = std::clamp(x[static_cast<Index>(i)], 0.0, 1.0);
        }
        return point;
    }
    /// inside() clamps `z` to the unit cube. gradient_at() converts a gradient at the clamped point to a gradient at
    /// `z`.
    [[nodiscard]] VectorXd inside(const VectorXd& z) const { return z_of(x_of(point_of(z))); }
    [[nodiscard]] VectorXd gradient_at(const VectorXd& z, const VectorXd& gradient) const {
        const Eigen::ArrayXd x = unclamped(z);
        return to_x.transpose() * ((x >= 0 && x <= 1).cast<double>() * (to_z.transpose() * gradient).array()).matrix();
    }

    /// Computes the metric A from the covariance of the best `count` results, weighted as in CMA-ES. `rounding`:
    /// variances of the rounding errors of numeric genes.
    void learn_metric(const std::vector<const Seen*>& all, std::size_t count, const VectorXd& rounding) {
        const auto genes = static_cast<double>(rows.numbers);
        VectorXd weights(static_cast<Index>(count));
        MatrixXd numbers(rows.numbers, weights.size());
        for (Index i = 0; i < weights.size(); ++i) {
            weights[i] = std::log((static_cast<double>(count) + 1) / (static_cast<double>(i) + 1));
            numbers.col(i) = x_of(all[static_cast<std::size_t>(i)]->point).head(rows.numbers);
        }
        weights /= weights.sum();
        numbers.colwise() -= VectorXd(numbers * weights);
        MatrixXd covariance = numbers * weights.asDiagonal() * numbers.transpose();
        const VectorXd variances = covariance.diagonal();
        const double shrinkage = genes / (genes + static_cast<double>(count));
        covariance *= 1 - shrinkage;
        covariance.diagonal() += shrinkage * variances;
        covariance.diagonal().array() += 1e-6 * variances.sum() / genes + 1e-14;
        covariance.diagonal() += rounding;
        const Eigen::SelfAdjointEigenSolver<MatrixXd> solved(covariance);
        const VectorXd deviations = solved.eigenvalues().cwiseMax(1e-16).cwiseSqrt();
        to_x.topLeftCorner(rows.numbers, rows.numbers) = solved.eigenvectors() * deviations.asDiagonal();
        to_z.topLeftCorner(rows.numbers, rows.numbers) =
            deviations.cwiseInverse().asDiagonal() * solved.eigenvectors().transpose();
    }
};

LocalModel::LocalModel(const Space& space, std::int32_t workers)
    : space_(space), workers_(workers), decides_(space.size()) {
    const auto note = [this](const std::vector<Condition>& conditions) {
        for (const Condition& condition : conditions) {
            decides_[condition.gene] = true;
        }
    };
    for (const Gene& gene : space.genes) {
        note(gene.when);
        std::for_each(gene.uses.begin(), gene.uses.end(), note);
    }
}

LocalModel::Rows LocalModel::rows_of(const Seen& best) const {
    const std::vector<bool> active = active_genes(space_, from_unit(space_, best.point));
    std::array<std::vector<std::size_t>, 3> kinds;
    for (const std::size_t gene : free_genes(space_)) {
        if (active[gene]) {
            kinds[!is_choice(space_.genes[gene]) ? 0 : decides_[gene] ? 2 : 1].push_back(gene);
        }
    }
    Rows rows{
        .genes = kinds[0], .numbers = std::ssize(kinds[0]), .varied = std::ssize(kinds[0]) + std::ssize(kinds[1])};
    rows.genes.insert(rows.genes.end(), kinds[1].begin(), kinds[1].end());
    rows.genes.insert(rows.genes.end(), kinds[2].begin(), kinds[2].end());
    return rows;
}

/// Returns the window of complete results, or nothing if there are too few results.
std::optional<LocalModel::Window> LocalModel::window(const std::vector<const Seen*>& results) const {
    std::vector<const Seen*> complete;
    std::copy_if(results.begin(), results.end(), std::back_inserter(complete),
                 [](const Seen* seen) { return seen->loss < least_pruned; });
    const Index objectives = results.front()->values.size();
    for (Index row = 0; row < objectives && !complete.empty(); ++row) {
        std::vector<double> values;
        std::transform(complete.begin(), complete.end(), std::back_inserter(values),
                       [row](const Seen* seen) { return seen->values[row]; });
        std::sort(values.begin(), values.end());
        const double best = values.front();
        const double usual = values[values.size() / 2] - best;
        // The first result stays, because it determines which genes the model varies.
        std::erase_if(complete, [&](const Seen* seen) {
            return seen != results.front() && usual > 0 && seen->values[row] - best > most_excess * usual;
        });
    }
    const auto numbers = static_cast<std::size_t>(rows_.numbers);
    if (numbers == 0 || complete.size() < std::min(numbers + 2, enough_results)) {
        return std::nullopt;
    }
    const std::size_t coefficients = (numbers + 1) * (numbers + 2) / 2;
    const auto wanted =
        std::min(static_cast<std::size_t>(of_coefficients * static_cast<double>(coefficients) + workers_ / 2),
                 static_cast<std::size_t>(of_all_results * static_cast<double>(complete.size())));
    const std::size_t count = std::min({complete.size(), most_results, std::max(2 * (numbers + 1), wanted)});
    Window found{rows_, complete.front()->point};
    VectorXd rounding = VectorXd::Zero(rows_.numbers);
    for (Index row = 0; row < rows_.numbers; ++row) {
        if (const auto values = value_count(space_.genes[rows_.genes[static_cast<std::size_t>(row)]])) {
            rounding[row] = 1 / (12 * std::pow(static_cast<double>(*values), 2));
        }
    }
    found.learn_metric(complete, std::min(complete.size(), std::max(numbers + 1, count / 2)), rounding);
    complete.resize(count);
    found.points.resize(std::ssize(rows_.genes), static_cast<Index>(count));
    found.values.resize(objectives, static_cast<Index>(count));
    for (Index i = 0; i < found.values.cols(); ++i) {
        found.points.col(i) = found.z_of(found.x_of(complete[static_cast<std::size_t>(i)]->point));
        found.values.col(i) = complete[static_cast<std::size_t>(i)]->values;
    }
    found.mean.resize(objectives);
    found.deviation.resize(objectives);
    for (Index row = 0; row < objectives; ++row) {
        const Standardised one(found.values.row(row));
        found.values.row(row) = one.values;
        found.mean[row] = one.mean;
        found.deviation[row] = one.deviation;
    }
    found.results = std::move(complete);
    return found;
}

void LocalModel::fit(const std::vector<const Seen*>& results, const std::vector<const Seen*>& fitted) {
    rows_ = rows_of(*results.front());
    VectorXd is_number = VectorXd::Zero(std::ssize(rows_.genes));
    is_number.head(rows_.numbers).setOnes();
    models_.emplace(is_number, prior_of(rows_.numbers), results.front()->values.size());
    if (const auto known = window(fitted)) {
        models_->fit(known->points, known->values);
    }
}

bool LocalModel::varies_as_for(const Seen& best) const {
    return models_ && rows_ == rows_of(best);
}

std::optional<Proposal> LocalModel::propose(const std::vector<const Seen*>& results, const Scalarisation& scalarisation,
                                            const std::vector<UnitGenome>& in_training, const Allowed& allowed,
                                            RandomStream& random) const {
    const auto known = window(results);
    if (!known) {
        return std::nullopt;
    }
    const Index rows = std::ssize(rows_.genes);
    const Index numbers = rows_.numbers;
    ObjectiveModels models = *models_;
    models.condition(known->points, known->values, scalarisation.standardised(known->mean, known->deviation));
    const Index compared = std::min(centre_candidates, known->points.cols());
    Index centre = 0;
    models.lower_bounds(known->points.leftCols(compared), 0).minCoeff(&centre);
    const VectorXd middle = known->points.col(centre);

    MatrixXd waiting(rows, std::ssize(in_training));
    Index near = 0;
    for (const UnitGenome& point : in_training) {
        const VectorXd z = known->z_of(known->x_of(point));
        if (z.head(numbers).cwiseAbs().maxCoeff() <= training_reach) {
            waiting.col(near++) = z;
        }
    }
    models.believe(waiting.leftCols(near));

    const double radius = least_radius * std::pow(most_radius / least_radius, random.uniform());
    const double kappa = -std::log(1 - random.uniform());
    Box box{middle.array() - radius, middle.array() + radius};
    box.low.tail(rows - numbers).setZero();
    box.high.tail(rows - numbers).setOnes();
    const auto gene_of = [this](Index row) -> const Gene& {
        return space_.genes[rows_.genes[static_cast<std::size_t>(row)]];
    };
    const auto genome_at = [&](const VectorXd& z, Index /*start*/) {
        return child_genome(space_, known->point_of(z), known->best, random);
    };
    const auto drawn = [&] {
        return static_cast<Index>(random.below(static_cast<std::uint64_t>(known->points.cols())));
    };
    MatrixXd starts(rows, start_count);
    Index count = 0;
    for (Index start = 0; start < start_count; ++start) {
        VectorXd z = start % 4 == 0 && start > 0 ? known->points.col(std::min(drawn(), drawn())) : middle;
        const double reach = start > 0 ? radius * random.uniform() : 0;
        for (Index row = 0; row < numbers; ++row) {
            z[row] = std::clamp(z[row] + reach * random.normal(), box.low[row], box.high[row]);
        }
        for (Index row = numbers; row < rows_.varied; ++row) {
            if (start > 0 && random.uniform() < changed_choices / static_cast<double>(rows_.varied - numbers)) {
                z[row] = to_unit(gene_of(row), random_value(gene_of(row), random));
            }
        }
        z.tail(rows - rows_.varied) = known->x_best.tail(rows - rows_.varied);
        z = known->inside(z);
        if (allowed.holds(genome_at(z, start))) {
            starts.col(count++) = z;
        }
    }
    Acquisition acquisition{
        .bound =
            [&](const VectorXd& z, VectorXd& gradient) {
                const double bound = models.lower_bound(known->inside(z), kappa, gradient);
                gradient = known->gradient_at(z, gradient);
                return bound;
            },
        .box = box,
        .choices = {},
        .inside = [&](const VectorXd& z) { return known->inside(z); },
        .genome_at = genome_at,
        .point_of = [&](const Genome& genome) { return known->z_of(known->x_of(to_unit(space_, genome))); }};
    for (Index row = numbers; row < rows_.varied; ++row) {
        acquisition.choices.emplace_back(row, &gene_of(row));
    }
    auto found =
        optimize(acquisition, starts.leftCols(count), models.lower_bounds(starts.leftCols(count), kappa), allowed);
    if (!found) {
        return std::nullopt;
    }
    return Proposal{std::move(found->genome), {known->results[static_cast<std::size_t>(centre)]->id, Id{}}};
}

}  // namespace finch::search
