// Large islands: the best spreads from leader to leader, and the rest is told to world rank 0 alone.
#include "island/world.hpp"

#include <algorithm>
#include <doctest/doctest.h>

namespace finch::island {
namespace {

constexpr std::size_t result_record = 1;
static_assert(std::is_same_v<std::variant_alternative_t<result_record, search::Record>, search::Result>);

}  // namespace

TEST_CASE("nearly all leaders of a large island know its best, and few messages say so") {
    constexpr int workers = 300;
    constexpr int budget = 6000;
    World world(workers, 1, evaluations(budget), search::ExchangeKind::none);
    world.run(plenty);

    const search::Population recorded = world.recorded();
    CHECK(recorded.settled() == budget);
    // Each leader had heard of the ten best but for those of the last moments; of the results it knows few.
    const auto best = recorded.best(0, 10);
    std::size_t known = 0;
    std::size_t results = 0;
    for (std::size_t worker = 1; worker < workers; ++worker) {
        const search::Population& population = world.workers_[worker]->population();
        known += static_cast<std::size_t>(std::count_if(best.begin(), best.end(), [&](const auto* individual) {
            return population.find(individual->id) != nullptr;
        }));
        results += population.settled();
    }
    CHECK(known > best.size() * (workers - 1) * 8 / 10);
    CHECK(results < budget * (workers - 1) / 4);
    // World rank 0 counts what it hears: each result once, from the one who bred it.
    std::vector<std::size_t> bred(workers);
    for (const auto& [id, individual] : recorded.individuals()) {
        ++bred[id.worker()];
    }
    for (std::size_t worker = 1; worker < workers; ++worker) {
        CHECK(world.mailboxes_[worker]->sent_to_0[result_record] == bred[worker]);
    }
    CHECK(world.messages_to_others(result_record) < budget * (workers - 1) / 4);
}

TEST_CASE("at most_told leaders everyone hears of everything") {
    constexpr auto workers = static_cast<int>(most_told);
    constexpr int budget = 300;
    World world(workers, 1, evaluations(budget), search::ExchangeKind::none);
    world.run(plenty);
    for (const auto& worker : world.workers_) {
        CHECK(worker->population().settled() == budget);
    }
}

}  // namespace finch::island
