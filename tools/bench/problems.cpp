#include "problems.hpp"

#include "finch/base/format.hpp"
#include "finch/base/words.hpp"
#include "finch/search/function.hpp"

#include "recorded.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <numbers>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace finch::bench {
namespace {

using namespace search;

double square(double x) {
    return x * x;
}

/// A problem that imitates the hyperparameters of a training. The best `rate` depends on the optimizer, the best
/// `dropout` on the width, and the best `shortcut` on the depth.
Problem mixed() {
    Problem problem;
    problem.space = {{{"optimizer", ChoiceGene{{"sgd", "adam", "adadelta"}}},
                      {"rate", RealGene{1e-5, 1, Scale::log}},
                      {"momentum", RealGene{0, 0.99}, {{0, {0}}}},
                      {"nesterov", ChoiceGene{{"no", "yes"}}, {{0, {0}}}},
                      {"decay", RealGene{1e-6, 1e-1, Scale::log}, {{0, {1}}}},
                      {"warmup", IntGene{0, 10}, {{0, {1}}}},
                      {"rho", RealGene{0.5, 0.99}, {{0, {2}}}},
                      {"activation", ChoiceGene{{"relu", "gelu", "tanh", "sigmoid"}}},
                      {"layers", IntGene{1, 10}},
                      {"shortcut", ChoiceGene{{"none", "sum", "concat"}}, {{8, {5, 6, 7, 8, 9, 10}}}},
                      {"width", IntGene{8, 512, Scale::log}},
                      {"kernel", ChoiceGene{{"1", "3", "5", "7", "9"}, true}},
                      {"dropout", RealGene{0, 0.8, Scale::linear, 0.1}},
                      {"smoothing", RealGene{0, 0.3}}}};
    problem.truth = [](const Genome& g) {
        const double rate = std::log10(g[1]);
        double loss = 0;
        if (g[0] == 0) {
            loss += 0.3 * square(rate + 1 - std::log10(1 - g[2])) + square(g[2] - 0.9) + (g[3] == 1 ? 0 : 0.1);
        } else if (g[0] == 1) {
            loss += 0.15 + 0.3 * square(rate + 3) + 0.1 * square(std::log10(g[4]) + 4) + 0.01 * square(g[5] - 4);
        } else {
            loss += 0.3 + 0.1 * square(rate) + square(g[6] - 0.9);
        }
        constexpr std::array activation{0.05, 0.0, 0.3, 0.8};
        const double depth = g[8] - 7;
        const double shortcut = g[8] >= 5 && g[9] == 1 ? 0 : g[8] >= 5 && g[9] == 2 ? 0.05 : 0.05 * g[8];
        const double width = std::log2(g[10] / 100);
        return loss + activation[static_cast<std::size_t>(g[7])] + 0.02 * square(depth) + shortcut +
               0.1 * square(width) + 0.08 * square(g[11] - 1) + 2 * square(g[12] - 0.3 - 0.1 * std::round(width)) +
               5 * square(g[13] - 0.1);
    };
    problem.measured = [truth = problem.truth](const Genome& genome, RandomStream&) {
        return std::vector{truth(genome)};
    };
    return problem;
}

/// A ring of choices. Each choice adds a term that depends on its own option and the options of its two successors.
class Table {
public:
    static constexpr std::size_t genes = 12;
    static constexpr std::size_t options = 4;

    explicit Table(std::uint64_t seed) {
        RandomStream random(seed, Purpose::generated_data);
        for (auto& entry : entries_) {
            entry = random.uniform();
        }
        least_ = least();
    }

    /// Returns the sum of a genome minus the smallest sum, divided by the standard deviation of the sums.
    [[nodiscard]] double value(const Genome& genome) const {
        double sum = 0;
        for (std::size_t i = 0; i < genes; ++i) {
            sum += at(i, option(genome, i), option(genome, i + 1), option(genome, i + 2));
        }
        return (sum - least_) / std::sqrt(genes / 12.0);
    }

private:
    static std::size_t option(const Genome& genome, std::size_t i) {
        return static_cast<std::size_t>(genome[i % genes]);
    }
    [[nodiscard]] double at(std::size_t gene, std::size_t a, std::size_t b, std::size_t c) const {
        return entries_[((gene * options + a) * options + b) * options + c];
    }

