#pragma once

#include "finch/search/individual.hpp"
#include "finch/search/objectives.hpp"
#include "finch/search/record.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace finch::search {

enum class ExchangeKind { none, migration, pollination };
constexpr std::array<std::string_view, 3> words_of(ExchangeKind) {
    return {"none", "migration", "pollination"};
}

/// All individuals that a leader knows, and the islands on which they are active. Data is only added, so merging is
/// idempotent and independent of order: a message that comes late, twice, or after a restart does no harm. Plain data
/// without MPI or files. Each leader has its own Population.
///
/// Under migration, an individual is active on the island in its home register, or on its island of birth if it has no
/// register.
///
/// Under pollination, an individual is active on each island of which it is a member, if it is among the best
/// `capacity` members there. The capacity of an island is the number of individuals with a comparable loss that were
/// born there. A copy from another island therefore displaces the worst member. Members are ordered by their loss or,
/// if there are costs, by ranked_by_objectives() among all members.
///
/// Repeats (search/final_choice.hpp) are kept and counted, but belong to no island.
class Population {
public:
    /// `islands`: the present number of islands. An island of an earlier start that no longer exists counts as the
    /// island with its number modulo `islands`. `costs`: the costs that are minimised in addition to the loss.
    Population(ExchangeKind kind, int islands, std::vector<Cost> costs = {});
    Population(const Population& other);
    Population& operator=(const Population& other);
    Population(Population&&) noexcept = default;
    Population& operator=(Population&&) noexcept = default;
    ~Population() = default;

    /// The merge functions return whether anything changed. Any order and any repetition of the calls give the same
    /// population. Registers and memberships may be merged before their individual. Registers and memberships are kept
    /// for every exchange kind, because the kind may change at a restart. A home of version 0 is ignored.
    bool merge(Individual individual);
    bool merge(Id id, const Home& home);
    bool merge_membership(Id id, std::int32_t island);
    /// Merges Started, Result, Move and Copy; ignores other records.
    bool merge(Record record);

    /// Clears the learning curve of `id`. The caller has stored the curve in a file, and Population does not use it.
    void forget_curve(Id id);

    [[nodiscard]] const Individual* find(Id id) const noexcept;
    /// Returns the `count` best active individuals of `island` with a comparable loss, best first; fewer if there are
    /// fewer. O(count). If there are costs, the first call after a change takes O(members) time, or more if `count` is
    /// large.
    [[nodiscard]] std::vector<const Individual*> best(int island, std::size_t count) const;
    /// Returns the number of active individuals of `island` with a comparable loss.
    [[nodiscard]] std::size_t active(int island) const;
    /// Returns the number of finished evaluations of individuals that were born on `island`.
    [[nodiscard]] std::size_t finished_on(int island) const { return at(island).finished; }
    /// Returns the number of epochs trained by the finished individuals that were born on `island`.
    [[nodiscard]] std::int64_t epochs_on(int island) const { return at(island).epochs; }
    /// Returns the individuals that finished on `island`, arrived there or left it, in the order in which this
    /// Population received them. An individual that is replaced by a newer record appears again. The list of changes
    /// only grows.
    [[nodiscard]] const std::vector<const Individual*>& changes(int island) const { return at(island).changes; }
    /// Returns whether a finished individual is a result of the island: it was born there, or is there as an immigrant
    /// or a copy.
    [[nodiscard]] bool is_result_of(const Individual& individual, int island) const;
    /// Returns the best individual of all islands, in the order of better(), or null.
    [[nodiscard]] const Individual* best() const;
    /// Returns the best individual that this run itself trained, or null. Only trained individuals have weights. The
    /// result differs from best() if best() reuses a result of another run.
    [[nodiscard]] const Individual* best_trained() const;
    /// Under migration, returns the home of `id`, mapped to an island that exists now. A home of version 0 means that
    /// the individual never moved.
    [[nodiscard]] Home home(Id id) const;
    /// Under pollination, returns whether `id` was born on `island` or was copied to it.
    [[nodiscard]] bool is_member(Id id, int island) const;
    /// Maps an individual's island of birth to an island that exists now.
    [[nodiscard]] int island_now(std::int32_t island) const noexcept;

