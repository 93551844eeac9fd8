#include "finch/search/final_choice.hpp"

#include "finch/base/loss_order.hpp"

#include "propagators/global_model.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <tuple>

namespace finch::search {
namespace {

constexpr std::int64_t most_points = 250;  ///< results in the model, and individuals that it ranks
constexpr std::size_t least_results = 20;  ///< with fewer results there is no model

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

/// Predicts the losses of `points` from `results` by a Gaussian process of their ranks. Repeats are results at the same
/// point: they teach the model the noise.
Eigen::VectorXd predictions(const Space& space, std::vector<const Individual*> results,
                            const std::vector<UnitGenome>& points) {
    // The model uses the best and the newest of many results. The repeats must be among them. The newest are those with
    // the highest numbers: the clocks of two equal runs differ.
    std::sort(results.begin(), results.end(), [](const Individual* a, const Individual* b) {
        const auto key = [](const Individual* one) {
            return std::tuple(one->is_repeat(), one->id.restart(), one->id.sequence(), one->id);
        };
        return key(a) < key(b);
    });
    std::vector<Seen> seen;
    for (const Individual* result : results) {
        const double loss = comparable_loss(*result);
        seen.push_back(
            {to_unit(space, result->genome), loss, Eigen::VectorXd::Constant(1, loss), top_rung, result->id});
    }
    std::vector<const Seen*> by_loss;
    for (const Seen& one : seen) {
        by_loss.push_back(&one);
    }
    std::stable_sort(by_loss.begin(), by_loss.end(),
                     [](const Seen* a, const Seen* b) { return is_better_loss(a->loss, b->loss); });
    GlobalModel model(space, most_points, 1);
    model.fit(by_loss);
    return model.predict(by_loss, columns(points, space.size()));
}

}  // namespace

std::vector<Candidate> final_candidates(const Population& population, const FinalChoice& choice) {
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
    const bool has_model = choice.space.size() > 0 && all.size() >= least_results;
    const std::int64_t enough = has_model ? std::max<std::int64_t>(choice.candidates, most_points) : choice.candidates;
    for (const Individual* individual : all) {
        if (std::ssize(candidates) < enough && genomes.insert(individual->genome).second) {
            candidates.emplace_back().individual = individual;
        }
    }
    const auto predict = [&](const std::vector<const Individual*>& results) {
        std::vector<UnitGenome> points;
        for (const Candidate& one : candidates) {
            points.push_back(to_unit(choice.space, one.individual->genome));
        }
        const Eigen::VectorXd predicted = predictions(choice.space, results, points);
        for (std::size_t i = 0; i < candidates.size(); ++i) {
            candidates[i].predicted = predicted[static_cast<Eigen::Index>(i)];
        }
    };
    if (has_model) {
        predict(all);
        const auto key = [](const Candidate& one) { return std::tuple(one.individual->violation, one.predicted); };
        std::stable_sort(candidates.begin(), candidates.end(),
                         [&](const Candidate& a, const Candidate& b) { return key(a) < key(b); });
    }
    candidates.resize(std::min(candidates.size(), static_cast<std::size_t>(choice.candidates)));
    bool is_repeated = false;
    for (Candidate& candidate : candidates) {
        candidate.repeats = repeats[candidate.individual->id];
        std::sort(candidate.repeats.begin(), candidate.repeats.end(), first);
        measure(candidate);
        candidate.predicted = has_model ? candidate.predicted : candidate.mean;
        is_repeated = is_repeated || candidate.finished > 0;
    }
    if (has_model && is_repeated) {
        for (const auto& [id, of_one] : repeats) {
            std::copy_if(of_one.begin(), of_one.end(), std::back_inserter(all),
                         [](const Individual* repeat) { return repeat->ranks_by_loss(); });
        }
        predict(all);
    }
    return candidates;
}

std::vector<Repeat> repeats_to_come(const Population& population, const FinalChoice& choice, std::int64_t evaluations) {
    std::vector<Repeat> come;
    std::vector<Candidate> candidates = final_candidates(population, choice);
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
        return std::tuple(one.failed, one.violation, orderable_loss(one.predicted));
    };
    const Candidate& winner = *std::min_element(
        candidates.begin(), candidates.end(), [&](const Candidate& a, const Candidate& b) { return key(a) < key(b); });
    return std::isnan(winner.mean) ? nullptr : &winner;
}

const Individual* chosen(const Population& population, const std::optional<FinalChoice>& choice) {
    if (choice) {
        const std::vector<Candidate> candidates = final_candidates(population, *choice);
        const Candidate* winner = winner_of(candidates, *choice);
        if (winner != nullptr) {
            return winner->repeats.front();
        }
    }
    const Individual* best = population.best_trained();
    return best != nullptr && best->is_complete() ? best : nullptr;
}

}  // namespace finch::search