    /// Returns the smallest sum. Uses dynamic programming over the last two genes, once for each pair of options of the
    /// first two genes.
    [[nodiscard]] double least() const {
        double found = std::numeric_limits<double>::infinity();
        for (std::size_t start = 0; start < options * options; ++start) {
            std::vector<double> sums(options * options, std::numeric_limits<double>::infinity());
            sums[start] = 0;
            for (std::size_t gene = 0; gene < genes; ++gene) {
                std::vector<double> next(options * options, std::numeric_limits<double>::infinity());
                for (std::size_t from = 0; from < sums.size(); ++from) {
                    for (std::size_t c = 0; c < options; ++c) {
                        const std::size_t b = from % options;
                        double& sum = next[b * options + c];
                        sum = std::min(sum, sums[from] + at(gene, from / options, b, c));
                    }
                }
                sums = std::move(next);
            }
            found = std::min(found, sums[start]);
        }
        return found;
    }

    std::array<double, genes * options * options * options> entries_{};
    double least_ = 0;
};

Problem noisy_table(std::uint64_t seed) {
    constexpr double noise_deviation = 0.5;
    Problem problem;
    for (std::size_t i = 0; i < Table::genes; ++i) {
        problem.space.genes.push_back({fmt::format("g{}", i), ChoiceGene{{"a", "b", "c", "d"}}});
    }
    problem.truth = [table = std::make_shared<const Table>(seed)](const Genome& genome) {
        return table->value(genome);
    };
    problem.measured = [truth = problem.truth](const Genome& genome, RandomStream& noise) {
        return std::vector{truth(genome) + noise_deviation * noise.normal()};
    };
    return problem;
}

/// Returns Σ term(axis, x) over all coordinates. `axis` is 0 for the first coordinate and 1 for the last.
template <class Term>
double sum_along(std::span<const double> x, const Term& term) {
    double value = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        value += term(x.size() > 1 ? static_cast<double>(i) / static_cast<double>(x.size() - 1) : 0, x[i]);
    }
    return value;
}

template <int exponent>
double ellipsoid(std::span<const double> x) {
    return sum_along(x, [](double axis, double xi) { return std::pow(10, exponent * axis) * square(xi); });
}

double ellipsoid_1e6(std::span<const double> x) {
    return sum_along(x, [](double axis, double xi) { return std::pow(1e6, axis) * square(xi); });
}

/// Both terms of Ackley's function are exactly 0 at the origin, and never negative.
double ackley(std::span<const double> x) {
    const auto n = static_cast<double>(x.size());
    const double waves = sum_along(x, [](double, double xi) { return std::cos(2 * std::numbers::pi * xi); }) / n;
    const double squares = sum_along(x, [](double, double xi) { return square(xi); });
    return -20 * std::expm1(-0.2 * std::sqrt(squares / n)) - std::exp(1) * std::expm1(waves - 1);
}

/// The funnels of birastrigin, without its ripples.
double bisphere(std::span<const double> x) {
    constexpr double first_funnel = 2.5;
    const auto n = static_cast<double>(x.size());
    const double s = 1 - std::sqrt(1 / (2 * std::sqrt(n + 20) - 8.2));
    const double second_funnel = -std::sqrt((square(first_funnel) - 1) / s);
    const double first = sum_along(x, [](double, double xi) { return square(xi - first_funnel); });
    const double second = sum_along(x, [second_funnel](double, double xi) { return square(xi - second_funnel); });
    return std::min(first, n + s * second);
}

double weighted_sum(std::span<const double> x) {
    return sum_along(x, [](double axis, double xi) { return std::pow(100, axis) * std::abs(xi); });
}

double levy(std::span<const double> x) {
    const auto w = [x](std::size_t i) { return 1 + (x[i] - 1) / 4; };
    const auto wave = [](double angle) { return square(std::sin(angle)); };
    const double last = w(x.size() - 1);
    double value = wave(std::numbers::pi * w(0)) + square(last - 1) * (1 + wave(2 * std::numbers::pi * last));
    for (std::size_t i = 0; i + 1 < x.size(); ++i) {
        value += square(w(i) - 1) * (1 + 10 * wave(std::numbers::pi * w(i) + 1));
    }
    return value;
}

double styblinski_tang(std::span<const double> x) {
    return sum_along(x, [](double, double xi) { return (square(square(xi)) - 16 * square(xi) + 5 * xi) / 2; });
}

double hartmann(std::span<const double> x) {
    using Row = std::array<double, 6>;
    constexpr std::array heights{1.0, 1.2, 3.0, 3.2};
    constexpr std::array<Row, 4> steepness{
        {{10, 3, 17, 3.5, 1.7, 8}, {0.05, 10, 17, 0.1, 8, 14}, {3, 3.5, 1.7, 10, 17, 8}, {17, 8, 0.05, 10, 0.1, 14}}};
    constexpr std::array<Row, 4> centers{{{0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886},
                                          {0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991},
                                          {0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650},
                                          {0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381}}};
    double value = 0;
    for (std::size_t peak = 0; peak < heights.size(); ++peak) {
        double distance = 0;
        for (std::size_t i = 0; i < x.size(); ++i) {
            distance += steepness[peak][i] * square(x[i] - centers[peak][i]);
        }
        value -= heights[peak] * std::exp(-distance);
    }
    return value;
}

