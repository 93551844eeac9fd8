// Tests of a training's time profile, with a simulated clock.
#include "finch/train/profile.hpp"

#include "train/clocked_device.hpp"

#include <iterator>
#include <numeric>
#include <set>
#include <string_view>
#include <type_traits>
#include <variant>

using namespace finch;
using namespace finch::test;
using backend::Activity;

namespace {

constexpr std::int64_t steps = 3 * 5;        ///< 40 samples in batches of 8, 3 epochs
constexpr std::int64_t validations = 3 * 3;  ///< 20 samples in batches of 8, 3 epochs

/// The result of a profiled training.
struct Profiled {
    train::ProfileReport report;
    std::vector<VirtualClock> clock;  ///< of this rank
    std::size_t nodes = 0;
    NamedArrays snapshot;
};

Profiled profiled(const comm::Group& group, bool measures = true) {
    VirtualClock clock;
    ClockedDevice device(clock);
    ClockedAllReduce all_reduce(clock, group);
    train::Profile profile([&clock] { return clock.now; });
    const auto datasets = bright_rows(60);
    train::Training training(device, group, all_reduce, datasets, small_recipe(20), {}, measures ? &profile : nullptr);
    while (training.advance(2) == train::State::running) {
    }
    return {profile.report(group), {clock}, training.plan().nodes.size(), training.snapshot()};
}

double whole_epochs(const train::ProfileReport& report, std::size_t rank, Activity activity) {
    return std::accumulate(
        report.epochs.begin(), report.epochs.end(), 0.0,
        [&](double sum, const train::GroupTimes& epoch) { return sum + epoch.ranks[rank].of(activity); });
}

}  // namespace

TEST_CASE("profile: every second of a training on two ranks is assigned to the activity that took it") {
    const comm::Group group = first_ranks(2);
    const Profiled run = profiled(group);

    CHECK(run.report.epochs.size() == 3);
    CHECK(run.report.all.ranks.size() == 2);
    const auto nodes = static_cast<double>(run.nodes);
    for (const train::RankTimes& rank : run.report.all.ranks) {
        CHECK(rank.of(Activity::data) == steps * VirtualClock::load);
        CHECK(rank.of(Activity::forward) == steps * (nodes * VirtualClock::forward + VirtualClock::loss));
        CHECK(rank.of(Activity::backward) == steps * nodes * VirtualClock::backward);
        CHECK(rank.of(Activity::all_reduce) == steps * VirtualClock::sum);
        CHECK(rank.of(Activity::optimizer) ==
              static_cast<double>(run.clock.front().optimizer_steps) * VirtualClock::optimizer);
        CHECK(rank.of(Activity::validation) ==
              validations * (VirtualClock::load + nodes * VirtualClock::forward + VirtualClock::loss));
        CHECK(rank.of(Activity::snapshot) == 0);
        CHECK(rank.of(Activity::other) == 0);
    }
    const auto& ranks = run.report.all.ranks;
    CHECK(ranks[0].of(Activity::wait) == steps * VirtualClock::wait);
    CHECK(ranks[0].waited_in_steps == steps * VirtualClock::wait);
    CHECK(ranks[1].of(Activity::wait) == 0);
    CHECK(ranks[static_cast<std::size_t>(group.rank())].whole() == run.clock.front().now - 100);
}

TEST_CASE("profile: the epochs add up to the whole training; samples per second count every sample once") {
    const comm::Group group = first_ranks(2);
    const Profiled run = profiled(group);

    for (std::size_t i = 0; i < backend::activities; ++i) {
        const auto activity = static_cast<Activity>(i);
        CHECK(whole_epochs(run.report, 0, activity) == run.report.all.ranks[0].of(activity));
    }
    const train::GroupTimes& first = run.report.epochs.front();
    CHECK(first.epoch == 1);
    CHECK(first.training_samples == 40);
    CHECK(first.validation_samples == 20);
    CHECK(run.report.all.training_samples == 120);
    const train::RankTimes& slow = first.ranks[0];
    const double in_steps = slow.whole() - slow.of(Activity::validation);
    CHECK(first.training_speed() == doctest::Approx(40 / in_steps));
    CHECK(first.validation_speed() == doctest::Approx(20 / slow.of(Activity::validation)));
}

