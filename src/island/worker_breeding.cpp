// Breeding of individuals by a worker, and repeated evaluations.
#include "finch/base/format.hpp"
#include "finch/island/worker.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace finch::island {
namespace {

constexpr int breeding_attempts = 100;
constexpr std::uint32_t most_violations = 10000;  ///< violations of constraints in one breeding; a check is fast

}  // namespace

/// Returns the stage of the search. This worker assumes that all islands are at the same stage as its own island.
search::Stage Worker::stage() const {
    const std::vector<std::int32_t>& leaders = leaders_of(island());
    const auto place = std::lower_bound(leaders.begin(), leaders.end(), options_.self) - leaders.begin();
    const auto count = std::ssize(leaders);
    const Budget& budget = options_.budget;
    search::Stage stage;
    stage.workers = static_cast<std::int32_t>(count);
    stage.births = static_cast<std::uint64_t>((generation_ - 1) * count + place);
    std::int64_t evaluations = budget.evaluations.value_or(budget.generations.value_or(0) * workers());
    if (options_.final_choice) {
        evaluations = std::max<std::int64_t>(1, evaluations - options_.final_choice->evaluations());
    }
    if (evaluations > 0) {
        const double share = static_cast<double>(evaluations * count) / workers();
        stage.evaluations = std::max<std::int64_t>(1, std::llround(share));
        stage.budget_used = static_cast<double>(population_.finished_on(island())) / share;
    }
    const double hours = (hooks_.steady_seconds() - began_) / 3600;
    if (budget.hours) {
        stage.budget_used = std::max(stage.budget_used, (options_.hours_before + hours) / *budget.hours);
    }
    if (budget.node_hours) {
        stage.budget_used =
            std::max(stage.budget_used, (options_.node_hours_before + options_.nodes * hours) / *budget.node_hours);
    }
    if (budget.epochs) {
        const auto epochs = static_cast<double>(population_.epochs_on(island()));
        stage.budget_used = std::max(
            stage.budget_used, epochs * workers() / static_cast<double>(count) / static_cast<double>(*budget.epochs));
    }
    stage.budget_used = std::min(stage.budget_used, 1.0);
    stage.constraints = options_.initial_design.constraints;
    return stage;
}

/// Returns an individual with the next id of this worker, without a genome.
search::Individual Worker::newborn() {
    search::Individual individual;
    individual.id = search::Id::make(options_.restart, static_cast<std::uint32_t>(options_.self), ++sequence_);
    individual.island = island();
    individual.generation = generation_;
    individual.born = hooks_.unix_seconds();
    set_place(individual);
    return individual;
}

/// Records where this worker evaluates `individual`.
void Worker::set_place(search::Individual& individual) const {
    individual.node = options_.node;
    individual.device = options_.device;
    individual.ranks = options_.ranks;
    individual.threads = options_.threads;
    individual.attempt.restart = options_.restart;
    individual.attempt.worker = options_.self;
}

/// Evaluates the genes of `repeat` again under a new id, and therefore with a new seed.
void Worker::start_repeat(search::Repeat repeat) {
    search::Individual individual = newborn();
    individual.bred_by = search::Operator::repeat;
    individual.parents = {repeat.of, search::Id{}};
    individual.genome = std::move(repeat.genome);
    start(std::move(individual));
}

/// Returns a new individual with the genes, the lineage and the island of `failed`. The retry of an heir continues the
/// same parent if it still can.
search::Individual Worker::retry_of(const search::Individual& failed) {
    search::Individual individual = newborn();
    individual.island = failed.island;
    individual.genome = failed.genome;
    individual.parents = failed.parents;
    individual.bred_by = failed.bred_by;
    individual.breeding = failed.breeding;
    individual.retry_of = failed.id;
    if (options_.inherit && failed.is_heir()) {
        search::Individual heir = individual;
        const search::Rungs& rungs = options_.inherit->rungs;
        search::begin_at_rung(heir, failed.inherited_from, rungs.passed(failed.inherited_epochs), rungs);
        if (evaluator_.can_continue(heir, population_)) {
            return heir;
        }
    }
    return individual;
}

/// Failed individuals are retried only after this worker has used its initial points.
bool Worker::start_next() {
    ++generation_;
    const bool is_initial_point =
        initial_point_of(options_.initial_points_left, sequence_, static_cast<std::uint32_t>(options_.self), workers())
            .has_value();
    if (is_initial_point || retries_.empty()) {
        return start_bred();
    }
    start(retry_of(*population_.find(retries_.front())));
    retries_.pop_front();
    return true;
}

/// Returns the individual of this run with `genome`; null if there is none or if duplicates do not matter.
const search::Individual* Worker::known_as(const search::Genome& genome) const {
    return looks_for_duplicates_ ? known_genomes_.find(genome) : nullptr;
}

