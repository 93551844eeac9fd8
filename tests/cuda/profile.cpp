// Tests of the device's clock in captured steps. The stand-in's clock advances by 1 µs per reading.
#include "finch/train/profile.hpp"

#include "cuda/trained.hpp"
#include "support/rehearsal/control.hpp"

using namespace finch;
using namespace finch::test;
using backend::Activity;

namespace {

/// Returns a recipe with a batch size of 1. 3 epochs with 70 training samples and 20 validation samples use graphs of
/// one step and of many steps.
train::Recipe single_samples() {
    train::Recipe recipe = calm_recipe();
    recipe.training.batch_size = 1;
    return recipe;
}

constexpr double steps = 3 * 70;
constexpr double validations = 3 * 20;

void use_counting_clock() {
    rehearsal::set_clock([ticks = std::uint64_t{0}]() mutable { return ticks += 1000; });
}

NamedArrays trained(const comm::Group& group, train::Profile* profile) {
    const auto datasets = bright_rows(90);
    const auto device = backend::make_cuda_device(0);
    const auto all_reduce = comm::make_mpi_all_reduce(group, 30);
    train::Training training(*device, group, *all_reduce, datasets, single_samples(), {}, profile);
    while (training.advance(100) == train::State::running) {
    }
    CHECK(training.state() == train::State::finished);
    return training.snapshot();
}

}  // namespace

TEST_CASE("profile: every step of every graph is measured on the device") {
    rehearsal::reset();
    use_counting_clock();
    const comm::Group group = alone();
    double now = 0;
    train::Profile profile([&now] { return now; });

    (void)trained(group, &profile);

    const train::ProfileReport report = profile.report(group);
    const train::RankTimes& rank = report.all.ranks.front();
    for (const Activity activity :
         {Activity::data, Activity::forward, Activity::backward, Activity::all_reduce, Activity::optimizer}) {
        CHECK(rank.of(activity) == doctest::Approx(1e-6 * steps));
    }
    CHECK(rank.of(Activity::validation) == doctest::Approx(1e-6 * validations));
    CHECK(rank.of(Activity::wait) == 0);
    CHECK(rank.whole() == doctest::Approx(0));  // the host's clock stands still
    REQUIRE_FALSE(report.layers.empty());
    CHECK(report.layers.front().forward == 0);  // a GPU does not measure layers
    CHECK(report.layers.front().bytes > 0);
    rehearsal::reset();
}

TEST_CASE("profile: measuring changes no bit of a training on the device") {
    rehearsal::reset();
    const comm::Group group = alone();
    train::Profile profile;

    const NamedArrays measured = trained(group, &profile);

    CHECK(equal_but_for_seconds(measured, trained(group, nullptr)));
}
