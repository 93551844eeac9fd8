#include "finch/search/objectives.hpp"

#include "finch/base/random.hpp"
#include "finch/search/population.hpp"
#include "finch/search/propagator.hpp"

#include "search/samples.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <doctest/doctest.h>
#include <functional>
#include <limits>
#include <map>
#include <set>

namespace finch::search {
namespace {

using samples::ids;

const std::vector<Cost> one_cost{Cost{Quantity::parameters}};
const std::vector<Cost> two_costs{Cost{Quantity::parameters}, Cost{Quantity::seconds}};

Individual with_costs(std::uint32_t number, double loss, std::int64_t parameters, double seconds = 0,
                      std::int32_t island = 0) {
    Individual individual = samples::evaluated(number, loss, island);
    individual.parameters = parameters;
    individual.training_seconds = seconds;
    return individual;
}

/// Returns individuals with coarse values. Ties and equal points are therefore common.
std::vector<Individual> random_individuals(std::uint64_t seed, std::uint32_t count, int islands = 1) {
    RandomStream random(seed, Purpose::test);
    std::vector<Individual> all;
    for (std::uint32_t number = 1; number <= count; ++number) {
        all.push_back(with_costs(number, static_cast<double>(random.below(12)) / 8,
                                 static_cast<std::int64_t>(random.below(9)), static_cast<double>(random.below(6)),
                                 static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(islands)))));
    }
    return all;
}

std::vector<const Individual*> pointers(const std::vector<Individual>& all) {
    std::vector<const Individual*> found;
    for (const Individual& one : all) {
        found.push_back(&one);
    }
    return found;
}

std::vector<double> objectives_of(const Individual& one, const std::vector<Cost>& costs) {
    std::vector<double> values{one.loss};
    for (const Cost& cost : costs) {
        values.push_back(cost.quantity == Quantity::parameters ? static_cast<double>(one.parameters)
                                                               : one.training_seconds);
    }
    return values;
}

bool dominates(const Individual& a, const Individual& b, const std::vector<Cost>& costs) {
    const std::vector<double> left = objectives_of(a, costs);
    const std::vector<double> right = objectives_of(b, costs);
    bool smaller = false;
    for (std::size_t i = 0; i < left.size(); ++i) {
        if (left[i] > right[i]) {
            return false;
        }
        smaller = smaller || left[i] < right[i];
    }
    return smaller;
}

/// Computes the ranks by removing one front after the other. Compares every individual with all others.
std::map<Id, int> naive_ranks(const std::vector<Individual>& all, const std::vector<Cost>& costs) {
    std::map<Id, int> ranks;
    for (int rank = 0; ranks.size() < all.size(); ++rank) {
        std::vector<Id> front;
        for (const Individual& one : all) {
            const bool is_dominated = std::any_of(all.begin(), all.end(), [&](const Individual& other) {
                return !ranks.contains(other.id) && dominates(other, one, costs);
            });
            if (!ranks.contains(one.id) && !is_dominated) {
                front.push_back(one.id);
            }
        }
        for (const Id id : front) {
            ranks[id] = rank;
        }
    }
    return ranks;
}

/// The crowding distance of one individual (Deb et al. 2002, III.B). Individuals with equal values are ordered by id.
double naive_crowding(const Individual& one, const std::vector<Individual>& front, const std::vector<Cost>& costs) {
    double distance = 0;
    for (std::size_t i = 0; i <= costs.size(); ++i) {
        std::set<std::pair<double, Id>> values;
        for (const Individual& other : front) {
            values.emplace(objectives_of(other, costs)[i], other.id);
        }
        const auto at = values.find({objectives_of(one, costs)[i], one.id});
        if (at == values.begin() || std::next(at) == values.end()) {
            return std::numeric_limits<double>::infinity();
        }
        const double extent = values.rbegin()->first - values.begin()->first;
        distance += extent > 0 ? (std::next(at)->first - std::prev(at)->first) / extent : 0;
    }
    return distance;
}

}  // namespace

TEST_CASE("ranked_by_objectives: rank and crowding distance match their definition for two and three objectives") {
    for (const std::vector<Cost>& costs : {one_cost, two_costs}) {
        for (std::uint64_t seed = 0; seed < 60; ++seed) {
            const auto all = random_individuals(seed, 1 + static_cast<std::uint32_t>(seed) * 2);
            const auto ranks = naive_ranks(all, costs);
            std::map<int, std::vector<Individual>> fronts;
            for (const Individual& one : all) {
                fronts[ranks.at(one.id)].push_back(one);
            }

            const auto ranked = ranked_by_objectives(pointers(all), costs, all.size());

            REQUIRE(ranked.size() == all.size());
            for (std::size_t i = 1; i < ranked.size(); ++i) {
                const int before = ranks.at(ranked[i - 1]->id);
                const int now = ranks.at(ranked[i]->id);
                REQUIRE(before <= now);
                if (before == now) {
                    const double wider = naive_crowding(*ranked[i - 1], fronts.at(now), costs);
                    const double narrower = naive_crowding(*ranked[i], fronts.at(now), costs);
                    const bool is_equal = wider == narrower || std::abs(wider - narrower) < 1e-12;
                    CHECK((wider > narrower || is_equal));
                }
            }
            for (std::size_t count = 0; count <= all.size(); count += 1 + seed % 5) {
                const auto first = ranked_by_objectives(pointers(all), costs, count);
                REQUIRE(first.size() >= count);
                CHECK(std::equal(first.begin(), first.end(), ranked.begin()));
                CHECK((first.size() == all.size() || count == 0 ||
                       ranks.at(first.back()->id) == ranks.at(ranked[count - 1]->id)));
            }
            CHECK(pareto_front(pointers(all), costs).size() == fronts.at(0).size());
            for (const Individual* one : pareto_front(pointers(all), costs)) {
                CHECK(ranks.at(one->id) == 0);
            }
        }
    }
}

