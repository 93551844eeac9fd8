// How well searches with and without pruning use a number of epochs, on recorded trainings in virtual time.
//   bench_pruning RUN PROPAGATOR WORKERS EPOCHS FIRST_SEED LAST_SEED
// RUN is a finished run with search.pruning: none, best of many random individuals, as finch evolve
// tools/bench/pruning.yaml makes it. A genome trains as the 8 nearest
// recorded ones did (the mean of the losses' logarithms, weighted by 1 / squared distance, with noise for each
// individual and each epoch), an epoch taking a thousand times the recorded seconds; every rung and result is known at
// once to all. Prints for each rule the median and the quartiles of the best complete loss, how many trainings began
// and how many were complete.
#include "finch/search/pruning.hpp"

#include "finch/base/format.hpp"
#include "finch/search/propagator.hpp"
#include "finch/store/resume.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>
#include <stdexcept>
#include <string>
#include <vector>

using namespace finch;
using namespace finch::search;

namespace {

constexpr double individual_noise = 0.03;  ///< of the loss's logarithm
constexpr double epoch_noise = 0.01;
constexpr double slow = 1000;  ///< larger networks take so many times as long: `auto` looks at what a model costs

PropagatorOptions propagator_of(const std::string& name) {
    if (name == "genetic") {
        return GeneticOptions{};
    }
    if (name == "random") {
        return RandomSearchOptions{};
    }
    if (name == "auto") {
        return AutomaticOptions{};
    }
    throw std::runtime_error("no propagator " + name);
}

struct Rule {
    std::string name;
    PruningOptions options;
};

struct Course {
    bool diverges = false;
    double seconds = 0;  ///< of an epoch
    std::vector<double> losses;
};

/// Trainings that went on to their end.
class Table {
public:
    explicit Table(const std::string& run) {
        auto recovered = store::recover(store::RunDirectory(run), OnDamage::leave);
        if (!recovered) {
            throw std::runtime_error("no run in " + run);
        }
        space_ = recovered->space;
        Population population(ExchangeKind::none, 1);
        recovered->merge_into(population);
        for (const auto& [id, individual] : population.individuals()) {
            if (!individual.curve.empty()) {
                rows_.push_back({unit(individual.genome), individual.curve, !individual.is_complete()});
                epochs_ = std::max(epochs_, individual.curve.size());
            }
        }
    }
    [[nodiscard]] const Space& space() const { return space_; }
    [[nodiscard]] std::size_t size() const { return rows_.size(); }
    [[nodiscard]] std::size_t epochs() const { return epochs_; }

    /// The curve of a genome that was maybe never trained.
    [[nodiscard]] Course course(const Genome& genome, RandomStream& random) const {
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
        Course course{.diverges = nearest.diverges, .seconds = nearest.curve.front().seconds, .losses = {}};
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
    std::size_t epochs_ = 0;
};

struct Found {
    double best = std::numeric_limits<double>::infinity();
    std::size_t begun = 0;
    std::size_t complete = 0;
};

/// One search of `epochs` in all.
class Search {
public:
    Search(const Table& table, const std::string& propagator, const PruningOptions& pruning, std::int32_t workers,
           std::int64_t epochs, std::uint64_t seed)
        : table_(table),
          pruning_(pruning),
          workers_(workers),
          epochs_(epochs),
          seed_(seed),
          breeder_(make_propagator(propagator_of(propagator), table.space(), seed)),
          running_(static_cast<std::size_t>(workers)) {}

    Found run() {
        for (std::int32_t worker = 0; worker < workers_; ++worker) {
            start(worker, 1);
        }
        for (std::int64_t trained = 0; trained < epochs_; ++trained) {
            const auto [now, worker] = due_.top();
            due_.pop();
            end_epoch(worker, now);
        }
        if (const Individual* best = population_.best(); best != nullptr && best->is_complete()) {
            found_.best = best->loss;
        }
        return found_;
    }

private:
    struct Running {
        Individual individual;
        Course course;
        std::vector<double> losses;
    };

    void start(std::int32_t worker, double now) {
        Running& running = running_[static_cast<std::size_t>(worker)];
        running = {};
        Individual& individual = running.individual;
        individual.id = Id::make(0, static_cast<std::uint32_t>(worker), static_cast<std::uint32_t>(++found_.begun));
        RandomStream random(seed_, Purpose::breeding, individual.id.value);
        const Stage stage{.budget_used = static_cast<double>(population_.epochs_on(0)) / static_cast<double>(epochs_),
                          .workers = workers_,
                          .births = found_.begun - 1};
        Offspring offspring = breeder_->breed(population_, 0, stage, random);
        individual.genome = canonical(table_.space(), std::move(offspring.genome));
        individual.bred_by = offspring.bred_by;
        individual.breeding = offspring.breeding;
        individual.started = now;
        RandomStream noise(seed_, Purpose::function_noise, individual.id.value);
        running.course = table_.course(individual.genome, noise);
        population_.merge(individual);
        due_.emplace(now + slow * running.course.seconds, worker);
    }

    void end_epoch(std::int32_t worker, double now) {
        Running& running = running_[static_cast<std::size_t>(worker)];
        Individual& individual = running.individual;
        running.losses.push_back(running.course.losses[running.losses.size()]);
        individual.epochs = static_cast<std::int32_t>(running.losses.size());
        const bool is_last = running.losses.size() == running.course.losses.size();
        const bool is_pruned =
            !is_last &&
            ends_early(pruning_, running.losses, static_cast<std::int64_t>(table_.epochs()), population_, individual);
        if (!is_last && !is_pruned) {
            population_.merge(individual);
            due_.emplace(now + slow * running.course.seconds, worker);
            return;
        }
        const bool diverges = is_last && running.course.diverges;
        individual.outcome = diverges ? Outcome::diverged : is_last ? Outcome::evaluated : Outcome::pruned;
        individual.loss = *std::min_element(running.losses.begin(), running.losses.end());
        individual.finished = now;
        found_.complete += individual.is_complete() ? 1 : 0;
        population_.merge(individual);
        start(worker, now);
    }

    const Table& table_;
    PruningOptions pruning_;
    std::int32_t workers_;
    std::int64_t epochs_;
    std::uint64_t seed_;
    std::unique_ptr<Propagator> breeder_;
    std::vector<Running> running_;
    using Due = std::pair<double, std::int32_t>;
    std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
    Population population_{ExchangeKind::none, 1};
    Found found_;
};

double quantile(std::vector<double> values, double share) {
    std::sort(values.begin(), values.end());
    const double place = share * static_cast<double>(values.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const std::size_t above = std::min(below + 1, values.size() - 1);
    return values[below] + (place - static_cast<double>(below)) * (values[above] - values[below]);
}

}  // namespace

int main(int count, char** words) {
    if (count != 7) {
        fmt::print(stderr, "usage: bench_pruning RUN PROPAGATOR WORKERS EPOCHS FIRST_SEED LAST_SEED\n");
        return 2;
    }
    try {
        const Table table(words[1]);
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
                const Found found =
                    Search(table, words[2], rule.options, std::stoi(words[3]), std::stoll(words[4]), seed).run();
                best.push_back(found.best);
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