/// A benchmark function that Finch itself does not have, with its smallest value.
struct FurtherFunction {
    Function function;
    double minimum = 0;
    double minimum_per_gene = 0;  ///< added to `minimum` once per gene
};

std::vector<FurtherFunction> make_further_functions() {
    const auto within = [](double reach) { return RealGene{-reach, reach}; };
    const std::string ellipsoids = "Hansen and Ostermeier 2001";
    const std::string library = "Surjanovic and Bingham, Virtual Library of Simulation Experiments";
    const std::vector<double> best_of_hartmann{0.20168951100670543, 0.15001069182345797, 0.47687397422189703,
                                               0.2753324304940561,  0.31165161660011326, 0.6573005340656204};
    Function griewank = find_function("griewank");
    griewank.name = "griewank_100";
    griewank.bounds = within(100);
    return {
        {{"ellipsoid", 20, 1, within(5), {0}, ellipsoids, ellipsoid_1e6}},
        {{"ellipsoid_1e2", 2, 1, within(5), {0}, ellipsoids, ellipsoid<2>}},
        {{"ellipsoid_1e4", 2, 1, within(5), {0}, ellipsoids, ellipsoid<4>}},
        {{"ackley", 20, 1, within(32.768), {0}, "Ackley 1987, with Bäck's constants 20, 0.2 and 2 pi", ackley}},
        {{"bisphere", 30, 2, within(5.12), {2.5}, "Lunacek, Whitley and Sutton 2008", bisphere}},
        {{"weighted_sum", 2, 1, within(5), {0}, "weights from 1 to 100", weighted_sum}},
        {{"levy", 2, 1, within(10), {1}, library, levy}},
        {{"styblinski_tang", 2, 1, within(5), {-2.903534027771177}, library, styblinski_tang}, 0, -39.16616570377142},
        {{"hartmann", 6, 6, {0, 1}, best_of_hartmann, library, hartmann}, -3.3223680114155147},
        {griewank},
    };
}

FurtherFunction find_any_function(const std::string& name) {
    const std::vector<FurtherFunction> further = make_further_functions();
    const auto found = std::ranges::find(further, name, [](const FurtherFunction& one) { return one.function.name; });
    return found != further.end() ? *found : FurtherFunction{find_function(name)};
}

Problem function_problem(const std::string& name, std::uint64_t seed) {
    const auto colon = name.find(':');
    const auto any = std::make_shared<const FurtherFunction>(find_any_function(name.substr(0, colon)));
    const Function& function = any->function;
    Transform transform{.instance = static_cast<std::int64_t>(seed)};
    int dimensions = function.default_dimensions;
    for (auto from = colon; from != std::string::npos;) {
        const auto to = name.find(':', from + 1);
        const std::string part = name.substr(from + 1, to == std::string::npos ? to : to - from - 1);
        if (part == "shifted" || part == "rotated") {
            transform.shift = true;
            transform.rotate = part == "rotated";
        } else {
            dimensions = std::stoi(part);
        }
        from = to;
    }
    const double minimum = any->minimum + dimensions * any->minimum_per_gene;
    const auto truth = [any, minimum, instance = FunctionInstance(function, dimensions, transform)](
                           const Genome& genome) { return instance.value(genome) - minimum; };
    return {function_space(function, dimensions),
            [truth](const Genome& genome, RandomStream&) { return std::vector{truth(genome)}; }, truth};
}

/// Returns a problem of 30 genes in [-5.12, 5.12] with two funnels. Their centers are random in [-3, 3]. The narrow
/// funnel has the minimum 0, the wide funnel has the minimum 30. `has_ripples` adds ripples as in rastrigin, centered
/// at the narrow funnel.
Problem two_funnels(std::uint64_t seed, bool has_ripples) {
    constexpr std::size_t genes = 30;
    constexpr double wider = 0.59;
    constexpr double depth = 30;
    RandomStream random(seed, Purpose::generated_data, 1);
    Problem problem;
    std::vector<double> narrow;
    std::vector<double> wide;
    for (std::size_t i = 0; i < genes; ++i) {
        problem.space.genes.push_back({fmt::format("x{}", i), RealGene{-5.12, 5.12}});
        narrow.push_back(6 * random.uniform() - 3);
        wide.push_back(6 * random.uniform() - 3);
    }
    problem.truth = [narrow, wide, has_ripples](const Genome& genome) {
        double to_narrow = 0;
        double to_wide = 0;
        double ripples = 0;
        for (std::size_t i = 0; i < genes; ++i) {
            to_narrow += square(genome[i] - narrow[i]);
            to_wide += square(genome[i] - wide[i]);
            ripples += 10 * (1 - std::cos(2 * std::numbers::pi * (genome[i] - narrow[i])));
        }
        return std::min(to_narrow, depth + wider * to_wide) + (has_ripples ? ripples : 0);
    };
    problem.measured = [truth = problem.truth](const Genome& genome, RandomStream& /*noise*/) {
        return std::vector{truth(genome)};
    };
    return problem;
}