TEST_CASE("ranked_by_objectives: by rank, then the ends of a front, then crowding distance, then loss, then id") {
    const std::vector<Individual> all{with_costs(1, 0, 10), with_costs(2, 1, 9),  with_costs(3, 2, 2),
                                      with_costs(4, 10, 0), with_costs(5, 10, 1), with_costs(6, 20, 20),
                                      with_costs(7, 20, 20)};
    std::vector<std::uint32_t> order;
    for (const Individual* one : ranked_by_objectives(pointers(all), one_cost, all.size())) {
        order.push_back(one->id.sequence());
    }

    // 1 and 4 are the ends. The distance of 3 is (10 - 1) / 10 + 9 / 10, the distance of 2 is 2 / 10 + 8 / 10.
    CHECK(order == std::vector<std::uint32_t>{1, 4, 3, 2, 5, 6, 7});
}

TEST_CASE("ranked_by_objectives: pruned individuals and those that break limits come behind all fronts") {
    std::vector<Individual> all{samples::pruned(1, 2, 0.1), with_costs(2, 0.1, 1), with_costs(3, 0.5, 100),
                                with_costs(4, 0.6, 200), samples::pruned(5, 1, 0.1)};
    all[1].violation = 0.5;
    std::vector<std::uint32_t> order;
    for (const Individual* one : ranked_by_objectives(pointers(all), one_cost, all.size())) {
        order.push_back(one->id.sequence());
    }

    CHECK(order == std::vector<std::uint32_t>{3, 4, 1, 5, 2});
    for (const double seconds : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
        const std::vector<Individual> some{with_costs(1, 0.2, 1, seconds), with_costs(2, 0.3, 9, 2),
                                           with_costs(3, 0.4, 8, 1), with_costs(4, 0.1, 9, seconds)};
        CHECK(ids(ranked_by_objectives(pointers(some), two_costs, 4)) ==
              std::vector{some[1].id, some[2].id, some[3].id, some[0].id});
        CHECK(volume_of(pareto_front(pointers(some), two_costs), two_costs));
        CHECK(pareto_front({&some[0], &some[3]}, two_costs).empty());
    }
    CHECK(ids(ranked_by_objectives(pointers(all), one_cost, 2)).size() == 2);
    CHECK(pareto_front(pointers(all), one_cost).size() == 1);
    CHECK(pareto_front({&all[0], &all[1]}, one_cost).empty());
}

TEST_CASE("is_among_best: the first front, and otherwise the first by rank and crowding distance") {
    for (const std::vector<Cost>& costs : {one_cost, two_costs}) {
        const auto all = random_individuals(5, 60);
        const auto ranked = ranked_by_objectives(pointers(all), costs, all.size());
        const std::size_t in_front = pareto_front(pointers(all), costs).size();
        std::vector<ObjectiveValues> values;
        for (const Individual& one : all) {
            values.push_back(point_of(one, costs));
        }
        for (const std::size_t count : {std::size_t{1}, in_front + 5, std::size_t{40}}) {
            for (std::size_t i = 0; i < ranked.size(); ++i) {
                CHECK(is_among_best(values, 1 + costs.size(), ranked[i]->id, count) == (i < std::max(in_front, count)));
            }
        }
    }
}

TEST_CASE("hypervolume: the share of random points that the front dominates, in two to four objectives") {
    RandomStream random(3, Purpose::test);
    for (std::size_t objectives = 1; objectives <= 4; ++objectives) {
        std::vector<ObjectiveValues> points(12);
        for (ObjectiveValues& point : points) {
            for (std::size_t i = 0; i < objectives; ++i) {
                point.values.at(i) = 1.2 * random.uniform();
            }
        }
        const std::vector<double> reference(objectives, 1.0);
        constexpr int samples = 200000;
        int dominated = 0;
        for (int sample = 0; sample < samples; ++sample) {
            std::array<double, 4> at{};
            std::generate_n(at.begin(), objectives, [&] { return random.uniform(); });
            dominated += std::any_of(points.begin(), points.end(), [&](const ObjectiveValues& point) {
                return std::equal(at.begin(), at.begin() + static_cast<std::ptrdiff_t>(objectives),
                                  point.values.begin(), std::greater_equal<>());
            });
        }

        // Five standard deviations of a share of so many samples are at most 0.0056.
        CHECK(std::abs(hypervolume(points, reference) - dominated / double{samples}) < 0.006);
    }
    CHECK(hypervolume({}, std::vector{1.0, 1.0}) == 0);
    CHECK(hypervolume({{Id{1}, {0, 2}}, {Id{2}, {1, 0}}}, std::vector{1.0, 1.0}) == 0);
}

