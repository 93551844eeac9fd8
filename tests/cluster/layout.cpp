#include "finch/cluster/layout.hpp"

#include "finch/base/error.hpp"

#include <doctest/doctest.h>
#include <utility>

using namespace finch::cluster;

namespace {

using Names = std::vector<std::string>;
using Numbers = std::vector<int>;

LayoutOptions deal(int ranks_per_worker, int islands, Numbers sizes = {}) {
    LayoutOptions options;
    options.ranks_per_worker = ranks_per_worker;
    options.islands = islands;
    options.island_sizes = std::move(sizes);
    return options;
}

/// Returns the member `value` of every rank's place, by world rank.
Numbers by_rank(const Layout& layout, int Place::*value) {
    Numbers values;
    for (const Place& place : layout.places) {
        values.push_back(place.*value);
    }
    return values;
}

struct Row {
    const char* what;
    Names nodes;
    LayoutOptions options;
    Numbers workers;
    Numbers group_ranks;
    Numbers islands;
    Numbers leaders;
    std::size_t warnings;
};

const std::vector<Row> rows{
    {"one rank", {"a"}, deal(1, 1), {0}, {0}, {0}, {0}, 0},
    {"block distribution", {"a", "a", "b", "b"}, deal(2, 2), {0, 0, 1, 1}, {0, 1, 0, 1}, {0, 0, 1, 1}, {0, 2}, 0},
    {"cyclic distribution", {"a", "b", "a", "b"}, deal(2, 2), {0, 1, 0, 1}, {0, 0, 1, 1}, {0, 1, 0, 1}, {0, 1}, 0},
    {"plane distribution, 3 nodes",
     {"a", "a", "b", "b", "c", "c", "a", "a", "b", "b", "c", "c"},
     deal(4, 3),
     {0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2},
     {0, 1, 0, 1, 0, 1, 2, 3, 2, 3, 2, 3},
     {0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2},
     {0, 2, 4},
     0},
    {"a group over two nodes, cyclic",
     {"a", "b", "a", "b"},
     deal(4, 1),
     {0, 0, 0, 0},
     {0, 2, 1, 3},
     {0, 0, 0, 0},
     {0},
     1},
    {"an odd node",
     {"a", "a", "a", "b", "b", "b"},
     deal(2, 1),
     {0, 0, 1, 1, 2, 2},
     {0, 1, 0, 1, 0, 1},
     {0, 0, 0, 0, 0, 0},
     {0, 2, 4},
     1},
    {"unequal nodes", {"a", "a", "a", "b"}, deal(1, 2), {0, 1, 2, 3}, {0, 0, 0, 0}, {0, 0, 1, 1}, {0, 1, 2, 3}, 1},
    {"the first islands get the rest",
     {"a", "a", "a", "a", "a"},
     deal(1, 3),
     {0, 1, 2, 3, 4},
     {0, 0, 0, 0, 0},
     {0, 0, 1, 1, 2},
     {0, 1, 2, 3, 4},
     0},
    {"sizes in workers",
     {"a", "a", "a", "a"},
     deal(1, 1, {3, 1}),
     {0, 1, 2, 3},
     {0, 0, 0, 0},
     {0, 0, 0, 1},
     {0, 1, 2, 3},
     0},
};

std::string refusal(int ranks, const LayoutOptions& options) {
    try {
        (void)make_layout(Names(static_cast<std::size_t>(ranks), "a"), options);
    } catch (const finch::ConfigError& error) {
        return error.what();
    }
    return "";
}

}  // namespace

TEST_CASE("make_layout: fills the groups node by node, for any Slurm distribution") {
    for (const Row& row : rows) {
        CAPTURE(row.what);

        const Layout layout = make_layout(row.nodes, row.options);

        CHECK(by_rank(layout, &Place::worker) == row.workers);
        CHECK(by_rank(layout, &Place::group_rank) == row.group_ranks);
        CHECK(by_rank(layout, &Place::island) == row.islands);
        CHECK(layout.leaders == row.leaders);
        CHECK(layout.warnings.size() == row.warnings);
    }
}

TEST_CASE("make_layout: refuses islands of more than 256 workers and reports the required number of islands") {
    CHECK(refusal(256, deal(1, 1)).empty());
    CHECK(refusal(600, deal(1, 0)).empty());
    CHECK(refusal(600, deal(1, 2)).find("300 workers in one island") != std::string::npos);
    CHECK(refusal(600, deal(1, 2)).find("3 islands or more") != std::string::npos);
    CHECK(refusal(258, deal(1, 1, {257, 1})).find("2 islands or more") != std::string::npos);
}

