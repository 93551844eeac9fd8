// Searches with many islands. Every leader keeps two populations: one with all memberships, and one with only the
// memberships that the leader can still use.
#include "finch/search/exchange.hpp"
#include "finch/search/function.hpp"
#include "finch/search/propagator.hpp"

#include "search/known_on.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <memory>
#include <utility>
#include <vector>

using namespace finch;
using namespace finch::search;

namespace {

constexpr std::size_t parents = 8;
constexpr std::uint32_t workers_of_island = 2;

struct Leader {
    Population whole;
    Population bounded;
    MembershipUse use;
    std::vector<Record> mail;

    void merge(const Record& record) {
        whole.merge(record);
        bounded.merge(record);
    }
};

/// A search by several leaders. Leader 0 receives all records, as the archivist does.
class Search {
public:
    Search(const ExchangeOptions& exchange, int islands, std::uint64_t seed, double delay)
        : exchange_(exchange), seed_(seed), delay_(delay), network_(seed, Purpose::test) {
        for (std::uint32_t worker = 0; worker < workers_of_island * static_cast<std::uint32_t>(islands); ++worker) {
            leaders_.push_back(leader(worker, islands));
        }
    }

    void run(std::uint32_t generations) {
        for (std::uint32_t generation = 1; generation <= generations; ++generation) {
            for (const std::uint32_t worker : network_.permutation(static_cast<std::uint32_t>(leaders_.size()))) {
                receive(worker, delay_);
                live(worker, generation);
            }
        }
        for (std::uint32_t worker = 0; worker < leaders_.size(); ++worker) {
            receive(worker, 0);
            leaders_[worker].bounded.limit_memberships(leaders_[worker].use);
        }
    }

    /// Restarts all leaders with the population of leader 0, on `islands` islands.
    void resume(int islands) {
        ++restart_;
        const Population whole = relaid(leaders_[0].whole, islands);
        const Population bounded = relaid(leaders_[0].bounded, islands);
        std::vector<Leader> anew;
        for (std::uint32_t worker = 0; worker < workers_of_island * static_cast<std::uint32_t>(islands); ++worker) {
            anew.push_back(leader(worker, islands));
            anew.back().whole = worker == 0 ? whole : known_on(whole, island_of(worker));
            anew.back().bounded = worker == 0 ? bounded : known_on(bounded, island_of(worker));
        }
        leaders_ = std::move(anew);
    }

    [[nodiscard]] const std::vector<Leader>& leaders() const { return leaders_; }
    std::size_t exchanged = 0;
    std::size_t differences = 0;

private:
    static int island_of(std::uint32_t worker) { return static_cast<int>(worker / workers_of_island); }

    Leader leader(std::uint32_t worker, int islands) const {
        return {Population(exchange_.kind, islands),
                Population(exchange_.kind, islands),
                {.island = island_of(worker),
                 .breeding = parents,
                 .exchange = exchange_depth(exchange_),
                 .everywhere = worker == 0},
                {}};
    }

    static Population relaid(const Population& from, int islands) {
        Population to(from.kind(), islands);
        for (const auto& [id, individual] : from.individuals()) {
            to.merge(individual);
        }
        for (const auto& [id, home] : from.homes()) {
            to.merge(id, home);
        }
        for (const auto& [id, island] : from.memberships()) {
            to.merge_membership(id, island);
        }
        return to;
    }

    /// Merges the waiting records of `worker`. Late records arrive out of order, and some arrive twice.
    void receive(std::uint32_t worker, double delay) {
        std::vector<Record> late;
        for (const Record& record : leaders_[worker].mail) {
            if (network_.uniform() < delay) {
                late.push_back(record);
                if (network_.uniform() < 0.8) {
                    continue;
                }
            }
            leaders_[worker].merge(record);
        }
        leaders_[worker].mail = std::move(late);
    }

    void live(std::uint32_t worker, std::uint32_t generation) {
        Leader& me = leaders_[worker];
        me.bounded.limit_memberships(me.use);  // drops all unused memberships, more often than a search does
        const int island = island_of(worker);
        Individual individual;
        individual.id = Id::make(restart_, worker, generation);
        individual.island = island;
        RandomStream breeding(seed_, Purpose::breeding, individual.id.value);
        RandomStream again = breeding;
        const Offspring offspring = propagator_->breed(me.bounded, island, {}, breeding);
        const Offspring same = propagator_->breed(me.whole, island, {}, again);
        differences += offspring.genome != same.genome || offspring.parents != same.parents ? 1 : 0;
        individual.genome = offspring.genome;
        individual.outcome = Outcome::evaluated;
        RandomStream noise(seed_, Purpose::function_noise, individual.id.value);
        individual.loss = evaluate(function_, individual.genome, noise);
        tell(worker, Result{individual}, island);
        exchange(worker, individual.id);
    }

