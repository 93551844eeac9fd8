// Compares searches with and without pruning, on recorded trainings in virtual time. All searches train the same number
// of epochs.
//   bench_pruning RUN PROPAGATOR WORKERS EPOCHS FIRST_SEED LAST_SEED
// RUN is a finished run with search.pruning: none, ideally with many random individuals, as finch evolve
// tools/bench/pruning.yaml makes it. The losses of a genome are derived from the 8 nearest recorded genomes: the mean
// of the logarithms of their losses, weighted by 1 / squared distance, with noise per individual and per epoch. An
// epoch takes a thousand times the recorded seconds. All workers know every rung and every result immediately. Prints
// for each rule the median and the quartiles of the best complete loss, and the numbers of trainings that began and
// that were complete.
//   bench_pruning RUN front COST WORKERS EVALUATIONS FIRST_SEED LAST_SEED
// compares the front of validation error and COST (parameters, joules). All rules train the same EVALUATIONS recorded
// trainings, in an order that depends on the seed. Prints for each rule the share of the hypervolume and of the epochs
// of the search without pruning: median, mean and smallest, and mean and largest.
#include "finch/search/pruning.hpp"

#include "finch/base/format.hpp"
#include "finch/search/objectives.hpp"

#include "recorded.hpp"
#include "simulate/tables.hpp"
#include "virtual_search.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

using namespace finch;
using namespace finch::search;
using finch::simulate::quantile;

namespace {

constexpr double individual_noise = 0.03;  ///< of the logarithm of the loss
constexpr double epoch_noise = 0.01;
/// A factor on the recorded seconds. It imitates larger networks, since `auto` considers the cost of its surrogate
/// model.
constexpr double slow = 1000;

struct Rule {
    std::string name;
    PruningOptions options;
};

/// The recorded trainings. Each ran to its end or diverged.
class Table {
public:
    explicit Table(const bench::Recorded& recorded) : space_(recorded.space) {
        for (const bench::Recorded::Training& training : recorded.trainings) {
            rows_.push_back({unit(training.genome), training.curve, !training.is_complete});
        }
    }

    /// Returns a training of a genome that may never have been trained.
    [[nodiscard]] bench::Course course(const Genome& genome, RandomStream& random) const {
        constexpr std::ptrdiff_t neighbours = 8;
        const std::vector<double> point = unit(genome);
        std::vector<std::pair<double, const Row*>> near;
        for (const Row& row : rows_) {
            double sum = 1e-4;
            for (std::size_t i = 0; i < point.size(); ++i) {
                const bool is_choice = std::holds_alternative<ChoiceGene>(space_.genes[i].kind);
                const double apart = is_choice ? (point[i] != row.point[i] ? 1 : 0) : point[i] - row.point[i];
                sum += apart * apart;
            }
            near.emplace_back(sum, &row);
        }
        std::partial_sort(near.begin(), near.begin() + neighbours, near.end());
        near.resize(neighbours);
        const Row& nearest = *near.front().second;
        bench::Course course{
            .diverges = nearest.diverges, .seconds = slow * nearest.curve.front().seconds, .losses = {}};
        const double offset = individual_noise * random.normal();
        for (std::size_t epoch = 0; epoch < nearest.curve.size(); ++epoch) {
            double weights = 0;
            double logarithm = 0;
            for (const auto& [distance, row] : near) {
                if (epoch < row->curve.size()) {
                    weights += 1 / distance;
                    logarithm += std::log(row->curve[epoch].validation_loss) / distance;
                }
            }
            course.losses.push_back(std::exp(logarithm / weights + offset + epoch_noise * random.normal()));
        }
        return course;
    }

private:
    struct Row {
        std::vector<double> point;
        std::vector<Epoch> curve;
        bool diverges = false;
    };

    [[nodiscard]] std::vector<double> unit(const Genome& genome) const {
        std::vector<double> point;
        for (std::size_t i = 0; i < genome.size(); ++i) {
            point.push_back(to_unit(space_.genes[i], genome[i]));
        }
        return point;
    }