/// Returns the result of another run for a genome that is not known in this run; null if there is none.
const search::Individual* Worker::known_elsewhere(const search::Genome& genome) const {
    return options_.other_results != nullptr ? options_.other_results->find(genome) : nullptr;
}

/// True if a bred genome is not trained because an individual of this run has it already. With Duplicates::train, only
/// genomes of failed individuals are skipped.
bool Worker::is_duplicate_to_skip(const search::Individual& known) const {
    return options_.duplicates != search::Duplicates::train || known.outcome == search::Outcome::failed;
}

/// Makes `individual` an heir if search.inherit is on, no initial point is left and an heir is due.
bool Worker::make_heir(search::Individual& individual) const {
    const search::Id id = individual.id;
    if (!options_.inherit ||
        initial_point_of(options_.initial_points_left, id.sequence() - 1, id.worker(), workers())) {
        return false;
    }
    RandomStream random(options_.seed, Purpose::inheritance, id.value);
    return search::make_heir(
        individual, *options_.inherit, options_.initial_design, population_, random,
        [this](const search::Individual& heir) { return evaluator_.can_continue(heir, population_); });
}

bool Worker::start_bred() {
    search::Individual individual = newborn();
    if (make_heir(individual)) {
        start(std::move(individual));
        return true;
    }
    search::Stage now = stage();
    if (looks_for_duplicates_) {
        known_genomes_.update(population_, island(), tells_of_starts_);
    }
    bool exists = false;
    std::uint32_t attempt = 0;
    std::uint32_t known = 0;
    std::uint32_t violations = 0;
    while (!exists && attempt - known - violations < breeding_attempts && violations < most_violations) {
        now.attempt = attempt++;
        search::Offspring offspring = breed(individual.id, now);
        individual.genome = std::move(offspring.genome);
        individual.parents = offspring.parents;
        individual.bred_by = offspring.bred_by;
        individual.breeding = offspring.breeding;
        if (!options_.initial_design.allows(individual.genome)) {
            ++violations;
            continue;
        }
        exists = evaluator_.can_exist(individual.genome);
        const search::Individual* const twin = exists ? known_as(individual.genome) : nullptr;
        if (const auto* const other = exists && twin == nullptr ? known_elsewhere(individual.genome) : nullptr) {
            known_in_a_row_ = 0;
            reuse(std::move(individual), *other);
            return false;
        }
        if (twin != nullptr && is_duplicate_to_skip(*twin) && ++known_in_a_row_ < search::most_known_in_a_row) {
            if (options_.duplicates == search::Duplicates::reuse && twin->finished_training()) {
                reuse(std::move(individual), *twin);
                return true;
            }
            ++known;
            exists = false;
        }
    }
    known_in_a_row_ = 0;
    if (!exists) {
        const std::uint32_t breedings = attempt - known;
        const bool all_violate = violations == breedings;
        individual.outcome = search::Outcome::failed;
        individual.problem = fmt::format(
            "no {} in {} breedings{}",
            all_violate ? "genome that obeys search.constraints" : "network that can exist and keeps search.limits",
            breedings,
            all_violate || violations == 0 ? "" : fmt::format(", of which {} violate search.constraints", violations));
        individual.finished = hooks_.unix_seconds();
        finish(std::move(individual));
    } else {
        start(std::move(individual));
    }
    return true;
}

/// Copies the result of `twin` to `individual`, and gives the lease back.
void Worker::reuse(search::Individual individual, const search::Individual& twin) {
    lease_client_.give_back();
    --generation_;  // only individuals that used a lease count
    finish(search::with_result_of(std::move(individual), twin, hooks_.unix_seconds()));
}

/// Returns the genome of the next individual in canonical form. The genome is an initial point if one is left; else the
/// propagator breeds it.
search::Offspring Worker::breed(search::Id id, const search::Stage& now) {
    RandomStream random(options_.seed, Purpose::breeding, id.value, now.attempt);
    const search::InitialDesign& initial_design = options_.initial_design;
    if (known_in_a_row_ >= search::most_known_in_a_row / 2) {
        return {search::random_genome(initial_design.space, random)};  // a random genome is probably new
    }
    if (const auto initial_point =
            initial_point_of(options_.initial_points_left, id.sequence() - 1, id.worker(), workers())) {
        return initial_design.open(*initial_point, now.attempt, random);
    }
    search::Offspring offspring = propagator_.breed(population_, island(), now, random);
    if (initial_design.space.size() > 0) {
        offspring.genome = search::canonical(initial_design.space, std::move(offspring.genome));
    }
    return offspring;
}

}  // namespace finch::island
