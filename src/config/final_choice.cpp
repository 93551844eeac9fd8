#include "final_choice.hpp"

#include "finch/base/format.hpp"

namespace finch::config {
namespace {

/// From so many evaluations on `auto` spends some of them.
constexpr std::int64_t least_evaluations = 100;

/// Whether nothing else can end the search: the last evaluations could not be held back.
bool counts_evaluations_alone(const island::Budget& budget) {
    return budget.evaluations && !budget.generations && !budget.hours && !budget.node_hours && !budget.epochs &&
           !budget.target_loss;
}

}  // namespace

void read_final_choice(const Tree& search, Config& config) {
    const Tree& written = search["final"];
    const bool fits = counts_evaluations_alone(config.budget);
    if (written.kind == Tree::Kind::scalar) {
        // A function gives the same value again; who wants a noisy one repeated says so.
        const bool is_chosen_by_loss = config.trains() && config.costs.empty();
        if (written.text == "auto" && fits && is_chosen_by_loss && *config.budget.evaluations >= least_evaluations) {
            config.final_choice = search::FinalChoice{};
        }
        return;
    }
    const search::FinalChoice choice{whole_number(written["candidates"]).value(),
                                     whole_number(written["repeats"]).value()};
    if (!fits) {
        fail(written, "search.final",
             "takes the last evaluations of a budget, and so needs one of evaluations alone; accepted: none, or a "
             "search.budget that has evaluations and nothing else");
    }
    if (choice.evaluations() >= *config.budget.evaluations) {
        fail(written, "search.final",
             fmt::format("{} candidates, {} times each, leave nothing of {} evaluations to search with; accepted: "
                         "candidates and repeats whose product is below search.budget.evaluations",
                         choice.candidates, choice.repeats, *config.budget.evaluations));
    }
    config.final_choice = choice;
}

}  // namespace finch::config