    Space space_;
    std::vector<Row> rows_;
};

/// Trains `evaluations` of the recorded trainings, in an order that depends on `seed`.
bench::Found front_of(const bench::Recorded& recorded, const std::string& cost, const PruningOptions& rule,
                      std::int32_t workers, std::int64_t evaluations, std::uint64_t seed) {
    RandomStream random(seed, Purpose::function_noise);
    const auto order = random.permutation(static_cast<std::uint32_t>(recorded.trainings.size()));
    std::size_t next = 0;
    const auto course = [&](const Genome&, Id) {
        const bench::Recorded::Training& training = recorded.trainings.at(order.at(next++));
        bench::Course found{.diverges = !training.is_complete, .seconds = 0, .losses = {}};
        for (const Epoch& epoch : training.curve) {
            found.seconds += epoch.seconds / static_cast<double>(training.curve.size());
            found.losses.push_back(1 - epoch.validation_accuracy);
        }
        found.parameters = training.parameters;
        found.joules = training.joules / static_cast<double>(training.curve.size());
        return found;
    };
    return bench::run({.space = recorded.space,
                       .propagator = RandomSearchOptions{},
                       .costs = {parse_cost(cost).value()},
                       .pruning = rule,
                       .workers = workers,
                       .evaluations = evaluations,
                       .epochs_each = static_cast<std::int64_t>(recorded.epochs),
                       .seed = seed,
                       .course = course});
}

int compare_fronts(char** words) {
    const bench::Recorded recorded = bench::read_recorded(words[1]);
    const std::vector<Cost> costs{parse_cost(words[3]).value()};
    const std::vector<Rule> rules{{"halving", HalvingOptions{}},
                                  {"halving from epoch 2, factor 2", HalvingOptions{2, 2}},
                                  {"halving from epoch 3, factor 2", HalvingOptions{3, 2}},
                                  {"halving from epoch 3, factor 3", HalvingOptions{3, 3}},
                                  {"median", MedianOptions{}},
                                  {"median from epoch 4", MedianOptions{.first_epoch = 4}}};
    for (const Rule& rule : rules) {
        std::vector<double> volumes;
        std::vector<double> epochs;
        for (std::uint64_t seed = std::stoull(words[6]); seed <= std::stoull(words[7]); ++seed) {
            const auto found = [&](const PruningOptions& options) {
                return front_of(recorded, words[3], options, std::stoi(words[4]), std::stoll(words[5]), seed);
            };
            const auto volume = [&](const bench::Found& one, std::span<const double> reference) {
                std::vector<ObjectiveValues> points;
                for (const Individual& individual : one.all) {
                    points.push_back(point_of(individual, costs));
                }
                return hypervolume(std::move(points), reference);
            };
            const bench::Found all = found(NoPruning{});
            const bench::Found some = found(rule.options);
            std::vector<const Individual*> pointers;
            for (const Individual& individual : all.all) {
                pointers.push_back(&individual);
            }
            const auto whole = volume_of(pareto_front(pointers, costs), costs).value();
            volumes.push_back(volume(some, whole.reference) / volume(all, whole.reference));
            epochs.push_back(static_cast<double>(some.epochs) / static_cast<double>(all.epochs));
        }
        const auto mean = [](const std::vector<double>& values) {
            return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
        };
        fmt::print(
            "{:10} {:32} W {:3} E {:4}: hypervolume {:.3f} (mean {:.3f}, at least {:.3f}), epochs {:.3f} (at most "
            "{:.3f})\n",
            words[3], rule.name, words[4], words[5], quantile(volumes, 0.5), mean(volumes), quantile(volumes, 0),
            mean(epochs), quantile(epochs, 1));
    }
    return 0;
}

}  // namespace

int main(int count, char** words) {
    if (count == 8 && std::string(words[2]) == "front") {
        return compare_fronts(words);
    }
    if (count != 7) {
        fmt::print(stderr, "usage: bench_pruning RUN PROPAGATOR WORKERS EPOCHS FIRST_SEED LAST_SEED\n");
        return 2;
    }
    try {
        const bench::Recorded recorded = bench::read_recorded(words[1]);
        const Table table(recorded);
        const std::vector<Rule> rules{{"none", NoPruning{}},
                                      {"halving", HalvingOptions{}},
                                      {"median", MedianOptions{}},
                                      {"curve", CurveOptions{}}};
        for (const Rule& rule : rules) {
            std::vector<double> best;
            double begun = 0;
            double complete = 0;
            const std::uint64_t last = std::stoull(words[6]);
            for (std::uint64_t seed = std::stoull(words[5]); seed <= last; ++seed) {
                const auto course = [&](const Genome& genome, Id id) {
                    RandomStream noise(seed, Purpose::function_noise, id.value);
                    return table.course(genome, noise);
                };
                const bench::Found found =
                    bench::run({.space = recorded.space,
                                .propagator = bench::propagator_named(words[2], std::stoi(words[3])),
                                .pruning = rule.options,
                                .workers = std::stoi(words[3]),
                                .epochs = std::stoll(words[4]),
                                .epochs_each = static_cast<std::int64_t>(recorded.epochs),
                                .seed = seed,
                                .course = course});
                best.push_back(found.best ? found.best->loss : std::numeric_limits<double>::infinity());
                begun += static_cast<double>(found.begun);
                complete += static_cast<double>(found.complete);
            }
            const auto runs = static_cast<double>(best.size());
            fmt::print(
                "{:8} {:8} W {:3} E {:6}: median {:.4f} [{:.4f}, {:.4f}], {:6.1f} begun, {:6.1f} "
                "complete\n",
                words[2], rule.name, words[3], words[4], quantile(best, 0.5), quantile(best, 0.25),
                quantile(best, 0.75), begun / runs, complete / runs);
        }
    } catch (const std::exception& error) {
        fmt::print(stderr, "bench_pruning: {}\n", error.what());
        return 2;
    }
}
