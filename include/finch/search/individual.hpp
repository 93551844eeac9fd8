#pragma once

#include "finch/base/boxed.hpp"
#include "finch/base/bytes.hpp"
#include "finch/base/epoch.hpp"
#include "finch/base/metric.hpp"
#include "finch/search/gene.hpp"

#include <array>
#include <cmath>
#include <compare>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace finch::search {

/// A number that is unique among all individuals of a run: {restart: 12 bits, worker: 20, sequence: 32}. 0 means no
/// individual.
struct Id {
    std::uint64_t value = 0;

    /// Throws Error if `restart` or `worker` does not fit into its bits.
    [[nodiscard]] static Id make(std::uint32_t restart, std::uint32_t worker, std::uint32_t sequence);
    [[nodiscard]] std::uint32_t restart() const noexcept { return static_cast<std::uint32_t>(value >> 52); }
    [[nodiscard]] std::uint32_t worker() const noexcept { return static_cast<std::uint32_t>((value >> 32) & 0xFFFFF); }
    [[nodiscard]] std::uint32_t sequence() const noexcept { return static_cast<std::uint32_t>(value); }
    auto operator<=>(const Id&) const = default;
};

/// Returns the text "restart.worker.sequence", for example "0.3.17".
[[nodiscard]] std::string to_text(Id id);
/// Parses "0.3.17" or the plain number. Throws ConfigError.
[[nodiscard]] Id parse_id(const std::string& text);

/// How an individual's training ended. `unfinished`: the individual was bred, but its training has not ended yet.
enum class Outcome : std::uint8_t { unfinished, evaluated, pruned, stopped, diverged, out_of_memory, failed };
constexpr std::array<std::string_view, 7> words_of(Outcome) {
    return {"unfinished", "evaluated", "pruned", "stopped", "diverged", "out_of_memory", "failed"};
}

/// The operator that produced an individual's genes.
enum class Operator : std::uint8_t {
    random,
    crossover,
    given,
    differential_evolution,
    cma_es,
    model_screened,
    repeat,
    swarm,
    simplex,
    parzen,  ///< no longer bred; earlier runs may contain it
    additive_model,
    perturbation
};
constexpr std::array<std::string_view, 12> words_of(Operator) {
    return {"random", "crossover", "given",  "differential_evolution", "cma_es",      "model_screened", "repeat",
            "swarm",  "simplex",   "parzen", "additive_model",         "perturbation"};
}

/// Data about an individual's breeding. The operator that bred the individual needs this data again, together with the
/// loss, to derive its own state from the results.
struct Breeding {
    std::int32_t phase = 0;
    std::int32_t slot = -1;
    double scale_factor = 0;
    double crossover_rate = 0;
    double budget_used = 0;
    bool operator==(const Breeding&) const = default;
};

constexpr auto fields_of(const Breeding*) {
    return std::tuple{
        Field{"phase", &Breeding::phase, "phase of the search in which it was bred, from 0"},
        Field{"slot", &Breeding::slot,
              "by operator: differential_evolution, additive_model: number of the slot for which it competes; cma_es: "
              "number of its distribution; swarm: of its particle; simplex: of its simplex; -1: none"},
        Field{"scale_factor", &Breeding::scale_factor, "scale factor F of differential evolution; 0: none"},
        Field{"crossover_rate", &Breeding::crossover_rate, "crossover rate CR of differential evolution"},
        Field{"budget_used", &Breeding::budget_used, "used share of the run's budget when it was bred, in [0, 1]"},
    };
}
static_assert(lists_every_member<Breeding>);

/// The last attempt to train an individual, and the number of times that its process died. After a crash, a restart
/// uses this data to find the individual that caused the crash.
struct Attempt {
    std::uint32_t restart = 0;
    std::int32_t worker = -1;
    std::int32_t deaths = 0;
    double progress_at_death = 0;
    bool operator==(const Attempt&) const = default;
};

constexpr auto fields_of(const Attempt*) {
    return std::tuple{
        Field{"last_restart", &Attempt::restart,
              "start of the run that made the last attempt to train it; 0 is the first"},
        Field{"last_worker", &Attempt::worker, "the worker that attempted it last; -1: none yet, or not recorded"},
        Field{"deaths", &Attempt::deaths,
              "number of consecutive attempts without progress in which the worker's process died"},
        Field{"progress_at_death", &Attempt::progress_at_death,
              "its progress when the worker's process last died, in [0, 1]"},
    };
}
static_assert(lists_every_member<Attempt>);