    [[nodiscard]] std::size_t size() const noexcept { return individuals_.size(); }
    /// Returns the number of individuals with ended training, regardless of the outcome.
    [[nodiscard]] std::size_t finished() const noexcept { return finished_; }
    /// Returns the number of finished individuals with a result that is not reused.
    [[nodiscard]] std::size_t evaluations() const noexcept { return evaluations_; }
    [[nodiscard]] std::vector<const Individual*> unfinished() const;
    /// Returns the number of epochs trained by all individuals. For an unfinished individual, the epochs that it has
    /// reported so far are counted.
    [[nodiscard]] std::int64_t epochs() const noexcept { return epochs_; }

    /// The full contents, which an archive stores: individuals, home registers and memberships, ordered by id.
    [[nodiscard]] const std::map<Id, Individual>& individuals() const noexcept { return individuals_; }
    [[nodiscard]] const std::map<Id, Home>& homes() const noexcept { return homes_; }
    [[nodiscard]] const std::set<std::pair<Id, std::int32_t>>& memberships() const noexcept { return memberships_; }
    [[nodiscard]] ExchangeKind kind() const noexcept { return kind_; }
    [[nodiscard]] int islands() const noexcept { return static_cast<int>(islands_.size()); }
    [[nodiscard]] const std::vector<Cost>& costs() const noexcept { return costs_; }

    /// Compares the contents of two populations and the members of each island, but not changes().
    [[nodiscard]] bool operator==(const Population& other) const;

private:
    struct Better {
        bool operator()(const Individual* a, const Individual* b) const noexcept { return better(*a, *b); }
    };
    /// The members of one island, best first, and counts of the individuals that were born there. `born` counts only
    /// individuals with a comparable loss.
    class Island {
    public:
        std::size_t born = 0;
        std::size_t finished = 0;  ///< evaluations of individuals that were born there
        std::int64_t epochs = 0;   ///< epochs of the finished individuals that were born there
        std::vector<const Individual*> changes;
        mutable std::vector<const Individual*>
            ranked;  ///< the best members by all objectives, as many as were requested

        [[nodiscard]] const std::set<const Individual*, Better>& members() const {
            put_in_order();
            return members_;
        }
        void insert(const Individual* individual) {
            new_.push_back(individual);
            ranked.clear();
        }
        void erase(const Individual* individual) {
            put_in_order();
            members_.erase(individual);
            ranked.clear();
        }

    private:
        void put_in_order() const;

        mutable std::set<const Individual*, Better> members_;
        /// Members added since the last query. New members are sorted together, since many members arrive between two
        /// queries when a run starts.
        mutable std::vector<const Individual*> new_;
    };

    [[nodiscard]] const Island& at(int island) const;
    [[nodiscard]] Island& at(int island);
    /// Calls `visit` with every island to which `individual` belongs, possibly twice with the same island.
    template <class Visitor>
    void for_each_place(const Individual& individual, const Visitor& visit) const;
    void add_to_indexes(const Individual& individual);
    void remove_from_indexes(const Individual& individual);

    ExchangeKind kind_;
    std::vector<Cost> costs_;
    std::map<Id, Individual> individuals_;  ///< map nodes never move, so the islands may point to them
    /// The last merged individual of each worker, as an iterator, by restart and worker.
    std::unordered_map<std::uint64_t, std::map<Id, Individual>::iterator> latest_;
    std::map<Id, Home> homes_;
    std::set<std::pair<Id, std::int32_t>> memberships_;
    std::vector<Island> islands_;
    std::set<Id> unfinished_;
    std::size_t finished_ = 0;
    std::size_t evaluations_ = 0;
    std::int64_t epochs_ = 0;
};

}  // namespace finch::search
