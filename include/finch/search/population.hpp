#pragma once

#include "finch/search/individual.hpp"
#include "finch/search/objectives.hpp"
#include "finch/search/record.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace finch::search {

enum class ExchangeKind { none, migration, pollination };
constexpr std::array<std::string_view, 3> words_of(ExchangeKind) {
    return {"none", "migration", "pollination"};
}

/// The memberships that a leader under pollination still needs.
struct MembershipUse {
    int island = 0;            ///< its own
    std::size_t breeding = 0;  ///< so many of an island's best breeding picks from
    std::size_t exchange = 0;  ///< so many go to other islands, unless they are members there
    bool everywhere = false;   ///< what the leaders of other islands ask for, too: the archivist's
};

/// Everything that an island knows. Grows only, so merging is idempotent and order-free: a message that comes late,
/// twice, or after a restart does no harm. Plain data: no MPI, no files. One copy per leader.
///
/// Where an individual is active: under migration where its home register says (its island of birth where there is
/// none); under pollination on every island that it is a member of, of which only the best `capacity` count, the
/// capacity being the number of finished individuals born there: a copy thus displaces the worst. The better ones are
/// those of smaller loss; with costs beside it those that ranked_by_objectives() puts first among all members.
///
/// Repeats (search/final_choice.hpp) are kept and counted, and belong to no island.
class Population {
public:
    /// `islands` is how many there are now; an island of an earlier start that no longer exists counts as old mod new.
    /// `costs`: what is minimised beside the loss.
    Population(ExchangeKind kind, int islands, std::vector<Cost> costs = {});
    Population(const Population& other);
    Population& operator=(const Population& other);
    Population(Population&&) noexcept = default;
    Population& operator=(Population&&) noexcept = default;
    ~Population() = default;

    /// Each returns whether anything changed. Any order, any repetition: the same population.
    /// Registers and memberships may come before their individual, and are kept whatever the kind, as it may change at
    /// a restart. A home of version 0 is no register.
    bool merge(Individual individual);
    bool merge(Id id, const Home& home);
    bool merge_membership(Id id, std::int32_t island);
    /// Takes in Started, Result, Move and Copy; ignores the rest.
    bool merge(Record record);

    /// Under pollination: keeps, from now on, the memberships of those that breeding can pick on their island, all of
    /// those that exchange sends, and all of those that it would send if they came to `use.island`; others go once they
    /// are as many. Breeding and exchange stay the same: an individual that ranks too low for them on an island never
    /// ranks higher there, as islands only grow. A later start with another layout, population or number of migrants
    /// may miss a copy; those born on an island stay. With costs all are kept: who stands between others can rise
    /// again.
    void limit_memberships(const MembershipUse& use);
    /// Empties the learning curve of `id`, which a file keeps: nothing here looks at it.
    void forget_curve(Id id);

    [[nodiscard]] const Individual* find(Id id) const noexcept;
    /// The `count` best active individuals of `island` that rank by loss, best first; fewer if there are fewer.
    /// O(count); with costs, once after each change, O(members) and more where `count` is large.
    [[nodiscard]] std::vector<const Individual*> best(int island, std::size_t count) const;
    /// How many individuals are active on `island` and rank by loss.
    [[nodiscard]] std::size_t active(int island) const;
    /// How many evaluations of individuals that were born on `island` are finished.
    [[nodiscard]] std::size_t finished_on(int island) const { return at(island).finished; }
    /// Epochs trained by those that were born on `island` and are finished.
    [[nodiscard]] std::int64_t epochs_on(int island) const { return at(island).epochs; }
    /// Individuals that were finished on `island`, or arrived there or left it, in the order in which this copy
    /// received them; a replaced one appears again. Only grows.
    [[nodiscard]] const std::vector<const Individual*>& changes(int island) const { return at(island).changes; }
    /// Whether an individual is one of the island's results: finished and born there, or living there as an immigrant
    /// or a copy.
    [[nodiscard]] bool is_result_of(const Individual& individual, int island) const;
    /// The best individual of all by its loss, or null.
    [[nodiscard]] const Individual* best() const;
    /// The best individual that this run trained, which alone has weights: best(), unless that reuses another run's
    /// result.
    [[nodiscard]] const Individual* best_trained() const;
    /// Under migration: where `id` lives now (version 0 if it never moved), as an island that exists now.
    [[nodiscard]] Home home(Id id) const;
    /// Under pollination: whether `id` was born on `island` or has come to it as a copy.
    [[nodiscard]] bool is_member(Id id, int island) const;
    /// The island that an individual's island of birth counts as now.
    [[nodiscard]] int island_now(std::int32_t island) const noexcept;