    void exchange(std::uint32_t worker, Id after) {
        const int island = island_of(worker);
        IslandLeaders leaders{island, {}};
        for (std::uint32_t one = 0; one < workers_of_island; ++one) {
            leaders.workers.push_back(
                static_cast<std::int32_t>(static_cast<std::uint32_t>(island) * workers_of_island + one));
        }
        const auto self = static_cast<std::int32_t>(worker);
        RandomStream chance(seed_, Purpose::exchange, after.value);
        RandomStream again = chance;
        const auto records = plan_exchange(exchange_, leaders_[worker].bounded, leaders, self, chance);
        const auto same = plan_exchange(exchange_, leaders_[worker].whole, leaders, self, again);
        differences += bytes_of(records) != bytes_of(same) ? 1 : 0;
        for (const Record& record : records) {
            const auto* move = std::get_if<Move>(&record);
            tell(worker, record, move != nullptr ? move->home.island : std::get<Copy>(record).island);
            ++exchanged;
        }
    }

    static Bytes bytes_of(const std::vector<Record>& records) {
        Bytes all;
        for (const Record& record : records) {
            const Bytes one = encode(record, 1);
            all.insert(all.end(), one.begin(), one.end());
        }
        return all;
    }

    /// Sends a record to its sender, to the sender's island, to the island `target` and to leader 0.
    void tell(std::uint32_t from, const Record& record, int target) {
        leaders_[from].merge(record);
        for (std::uint32_t worker = 0; worker < leaders_.size(); ++worker) {
            const bool hears = island_of(worker) == target || island_of(worker) == island_of(from) || worker == 0;
            if (worker != from && hears) {
                leaders_[worker].mail.push_back(record);
            }
        }
    }

    const Function& function_ = find_function("rastrigin");
    std::unique_ptr<Propagator> propagator_ = make_propagator(
        GeneticOptions{static_cast<std::int64_t>(parents), 0.7, 0.4, 0.1, 0.05}, function_space(function_, 4), 1);
    ExchangeOptions exchange_;
    std::uint64_t seed_;
    double delay_;
    RandomStream network_;
    std::uint32_t restart_ = 0;
    std::vector<Leader> leaders_;
};

}  // namespace

TEST_CASE("limit_memberships: breeding and exchange stay the same if unused memberships are dropped") {
    for (const ExchangeKind kind : {ExchangeKind::none, ExchangeKind::migration, ExchangeKind::pollination}) {
        for (const Topology topology : {Topology::all, Topology::ring}) {
            for (const std::int64_t migrants : {1, 3}) {
                for (std::uint64_t seed = 1; seed <= (kind == ExchangeKind::pollination ? 4 : 1); ++seed) {
                    Search search({kind, topology, 0.9, migrants}, 6, seed, 0.5);

                    search.run(40);
                    search.resume(6);
                    search.run(30);

                    CHECK(search.differences == 0);
                    CHECK((kind == ExchangeKind::none) == (search.exchanged == 0));
                    std::size_t dropped = 0;
                    for (const Leader& leader : search.leaders()) {
                        dropped += leader.whole.memberships().size() - leader.bounded.memberships().size();
                    }
                    CHECK((kind == ExchangeKind::pollination) == (dropped > 0));
                }
            }
        }
    }
}

TEST_CASE("limit_memberships: `random` and `tournament` select the same emigrants with limited memberships") {
    for (const Emigrants emigrants : {Emigrants::random, Emigrants::tournament}) {
        for (std::uint64_t seed = 1; seed <= 4; ++seed) {
            Search search({.kind = ExchangeKind::pollination, .migrants = 2, .emigrants = emigrants}, 6, seed, 0.5);

            search.run(40);

            CHECK(search.exchanged > 0);
            CHECK(search.differences == 0);
        }
    }
}

TEST_CASE("limit_memberships: the number of memberships grows linearly with the islands, and not with the exchanges") {
    for (const Topology topology : {Topology::all, Topology::ring}) {
        for (const std::size_t islands : {6U, 24U}) {
            std::size_t most_kept = 0;
            std::size_t all = 0;
            for (const std::uint32_t generations : {20U, 80U}) {
                Search search({ExchangeKind::pollination, topology, 0.9, 1}, static_cast<int>(islands), 1, 0.2);

                search.run(generations);

                CAPTURE(islands);
                for (std::size_t worker = 1; worker < search.leaders().size(); ++worker) {
                    CHECK(search.leaders()[worker].bounded.memberships().size() <= parents + islands - 1);
                }
                const Leader& archivist = search.leaders()[0];
                CHECK(archivist.bounded.memberships().size() <= (parents + 1) * islands);
                CHECK(archivist.whole.memberships().size() > all);
                all = archivist.whole.memberships().size();
                most_kept = std::max(most_kept, archivist.bounded.memberships().size());
            }
            CHECK(all > 2 * most_kept);
        }
    }
}
