#pragma once

#include "finch/base/bytes.hpp"
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

/// A number that no other individual of the run ever has: {restart: 12 bits, worker: 20, sequence: 32}. 0 is nobody.
struct Id {
    std::uint64_t value = 0;

    /// Throws Error where a number is too large for its bits.
    [[nodiscard]] static Id make(std::uint32_t restart, std::uint32_t worker, std::uint32_t sequence);
    [[nodiscard]] std::uint32_t restart() const noexcept { return static_cast<std::uint32_t>(value >> 52); }
    [[nodiscard]] std::uint32_t worker() const noexcept { return static_cast<std::uint32_t>((value >> 32) & 0xFFFFF); }
    [[nodiscard]] std::uint32_t sequence() const noexcept { return static_cast<std::uint32_t>(value); }
    auto operator<=>(const Id&) const = default;
};

/// "0.3.17": restart, worker, sequence.
[[nodiscard]] std::string to_text(Id id);
/// Reads "0.3.17" or the plain number. Throws ConfigError.
[[nodiscard]] Id parse_id(const std::string& text);

/// How an individual's training ended. `unfinished`: bred, and not ended yet.
enum class Outcome : std::uint8_t { unfinished, evaluated, pruned, stopped, diverged, out_of_memory, failed };
inline constexpr std::array<std::string_view, 7> outcome_names{"unfinished", "evaluated",     "pruned", "stopped",
                                                               "diverged",   "out_of_memory", "failed"};

/// How an individual came to its genes.
enum class Operator : std::uint8_t { random, crossover, given };
inline constexpr std::array<std::string_view, 3> operator_names{"random", "crossover", "given"};

/// One line of a learning curve: what one epoch gave.
struct EpochMetrics {
    std::int32_t epoch = 0;  ///< 1 is the first
    std::int32_t ranks = 0;  ///< that trained it; 0: more than one number of ranks did, or it was not recorded
    double training_loss = 0;
    double training_accuracy = 0;  ///< in [0, 1]
    double validation_loss = 0;
    double validation_accuracy = 0;  ///< in [0, 1]
    double learning_rate = 0;
    double seconds = 0;  ///< of this epoch, validation included
};

/// The last time that a training was begun or gone on with, and how often it took its process down. What a restart
/// after a crash needs to find the individual that caused it.
struct Attempt {
    std::uint32_t restart = 0;     ///< start of the run
    std::int32_t worker = -1;      ///< that made it; -1: none yet, or not recorded
    std::int32_t deaths = 0;       ///< attempts in a row that ended with the worker's process, without progress
    double progress_at_death = 0;  ///< the individual's, at the last of them
    bool operator==(const Attempt&) const = default;
};

/// A genome with its lineage and its outcome. Plain data.
struct Individual {
    static constexpr double not_measured = std::numeric_limits<double>::quiet_NaN();

    Id id;
    std::int32_t island = 0;      ///< of birth
    std::int32_t generation = 0;  ///< how many its worker had bred before it, over all restarts
    std::array<Id, 2> parents{};  ///< 0 where there is none
    Operator bred_by = Operator::random;
    Genome genome;

    Outcome outcome = Outcome::unfinished;
    double loss = not_measured;      ///< the fitness: smaller is better
    double accuracy = not_measured;  ///< on the validation set, at the best epoch
    std::int32_t epochs = 0;         ///< trained
    std::int32_t best_epoch = 0;     ///< 1 is the first; 0: none
    std::string problem;             ///< why it failed, in words; empty otherwise

    double born = 0;      ///< Unix seconds
    double started = 0;   ///< Unix seconds
    double finished = 0;  ///< Unix seconds
    double samples_per_second = 0;
    double training_seconds = 0;  ///< of its steps, by the device's clock, over all starts of the run
    double progress = 0;          ///< share of its training that a snapshot holds, in [0, 1]; of an unfinished one
    Attempt attempt;
    std::int32_t ranks = 0;
    std::int32_t threads = 0;     ///< of one rank
    std::int64_t batch_size = 0;  ///< global
    std::string node;
    std::string device;

    std::vector<EpochMetrics> curve;

    [[nodiscard]] bool finished_training() const noexcept { return outcome != Outcome::unfinished; }
    /// Whether it has a fitness that can be compared: evaluated, and a finite loss.
    [[nodiscard]] bool ranks_by_loss() const noexcept { return outcome == Outcome::evaluated && std::isfinite(loss); }
};

/// What the order of individuals looks at.
struct Standing {
    bool ranks_by_loss = false;
    double loss = 0;  ///< where it ranks by loss
    Id id;
};
[[nodiscard]] inline Standing standing(const Individual& individual) noexcept {
    return {individual.ranks_by_loss(), individual.loss, individual.id};
}

/// The one order of individuals: those with a comparable fitness first, smaller loss first, then the smaller id.
/// A NaN or a failed outcome never ranks before a trained one. A strict total order over distinct ids.
[[nodiscard]] inline bool better(const Standing& a, const Standing& b) noexcept {
    if (a.ranks_by_loss != b.ranks_by_loss) {
        return a.ranks_by_loss;
    }
    if (a.ranks_by_loss && a.loss != b.loss) {
        return a.loss < b.loss;
    }
    return a.id < b.id;
}
[[nodiscard]] inline bool better(const Individual& a, const Individual& b) noexcept {
    return better(standing(a), standing(b));
}

/// Of two records of one id, whether `a` is to be kept rather than `b`: finished before unfinished, further trained
/// before nearer, the longer curve (a record may travel without it), the later attempt, more progress, then the smaller
/// bytes. Equal records: false.
/// A strict total order over different records.
[[nodiscard]] bool supersedes(const Individual& a, const Individual& b);

/// What cannot be true of an individual that a search over `space` wrote: "has 3 genes, the space 2", "its loss is
/// -inf". Nothing where all of it can be.
[[nodiscard]] std::optional<std::string> problem_of(const Individual& individual, const Space& space);

/// Whether two individuals are the same to the last bit, NaN included.
[[nodiscard]] bool identical(const Individual& a, const Individual& b);

/// Appends the individual to `out`, the curve only where `with_curve`. read_individual() reads either, and throws
/// FileError where the bytes mean no individual. `version`: 1 has no training seconds, progress and attempt.
inline constexpr std::uint16_t individual_version = 2;
void write_individual(const Individual& individual, bool with_curve, Bytes& out);
[[nodiscard]] Individual read_individual(ByteReader& reader, std::uint16_t version = individual_version);

}  // namespace finch::search
