#include "finch/search/final_choice.hpp"

#include "finch/base/loss_order.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

namespace finch::search {
namespace {

void measure(Candidate& candidate) {
    double sum = 0;
    std::int64_t count = 0;
    for (const Individual* repeat : candidate.repeats) {
        candidate.finished += repeat->finished_training() ? 1 : 0;
        candidate.failed += repeat->finished_training() && !repeat->ranks_by_loss() ? 1 : 0;
        if (repeat->ranks_by_loss()) {
            sum += repeat->loss;
            candidate.violation = std::max(candidate.violation, repeat->violation);
            ++count;
        }
    }
    if (count > 0) {
        candidate.mean = sum / static_cast<double>(count);
    }
    if (count > 1) {
        double squares = 0;
        for (const Individual* repeat : candidate.repeats) {
            squares += repeat->ranks_by_loss() ? std::pow(repeat->loss - candidate.mean, 2) : 0;
        }
        candidate.deviation = std::sqrt(squares / static_cast<double>(count - 1));
    }
}

}  // namespace

std::vector<Candidate> final_candidates(const Population& population, std::int64_t count) {
    std::vector<const Individual*> all;
    std::map<Id, std::vector<const Individual*>> repeats;
    for (const auto& [id, individual] : population.individuals()) {
        if (individual.is_repeat()) {
            repeats[individual.parents[0]].push_back(&individual);
        } else if (individual.is_complete() && (!individual.is_reused() || individual.is_of_another_run())) {
            all.push_back(&individual);
        }
    }
    const auto first = [](const Individual* a, const Individual* b) { return better(*a, *b); };
    std::sort(all.begin(), all.end(), first);
    std::vector<Candidate> candidates;
    std::set<Genome> genomes;
    for (const Individual* individual : all) {
        if (std::ssize(candidates) < count && genomes.insert(individual->genome).second) {
            Candidate& candidate = candidates.emplace_back();
            candidate.individual = individual;
            candidate.repeats = repeats[individual->id];
            std::sort(candidate.repeats.begin(), candidate.repeats.end(), first);
            measure(candidate);
        }
    }
    return candidates;
}

std::vector<Repeat> repeats_to_come(const Population& population, const FinalChoice& choice, std::int64_t evaluations) {
    std::vector<Repeat> come;
    std::vector<Candidate> candidates = final_candidates(population, choice.candidates);
    while (!candidates.empty() && std::ssize(come) < evaluations) {
        Candidate& next = *std::min_element(
            candidates.begin(), candidates.end(),
            [](const Candidate& a, const Candidate& b) { return a.repeats.size() < b.repeats.size(); });
        next.repeats.push_back(nullptr);
        come.push_back({next.individual->id, next.individual->genome});
    }
    return come;
}

const Candidate* winner_of(std::span<const Candidate> candidates, const FinalChoice& choice) {
    const bool all_repeated = std::all_of(candidates.begin(), candidates.end(),
                                          [&](const Candidate& one) { return one.finished >= choice.repeats; });
    if (candidates.empty() || !all_repeated) {
        return nullptr;
    }
    // If all repeats of a candidate failed, its mean loss is NaN. A NaN mean counts as infinite, so that means can be
    // compared.
    const auto key = [](const Candidate& one) {
        return std::tuple(one.failed, one.violation, orderable_loss(one.mean));
    };
    const Candidate& winner = *std::min_element(
        candidates.begin(), candidates.end(), [&](const Candidate& a, const Candidate& b) { return key(a) < key(b); });
    return std::isnan(winner.mean) ? nullptr : &winner;
}

const Individual* chosen(const Population& population, const std::optional<FinalChoice>& choice) {
    if (choice) {
        const std::vector<Candidate> candidates = final_candidates(population, choice->candidates);
        const Candidate* winner = winner_of(candidates, *choice);
        if (winner != nullptr) {
            return winner->repeats.front();
        }
    }
    const Individual* best = population.best_trained();
    return best != nullptr && best->is_complete() ? best : nullptr;
}

}  // namespace finch::search