TEST_CASE("make_layout: world rank 0 leads worker 0, and the place of each leader has group rank 0") {
    for (const Row& row : rows) {
        CAPTURE(row.what);

        const Layout layout = make_layout(row.nodes, row.options);

        CHECK(layout.leaders.at(0) == 0);
        for (std::size_t worker = 0; worker < layout.leaders.size(); ++worker) {
            const Place& place = layout.places.at(static_cast<std::size_t>(layout.leaders[worker]));
            CHECK(place.worker == static_cast<int>(worker));
            CHECK(place.group_rank == 0);
            CHECK(place.island == layout.island_of_worker.at(worker));
        }
    }
}

TEST_CASE("make_layout: local ranks count the ranks on a node, in world rank order") {
    const Layout layout = make_layout({"a", "b", "a", "b", "b"}, deal(1, 1));

    CHECK(by_rank(layout, &Place::local_rank) == Numbers{0, 0, 1, 1, 2});
    CHECK(by_rank(layout, &Place::local_ranks) == Numbers{2, 3, 2, 3, 3});
}

TEST_CASE("make_layout: warnings name the worker, its nodes and the unequal numbers of ranks") {
    const Layout layout = make_layout({"n1", "n1", "n1", "n2"}, deal(2, 1));

    REQUIRE(layout.warnings.size() == 2);
    CHECK(layout.warnings[0].find("n2 has 1, n1 has 3") != std::string::npos);
    CHECK(layout.warnings[1].find("worker 1: n1, n2") != std::string::npos);
}

TEST_CASE("make_layout: if workers.ranks does not divide the number of ranks, the error proposes suitable numbers") {
    const std::string text = refusal(6, deal(4, 1));

    CHECK(text.find("workers.ranks") != std::string::npos);
    CHECK(text.find("start 4 or 8 ranks") != std::string::npos);
    CHECK(text.find("workers.ranks to 3 or 6") != std::string::npos);
    CHECK(refusal(3, deal(4, 1)).find("start 4 ranks, or set workers.ranks to 3") != std::string::npos);
    CHECK(refusal(5, deal(2, 3)).find("start 6 ranks") != std::string::npos);
}

TEST_CASE("make_layout: if there are fewer workers than islands, the error proposes suitable numbers") {
    const std::string text = refusal(6, deal(2, 5));

    CHECK(text.find("workers.islands") != std::string::npos);
    CHECK(text.find("start 10 ranks") != std::string::npos);
    CHECK(text.find("at most 3") != std::string::npos);
}

TEST_CASE("make_layout: refuses island sizes that do not add up to the workers") {
    const std::string text = refusal(6, deal(2, 1, {3, 1}));

    CHECK(text.find("[3, 1]") != std::string::npos);
    CHECK(text.find("start 8 ranks") != std::string::npos);
    CHECK(text.find("sum is 3") != std::string::npos);
    CHECK(refusal(4, deal(1, 1, {4, 0})).find("at least 1 worker") != std::string::npos);
}

TEST_CASE("make_layout: refuses numbers below one") {
    CHECK(refusal(4, deal(0, 1)).find("workers.ranks") != std::string::npos);
    CHECK(refusal(4, deal(1, -1)).find("workers.islands") != std::string::npos);
}

TEST_CASE("automatic_islands: returns the smallest number of islands with at most 256 workers each") {
    CHECK(automatic_islands(1) == 1);
    CHECK(automatic_islands(256) == 1);
    CHECK(automatic_islands(257) == 2);
    CHECK(automatic_islands(600) == 3);
    CHECK(make_layout(Names(600, "a"), deal(1, 0)).islands == 3);
    CHECK(make_layout(Names(600, "a"), deal(4, 0)).islands == 1);
    CHECK_THROWS((void)make_layout({"a"}, deal(1, -1)));
}

TEST_CASE("node_of_island: returns the node of each island's first leader") {
    const Layout layout = make_layout({"b", "b", "b", "a", "a", "a"}, deal(1, 4));

    CHECK(layout.island_of_worker == Numbers{0, 0, 1, 1, 2, 3});
    CHECK(node_of_island(layout) == Numbers{0, 0, 1, 1});
}

TEST_CASE("names_of_nodes: nodes with the same host name get different names if they share no memory, with a warning") {
    CHECK(names_of_nodes({"a", "a", "b"}, {0, 0, 2}) == Names{"a", "a", "b"});
    const Names names = names_of_nodes({"box", "box", "other", "box"}, {0, 1, 2, 1});

    CHECK(names == Names{"box#1", "box#2", "other", "box#2"});
    const Layout layout = make_layout(names, deal(1, 1));
    CHECK(by_rank(layout, &Place::local_rank) == Numbers{0, 0, 0, 1});
    REQUIRE_FALSE(layout.warnings.empty());
    CHECK(layout.warnings.front() == "several nodes have the host name box, so they are called box#1, … here");
}