    [[nodiscard]] std::size_t size() const noexcept { return individuals_.size(); }
    /// Individuals whose training has ended, whatever the outcome.
    [[nodiscard]] std::size_t finished() const noexcept { return finished_; }
    /// Finished individuals with their own result.
    [[nodiscard]] std::size_t evaluations() const noexcept { return evaluations_; }
    [[nodiscard]] std::vector<const Individual*> unfinished() const;
    /// Epochs trained by all individuals; by unfinished ones, as far as reported.
    [[nodiscard]] std::int64_t epochs() const noexcept { return epochs_; }

    /// All individuals, registers and memberships, by id: what an archive writes.
    [[nodiscard]] const std::map<Id, Individual>& individuals() const noexcept { return individuals_; }
    [[nodiscard]] const std::map<Id, Home>& homes() const noexcept { return homes_; }
    [[nodiscard]] const std::set<std::pair<Id, std::int32_t>>& memberships() const noexcept { return memberships_; }
    [[nodiscard]] ExchangeKind kind() const noexcept { return kind_; }
    [[nodiscard]] int islands() const noexcept { return static_cast<int>(islands_.size()); }
    [[nodiscard]] const std::vector<Cost>& costs() const noexcept { return costs_; }

    /// Equal in everything that can be asked of them.
    [[nodiscard]] bool operator==(const Population& other) const;

private:
    struct Better {
        bool operator()(const Individual* a, const Individual* b) const noexcept { return better(*a, *b); }
    };
    /// The individuals that may be active on one island, best first, and the number of ranking ones that were born
    /// there.
    class Island {
    public:
        std::size_t born = 0;
        std::size_t finished = 0;  ///< evaluations of those born there
        std::int64_t epochs = 0;   ///< of the finished
        std::vector<const Individual*> changes;
        mutable std::vector<const Individual*>
            ranked;  ///< the first members by all objectives, as far as anybody asked

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
        /// Members that were not asked for yet: many are sorted at once, as at a start.
        mutable std::vector<const Individual*> new_;
    };

    [[nodiscard]] const Island& at(int island) const;
    [[nodiscard]] Island& at(int island);
    /// Calls `visit` with every membership of `id`.
    template <class Visitor>
    void for_each_membership(Id id, const Visitor& visit) const;
    /// Adds the memberships of `island` that breeding picks from, and all that exchange sends.
    void add_used_memberships(int island, std::set<std::pair<Id, std::int32_t>>& used) const;
    void drop_unused_memberships();
    /// Calls `visit` with every island that `individual` belongs to, some maybe twice.
    template <class Visitor>
    void for_each_place(const Individual& individual, const Visitor& visit) const;
    void add_to_indexes(const Individual& individual);
    void remove_from_indexes(const Individual& individual);

    ExchangeKind kind_;
    std::vector<Cost> costs_;
    std::map<Id, Individual> individuals_;  ///< nodes never move: the islands point at them
    /// Position of each worker's last individual, by restart and worker.
    std::unordered_map<std::uint64_t, std::map<Id, Individual>::iterator> latest_;
    std::map<Id, Home> homes_;
    std::set<std::pair<Id, std::int32_t>> memberships_;
    std::optional<MembershipUse> membership_use_;  ///< none: all are kept
    std::size_t most_memberships_ = 0;             ///< beyond which unused ones are dropped
    std::vector<Island> islands_;
    std::set<Id> unfinished_;
    std::size_t finished_ = 0;
    std::size_t evaluations_ = 0;
    std::int64_t epochs_ = 0;
};

}  // namespace finch::search
