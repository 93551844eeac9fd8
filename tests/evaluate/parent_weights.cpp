#include "finch/evaluate/kept_files.hpp"

#include <doctest/doctest.h>

using namespace finch;
using search::Id;

namespace {

search::Individual child_of(Id parent) {
    search::Individual child;
    child.id = Id::make(1, 0, 9);
    child.parents[0] = parent;
    return child;
}

/// Returns three parents: 1 was trained, 2 reuses the result of 1, and 3 reuses a result of another run.
search::Population parents() {
    search::Population population(search::ExchangeKind::none, 1);
    for (const std::uint32_t sequence : {1U, 2U, 3U}) {
        search::Individual parent;
        parent.id = Id::make(0, 0, sequence);
        parent.outcome = search::Outcome::evaluated;
        parent.loss = 1;
        if (sequence > 1) {
            parent.reused_from = Id::make(0, 0, 1);
            parent.reused_run = sequence == 3 ? 77 : 0;
        }
        population.merge(parent);
    }
    return population;
}

}  // namespace

TEST_CASE("trained_parent: returns the individual of this run that trained the first parent's result") {
    const search::Population population = parents();
    const auto parent_of = [&population](std::uint32_t sequence) {
        return evaluate::trained_parent(child_of(Id::make(0, 0, sequence)), population);
    };
    CHECK(parent_of(1) == Id::make(0, 0, 1));
    CHECK(parent_of(2) == Id::make(0, 0, 1));
    CHECK(parent_of(3) == Id{});
    CHECK(parent_of(4) == Id::make(0, 0, 4));  // individual 4 is unknown here, but its weights may exist
    CHECK(evaluate::trained_parent(child_of(Id::make(0, 0, 3)), search::Population(search::ExchangeKind::none, 1)) ==
          Id::make(0, 0, 3));
    CHECK(evaluate::trained_parent(child_of({}), population) == Id{});

    search::Individual repeat = child_of(Id::make(0, 0, 1));
    repeat.bred_by = search::Operator::repeat;
    CHECK(evaluate::trained_parent(repeat, population) == Id{});
}