/// Maximum number of costs that a search minimises in addition to the loss.
inline constexpr std::size_t most_costs = 3;

/// Maximum number of rungs of a training. A rung is an epoch after which a training is compared with others.
inline constexpr std::size_t most_rungs = 8;

/// The last rung that a training reached, its losses at the rungs, and the threshold of its last comparison.
struct Pruning {
    static constexpr double none = std::numeric_limits<double>::quiet_NaN();

    std::int32_t rung = 0;
    double threshold = none;
    std::array<double, most_rungs> losses{none, none, none, none, none, none, none, none};
    std::array<std::array<double, most_costs>, most_rungs> costs{};  ///< of the rungs whose loss is not NaN
};

constexpr auto fields_of(const Pruning*) {
    return std::tuple{
        Field{"rung", &Pruning::rung, "number of the last rung that its training reached, from 1; 0: none"},
        Field{"pruning_threshold", &Pruning::threshold,
              "threshold with which its loss was last compared for pruning; NaN: never compared"},
        Field{"rung_loss", &Pruning::losses, "its smallest loss so far at each rung; NaN: not compared at this rung"},
        Field{"rung_cost", &Pruning::costs,
              "with several objectives: the values of all but the first at each rung, smaller is better; 0: none"},
    };
}
static_assert(lists_every_member<Pruning>);

/// A genome with its lineage and its outcome. Plain data.
struct Individual {
    static constexpr double not_measured = std::numeric_limits<double>::quiet_NaN();

    // The fields that better() reads are adjacent, because sorting reads them from many individuals that are scattered
    // in memory.
    Id id;
    Outcome outcome = Outcome::unfinished;
    Operator bred_by = Operator::random;
    double loss = not_measured;
    double violation = 0;
    Id reused_from;

    std::int32_t island = 0;
    std::int32_t generation = 0;
    std::array<Id, 2> parents{};
    Genome genome;

    double accuracy = not_measured;
    std::int32_t epochs = 0;
    std::int32_t best_epoch = 0;
    std::string problem;

    double born = 0;
    double started = 0;
    double finished = 0;
    double samples_per_second = 0;
    double training_seconds = 0;
    double joules = not_measured;
    std::array<double, most_costs> objective_metrics{not_measured, not_measured, not_measured};
    double progress = 0;
    Attempt attempt;
    Breeding breeding;
    Boxed<Pruning> pruning;
    std::uint64_t reused_run = 0;
    Id inherited_from;
    std::int32_t inherited_epochs = 0;
    Id retry_of;
    std::int64_t parameters = 0;
    std::int32_t ranks = 0;
    std::int32_t threads = 0;
    std::int64_t batch_size = 0;
    std::string node;
    std::string device;

    std::vector<Epoch> curve;
    std::vector<Metric> metrics;

    [[nodiscard]] bool finished_training() const noexcept { return outcome != Outcome::unfinished; }
    /// True if it was bred in an earlier start than that of its last attempt, so files of that start may exist.
    [[nodiscard]] bool is_of_earlier_start() const noexcept { return id.restart() < attempt.restart; }
    /// Returns whether the individual has a comparable fitness: a finite loss from a complete or a pruned training.
    [[nodiscard]] bool ranks_by_loss() const noexcept {
        return (outcome == Outcome::evaluated || outcome == Outcome::pruned) && std::isfinite(loss);
    }
    /// Returns whether the training gave a finite loss and ran to its end, or until its own early stopping (patience).
    [[nodiscard]] bool is_complete() const noexcept { return outcome == Outcome::evaluated && std::isfinite(loss); }
    /// Returns whether the individual is a repeat: it evaluates parents[0] again (search/final_choice.hpp). A repeat
    /// belongs to no island and is never a parent.
    [[nodiscard]] bool is_repeat() const noexcept { return bred_by == Operator::repeat; }
    /// Returns whether the result was copied from another individual. The individual itself was then never trained and
    /// has no weights.
    [[nodiscard]] bool is_reused() const noexcept { return reused_from != Id{}; }
    /// Returns whether the result was copied from an individual of another run.
    [[nodiscard]] bool is_of_another_run() const noexcept { return reused_run != 0; }
    /// Returns whether the individual continues the training of another (search/inheritance.hpp). Its learning curve
    /// and `epochs` begin with the first epoch of its ancestors.
    [[nodiscard]] bool is_heir() const noexcept { return inherited_epochs > 0; }
    /// Returns the number of epochs that were trained for this individual alone; 0 for a reused result.
    [[nodiscard]] std::int32_t own_epochs() const noexcept { return is_reused() ? 0 : epochs - inherited_epochs; }
};

