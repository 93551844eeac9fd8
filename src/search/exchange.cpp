#include "finch/search/exchange.hpp"

#include "finch/base/error.hpp"

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

namespace finch::search {
namespace {

/// The finaliser of MurmurHash3 (Appleby): every input bit changes every output bit with probability one half.
std::uint64_t mix(std::uint64_t value) noexcept {
    value = (value ^ (value >> 33)) * 0xFF51AFD7ED558CCD;
    value = (value ^ (value >> 33)) * 0xC4CEB9FE1A85EC53;
    return value ^ (value >> 33);
}

/// Returns the best `count` active individuals of the island that satisfy `is_candidate`, best first; fewer if there
/// are fewer. Asks the population for no more individuals than necessary.
template <class Predicate>
std::vector<const Individual*> best_of(const Population& population, int island, std::size_t count,
                                       std::size_t first_look, const Predicate& is_candidate) {
    const std::size_t active = population.active(island);
    std::vector<const Individual*> found;
    std::size_t looked_at = 0;
    for (std::size_t window = first_look; found.size() < count && looked_at < active; window *= 2) {
        const auto best = population.best(island, window);
        for (; looked_at < best.size() && found.size() < count; ++looked_at) {
            if (is_candidate(*best[looked_at])) {
                found.push_back(best[looked_at]);
            }
        }
    }
    return found;
}

/// Draws `count` of the `candidates`. Each drawn individual is the best of `rivals` candidates that are chosen at
/// random.
std::vector<const Individual*> drawn(std::vector<const Individual*> candidates, std::size_t count, std::size_t rivals,
                                     RandomStream& random) {
    std::vector<const Individual*> found;
    while (found.size() < count && !candidates.empty()) {
        std::size_t winner = candidates.size();
        for (std::size_t i = 0; i < std::min(rivals, candidates.size()); ++i) {
            // Drawn rivals are swapped to the front, so no rival is drawn twice.
            const std::size_t rival = i + static_cast<std::size_t>(random.below(candidates.size() - i));
            std::swap(candidates[i], candidates[rival]);
            winner = winner == candidates.size() || better(*candidates[i], *candidates[winner]) ? i : winner;
        }
        found.push_back(candidates[winner]);
        candidates[winner] = candidates.back();
        candidates.pop_back();
    }
    return found;
}

/// Returns `count` active individuals of the island that satisfy `is_candidate`, chosen by options.emigrants; fewer if
/// there are fewer.
template <class Predicate>
std::vector<const Individual*> choose(const ExchangeOptions& options, const Population& population, int island,
                                      std::size_t count, std::size_t first_look, RandomStream& random,
                                      const Predicate& is_candidate) {
    const std::size_t active = population.active(island);
    const auto drawn_of = [&](std::size_t rivals) {
        return drawn(best_of(population, island, active, active, is_candidate), count, rivals, random);
    };
    switch (options.emigrants) {
        case Emigrants::best:
            return best_of(population, island, count, first_look, is_candidate);
        case Emigrants::random:
            return drawn_of(1);
        case Emigrants::tournament:
            return drawn_of(2);
    }
    return {};
}

/// Returns the number of individuals that `island` sends to `target` in one exchange.
std::size_t migrants_to(const ExchangeOptions& options, int island, int target) {
    return static_cast<std::size_t>(
        options.migrants_between.empty()
            ? options.migrants
            : options.migrants_between.at(static_cast<std::size_t>(island)).at(static_cast<std::size_t>(target)));
}

/// Plans a Move of each emigrant to one target island, assigned at random. Returns nothing if there are too few
/// emigrants for all targets.
std::vector<Record> plan_moves(const ExchangeOptions& options, const Population& population,
                               const IslandLeaders& leaders, std::int32_t self, RandomStream& random) {
    const auto targets = exchange_targets(options, leaders.island, population.islands(), random);
    std::vector<int> target_of;  // by emigrant
    for (const int target : targets) {
        target_of.insert(target_of.end(), migrants_to(options, leaders.island, target), target);
    }
    const std::size_t count = target_of.size();
    const auto is_mine = [&](const Individual& one) { return register_writer(one.id, leaders.workers) == self; };
    const auto emigrants =
        choose(options, population, leaders.island, count, 2 * count * leaders.workers.size(), random, is_mine);
    std::vector<Record> moves;
    if (emigrants.size() < count) {
        return moves;
    }
    const auto order = random.permutation(static_cast<std::uint32_t>(count));
    for (std::size_t i = 0; i < count; ++i) {
        const Individual& emigrant = *emigrants[order[i]];
        moves.emplace_back(Move{emigrant, {population.home(emigrant.id).version + 1, self, target_of[i]}});
    }
    return moves;
}

/// Plans Copies of the same emigrants to every target island, except copies that are known to be there already.
std::vector<Record> plan_copies(const ExchangeOptions& options, const Population& population,
                                const IslandLeaders& leaders, RandomStream& random) {
    const auto targets = exchange_targets(options, leaders.island, population.islands(), random);
    std::size_t count = 0;
    for (const int target : targets) {
        count = std::max(count, migrants_to(options, leaders.island, target));
    }
    const auto emigrants =
        choose(options, population, leaders.island, count, count, random, [](const Individual&) { return true; });
    std::vector<Record> copies;
    for (const int target : targets) {
        const std::size_t most = std::min(emigrants.size(), migrants_to(options, leaders.island, target));
        for (const Individual* emigrant : std::span(emigrants).first(most)) {
            if (!population.is_member(emigrant->id, target)) {
                copies.emplace_back(Copy{*emigrant, target});
            }
        }
    }
    return copies;
}

/// Returns all islands except `island`.
std::vector<int> others(int island, int islands) {
    std::vector<int> all;
    for (int other = 0; other < islands; ++other) {
        if (other != island) {
            all.push_back(other);
        }
    }
    return all;
}

/// Returns `targets` without duplicates and without `island`.
std::vector<int> different(std::vector<int> targets, int island) {
    std::sort(targets.begin(), targets.end());
    targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
    std::erase(targets, island);
    return targets;
}

std::vector<int> torus_targets(int island, int islands) {
    int rows = 1;
    for (int divisor = 1; divisor * divisor <= islands; ++divisor) {
        rows = islands % divisor == 0 ? divisor : rows;
    }
    const int columns = islands / rows;
    const int row = island / columns;
    const int column = island % columns;
    const auto at = [&](int r, int c) { return (r + rows) % rows * columns + (c + columns) % columns; };
    return different({at(row - 1, column), at(row + 1, column), at(row, column - 1), at(row, column + 1)}, island);
}

std::vector<int> node_targets(const std::vector<int>& node_of_island, int island, int islands) {
    if (node_of_island.empty()) {
        return others(island, islands);
    }
    std::vector<int> targets;
    std::vector<int> firsts;  // the first island of each node, in the order of the islands
    std::vector<int> seen;
    for (int other = 0; other < islands; ++other) {
        const int node = node_of_island.at(static_cast<std::size_t>(other));
        if (std::find(seen.begin(), seen.end(), node) == seen.end()) {
            seen.push_back(node);
            firsts.push_back(other);
        }
        if (node == node_of_island.at(static_cast<std::size_t>(island))) {
            targets.push_back(other);
        }
    }
    const auto first = std::find(firsts.begin(), firsts.end(), island);
    if (first != firsts.end()) {
        targets.push_back(std::next(first) == firsts.end() ? firsts.front() : *std::next(first));
    }
    return different(std::move(targets), island);
}

std::vector<int> matrix_targets(const std::vector<std::vector<double>>& matrix, int island, int islands,
                                RandomStream& random) {
    std::vector<int> targets;
    for (const int other : others(island, islands)) {
        if (random.uniform() < matrix.at(static_cast<std::size_t>(island)).at(static_cast<std::size_t>(other))) {
            targets.push_back(other);
        }
    }
    return targets;
}

}  // namespace

std::int32_t register_writer(Id id, std::span<const std::int32_t> workers) {
    if (workers.empty()) {
        throw Error("no worker can write a register of an island without workers");
    }
    const std::uint64_t key = mix(id.value);
    const auto weight = [key](std::int32_t worker) {
        return std::pair(mix(key ^ (static_cast<std::uint64_t>(worker) * 0x9E3779B97F4A7C15)), worker);
    };
    return *std::max_element(workers.begin(), workers.end(),
                             [&](std::int32_t a, std::int32_t b) { return weight(a) < weight(b); });
}

std::vector<Record> plan_exchange(const ExchangeOptions& options, const Population& population,
                                  const IslandLeaders& leaders, std::int32_t self, RandomStream& random) {
    if (options.kind == ExchangeKind::none || options.migrants < 1 || population.islands() < 2 ||
        leaders.workers.empty() ||
        !(random.uniform() < options.probability / static_cast<double>(leaders.workers.size()))) {
        return {};
    }
    switch (options.kind) {
        case ExchangeKind::none:
            break;
        case ExchangeKind::migration:
            return plan_moves(options, population, leaders, self, random);
        case ExchangeKind::pollination:
            return plan_copies(options, population, leaders, random);
    }
    return {};
}

std::vector<int> exchange_targets(const ExchangeOptions& options, int island, int islands, RandomStream& random) {
    if (islands < 2) {
        return {};
    }
    switch (options.topology) {
        case Topology::all:
            break;
        case Topology::ring:
            return {(island + 1) % islands};
        case Topology::torus:
            return torus_targets(island, islands);
        case Topology::star:
            return island == 0 ? others(0, islands) : std::vector{0};
        case Topology::random:
            return {others(island,
                           islands)[static_cast<std::size_t>(random.below(static_cast<std::uint64_t>(islands - 1)))]};
        case Topology::nodes:
            return node_targets(options.node_of_island, island, islands);
        case Topology::matrix:
            return matrix_targets(options.matrix, island, islands, random);
    }
    return others(island, islands);
}

}  // namespace finch::search
