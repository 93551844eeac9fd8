#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/train/training.hpp"

#include "learner.hpp"
#include "watch.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <string>
#include <utility>

namespace finch::train {
namespace {

constexpr std::size_t sums_size = 7;  ///< columns of the array "partial_sums"

constexpr std::size_t count_of_columns(std::uint16_t version = last_version<Epoch>()) {
    std::size_t columns = 0;
    for_each_field<Epoch>([&](const auto& field) { columns += field.first_version <= version ? 1 : 0; });
    return columns;
}
constexpr std::size_t epoch_size = count_of_columns();  ///< columns of the array "curve": the fields of an Epoch
/// The columns of "curve" in format 1, which lacked the last fields.
constexpr std::size_t fewest_columns = count_of_columns(1);

/// The name of the optional table of the validated samples by class: a row of to_numbers() for each rank.
constexpr const char* class_counts = "class_counts";

/// Returns one rank's row of the array "partial_sums". A double holds counts below 2^53 exactly.
std::array<double, sums_size> to_row(const backend::LossSums& training, const backend::LossSums& validation,
                                     double seconds) {
    return {training.loss,   static_cast<double>(training.correct),   static_cast<double>(training.samples),
            validation.loss, static_cast<double>(validation.correct), static_cast<double>(validation.samples),
            seconds};
}

void append_row(const Epoch& epoch, std::vector<double>& values) {
    for_each_field<Epoch>([&](const auto& field) { values.push_back(static_cast<double>(epoch.*field.member)); });
}

Epoch epoch_from_row(std::span<const double> row) {
    Epoch epoch;
    std::size_t column = 0;
    for_each_field<Epoch>([&](const auto& field) {
        auto& value = epoch.*field.member;
        if (column < row.size()) {
            value = static_cast<std::remove_reference_t<decltype(value)>>(row[column++]);
        }
    });
    return epoch;
}

NamedArray whole_number(const char* name, std::int64_t value) {
    return {.name = name, .shape = {}, .values = std::vector<std::int64_t>{value}};
}
NamedArray number(const char* name, double value) {
    return {.name = name, .shape = {}, .values = std::vector<double>{value}};
}
NamedArray table(const char* name, std::vector<double> values, std::size_t columns) {
    return {.name = name,
            .shape = {static_cast<std::int64_t>(values.size() / columns), static_cast<std::int64_t>(columns)},
            .values = std::move(values)};
}

template <class T>
T read_scalar(const NamedArrays& arrays, const char* name) {
    const auto* values = std::get_if<std::vector<T>>(&find_array(arrays, name).values);
    if (values == nullptr || values->size() != 1) {
        throw FileError(fmt::format("the snapshot's array {} is not one number", name));
    }
    return values->front();
}

const std::vector<double>& read_table(const NamedArrays& arrays, const char* name, std::size_t rows,
                                      std::size_t columns) {
    const auto* values = std::get_if<std::vector<double>>(&find_array(arrays, name).values);
    if (values == nullptr || values->size() != rows * columns) {
        throw FileError(fmt::format("the snapshot's array {} is not a table of {} x {}", name, rows, columns));
    }
    return *values;
}

/// Returns the number of columns of the array "curve", which has fewer in a snapshot of an earlier format.
std::size_t columns_of_curve(const NamedArrays& arrays, std::size_t rows) {
    const auto* values = std::get_if<std::vector<double>>(&find_array(arrays, "curve").values);
    return values == nullptr ? epoch_size : std::clamp(values->size() / rows, fewest_columns, epoch_size);
}

template <class T>
void replace_scalar(NamedArrays& arrays, const std::string& name, T value) {
    for (NamedArray& array : arrays) {
        if (array.name == name) {
            array.values = std::vector<T>{value};
        }
    }
}

void require_equal(const char* what, std::int64_t found, std::int64_t expected) {
    if (found != expected) {
        throw FileError(fmt::format("the snapshot's {} is {}, but this training's is {}", what, found, expected));
    }
}

}  // namespace

NamedArrays Training::snapshot() {
    finish_steps();
    const auto row = to_row(sums_.training, sums_.validation, sums_.seconds);
    std::vector<double> rows = group_.gather(row);
    const std::vector<std::int64_t> counts = to_numbers(learner_->class_counts());
    std::vector<double> all_counts = group_.gather(std::vector<double>(counts.begin(), counts.end()));
    NamedArrays arrays{whole_number("seed", static_cast<std::int64_t>(recipe_.seed)),
                       whole_number("individual", static_cast<std::int64_t>(recipe_.individual)),
                       whole_number("training_samples", training_samples()),
                       whole_number("validation_samples", validation_samples()),
                       whole_number("ranks", group_.size()),
                       whole_number("global_batch", global_batch_),
                       number("initial_learning_rate", initial_rate_),
                       whole_number("state", static_cast<std::int64_t>(ended_.value_or(State::running))),
                       whole_number("position/epoch", position_.epoch),
                       whole_number("position/phase", static_cast<std::int64_t>(position_.phase)),
                       whole_number("position/sample", position_.sample),
                       whole_number("best/epoch", stopping_.best_epoch),
                       whole_number("epoch_ranks", epoch_ranks_),
                       whole_number("epochs_done", static_cast<std::int64_t>(curve_.size())),
                       whole_number("inherited_epochs", inherited_epochs_),
                       table("partial_sums", std::move(rows), sums_size)};
    if (!counts.empty()) {
        arrays.push_back(table(class_counts, std::move(all_counts), counts.size()));
    }
    if (!curve_.empty()) {
        std::vector<double> values;
        for (const Epoch& epoch : curve_) {
            append_row(epoch, values);
        }
        arrays.push_back(table("curve", std::move(values), epoch_size));
    }
    std::ranges::move(learner_->optimizer().state(), std::back_inserter(arrays));
    std::ranges::move(nn::name_tensors(plan(), learner_->state(), "weights/"), std::back_inserter(arrays));
    if (best_epoch() > 0) {
        std::ranges::move(nn::name_tensors(plan(), best_state_, "best_weights/"), std::back_inserter(arrays));
    }
    if (const nn::WeightAverage* average = learner_->average()) {
        arrays.push_back(whole_number("average/taken", average->taken()));
        if (average->taken() > 0) {
            std::ranges::move(nn::name_tensors(plan(), learner_->validated_state(), "average_weights/"),
                              std::back_inserter(arrays));
        }
    }
    if (watch_) {
        std::ranges::move(watch_->state(), std::back_inserter(arrays));
    }
    if (loss_scale_) {
        arrays.push_back(number("loss_scale/scale", static_cast<double>(loss_scale_->scale)));
        arrays.push_back(whole_number("loss_scale/good_steps", loss_scale_->good_steps));
        arrays.push_back(whole_number("loss_scale/skipped", loss_scale_->skipped));
        arrays.push_back(whole_number("loss_scale/average_waits", loss_scale_->average_waits));
    }
    return arrays;
}

void Training::restore(const NamedArrays& snapshot) {
    check_identity(snapshot);
    // All arrays except the optimizer's are read before anything changes, so a snapshot that does not fit them leaves
    // the training unchanged.
    const Position position = read_position(snapshot);
    const PartialSums sums = read_partial_sums(snapshot);
    const auto global_batch = read_scalar<std::int64_t>(snapshot, "global_batch");
    const auto initial_rate = read_scalar<double>(snapshot, "initial_learning_rate");
    const auto state = static_cast<State>(read_scalar<std::int64_t>(snapshot, "state"));
    std::vector<Epoch> curve = read_curve(snapshot);
    const auto inherited_epochs = read_scalar<std::int64_t>(snapshot, "inherited_epochs");
    if (inherited_epochs < 0 || inherited_epochs > std::ssize(curve)) {
        throw FileError(fmt::format("the snapshot has {} inherited epochs of {}", inherited_epochs, curve.size()));
    }
    const EarlyStopping stopping = judged(curve);
    // Of all ended epochs, a snapshot contains only the weights of the best one.
    require_equal("best epoch", read_scalar<std::int64_t>(snapshot, "best/epoch"), stopping.best_epoch);
    const auto epoch_ranks = read_scalar<std::int64_t>(snapshot, "epoch_ranks");
    if (global_batch < 1) {
        throw FileError(fmt::format("the snapshot's global batch is {}", global_batch));
    }
    const nn::ModelState model = nn::read_tensors(plan(), snapshot, "weights/");
    nn::ModelState best;
    if (stopping.best_epoch > 0) {
        best = nn::read_tensors(plan(), snapshot, "best_weights/");
    }
    const std::optional<Average> average = read_average(snapshot);
    const std::optional<backend::LossScale> loss_scale = read_loss_scale(snapshot);
    if (global_batch != global_batch_) {
        learner_.reset();  // the memory may not suffice for two learners
        learner_ = make_learner(global_batch);
    }
    learner_->optimizer().set_state(snapshot);
    if (watch_) {
        watch_->set_state(snapshot);
    }
    learner_->set_state(model);
    if (average) {
        learner_->average()->set_state(average->state, average->taken);
    }
    if (loss_scale) {
        learner_->set_loss_scale(*loss_scale);
    }
    learner_->set_sums(sums.training, sums.validation, sums.classes);

    loss_scale_ = loss_scale;
    best_state_ = std::move(best);
    global_batch_ = global_batch;
    initial_rate_ = initial_rate;
    stopping_ = stopping;
    seconds_before_ = sums.seconds - step_seconds_;
    for (const Epoch& epoch : std::span(curve).subspan(static_cast<std::size_t>(inherited_epochs))) {
        seconds_before_ += epoch.seconds;
    }
    inherited_epochs_ = inherited_epochs;
    curve_ = std::move(curve);
    position_ = position;
    done_ = position;
    sums_ = sums;
    const bool epoch_begun = position.phase != Phase::training || position.sample > 0;
    epoch_ranks_ = !epoch_begun || epoch_ranks == group_.size() ? group_.size() : 0;
    steps_asked_ = 0;
    training_is_over_ = false;
    epoch_is_over_ = false;
    ended_ = state == State::running ? std::optional<State>() : state;
}

void Training::continue_from(NamedArrays snapshot) {
    const auto epochs = read_scalar<std::int64_t>(snapshot, "epochs_done");
    const Position position = read_position(snapshot);
    if (position.epoch != epochs || position.phase != Phase::training || position.sample != 0) {
        throw FileError(fmt::format("the snapshot of an epoch's end is in epoch {}", position.epoch + 1));
    }
    replace_scalar(snapshot, "individual", static_cast<std::int64_t>(recipe_.individual));
    replace_scalar(snapshot, "global_batch", global_batch_);
    replace_scalar(snapshot, "initial_learning_rate", initial_rate_);
    replace_scalar(snapshot, "state", static_cast<std::int64_t>(State::running));
    replace_scalar(snapshot, "inherited_epochs", epochs);
    restore(snapshot);
}

/// Returns nothing if the weights are not averaged.
std::optional<Training::Average> Training::read_average(const NamedArrays& snapshot) const {
    if (!recipe_.training.average) {
        return {};
    }
    Average average{.taken = read_scalar<std::int64_t>(snapshot, "average/taken")};
    const auto steps = read_scalar<std::int64_t>(snapshot, "optimizer/step");
    if (average.taken < steps || average.taken > steps + 1) {
        throw FileError(fmt::format("the snapshot's average is of {} weights, but its training had {} steps",
                                    average.taken, steps));
    }
    average.state = nn::read_tensors(plan(), snapshot, average.taken > 0 ? "average_weights/" : "weights/");
    return average;
}

/// Returns nothing if the precision needs no loss scaling.
std::optional<backend::LossScale> Training::read_loss_scale(const NamedArrays& snapshot) const {
    if (!scales_loss(recipe_.training)) {
        return {};
    }
    using backend::LossScale;
    const auto scale = read_scalar<double>(snapshot, "loss_scale/scale");
    const auto good_steps = read_scalar<std::int64_t>(snapshot, "loss_scale/good_steps");
    const auto skipped = read_scalar<std::int64_t>(snapshot, "loss_scale/skipped");
    const auto waits = read_scalar<std::int64_t>(snapshot, "loss_scale/average_waits");
    const auto steps = read_scalar<std::int64_t>(snapshot, "optimizer/step");
    if (!(scale > 0 && scale <= static_cast<double>(LossScale::most_scale)) || good_steps < 0 ||
        good_steps >= LossScale::growth_interval || skipped < 0 || skipped > steps || waits < 0 || waits > 1) {
        throw FileError(fmt::format("the snapshot's scale of the loss is {} after {} good and {} skipped steps of {}",
                                    scale, good_steps, skipped, steps));
    }
    return LossScale{.scale = static_cast<float>(scale),
                     .good_steps = static_cast<std::int32_t>(good_steps),
                     .skipped = skipped,
                     .average_waits = static_cast<std::int32_t>(waits)};
}

std::vector<Epoch> Training::read_curve(const NamedArrays& snapshot) const {
    const auto epochs = read_scalar<std::int64_t>(snapshot, "epochs_done");
    if (epochs < 0 || epochs > recipe_.training.epochs) {
        throw FileError(fmt::format("the snapshot has {} epochs of {}", epochs, recipe_.training.epochs));
    }
    std::vector<Epoch> curve;
    if (epochs > 0) {
        const auto rows = static_cast<std::size_t>(epochs);
        const std::size_t columns = columns_of_curve(snapshot, rows);
        const auto& values = read_table(snapshot, "curve", rows, columns);
        for (std::size_t at = 0; at < values.size(); at += columns) {
            curve.push_back(epoch_from_row(std::span(values).subspan(at, columns)));
        }
    }
    return curve;
}

/// Repeats the leader's decisions about early stopping for the epochs of `curve`.
EarlyStopping Training::judged(const std::vector<Epoch>& curve) const {
    EarlyStopping stopping{.patience = recipe_.training.patience};
    for (const Epoch& epoch : curve) {
        stopping.improved(epoch.epoch, objective_value(recipe_.objective, epoch));
    }
    return stopping;
}

void Training::check_identity(const NamedArrays& snapshot) const {
    const auto check = [&](const char* name, std::int64_t expected) {
        require_equal(name, read_scalar<std::int64_t>(snapshot, name), expected);
    };
    check("seed", static_cast<std::int64_t>(recipe_.seed));
    check("individual", static_cast<std::int64_t>(recipe_.individual));
    check("training_samples", training_samples());
    check("validation_samples", validation_samples());
}

Training::Position Training::read_position(const NamedArrays& snapshot) const {
    const Position position{.epoch = read_scalar<std::int64_t>(snapshot, "position/epoch"),
                            .phase = static_cast<Phase>(read_scalar<std::int64_t>(snapshot, "position/phase")),
                            .sample = read_scalar<std::int64_t>(snapshot, "position/sample")};
    const bool known = position.phase == Phase::training || position.phase == Phase::validation;
    const std::int64_t samples = position.phase == Phase::training ? training_samples() : validation_samples();
    if (!known || position.epoch < 0 || position.epoch > recipe_.training.epochs || position.sample < 0 ||
        position.sample >= samples) {
        throw FileError(fmt::format("the snapshot's position, epoch {}, phase {}, sample {}, is outside the training",
                                    position.epoch, static_cast<std::int64_t>(position.phase), position.sample));
    }
    return position;
}

/// Returns the counts by class of the rank `rank` of a snapshot; empty if the snapshot has none: of data with targets,
/// or of format 1.
std::vector<ClassCounts> Training::classes_of_rank(const NamedArrays& snapshot, std::int64_t ranks,
                                                   std::int64_t rank) const {
    const std::size_t columns = to_numbers(learner_->class_counts()).size();
    const bool is_there = std::ranges::any_of(snapshot, [](const auto& array) { return array.name == class_counts; });
    if (!is_there) {
        return {};
    }
    const auto& rows = read_table(snapshot, class_counts, static_cast<std::size_t>(ranks), columns);
    const auto at = std::span(rows).subspan(static_cast<std::size_t>(rank) * columns, columns);
    std::vector<std::int64_t> numbers;
    std::ranges::transform(at, std::back_inserter(numbers), [](double one) { return static_cast<std::int64_t>(one); });
    return to_class_counts(numbers);
}

Training::PartialSums Training::read_partial_sums(const NamedArrays& snapshot) const {
    const auto ranks = read_scalar<std::int64_t>(snapshot, "ranks");
    if (ranks < 1) {
        throw FileError(fmt::format("the snapshot was written by {} ranks", ranks));
    }
    const auto& rows = read_table(snapshot, "partial_sums", static_cast<std::size_t>(ranks), sums_size);
    const auto row = [&](std::int64_t rank) -> PartialSums {
        const auto at = std::span(rows).subspan(static_cast<std::size_t>(rank) * sums_size, sums_size);
        const auto count = [&](std::size_t column) { return static_cast<std::int64_t>(at[column]); };
        return {.training = {at[0], count(1), count(2)},
                .validation = {at[3], count(4), count(5)},
                .seconds = at[6],
                .classes = classes_of_rank(snapshot, ranks, rank)};
    };
    if (ranks == group_.size()) {
        return row(group_.rank());
    }
    // The number of ranks has changed: the leader takes the sums of all previous ranks, but the seconds of the previous
    // leader only.
    const auto add = [](backend::LossSums& to, const backend::LossSums& more) {
        to = {to.loss + more.loss, to.correct + more.correct, to.samples + more.samples};
    };
    PartialSums sums;
    for (std::int64_t rank = 0; group_.is_leader() && rank < ranks; ++rank) {
        const PartialSums other = row(rank);
        add(sums.training, other.training);
        add(sums.validation, other.validation);
        sums.seconds += rank == 0 ? other.seconds : 0;
        sums.classes.resize(other.classes.size());
        for (std::size_t one = 0; one < other.classes.size(); ++one) {
            sums.classes[one] += other.classes[one];
        }
    }
    return sums;
}

}  // namespace finch::train
