#include "virtual_search.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <queue>
#include <stdexcept>
#include <utility>

namespace finch::bench {
namespace {

using namespace search;

class Simulation {
public:
    explicit Simulation(const VirtualSearch& search)
        : search_(search),
          to_breed_(search.evaluations - (search.final_choice ? search.final_choice->evaluations() : 0)),
          breeder_(make_propagator(search.propagator, search.space, search.seed)),
          running_(static_cast<std::size_t>(search.workers)),
          population_(ExchangeKind::none, 1, search.costs) {}

    Found run() {
        for (std::int32_t worker = 0; worker < search_.workers; ++worker) {
            start(worker, 1);
        }
        for (std::int64_t trained = 0; trained < search_.epochs && !due_.empty(); ++trained) {
            const auto [now, worker] = due_.top();
            due_.pop();
            end_epoch(worker, now);
        }
        if (search_.final_choice) {
            repeat_best(*search_.final_choice);
        }
        if (const Individual* best = chosen(population_, search_.final_choice);
            best != nullptr && best->is_complete()) {
            found_.best = *best;
        }
        return found_;
    }

private:
    struct Running {
        Individual individual;
        Course course;
        std::vector<double> losses;
        std::uint32_t bred = 0;
    };

    [[nodiscard]] Stage stage() const {
        const bool counts_evaluations = search_.evaluations != VirtualSearch::unlimited;
        const double budget = static_cast<double>(counts_evaluations ? search_.evaluations : search_.epochs);
        const auto used = counts_evaluations ? ended_ : population_.epochs_on(0);
        return {.budget_used = static_cast<double>(used) / budget,
                .evaluations = counts_evaluations ? search_.evaluations : 0,
                .workers = search_.workers,
                .births = static_cast<std::uint64_t>(found_.begun)};
    }

    void start(std::int32_t worker, double now) {
        if (found_.begun == to_breed_) {
            return;
        }
        Running& running = running_[static_cast<std::size_t>(worker)];
        Individual individual;
        individual.id = Id::make(0, static_cast<std::uint32_t>(worker), ++running.bred);
        RandomStream random(search_.seed, Purpose::breeding, individual.id.value);
        Offspring offspring = breeder_->breed(population_, 0, stage(), random);
        ++found_.begun;
        individual.genome = std::move(offspring.genome);
        individual.bred_by = offspring.bred_by;
        individual.parents = offspring.parents;
        individual.breeding = offspring.breeding;
        individual.started = now;
        running.course = search_.course(individual.genome, individual.id);
        running.losses.clear();
        population_.merge(individual);
        running.individual = std::move(individual);
        due_.emplace(now + running.course.seconds, worker);
    }

    void end_epoch(std::int32_t worker, double now) {
        Running& running = running_[static_cast<std::size_t>(worker)];
        Individual& individual = running.individual;
        running.losses.push_back(running.course.losses[running.losses.size()]);
        individual.epochs = static_cast<std::int32_t>(running.losses.size());
        individual.parameters = running.course.parameters;
        individual.joules = running.course.joules * individual.epochs;
        std::copy(running.course.metrics.begin(), running.course.metrics.end(), individual.objective_metrics.begin());
        ++found_.epochs;
        const bool is_last = running.losses.size() == running.course.losses.size();
        const bool is_pruned =
            !is_last && ends_early(search_.pruning, running.losses, search_.epochs_each, population_, individual);
        if (!is_last && !is_pruned) {
            population_.merge(individual);
            due_.emplace(now + running.course.seconds, worker);
            return;
        }
        const bool diverges = is_last && running.course.diverges;
        individual.outcome = diverges ? Outcome::diverged : is_last ? Outcome::evaluated : Outcome::pruned;
        individual.loss = *std::min_element(running.losses.begin(), running.losses.end());
        individual.finished = now;
        ++ended_;
        if (individual.is_complete()) {
            ++found_.complete;
            found_.all.push_back(individual);
        }
        population_.merge(individual);
        start(worker, now);
    }

    void repeat_best(const FinalChoice& choice) {
        for (const Repeat& repeat : repeats_to_come(population_, choice, choice.evaluations())) {
            Individual individual;
            individual.id = Id::make(0, 0, ++running_.front().bred);
            individual.genome = repeat.genome;
            individual.bred_by = Operator::repeat;
            individual.parents.front() = repeat.of;
            const Course course = search_.course(individual.genome, individual.id);
            individual.outcome = course.diverges ? Outcome::diverged : Outcome::evaluated;
            individual.loss = *std::min_element(course.losses.begin(), course.losses.end());
            population_.merge(std::move(individual));
        }
    }

    const VirtualSearch& search_;
    std::int64_t to_breed_;
    std::unique_ptr<Propagator> breeder_;
    std::vector<Running> running_;
    using Due = std::pair<double, std::int32_t>;
    std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
    Population population_;
    std::int64_t ended_ = 0;
    Found found_;
};

}  // namespace

Found run(const VirtualSearch& search) {
    return Simulation(search).run();
}

PropagatorOptions propagator_named(const std::string& name, std::int64_t workers) {
    if (name.starts_with("auto:")) {
        return AutomaticOptions{.most_screened = std::stoll(name.substr(5))};
    }
    if (name.starts_with("cmaes:")) {
        return CmaEsOptions{.population = std::stoll(name.substr(6))};
    }
    const std::map<std::string, PropagatorOptions> all{{"genetic", GeneticOptions{.population = workers}},
                                                       {"propulate", GeneticOptions{.population = 2 * workers}},
                                                       {"random", RandomSearchOptions{}},
                                                       {"evolution", EvolutionOptions{}},
                                                       {"screened", ScreenedOptions{}},
                                                       {"auto", AutomaticOptions{}},
                                                       {"cmaes", CmaEsOptions{}},
                                                       {"swarm", SwarmOptions{}},
                                                       {"nelder_mead", NelderMeadOptions{}}};
    const auto found = all.find(name);
    if (found == all.end()) {
        throw std::runtime_error("no propagator " + name);
    }
    return found->second;
}

}  // namespace finch::bench