TEST_CASE("volume_of: the reference is a tenth of the front's range beyond its largest values") {
    const std::vector<Individual> all{with_costs(1, 0, 10), with_costs(2, 1, 0)};

    const auto found = volume_of(pointers(all), one_cost);

    REQUIRE(found);
    CHECK(found->reference == std::vector<double>{1.1, 11});
    CHECK(found->share == doctest::Approx((1.1 * 1 + 0.1 * 10) / (1.1 * 11)));
    CHECK_FALSE(volume_of(pointers({with_costs(1, 0, 10)}), one_cost));
}

TEST_CASE("cost_of: `parameters` and `seconds` each give the matching cost of an individual") {
    const Individual one = with_costs(1, 0.5, 1234, 5.5);

    CHECK(cost_of(Cost{Quantity::parameters}, one) == 1234);
    CHECK(cost_of(Cost{Quantity::seconds}, one) == 5.5);
}

TEST_CASE("with costs, the active individuals are the best members by rank, for any order and repetition of records") {
    for (const auto kind : {ExchangeKind::none, ExchangeKind::migration, ExchangeKind::pollination}) {
        const auto all = random_individuals(7, 60, 3);
        std::vector<Record> records;
        RandomStream chance(11, Purpose::test);
        for (const Individual& one : all) {
            records.emplace_back(Result{one});
            if (chance.uniform() < 0.3) {
                const auto island = static_cast<std::int32_t>(chance.below(3));
                kind == ExchangeKind::migration ? records.emplace_back(Move{one, {1, 0, island}})
                                                : records.emplace_back(Copy{one, island});
            }
        }
        Population expected(kind, 3, one_cost);
        for (const Record& record : records) {
            expected.merge(record);
        }
        std::size_t active = 0;
        for (int island = 0; island < 3; ++island) {
            std::vector<const Individual*> members;
            for (const Individual& one : all) {
                const bool is_here = kind == ExchangeKind::migration ? expected.home(one.id).island == island
                                     : kind == ExchangeKind::none    ? one.island == island
                                                                     : expected.is_member(one.id, island);
                if (is_here) {
                    members.push_back(&one);
                }
            }
            auto ranked = ids(ranked_by_objectives(members, one_cost, members.size()));
            ranked.resize(std::min(ranked.size(), expected.active(island)));
            CHECK(ids(expected.best(island, 1000)) == ranked);
            active += ranked.size();
        }
        CHECK(active == all.size());

        for (std::uint64_t seed = 0; seed < 100; ++seed) {
            RandomStream random(seed, Purpose::test);
            Population population(kind, 3, one_cost);
            for (const std::uint32_t i : random.permutation(static_cast<std::uint32_t>(records.size()))) {
                population.merge(records[i]);
                static_cast<void>(population.best(static_cast<int>(random.below(3)), 5));
                population.merge(records[random.below(records.size())]);
            }
            for (int island = 0; island < 3; ++island) {
                CHECK(ids(population.best(island, 1000)) == ids(expected.best(island, 1000)));
                CHECK(ids(population.best(island, 4)) == ids(expected.best(island, 4)));
            }
            const Population copied = population;
            CHECK(ids(copied.best(1, 1000)) == ids(expected.best(1, 1000)));
        }
    }
}

TEST_CASE("with costs, the best individual of all is still the one with the smallest loss") {
    Population population(ExchangeKind::none, 1, one_cost);
    population.merge(with_costs(1, 0.5, 1));
    population.merge(with_costs(2, 0.25, 1000));

    CHECK(population.best()->id.sequence() == 2);
}

TEST_CASE("genetic with costs: the parents are the best individuals by rank and crowding distance") {
    Population population(ExchangeKind::none, 1, one_cost);
    std::vector<Individual> all;
    for (std::uint32_t number = 1; number <= 200; ++number) {
        // The first 8 individuals are the front. Half of them have large losses.
        const bool is_front = number <= 8;
        all.push_back(with_costs(number, is_front ? number : 0.9 + number, is_front ? 9 - number : 1000 + number));
        population.merge(all.back());
    }
    Space space;
    space.genes = {{"x", RealGene{0, 1, Scale::linear}}, {"y", RealGene{0, 1000, Scale::linear}}};
    GeneticOptions options;
    options.population = 8;
    options.random = 0;
    const auto genetic = make_propagator(options, space, 1);
    std::set<std::uint32_t> parents;
    for (std::uint64_t i = 0; i < 300; ++i) {
        RandomStream random(1, Purpose::test, i);
        for (const Id parent : genetic->breed(population, 0, {}, random).parents) {
            parents.insert(parent.sequence());
        }
    }

    CHECK(parents == std::set<std::uint32_t>{1, 2, 3, 4, 5, 6, 7, 8});
}

}  // namespace finch::search