constexpr auto fields_of(const Individual*) {
    return std::tuple{
        Field{"id", &Individual::id, "unique number: {restart: 12 bits, worker: 20, sequence: 32}"},
        Field{"island", &Individual::island, "island of birth"},
        Field{"generation", &Individual::generation,
              "number of individuals that its worker had bred before it, over all starts of the run"},
        Field{"parent", &Individual::parents, "ids of its parents; 0: none"},
        Field{"operator", &Individual::bred_by, "operator that produced its genes"},
        Field{"genome", &Individual::genome, "a column per gene: a number, or the word of a choice"},
        Field{"outcome", &Individual::outcome, "outcome of its training"}.result(),
        Field{"loss", &Individual::loss, "fitness: smaller is better; NaN: not measured"}.result(),
        Field{"violation", &Individual::violation,
              "sum over the limits of search.limits that it breaks of the excess as a share of the bound; 0: none"}
            .result(),
        Field{"objective_metric", &Individual::objective_metrics,
              "values of f1 and of the metrics in search.objective, in their order; NaN: none"}
            .result(),
        Field{"accuracy", &Individual::accuracy, "accuracy on the validation set at the best epoch; NaN: not measured"}
            .result(),
        Field{"epochs", &Individual::epochs, "number of trained epochs, with inherited_epochs"}.result(),
        Field{"best_epoch", &Individual::best_epoch, "epoch to which loss and accuracy belong; 1 is the first, 0: none"}
            .result(),
        Field{"problem", &Individual::problem, "reason for its failure, in words"}.result().separate_table(),
        Field{"born", &Individual::born, "time of its breeding, Unix seconds"},
        Field{"started", &Individual::started, "time at which its training first began, Unix seconds"},
        Field{"finished", &Individual::finished, "time at which its training ended, Unix seconds"},
        Field{"samples_per_second", &Individual::samples_per_second,
              "number of its training samples, divided by training_seconds"},
        Field{"ranks", &Individual::ranks, "number of ranks that trained it"}.result(),
        Field{"threads", &Individual::threads, "number of threads of one rank"}.result(),
        Field{"batch_size", &Individual::batch_size, "samples in one training step, of all ranks together"}.result(),
        Field{"node", &Individual::node, "node of the worker's leader"}.result(),
        Field{"device", &Individual::device, "device of the worker's leader"}.result(),
        Field{"training_seconds", &Individual::training_seconds,
              "seconds of its training and validation steps, or of its program, over all starts of the run"},
        Field{"progress", &Individual::progress,
              "for an unfinished individual: saved share of its training, in [0, 1]"},
        Field{"attempt", &Individual::attempt, "the last attempt to train it"},
        Field{"breeding", &Individual::breeding, "data that its operator needs again"},
        Field{"pruning", &Individual::pruning, "its comparisons with other trainings at the rungs"}.result(),
        Field{"reused_from", &Individual::reused_from,
              "id of the individual with the same genome whose result it reuses; 0: none"},
        Field{"inherited_from", &Individual::inherited_from,
              "id of the individual whose weights were the initial weights of its training; 0: none"},
        Field{"inherited_epochs", &Individual::inherited_epochs,
              "number of its epochs that its ancestors trained (search.inherit); 0: none"},
        Field{"parameters", &Individual::parameters, "number of parameters that its network learns; 0: not known"}
            .result(),
        Field{"curve", &Individual::curve, "one row of /curves per epoch"}.separate_table(),
        Field{"metrics", &Individual::metrics, "one row of /metrics per value"}.separate_table(),
        Field{"retry_of", &Individual::retry_of,
              "id of the failed individual with the same genes that it retries; 0: none"},
        Field{"reused_run", &Individual::reused_run,
              "number of the run of the individual reused_from, as in /reused_runs; 0: this run"},
        Field{"joules", &Individual::joules,
              "joules that its training used on all ranks, over all starts of the run; NaN: not known"},
    };
}
static_assert(lists_every_member<Individual>);

/// The rung of a complete training: above all rungs at which trainings are pruned.
inline constexpr std::int32_t top_rung = std::numeric_limits<std::int32_t>::max();

/// The fields that determine the order of individuals.
struct Standing {
    bool ranks_by_loss = false;
    double loss = 0;       ///< unused if ranks_by_loss is false
    double violation = 0;  ///< unused if ranks_by_loss is false
    Id id;
    std::int32_t rung = top_rung;
    bool is_reused = false;
};
[[nodiscard]] inline Standing standing(const Individual& individual) noexcept {
    return {individual.ranks_by_loss(),
            individual.loss,
            individual.violation,
            individual.id,
            individual.outcome == Outcome::pruned ? individual.pruning->rung : top_rung,
            individual.is_reused()};
}