TEST_CASE("profile: layers have their kinds, PyTorch's names, and their times of forward and backward") {
    const Profiled run = profiled(alone());

    REQUIRE(run.report.layers.size() == run.nodes);
    for (const train::LayerTimes& layer : run.report.layers) {
        CHECK(layer.forward == steps * VirtualClock::forward);
        CHECK(layer.backward == steps * VirtualClock::backward);
    }
    CHECK(run.report.layers.front().kind == "conv");
    CHECK(run.report.layers.front().name == "0");
    CHECK(run.report.layers.back().kind == "linear");
}

TEST_CASE("profile: every operation has a unique name") {
    const auto names = []<class... Shape>(std::type_identity<std::variant<Shape...>>) {
        return std::set<std::string_view>{Shape::name...};
    }(std::type_identity<backend::OperationShape>());

    CHECK(names.size() == std::variant_size_v<backend::OperationShape>);
    CHECK(!names.contains(""));
}

TEST_CASE("profile: measuring changes no bit of a training") {
    const comm::Group group = first_ranks(2);

    CHECK(equal_but_for_seconds(profiled(group, true).snapshot, profiled(group, false).snapshot));
}

TEST_CASE("profile: if a step fails on one rank, the other rank does not hang, and all its time is counted") {
    const comm::Group group = first_ranks(2);
    VirtualClock clock;
    clock.failing_batch = group.is_leader() ? -1 : 3;
    ClockedDevice device(clock);
    ClockedAllReduce all_reduce(clock, group);
    train::Profile profile([&clock] { return clock.now; });
    const auto datasets = bright_rows(60);
    train::Training training(device, group, all_reduce, datasets, small_recipe(20), {}, &profile);
    bool has_thrown = false;

    try {
        (void)training.advance(20);
    } catch (const std::runtime_error&) {
        has_thrown = true;
    }
    const train::ProfileReport report = profile.report(group);

    CHECK(has_thrown == !group.is_leader());
    CHECK(report.all.ranks[static_cast<std::size_t>(group.rank())].whole() == clock.now - 100);
}

TEST_CASE("profile: the table's shares add up to 1, and the table names the slowest rank") {
    const comm::Group group = first_ranks(2);
    const train::ProfileReport report = profiled(group).report;
    double sum = 0;
    for (std::size_t i = 0; i < backend::activities; ++i) {
        sum += report.all.share(static_cast<Activity>(i));
    }

    CHECK(sum == doctest::Approx(1));
    const std::vector<std::string> lines = table_text(report);
    CHECK(std::any_of(lines.begin(), lines.end(), [](const std::string& line) {
        return line.find("rank 1 is waited for most") != std::string::npos;
    }));
}

TEST_CASE("profile: for an asynchronous device its own lap times count; its idle time is `other`") {
    const comm::Group group = alone();
    double now = 0;
    train::Profile profile([&now] { return now; });

    now = 5;
    profile.enter({Activity::snapshot});
    now = 7;
    profile.hand_over();
    profile.enter({Activity::wait});  // only the host waits
    now = 17;
    profile.enter({Activity::data});
    backend::LapTimes times;
    times.of(Activity::forward) = 4;
    times.of(Activity::all_reduce) = 3;
    times.all_reduces = {1, 2};
    profile.take_back(times);
    now = 18;

    const train::RankTimes rank = profile.report(group).all.ranks.front();
    CHECK(rank.of(Activity::snapshot) == 2);
    CHECK(rank.of(Activity::wait) == 0);
    CHECK(rank.of(Activity::forward) == 4);
    CHECK(rank.of(Activity::all_reduce) == 3);
    CHECK(rank.of(Activity::data) == 1);
    CHECK(rank.of(Activity::other) == 5 + 3);
    CHECK(rank.whole() == 18);
}