double least_of(const std::vector<double>& curve) {
    return *std::min_element(curve.begin(), curve.end());
}

/// The recorded trainings of each genome. The smallest mean loss of all genomes is subtracted from the losses.
class Repeats {
public:
    void add(const Recorded& recorded) {
        for (const Recorded::Training& training : recorded.trainings) {
            std::vector<double> losses;
            for (const Epoch& epoch : training.curve) {
                losses.push_back(epoch.validation_loss);
            }
            curves_[training.genome].push_back(std::move(losses));
        }
    }
    void find_smallest() {
        for (const auto& [genome, curves] : curves_) {
            smallest_ = std::min(smallest_, mean(curves));
        }
    }

    [[nodiscard]] std::vector<double> one(const Genome& genome, RandomStream& random) const {
        const auto& curves = curves_.at(genome);
        std::vector<double> curve = curves[static_cast<std::size_t>(random.below(curves.size()))];
        for (double& loss : curve) {
            loss -= smallest_;
        }
        return curve;
    }
    [[nodiscard]] double truth(const Genome& genome) const { return mean(curves_.at(genome)) - smallest_; }

private:
    [[nodiscard]] static double mean(const std::vector<std::vector<double>>& curves) {
        double sum = 0;
        for (const auto& curve : curves) {
            sum += least_of(curve);
        }
        return sum / static_cast<double>(curves.size());
    }

    std::map<Genome, std::vector<std::vector<double>>> curves_;
    double smallest_ = std::numeric_limits<double>::infinity();
};

Problem trainings(const std::string& folder) {
    Problem problem;
    const auto repeats = std::make_shared<Repeats>();
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        if (entry.is_directory()) {
            const Recorded recorded = read_recorded(entry.path());
            repeats->add(recorded);
            problem.space = recorded.space;
            problem.epochs = static_cast<std::int64_t>(recorded.epochs);
        }
    }
    repeats->find_smallest();
    problem.measured = [repeats](const Genome& genome, RandomStream& noise) { return repeats->one(genome, noise); };
    problem.truth = [repeats](const Genome& genome) { return repeats->truth(genome); };
    return problem;
}

std::string kind_json(const RealGene& gene) {
    return fmt::format(R"("kind": "real", "low": {}, "high": {}, "log": {}, "step": {})", gene.low, gene.high,
                       gene.scale == Scale::log, gene.step);
}
std::string kind_json(const IntGene& gene) {
    return fmt::format(R"("kind": "int", "low": {}, "high": {}, "log": {}, "step": {})", gene.low, gene.high,
                       gene.scale == Scale::log, gene.step);
}
std::string kind_json(const ChoiceGene& gene) {
    return fmt::format(R"("kind": "choice", "options": {}, "ordered": {})", gene.options.size(), gene.ordered);
}

}  // namespace

Problem find_problem(const std::string& name, std::uint64_t seed) {
    constexpr std::string_view recorded = "trainings:";
    if (name.starts_with(recorded)) {
        return trainings(name.substr(recorded.size()));
    }
    if (name == "funnels" || name == "funnels:ripples") {
        return two_funnels(seed, name != "funnels");
    }
    return name == "mixed" ? mixed() : name == "table" ? noisy_table(seed) : function_problem(name, seed);
}

std::string space_json(const search::Space& space) {
    std::vector<std::string> genes;
    for (const Gene& gene : space.genes) {
        std::vector<std::string> conditions;
        for (const Condition& condition : gene.when) {
            conditions.push_back(
                fmt::format(R"({{"gene": {}, "values": [{}]}})", condition.gene, fmt::join(condition.values, ", ")));
        }
        const std::string kind = std::visit([](const auto& some) { return kind_json(some); }, gene.kind);
        genes.push_back(
            fmt::format(R"({{"name": "{}", {}, "when": [{}]}})", gene.name, kind, fmt::join(conditions, ", ")));
    }
    return fmt::format("[{}]", fmt::join(genes, ", "));
}

}  // namespace finch::bench
