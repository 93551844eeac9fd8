// A worker at which everything fails does not spend the budget of the others.
#include "island/world.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <tuple>

namespace finch::island {

namespace {

using search::Individual;
using search::Outcome;

Individual ended(std::int32_t worker, Outcome outcome) {
    Individual one;
    one.attempt.worker = worker;
    one.outcome = outcome;
    one.started = 1;
    one.finished = 1 + 100;
    one.loss = 0.5;
    return one;
}

}  // namespace

TEST_CASE(
    "failures: an ill worker spends few evaluations, its node is named once, and healthy workers do the retries") {
    for (const auto& [ill_at, retries, slots, outcome] :
         {std::tuple{5.0, 0, 1, Outcome::failed}, {5.0, 2, 2, Outcome::failed}, {0.0, 1, 1, Outcome::out_of_memory}}) {
        World world(3, 2, evaluations(100), search::ExchangeKind::pollination);
        world.node_of_worker = {"n1", "n2", "n3"};
        world.looks = {1000, ill_at > 0 ? 1000 : 1, 1000};
        world.failure = outcome;
        world.fails = [&now = world.now_, since = ill_at](const Individual& one) {
            return one.attempt.worker == 1 && now >= since;
        };
        world.retries = retries;
        world.slots = slots;
        world.give_up_after = 2;

        REQUIRE(world.run(plenty));

        const search::Population all = world.recorded();
        CHECK(all.evaluations() == 100);
        int failed = 0;
        int retried = 0;
        double end = 0;
        for (const auto& [id, one] : all.individuals()) {
            failed += one.is_complete() ? 0 : 1;
            retried += one.retry_of != search::Id{} ? 1 : 0;
            CHECK((one.is_complete() || (one.node == "n2" && one.retry_of == search::Id{})));
            end = std::max(end, one.finished);
        }
        CHECK(failed >= 4);
        CHECK(failed <= 8 + slots);
        CHECK(retried >= (retries > 0 ? failed - 2 : 0));
        REQUIRE(world.observer_.warnings.size() == 1);
        CHECK(world.observer_.warnings[0].find("of worker 1 on node n2 failed") != std::string::npos);
        CHECK(world.archive_->events.size() == 1);
        CHECK(world.now_ - end < 0.1);  // the end waits for no pause
    }
}

TEST_CASE(
    "Failures: a pause doubles up to the duration of an evaluation; usual failures, or those of all workers, cause "
    "none") {
    const search::Population none(search::ExchangeKind::none, 1);
    Failures failures(2, 1, 0, none);
    failures.ended(ended(0, Outcome::evaluated), none, 0);
    for (const double pause : {1, 2, 4, 8, 16, 32, 64, 100, 100}) {
        failures.ended(ended(1, Outcome::failed), none, 10);
        CHECK(failures.must_wait(1, 10 + 0.99 * pause));
        CHECK_FALSE(failures.must_wait(1, 10 + pause));
    }
    CHECK_FALSE(failures.must_wait(0, 10));
    failures.left(0);
    CHECK_FALSE(failures.must_wait(1, 10));

    Failures usual(2, 1, 0, none);
    for (int i = 0; i < 27; ++i) {
        usual.ended(ended(1, i % 2 == 0 || i >= 20 ? Outcome::failed : Outcome::evaluated), none, 0);
        CHECK(usual.must_wait(1, 0.5) == (i == 0 || i == 26));
    }

    Failures vain(2, 1, 0, none);
    vain.ended(ended(0, Outcome::failed), none, 0);
    CHECK(vain.must_wait(0, 0.5));
    CHECK(vain.in_vain() == 0);
    vain.ended(ended(1, Outcome::failed), none, 0);
    CHECK_FALSE(vain.must_wait(0, 0.5));
    CHECK(vain.in_vain() == 2);
}

}  // namespace finch::island
