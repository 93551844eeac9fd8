#include "finch/train/profile.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>
#include <numeric>
#include <utility>
#include <variant>

namespace finch::train {
namespace {

using backend::Activity;

/// The largest number of all-reduces per epoch for which waiting is separated from summing. The times of these
/// all-reduces take 8 MB of memory.
constexpr std::size_t most_all_reduces = std::size_t{1} << 20;

std::string name_of(const nn::Node& node, const nn::ModelPlan& plan) {
    for (const nn::TensorInfo& tensor : plan.tensors) {
        if (node.parameters > 0 && tensor.learns && tensor.offset == node.parameters_offset) {
            return tensor.name.substr(0, tensor.name.rfind('.'));
        }
    }
    return "";
}

/// Collective over the worker. Compares each lap of this rank with the shortest lap of all ranks at the same index, and
/// returns the sum of the differences. If the ranks have different numbers of laps, a step failed, and the result is 0.
double waited_beyond_least(const comm::Group& group, const std::vector<double>& laps) {
    if (const auto most = group.maximum({std::ssize(laps), -std::ssize(laps)}); most[0] != -most[1]) {
        return 0;
    }
    std::vector<double> least = laps;
    group.minimum(least);
    return std::transform_reduce(laps.begin(), laps.end(), least.begin(), 0.0, std::plus(), std::minus());
}

}  // namespace

double RankTimes::whole() const {
    return std::accumulate(seconds.begin(), seconds.end(), 0.0);
}

double RankTimes::steps() const {
    return of(Activity::data) + of(Activity::forward) + of(Activity::backward) + of(Activity::all_reduce) +
           of(Activity::optimizer) + waited_in_steps;
}

RankTimes& RankTimes::operator+=(const RankTimes& other) {
    std::transform(seconds.begin(), seconds.end(), other.seconds.begin(), seconds.begin(), std::plus());
    waited_in_steps += other.waited_in_steps;
    return *this;
}

double GroupTimes::mean(Activity activity) const {
    double sum = 0;
    for (const RankTimes& rank : ranks) {
        sum += rank.of(activity);
    }
    return sum / static_cast<double>(ranks.size());
}

double GroupTimes::mean_whole() const {
    double sum = 0;
    for (const RankTimes& rank : ranks) {
        sum += rank.whole();
    }
    return sum / static_cast<double>(ranks.size());
}

double GroupTimes::training_speed() const {
    double most = 0;
    for (const RankTimes& rank : ranks) {
        most = std::max(most, rank.steps());
    }
    return most > 0 ? static_cast<double>(training_samples) / most : 0;
}

double GroupTimes::validation_speed() const {
    double most = 0;
    for (const RankTimes& rank : ranks) {
        most = std::max(most, rank.of(Activity::validation));
    }
    return most > 0 ? static_cast<double>(validation_samples) / most : 0;
}

GroupTimes& GroupTimes::operator+=(const GroupTimes& other) {
    ranks.resize(std::max(ranks.size(), other.ranks.size()));
    for (std::size_t rank = 0; rank < other.ranks.size(); ++rank) {
        ranks[rank] += other.ranks[rank];
    }
    training_samples += other.training_samples;
    validation_samples += other.validation_samples;
    return *this;
}

Profile::Profile(std::function<double()> now) : now_(std::move(now)), last_(now_()) {
    times_.all_reduces.reserve(most_all_reduces);  // so that begin() cannot fail
}

void Profile::set_model(const nn::ModelPlan& plan) {
    layers_.clear();
    for (const nn::Node& node : plan.nodes) {
        const std::string_view kind = std::visit([](const auto& shape) { return shape.name; }, node.operation);
        layers_.push_back(
            {.kind = std::string(kind), .name = name_of(node, plan), .bytes = nn::least_bytes(plan, node)});
    }
}

void Profile::begin(backend::Lap /*lap*/) noexcept {
    if (!is_handed_over_) {
        end_lap();
    }
}

double Profile::seconds_since_last() noexcept {
    const double now = now_();
    return now - std::exchange(last_, now);
}

void Profile::end_lap() noexcept {
    const double seconds = seconds_since_last();
    const backend::Lap lap = present();
    times_.of(lap.activity) += seconds;
    if (lap.node >= 0 && lap.node < std::ssize(layers_)) {
        LayerTimes& layer = layers_[static_cast<std::size_t>(lap.node)];
        (lap.activity == Activity::forward ? layer.forward : layer.backward) += seconds;
    }
    if (lap.activity == Activity::all_reduce && times_.all_reduces.size() < most_all_reduces) {
        times_.all_reduces.push_back(seconds);
    }
}

void Profile::hand_over() {
    if (!std::exchange(is_handed_over_, true)) {
        end_lap();
    }
}

void Profile::take_back(const backend::LapTimes& times) {
    if (!std::exchange(is_handed_over_, false)) {
        return;
    }
    double idle = seconds_since_last();
    for (std::size_t i = 0; i < times.seconds.size(); ++i) {
        times_.seconds[i] += times.seconds[i];
        idle -= times.seconds[i];
    }
    times_.of(Activity::other) += idle;
    const std::size_t room = most_all_reduces - times_.all_reduces.size();
    times_.all_reduces.insert(
        times_.all_reduces.end(), times.all_reduces.begin(),
        times.all_reduces.begin() + static_cast<std::ptrdiff_t>(std::min(room, times.all_reduces.size())));
}

/// Separates waiting from summing in the all-reduce times, gathers the times of all ranks, and resets the counters.
GroupTimes Profile::gather(const comm::Group& group) {
    take_back({});  // for a training that was destroyed before its steps ended
    end_lap();
    const double waited = waited_beyond_least(group, times_.all_reduces);
    times_.of(Activity::all_reduce) -= waited;
    times_.of(Activity::wait) += waited;
    std::vector<double> mine(times_.seconds.begin(), times_.seconds.end());
    mine.push_back(waited);
    times_.seconds = {};
    times_.all_reduces.clear();

    const std::vector<double> rows = group.gather(mine);
    GroupTimes all{.training_samples = std::exchange(training_samples_, 0),
                   .validation_samples = std::exchange(validation_samples_, 0)};
    for (auto row = rows.begin(); row != rows.end(); row += std::ssize(mine)) {
        RankTimes rank{.waited_in_steps = row[backend::activities]};
        std::copy_n(row, backend::activities, rank.seconds.begin());
        all.ranks.push_back(rank);
    }
    return all;
}

const GroupTimes& Profile::end_epoch(const comm::Group& group, std::int64_t epoch) {
    GroupTimes times = gather(group);
    times.epoch = epoch;
    all_ += times;
    return epochs_.emplace_back(std::move(times));
}

ProfileReport Profile::report(const comm::Group& group) {
    all_ += gather(group);
    std::vector<double> seconds;
    for (const LayerTimes& layer : layers_) {
        seconds.insert(seconds.end(), {layer.forward, layer.backward});
    }
    group.sum(seconds);
    ProfileReport report{.epochs = epochs_, .all = all_, .layers = layers_};
    for (std::size_t i = 0; i < layers_.size(); ++i) {
        report.layers[i].forward = seconds[2 * i] / group.size();
        report.layers[i].backward = seconds[2 * i + 1] / group.size();
    }
    return report;
}

}  // namespace finch::train
