#include "finch/search/individual.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/base/parsed.hpp"

#include <algorithm>
#include <bit>
#include <span>
#include <tuple>

namespace finch::search {
namespace {

constexpr std::uint64_t restart_limit = std::uint64_t{1} << 12;
constexpr std::uint64_t worker_limit = std::uint64_t{1} << 20;

constexpr std::int32_t most_islands = 1 << 20;  // the same limit as for workers
constexpr double year_10000 = 253402300800;     // Unix seconds

Bytes bytes_of(const Individual& individual) {
    Bytes bytes;
    write_individual(individual, true, bytes);
    return bytes;
}

/// Removes data until the individual fits into a record: first the metrics of all epochs except the best, then
/// repeatedly every second epoch of the curve, but never the last epoch. Returns whether anything was removed.
bool thin(Individual& individual) {
    constexpr std::size_t most_bytes = 48U << 20;  // a record has room for 64 MiB
    const auto bytes = [&individual] {
        std::size_t sum = individual.curve.size() * sizeof(Epoch);
        for (const Metric& metric : individual.metrics) {
            sum += sizeof(double) + 2 * sizeof(std::uint32_t) + metric.name.size();
        }
        return sum;
    };
    if (bytes() <= most_bytes) {
        return false;
    }
    std::erase_if(individual.metrics, [&](const Metric& metric) { return metric.epoch != individual.best_epoch; });
    while (bytes() > most_bytes) {
        std::size_t place = individual.curve.size();
        std::erase_if(individual.curve, [&place](const Epoch&) { return --place % 2 != 0; });
    }
    return true;
}

/// Returns the numbers in "0.3.17" or "17"; empty if `text` has any other form.
std::vector<std::uint64_t> numbers_between_dots(std::string_view text) {
    std::vector<std::uint64_t> numbers;
    while (const auto number = parsed<std::uint64_t>(text.substr(0, text.find('.')))) {
        numbers.push_back(*number);
        if (text.find('.') == std::string_view::npos) {
            return numbers;
        }
        text.remove_prefix(text.find('.') + 1);
    }
    return {};
}

}  // namespace

Id Id::make(std::uint32_t restart, std::uint32_t worker, std::uint32_t sequence) {
    if (restart >= restart_limit || worker >= worker_limit) {
        throw Error(fmt::format("no id for restart {} and worker {}: they must be below {} and {}", restart, worker,
                                restart_limit, worker_limit));
    }
    return {(std::uint64_t{restart} << 52) | (std::uint64_t{worker} << 32) | sequence};
}

std::string to_text(Id id) {
    return fmt::format("{}.{}.{}", id.restart(), id.worker(), id.sequence());
}

Id parse_id(const std::string& text) {
    const auto numbers = numbers_between_dots(text);
    if (numbers.size() == 1) {
        return {numbers[0]};
    }
    if (numbers.size() == 3 && numbers[0] < restart_limit && numbers[1] < worker_limit &&
        numbers[2] <= std::numeric_limits<std::uint32_t>::max()) {
        return Id::make(static_cast<std::uint32_t>(numbers[0]), static_cast<std::uint32_t>(numbers[1]),
                        static_cast<std::uint32_t>(numbers[2]));
    }
    throw ConfigError(fmt::format(
        "\"{}\" is no id of an individual: give restart.worker.sequence, as in 0.3.17, or the plain number", text));
}

double comparable_loss(const Individual& individual) noexcept {
    if (!individual.ranks_by_loss()) {
        return std::numeric_limits<double>::infinity();
    }
    if (individual.violation > 0) {
        const double share = std::isinf(individual.violation) ? 1 : individual.violation / (1 + individual.violation);
        return least_violating * (1 + share);
    }
    if (individual.is_complete()) {
        return std::min(individual.loss, std::nextafter(least_pruned, 0.0));
    }
    // The bits of positive doubles, read as integers, are in the same order as the doubles. For negative doubles the
    // order is reversed.
    constexpr std::uint64_t sign = std::uint64_t{1} << 63U;
    const auto bits = std::bit_cast<std::uint64_t>(individual.loss);
    const std::uint64_t place = ((bits & sign) != 0 ? ~bits : bits | sign) >> 16U;
    const auto below_top = static_cast<std::int32_t>(most_rungs) - individual.pruning->rung;
    return least_pruned * (1 + below_top + std::ldexp(static_cast<double>(place), -48));
}

bool supersedes(const Individual& a, const Individual& b) {
    const auto reach = [](const Individual& individual) {
        const Attempt& attempt = individual.attempt;
        return std::tuple(individual.finished_training(), individual.epochs, individual.curve.size(), attempt.restart,
                          individual.progress, attempt.progress_at_death, attempt.deaths, attempt.worker,
                          individual.training_seconds);
    };
    if (reach(a) != reach(b)) {
        return reach(a) > reach(b);
    }
    return bytes_of(a) < bytes_of(b);
}

std::optional<std::string> problem_of(const Individual& individual, const Space& space) {
    if (individual.id.value == 0) {
        return "has no id";
    }
    if (individual.genome.size() != space.size()) {
        return fmt::format("has {} genes, the space {}", individual.genome.size(), space.size());
    }
    if (!space.contains(individual.genome)) {
        return "has a gene outside of the space";
    }
    const bool may_have_none = individual.outcome == Outcome::pruned && std::isnan(individual.loss);
    const bool has_loss = individual.outcome == Outcome::evaluated || individual.outcome == Outcome::pruned;
    if (has_loss && !may_have_none && !std::isfinite(individual.loss)) {
        return fmt::format("was {}, but its loss is {}", word(individual.outcome), individual.loss);
    }
    if (!(individual.island >= 0 && individual.island < most_islands)) {
        return fmt::format("was born on the island {}", individual.island);
    }
    if (std::min({individual.generation, individual.epochs, individual.best_epoch, individual.ranks,
                  individual.threads}) < 0 ||
        individual.batch_size < 0 || !(individual.violation >= 0) || individual.attempt.deaths < 0 ||
        individual.pruning->rung < 0 || individual.pruning->rung > static_cast<std::int32_t>(most_rungs) ||
        individual.parameters < 0 || !(individual.progress >= 0)) {
        return "has counts that cannot be";
    }
    if (individual.inherited_epochs < 0 || individual.inherited_epochs > individual.epochs ||
        (individual.is_heir() && individual.inherited_from == Id{})) {
        return fmt::format("inherited {} of {} epochs from {}", individual.inherited_epochs, individual.epochs,
                           to_text(individual.inherited_from));
    }
    if (individual.is_of_another_run() && !individual.is_reused()) {
        return "names no individual of the other run whose result it has";
    }
    const Id reused_here = individual.is_of_another_run() ? Id{} : individual.reused_from;
    for (const Id other : {individual.parents[0], reused_here, individual.inherited_from}) {
        if (other == individual.id) {
            return "comes from itself";
        }
    }
    if (individual.is_repeat() && individual.parents[0] == Id{}) {
        return "repeats no individual";
    }
    const Breeding& breeding = individual.breeding;
    if (breeding.slot < -1) {
        return fmt::format("competes for the place {}", breeding.slot);
    }
    for (const double share : {breeding.scale_factor, breeding.crossover_rate, breeding.budget_used}) {
        if (!(0 <= share && share <= 1)) {
            return fmt::format("was bred with a share of {}", share);
        }
    }
    if (!(0 <= individual.training_seconds && individual.training_seconds < year_10000)) {
        return fmt::format("was trained for {} s", individual.training_seconds);
    }
    if (individual.joules < 0 || std::isinf(individual.joules)) {
        return fmt::format("took {} J", individual.joules);
    }
    for (const double time : {individual.born, individual.started, individual.finished}) {
        if (!(0 <= time && time < year_10000)) {
            return fmt::format("has the time {}", time);
        }
    }
    const auto no_epoch = [](const Epoch& line) { return line.epoch < 1; };
    if (std::any_of(individual.curve.begin(), individual.curve.end(), no_epoch)) {
        return "has a learning curve of epochs before the first";
    }
    const auto no_metric = [](const Metric& one) { return one.epoch < 1 || one.name.size() > Metric::longest_name; };
    if (std::any_of(individual.metrics.begin(), individual.metrics.end(), no_metric)) {
        return "has a metric of an epoch before the first, or of a name that is too long";
    }
    return std::nullopt;
}

bool mark_bad_loss(Individual& individual) {
    const bool is_pruned = individual.outcome == Outcome::pruned;
    if (!(is_pruned || individual.outcome == Outcome::evaluated) || std::isfinite(individual.loss)) {
        return false;
    }
    if (individual.problem.empty()) {
        const auto& curve = individual.curve;
        individual.problem = fmt::format(
            "its last loss{} was {}{}", curve.empty() ? "" : fmt::format(" after epoch {}", curve.back().epoch),
            curve.empty() ? individual.loss : curve.back().validation_loss, is_pruned ? ", and it was pruned" : "");
    }
    individual.outcome = is_pruned ? Outcome::pruned : Outcome::diverged;
    individual.loss = Individual::not_measured;
    return true;
}

std::optional<std::string> make_recordable(Individual& individual, const Space& space) {
    mark_bad_loss(individual);
    std::string changes;
    if (const auto problem = problem_of(individual, space)) {
        Individual initial;
        initial.outcome = individual.outcome;
        for (const auto member : {&Individual::loss, &Individual::accuracy}) {
            initial.*member = individual.*member;
        }
        initial.id = individual.id;
        initial.island = individual.island;
        initial.generation = individual.generation;
        initial.parents = individual.parents;
        initial.genome = individual.genome;
        initial.bred_by = individual.bred_by;
        initial.reused_from = individual.reused_from;
        initial.reused_run = individual.reused_run;
        initial.retry_of = individual.retry_of;
        initial.problem = individual.problem;
        initial.violation = individual.violation >= 0 ? individual.violation : 0;
        changes = fmt::format("of {} only outcome and loss are recorded, as it {}", to_text(individual.id), *problem);
        individual = std::move(initial);
        if (const auto still = problem_of(individual, space)) {
            throw Error(fmt::format("{} cannot be recorded: it {}", to_text(individual.id), *still));
        }
    }
    if (thin(individual)) {
        changes = fmt::format("of {} some epochs or metrics are left out: they are too large for a record",
                              to_text(individual.id));
    }
    return changes.empty() ? std::nullopt : std::optional(changes);
}

bool identical(const Individual& a, const Individual& b) {
    return bytes_of(a) == bytes_of(b);
}

void write_individual(const Individual& individual, bool with_curve, Bytes& out) {
    ByteWriter writer(out);
    for_each_field<Individual>([&](const auto& field) {
        const auto& value = individual.*field.member;
        using Value = std::remove_cvref_t<decltype(value)>;
        if constexpr (std::same_as<Value, std::vector<Epoch>> || std::same_as<Value, std::vector<Metric>>) {
            put_value(writer, with_curve ? value : Value());
        } else {
            put_value(writer, value);
        }
    });
}

Individual read_individual(ByteReader& reader, std::uint16_t version) {
    Individual individual;
    get_value(reader, individual, version);
    return individual;
}

const std::vector<std::string>& reserved_columns() {
    static const std::vector<std::string> columns = [] {
        std::vector<std::string> names{"restart", "worker", "sequence", "islands", "problem", "home", "parents"};
        for_each_column<Individual>([&](const Column& column, const auto&) { names.push_back(column.name); });
        return names;
    }();
    return columns;
}

}  // namespace finch::search
