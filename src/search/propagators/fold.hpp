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

/// A State that takes in the results of those that were born on an island or live there, one after the other in their
/// canonical order, whatever the order in which they came to be known: `state.take(individual, born_here)`. What comes
/// late has the results after it taken in again, from the nearest state that was kept.
template <class State>
class Fold {
public:
    explicit Fold(State initial) : kept_{{0, initial}}, state_(std::move(initial)) {}

    /// With all that `population` knows of `island` by now. Always the same population and island.
    const State& over(const Population& population, int island) {
        const auto& arrivals = population.arrivals(island);
        std::vector<Entry> fresh;
        for (; seen_ < arrivals.size(); ++seen_) {
            const Entry entry{{arrivals[seen_]->finished, arrivals[seen_]->id}, arrivals[seen_]};
            if (population.has_left(*entry.individual, island)) {
                forget(entry.place.id);
            } else {
                fresh.push_back(entry);
            }
        }
        if (!fresh.empty()) {
            insert(fresh);
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

    void insert(std::vector<Entry>& fresh) {
        const auto earlier = [](const Entry& a, const Entry& b) { return a.place < b.place; };
        const auto same = [](const Entry& a, const Entry& b) { return a.place == b.place; };
        std::sort(fresh.begin(), fresh.end(), earlier);
        fresh.erase(std::unique(fresh.begin(), fresh.end(), same), fresh.end());
        std::size_t first = order_.size();
        for (const Entry& entry : fresh) {
            first = std::min(first, remove(entry));
        }
        const auto place = std::lower_bound(order_.begin(), order_.end(), fresh.front(), earlier);
        first = std::min(first, static_cast<std::size_t>(place - order_.begin()));
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
        const auto [known, is_new] = finished_.try_emplace(entry.place.id.value, entry.place.finished);
        return is_new ? order_.size() : erase({std::exchange(known->second, entry.place.finished), entry.place.id});
    }

    /// Takes out the one who stands at `place`, and says which that was.
    std::size_t erase(const FoldPlace& place) {
        const auto at = std::lower_bound(order_.begin(), order_.end(), place,
                                         [](const Entry& a, const FoldPlace& b) { return a.place < b; });
        return static_cast<std::size_t>(order_.erase(at) - order_.begin());
    }

    /// As if `id` had never come.
    void forget(Id id) {
        const auto known = finished_.find(id.value);
        if (known == finished_.end()) {
            return;
        }
        const std::size_t first = erase({known->second, id});
        finished_.erase(known);
        if (first < folded_) {
            go_back(first);
        }
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
    std::size_t seen_ = 0;                                ///< arrivals
    std::size_t folded_ = 0;                              ///< entries of order_ that state_ has
    std::vector<Kept> kept_;                              ///< by how many they have; the first has none
    State state_;
};

}  // namespace finch::search