/// Returns whether `a` ranks before `b`. The criteria for ranking first are, in this order: a comparable fitness, the
/// smaller violation of search.limits (0: it keeps all; Deb, "An efficient constraint handling method for genetic
/// algorithms", 2000), the higher rung, the smaller loss, a result of its own (not reused), the smaller id. An
/// individual with a NaN loss or a failed outcome never ranks before one with a comparable fitness. The ranking is a
/// strict total order over distinct ids.
[[nodiscard]] inline bool better(const Standing& a, const Standing& b) noexcept {
    if (a.ranks_by_loss != b.ranks_by_loss) {
        return a.ranks_by_loss;
    }
    if (a.ranks_by_loss && a.violation != b.violation) {
        return a.violation < b.violation;
    }
    if (a.ranks_by_loss && a.rung != b.rung) {
        return a.rung > b.rung;
    }
    if (a.ranks_by_loss && a.loss != b.loss) {
        return a.loss < b.loss;
    }
    if (a.ranks_by_loss && a.is_reused != b.is_reused) {
        return b.is_reused;
    }
    return a.id < b.id;
}
[[nodiscard]] inline bool better(const Individual& a, const Individual& b) noexcept {
    return better(standing(a), standing(b));
}

/// comparable_loss() maps an individual to one number that propagators can compare instead of calling better(). The
/// numbers are in the order of better():
/// - For an individual that breaks search.limits: a number from least_violating on that grows with its violation.
/// - For a complete training: its loss, but at most the number below least_pruned.
/// - For a pruned training: a number from least_pruned on, larger than for all higher rungs.
/// - For an individual without a comparable fitness: infinity.
/// Pruned trainings of the same rung may get the same number if their losses agree to 10 digits. Individuals with the
/// same violation get the same number.
inline constexpr double least_pruned = 1e300;
inline constexpr double least_violating = 1e302;
[[nodiscard]] double comparable_loss(const Individual& individual) noexcept;

/// Returns whether record `a` is kept instead of record `b` with the same id. The criteria for keeping a record are, in
/// this order: a finished training, more epochs, the longer curve (a record may be sent without its curve), the later
/// attempt, more progress, more training seconds, the smaller bytes. Training seconds matter for a program that was
/// stopped without reporting progress. Returns false for equal records. The criteria define a strict total order over
/// different records.
[[nodiscard]] bool supersedes(const Individual& a, const Individual& b);

/// Returns an impossible property of an individual in a search over `space`, or nothing: "has 3 genes, the space 2",
/// "was evaluated, but its loss is -inf".
[[nodiscard]] std::optional<std::string> problem_of(const Individual& individual, const Space& space);

/// Removes a loss that is not finite, which a program may have reported. An evaluated individual without a finite loss
/// becomes diverged. A pruned individual without a finite loss stays pruned and ranks behind all individuals with a
/// loss. The reason is stored in `problem`. Returns whether the loss was removed.
bool mark_bad_loss(Individual& individual);
/// Changes `individual` so that every reader of records accepts it. Calls mark_bad_loss() first. If problem_of() still
/// finds a problem, resets all members except id, origin, genome, outcome, loss, accuracy and problem. Removes epochs
/// and metrics that do not fit into a record. Returns a description of the changes, "of 0.3.17 …", if more than the
/// outcome has changed. Throws Error if problem_of() finds a problem even after these changes, for example a genome
/// outside of the space.
[[nodiscard]] std::optional<std::string> make_recordable(Individual& individual, const Space& space);

/// Returns whether two individuals are equal in every bit, including NaN.
[[nodiscard]] bool identical(const Individual& a, const Individual& b);

/// write_individual() appends the individual to `out`, its learning curve only if `with_curve`. read_individual() reads
/// an individual with or without its curve. Throws FileError if the bytes are not a valid individual.
inline constexpr std::uint16_t individual_version = 2;
void write_individual(const Individual& individual, bool with_curve, Bytes& out);
[[nodiscard]] Individual read_individual(ByteReader& reader, std::uint16_t version = individual_version);

/// Returns the names of all columns of /individuals and of CSV files that are not genes. No gene may have one of these
/// names.
[[nodiscard]] const std::vector<std::string>& reserved_columns();

}  // namespace finch::search
