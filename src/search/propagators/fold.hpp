#pragma once

#include "finch/search/population.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

namespace finch::search {

/// Where a result stands among those of its island: by the end of its training, then by its id. The same for all who
/// know it.
struct FoldPlace {
    double finished = 0;
    Id id;
    auto operator<=>(const FoldPlace&) const = default;
};

/// Calls `state.take(individual, born_here)` for each result of an island in canonical order, whatever the order in
/// which the results became known. After a late result it goes back to the nearest state that was kept and takes the
/// results from there again.
template <class State>
class Fold {
public:
    explicit Fold(State initial) : kept_{{0, initial}}, state_(std::move(initial)) {}

    /// With all that `population` knows of `island` by now. Always the same population and island.
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

    /// Takes out what changed, and in what is a result of the island now.
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

    /// Takes out what `entry` replaces: where it stood, or the end.
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

    /// Keeps the state, and of the earlier ones fewer the older they are.
    void keep(std::size_t folded) {
        kept_.push_back({folded, state_});
        for (std::size_t i = kept_.size() - 1; i-- > 1;) {
            if (kept_[i + 1].folded - kept_[i - 1].folded <= (folded - kept_[i].folded) / 2) {
                kept_.erase(kept_.begin() + static_cast<std::ptrdiff_t>(i));
            }
        }
    }

    std::vector<Entry> order_;
    std::unordered_map<std::uint64_t, double> finished_;  ///< by id, of all in order_
    std::size_t seen_ = 0;                                ///< changes
    std::size_t folded_ = 0;                              ///< entries of order_ that state_ has
    std::vector<Kept> kept_;                              ///< by how many they have; the first has none
    State state_;
};

}  // namespace finch::search
