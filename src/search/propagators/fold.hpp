#pragma once

#include "finch/search/population.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

namespace finch::search {

/// The sort key of a result in the canonical order of an island's results: the end of its training, then its id. The
/// key is the same on all leaders that know the result.
struct FoldPlace {
    double finished = 0;
    Id id;
    auto operator<=>(const FoldPlace&) const = default;
};

/// Feeds an island's results to a State in canonical order, independent of the order in which they arrived. Each result
/// is passed to `state.take(individual, born_here)`. After a late result, the Fold returns to the nearest stored state
/// before this result and takes the later results again.
template <class State>
class Fold {
public:
    explicit Fold(State initial) : kept_{{0, initial}}, state_(std::move(initial)) {}

    /// Returns the state with all results of `island` that `population` knows now. All calls must use the same
    /// population and island.
    const State& over(const Population& population, int island) {
        const auto& changes = population.changes(island);
        std::vector<Entry> fresh;
        for (; seen_ < changes.size(); ++seen_) {
            fresh.push_back({{changes[seen_]->finished, changes[seen_]->id}, changes[seen_]});
        }
        if (!fresh.empty()) {
            update(fresh, [&](const Entry& entry) { return population.is_result_of(*entry.individual, island); });
        }
        for (; folded_ < order_.size(); ++folded_) {
            const Individual& individual = *order_[folded_].individual;
            state_.take(individual, population.island_now(individual.island) == island);
            if ((folded_ + 1) % stride == 0) {
                keep(folded_ + 1);
            }
        }
        return state_;
    }

private:
    static constexpr std::size_t stride = 64;

    struct Entry {
        FoldPlace place;
        const Individual* individual = nullptr;
    };
    struct Kept {
        std::size_t folded = 0;
        State state;
    };

    /// Removes changed entries from order_, and inserts entries that are now results of the island.
    template <class IsResult>
    void update(std::vector<Entry>& fresh, const IsResult& is_result) {
        const auto earlier = [](const Entry& a, const Entry& b) { return a.place < b.place; };
        const auto same = [](const Entry& a, const Entry& b) { return a.place == b.place; };
        std::sort(fresh.begin(), fresh.end(), earlier);
        fresh.erase(std::unique(fresh.begin(), fresh.end(), same), fresh.end());
        std::size_t first = order_.size();
        for (const Entry& entry : fresh) {
            first = std::min(first, remove(entry));
        }
        std::erase_if(fresh, [&](const Entry& entry) { return !is_result(entry); });
        if (!fresh.empty()) {
            const auto place = std::lower_bound(order_.begin(), order_.end(), fresh.front(), earlier);
            first = std::min(first, static_cast<std::size_t>(place - order_.begin()));
        }
        for (const Entry& entry : fresh) {
            finished_.emplace(entry.place.id.value, entry.place.finished);
        }
        const auto middle = static_cast<std::ptrdiff_t>(order_.size());
        order_.insert(order_.end(), fresh.begin(), fresh.end());
        std::inplace_merge(order_.begin() + static_cast<std::ptrdiff_t>(first), order_.begin() + middle, order_.end(),
                           earlier);
        if (first < folded_) {
            go_back(first);
        }
    }

    /// Removes the entry that `entry` replaces. Returns the position of the removed entry, or the end if there was
    /// none.
    std::size_t remove(const Entry& entry) {
        const auto known = finished_.find(entry.place.id.value);
        if (known == finished_.end()) {
            return order_.size();
        }
        const FoldPlace old{known->second, entry.place.id};
        finished_.erase(known);
        const auto at = std::lower_bound(order_.begin(), order_.end(), old,
                                         [](const Entry& a, const FoldPlace& b) { return a.place < b; });
        return static_cast<std::size_t>(order_.erase(at) - order_.begin());
    }

    void go_back(std::size_t to) {
        while (kept_.back().folded > to) {
            kept_.pop_back();
        }
        folded_ = kept_.back().folded;
        state_ = kept_.back().state;
    }

    /// Stores the present state, and thins out the older stored states: the older they are, the fewer are kept.
    void keep(std::size_t folded) {
        kept_.push_back({folded, state_});
        for (std::size_t i = kept_.size() - 1; i-- > 1;) {
            if (kept_[i + 1].folded - kept_[i - 1].folded <= (folded - kept_[i].folded) / 2) {
                kept_.erase(kept_.begin() + static_cast<std::ptrdiff_t>(i));
            }
        }
    }

    std::vector<Entry> order_;
    std::unordered_map<std::uint64_t, double> finished_;  ///< end of training by id, for all entries of order_
    std::size_t seen_ = 0;                                ///< number of changes of the island that were read
    std::size_t folded_ = 0;                              ///< number of entries of order_ that state_ includes
    std::vector<Kept> kept_;                              ///< sorted by the number of included entries; 0 in the first
    State state_;
};

}  // namespace finch::search
