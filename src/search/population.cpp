#include "finch/search/population.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

namespace finch::search {

Population::Population(ExchangeKind kind, int islands, std::vector<Cost> costs)
    : kind_(kind), costs_(std::move(costs)) {
    if (islands < 1) {
        throw Error(fmt::format("a population needs at least 1 island, not {}", islands));
    }
    islands_.resize(static_cast<std::size_t>(islands));
}

// The islands of a population point to its individuals, so a copy of the population builds its own islands.
Population::Population(const Population& other)
    : kind_(other.kind_),
      costs_(other.costs_),
      individuals_(other.individuals_),
      homes_(other.homes_),
      memberships_(other.memberships_),
      islands_(other.islands_.size()) {
    for (const auto& [id, individual] : individuals_) {
        add_to_indexes(individual);
    }
}

Population& Population::operator=(const Population& other) {
    return *this = Population(other);
}

bool Population::merge(Individual individual) {
    // A worker's individuals mostly arrive in the order of their ids. A new individual therefore usually comes directly
    // after the worker's last individual, or is that individual again.
    auto& latest = latest_.try_emplace(individual.id.value >> 32, individuals_.end()).first->second;
    const bool again = latest != individuals_.end() && latest->first == individual.id;
    const std::size_t known = individuals_.size();
    const Id id = individual.id;
    const auto hint = latest == individuals_.end() ? latest : std::next(latest);
    const auto entry = again ? latest : individuals_.try_emplace(hint, id, std::move(individual));
    latest = entry;
    if (individuals_.size() == known) {
        if (!supersedes(individual, entry->second)) {
            return false;
        }
        remove_from_indexes(entry->second);
        entry->second = std::move(individual);
    }
    add_to_indexes(entry->second);
    return true;
}

bool Population::merge(Id id, const Home& home) {
    const auto known = homes_.find(id);
    if (home.version == 0 || (known != homes_.end() && !(known->second < home))) {
        return false;
    }
    const Individual* individual = kind_ == ExchangeKind::migration ? find(id) : nullptr;
    if (individual != nullptr) {
        remove_from_indexes(*individual);
    }
    homes_.insert_or_assign(id, home);
    if (individual != nullptr) {
        add_to_indexes(*individual);
    }
    return true;
}

bool Population::merge_membership(Id id, std::int32_t island) {
    if (!memberships_.emplace(id, island).second) {
        return false;
    }
    const Individual* individual = kind_ == ExchangeKind::pollination ? find(id) : nullptr;
    if (individual != nullptr && individual->ranks_by_loss() && !individual->is_repeat()) {
        at(island_now(island)).insert(individual);
        at(island_now(island)).changes.push_back(individual);
    }
    return true;
}

bool Population::merge(Record record) {
    if (auto* started = std::get_if<Started>(&record)) {
        return merge(std::move(started->individual));
    }
    if (auto* result = std::get_if<Result>(&record)) {
        return merge(std::move(result->individual));
    }
    if (auto* move = std::get_if<Move>(&record)) {
        const Id id = move->individual.id;
        const bool is_news = merge(std::move(move->individual));
        return merge(id, move->home) || is_news;
    }
    if (auto* copy = std::get_if<Copy>(&record)) {
        const Id id = copy->individual.id;
        const bool is_news = merge(std::move(copy->individual));
        return merge_membership(id, copy->island) || is_news;
    }
    return false;
}

void Population::forget_curve(Id id) {
    if (const auto known = individuals_.find(id); known != individuals_.end()) {
        known->second.curve = {};
        known->second.metrics = {};
    }
}

const Individual* Population::find(Id id) const noexcept {
    const auto entry = individuals_.find(id);
    return entry != individuals_.end() ? &entry->second : nullptr;
}

std::vector<const Individual*> Population::best(int island, std::size_t count) const {
    if (!costs_.empty()) {
        const Island& here = at(island);
        const std::size_t wanted = std::min(count, active(island));
        if (here.ranked.size() < wanted) {
            here.ranked = ranked_by_objectives({here.members().begin(), here.members().end()}, costs_, wanted);
        }
        return {here.ranked.begin(), here.ranked.begin() + static_cast<std::ptrdiff_t>(wanted)};
    }
    std::vector<const Individual*> found;
    found.reserve(std::min(count, active(island)));
    for (auto member = at(island).members().begin(); found.size() < found.capacity(); ++member) {
        found.push_back(*member);
    }
    return found;
}

// Under pollination, individuals are also members of their island of birth. An island therefore always has enough
// members to fill its capacity.
std::size_t Population::active(int island) const {
    return kind_ == ExchangeKind::pollination ? at(island).born : at(island).members().size();
}

// Except for repeats, every individual with a comparable loss is a member of some island.
const Individual* Population::best() const {
    const Individual* found = nullptr;
    for (const Island& island : islands_) {
        if (!island.members().empty()) {
            const Individual* first = *island.members().begin();
            found = found == nullptr || better(*first, *found) ? first : found;
        }
    }
    return found;
}

const Individual* Population::best_trained() const {
    const Individual* found = nullptr;
    for (const Island& island : islands_) {
        const auto first = std::find_if(island.members().begin(), island.members().end(),
                                        [](const Individual* member) { return !member->is_reused(); });
        if (first != island.members().end() && (found == nullptr || better(**first, *found))) {
            found = *first;
        }
    }
    return found;
}

Home Population::home(Id id) const {
    if (const auto known = homes_.find(id); known != homes_.end()) {
        return {known->second.version, known->second.writer, island_now(known->second.island)};
    }
    const Individual* individual = find(id);
    return {0, 0, individual != nullptr ? island_now(individual->island) : 0};
}

bool Population::is_member(Id id, int island) const {
    const Individual* individual = find(id);
    if (individual != nullptr && island_now(individual->island) == island) {
        return true;
    }
    auto copy = memberships_.lower_bound({id, std::numeric_limits<std::int32_t>::min()});
    while (copy != memberships_.end() && copy->first == id && island_now(copy->second) != island) {
        ++copy;
    }
    return copy != memberships_.end() && copy->first == id;
}

int Population::island_now(std::int32_t island) const noexcept {
    const int rest = island % islands();
    return rest < 0 ? rest + islands() : rest;
}

bool Population::is_result_of(const Individual& individual, int island) const {
    if (individual.is_repeat() || !individual.finished_training()) {
        return false;
    }
    bool is_result = island_now(individual.island) == island;
    if (individual.ranks_by_loss()) {
        for_each_place(individual, [&](int place) { is_result = is_result || place == island; });
    }
    return is_result;
}

std::vector<const Individual*> Population::unfinished() const {
    std::vector<const Individual*> found;
    for (const Id id : unfinished_) {
        found.push_back(find(id));
    }
    return found;
}

bool Population::operator==(const Population& other) const {
    const auto same = [](const auto& a, const auto& b) { return a.first == b.first && identical(a.second, b.second); };
    const auto same_place = [](const auto& a, const auto& b) { return a->id == b->id; };
    const auto same_island = [&](const Island& a, const Island& b) {
        return a.born == b.born &&
               std::equal(a.members().begin(), a.members().end(), b.members().begin(), b.members().end(), same_place);
    };
    return kind_ == other.kind_ && homes_ == other.homes_ && memberships_ == other.memberships_ &&
           finished_ == other.finished_ && unfinished_ == other.unfinished_ &&
           std::equal(individuals_.begin(), individuals_.end(), other.individuals_.begin(), other.individuals_.end(),
                      same) &&
           std::equal(islands_.begin(), islands_.end(), other.islands_.begin(), other.islands_.end(), same_island);
}

const Population::Island& Population::at(int island) const {
    return islands_.at(static_cast<std::size_t>(island));
}

Population::Island& Population::at(int island) {
    return islands_.at(static_cast<std::size_t>(island));
}

void Population::Island::put_in_order() const {
    if (new_.empty()) {
        return;
    }
    // The sort works on copies of the fields that determine the order, because the individuals are scattered in memory.
    std::vector<std::pair<Standing, const Individual*>> ordered;
    ordered.reserve(new_.size());
    for (const Individual* individual : new_) {
        ordered.emplace_back(standing(*individual), individual);
    }
    std::vector<const Individual*>().swap(new_);
    std::sort(ordered.begin(), ordered.end(), [](const auto& a, const auto& b) { return better(a.first, b.first); });
    auto next = members_.end();
    for (const auto& [place, individual] : ordered) {
        next = std::next(members_.insert(next, individual));
    }
}

template <class Visitor>
void Population::for_each_place(const Individual& individual, const Visitor& visit) const {
    if (kind_ == ExchangeKind::migration) {
        const auto known = homes_.find(individual.id);
        visit(island_now(known != homes_.end() ? known->second.island : individual.island));
        return;
    }
    visit(island_now(individual.island));
    if (kind_ == ExchangeKind::pollination) {
        auto copy = memberships_.lower_bound({individual.id, std::numeric_limits<std::int32_t>::min()});
        for (; copy != memberships_.end() && copy->first == individual.id; ++copy) {
            visit(island_now(copy->second));
        }
    }
}

void Population::add_to_indexes(const Individual& individual) {
    epochs_ += individual.own_epochs();
    if (!individual.finished_training()) {
        unfinished_.insert(individual.id);
        return;
    }
    const std::size_t evaluations = individual.is_reused() ? 0 : 1;
    ++finished_;
    evaluations_ += evaluations;
    if (individual.is_repeat()) {
        return;
    }
    const int birthplace = island_now(individual.island);
    at(birthplace).finished += evaluations;
    at(birthplace).epochs += individual.own_epochs();
    at(birthplace).changes.push_back(&individual);
    if (individual.ranks_by_loss()) {
        ++at(birthplace).born;
        for_each_place(individual, [&](int island) {
            at(island).insert(&individual);
            if (island != birthplace) {
                at(island).changes.push_back(&individual);
            }
        });
    }
}

void Population::remove_from_indexes(const Individual& individual) {
    epochs_ -= individual.own_epochs();
    if (!individual.finished_training()) {
        unfinished_.erase(individual.id);
        return;
    }
    const std::size_t evaluations = individual.is_reused() ? 0 : 1;
    --finished_;
    evaluations_ -= evaluations;
    if (individual.is_repeat()) {
        return;
    }
    at(island_now(individual.island)).finished -= evaluations;
    at(island_now(individual.island)).epochs -= individual.own_epochs();
    if (individual.ranks_by_loss()) {
        const int birthplace = island_now(individual.island);
        --at(birthplace).born;
        for_each_place(individual, [&](int island) {
            at(island).erase(&individual);
            if (island != birthplace) {
                at(island).changes.push_back(&individual);
            }
        });
    }
}

}  // namespace finch::search
