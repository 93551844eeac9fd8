// Compares searches with and without pruning, on recorded trainings in virtual time. All searches train the same number
// of epochs.
//   bench_pruning RUN PROPAGATOR WORKERS EPOCHS FIRST_SEED LAST_SEED
// RUN is a finished run with search.pruning: none, ideally with many random individuals, as finch evolve
// tools/bench/pruning.yaml makes it. The losses of a genome are derived from the 8 nearest recorded genomes: the mean
// of the logarithms of their losses, weighted by 1 / squared distance, with noise per individual and per epoch. An
// epoch takes a thousand times the recorded seconds. All workers know every rung and every result immediately. Prints
// for each rule the median and the quartiles of the best complete loss, and the numbers of trainings that began and
// that were complete.
#include "finch/search/pruning.hpp"

#include "finch/base/format.hpp"

#include "recorded.hpp"
#include "simulate/tables.hpp"
#include "virtual_search.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
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

}  // namespace

int main(int count, char** words) {
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
