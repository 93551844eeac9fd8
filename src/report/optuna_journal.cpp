#include "finch/base/format.hpp"
#include "finch/base/parsed.hpp"
#include "finch/report/export.hpp"
#include "finch/search/objectives.hpp"

#include "json_writer.hpp"
#include "population_of.hpp"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <iomanip>
#include <limits>
#include <optional>
#include <set>
#include <sstream>
#include <vector>

namespace finch::report {
namespace {

/// Optuna's own numbers (optuna/storages/journal, optuna/trial, optuna/study of 5.0).
enum Record {
    create_study = 0,
    set_study_attribute = 3,
    create_trial = 4,
    set_param = 5,
    set_state = 6,
    set_intermediate = 7,
    set_attribute = 8
};
enum State { complete = 1, pruned = 2, failed = 3 };
constexpr int minimize = 1;

/// ISO 8601 with microseconds, UTC.
std::string time_text(double seconds) {
    const double whole = std::floor(seconds);
    const auto time = static_cast<std::time_t>(whole);
    std::tm parts{};
    ::gmtime_r(&time, &parts);
    std::ostringstream text;
    text << std::put_time(&parts, "%FT%T") << '.' << std::setw(6) << std::setfill('0')
         << static_cast<std::int64_t>((seconds - whole) * 1e6) << "+00:00";
    return text.str();
}

double began(const search::Individual& one) {
    return one.started > 0 ? one.started : one.born;
}

/// The number that Python prints as `option`: 3.9, 1.0 or 12, but not 3.10 or 1e3.
std::optional<double> number_of(const std::string& option) {
    const auto value = parsed<double>(option);
    if (!value || !std::isfinite(*value)) {
        return std::nullopt;
    }
    const auto whole = parsed<std::int64_t>(option);
    const std::string printed = whole ? fmt::format("{}", *whole) : fmt::format("{}", *value);
    return option == printed || option == printed + ".0" ? value : std::nullopt;
}

/// What Python compares of an option that is no text: True == 1 and False == 0.
std::optional<double> compared_value(const std::string& option) {
    return option == "true" ? 1 : option == "false" ? 0 : number_of(option);
}

/// Options with the types of Python: numbers and booleans, or texts if two options would be the same number.
void write_options(Json& json, const std::vector<std::string>& options) {
    std::set<double> values;
    const bool are_texts = std::any_of(options.begin(), options.end(), [&](const std::string& option) {
        const auto value = compared_value(option);
        return value && !values.insert(*value).second;
    });
    for (const std::string& option : options) {
        if (are_texts || !compared_value(option)) {
            json.value(std::string_view(option));
        } else if (option == "true" || option == "false") {
            json.value(option == "true");
        } else if (const auto whole = parsed<std::int64_t>(option)) {
            json.value(*whole);
        } else {
            json.value(*number_of(option));
        }
    }
}

/// A distribution as Optuna writes it: JSON within JSON.
std::string distribution(const search::Gene& gene) {
    Json json;
    json.begin();
    if (const auto* const choice = std::get_if<search::ChoiceGene>(&gene.kind)) {
        json.member("name", "CategoricalDistribution");
        json.begin("attributes");
        json.begin_list("choices");
        write_options(json, choice->options);
        json.end_list();
    } else {
        std::visit(
            [&](const auto& kind) {
                using Kind = std::decay_t<decltype(kind)>;
                if constexpr (!std::same_as<Kind, search::ChoiceGene>) {
                    constexpr bool is_real = std::same_as<Kind, search::RealGene>;
                    const bool is_log = kind.scale == search::Scale::log;
                    json.member("name", is_real ? "FloatDistribution" : "IntDistribution");
                    json.begin("attributes");
                    json.member("log", is_log);
                    if (is_real && (is_log || kind.step == 0)) {
                        json.null("step");
                    } else {
                        json.member("step", is_log ? decltype(kind.step){1} : kind.step);  // Optuna: log, so no step
                    }
                    json.member("low", kind.low);
                    // The last value that the steps reach, which Optuna asks for.
                    const double last = search::snap(gene, std::numeric_limits<double>::infinity());
                    json.member("high", static_cast<decltype(kind.high)>(last));
                }
            },
            gene.kind);
    }
    json.end();
    json.end();
    return json.take();
}

class Journal {
public:
    Journal(const search::Space& space, const Competition& competition)
        : space_(space), measure_(competition.measure), costs_(competition.costs) {
        for (const search::Gene& gene : space.genes) {
            distributions_.push_back(distribution(gene));
        }
    }

    void study(const std::string& name) {
        begin(create_study);
        json_.member("study_name", std::string_view(name));
        json_.begin_list("directions");
        for (std::size_t i = 0; i <= costs_.size(); ++i) {
            json_.value(minimize);
        }
        json_.end_list();
        end();
        begin(set_study_attribute);
        json_.member("study_id", 0);
        json_.begin("system_attr");
        json_.begin_list("study:metric_names");
        json_.value(std::string_view(measure_.title));
        for (const search::Cost cost : costs_) {
            json_.value(word(cost));
        }
        json_.end_list();
        json_.end();
        end();
    }

    void trial(const search::Individual& one) {
        begin(create_trial);
        json_.member("study_id", 0);
        json_.member("datetime_start", std::string_view(time_text(began(one))));
        end();
        genes(one);
        intermediate_values(one);
        attributes(one);
        if (one.finished_training()) {
            state(one);
        }
        ++trial_;
    }

    [[nodiscard]] std::string take() { return std::move(text_); }

private:
    void begin(Record record) {
        json_.begin();
        json_.member("op_code", static_cast<std::int32_t>(record));
        json_.member("worker_id", "finch");
    }
    void begin_of_trial(Record record) {
        begin(record);
        json_.member("trial_id", trial_);
    }
    void end() {
        json_.end();
        text_ += json_.take() + "\n";
    }

    void genes(const search::Individual& one) {
        const std::vector<bool> active = search::active_genes(space_, one.genome);
        for (std::size_t i = 0; i < space_.size(); ++i) {
            if (active[i]) {
                begin_of_trial(set_param);
                json_.member("param_name", std::string_view(space_.genes[i].name));
                json_.member("param_value_internal", one.genome[i]);
                json_.member("distribution", std::string_view(distributions_[i]));
                end();
            }
        }
    }

    /// The value's own measure, epoch by epoch. With several objectives Optuna knows none.
    void intermediate_values(const search::Individual& one) {
        for (const Epoch& epoch : one.curve) {
            const double value = measure_.of_epoch(epoch);
            if (!costs_.empty() || std::isnan(value)) {
                continue;
            }
            begin_of_trial(set_intermediate);
            json_.member("step", epoch.epoch);
            json_.member("intermediate_value", value);
            end();
        }
    }

    /// Optuna takes one with each record.
    template <class T>
    void attribute(std::string_view name, const T& value) {
        begin_of_trial(set_attribute);
        json_.begin("user_attr");
        json_.member(name, value);
        json_.end();
        end();
    }

    void attributes(const search::Individual& one) {
        attribute("id", std::string_view(to_text(one.id)));
        attribute("outcome", word(one.outcome));
        attribute("operator", word(one.bred_by));
        attribute("island", one.island);
        attribute("worker", one.attempt.worker);
        attribute("epochs", one.epochs);
        attribute("training_seconds", one.training_seconds);
        if (one.energy.is_known()) {
            attribute("joules", one.energy.joules);
        }
        attribute("energy_source", word(one.energy.source));
        attribute("parameters", one.parameters);
        if (!std::isnan(one.accuracy)) {
            attribute("accuracy", one.accuracy);
        }
        if (!one.problem.empty()) {
            attribute("problem", std::string_view(one.problem));
        }
    }

    void state(const search::Individual& one) {
        const bool has_value = one.ranks_by_loss();
        begin_of_trial(set_state);
        json_.member("state", static_cast<std::int32_t>(one.outcome == search::Outcome::pruned ? pruned
                                                        : has_value                            ? complete
                                                                                               : failed));
        if (has_value) {
            json_.begin_list("values");
            json_.value(one.loss);
            for (const search::Cost cost : costs_) {
                json_.value(search::cost_of(cost, one));
            }
            json_.end_list();
        } else {
            json_.null("values");
        }
        json_.member("datetime_complete", std::string_view(time_text(one.finished)));
        end();
    }

    const search::Space& space_;
    const search::Measure& measure_;
    const std::vector<search::Cost>& costs_;
    std::vector<std::string> distributions_;
    Json json_;
    std::string text_;
    std::int32_t trial_ = 0;
};

}  // namespace

std::string optuna_journal(const store::Recovered& recovered, const search::Space& space,
                           const Competition& competition, const std::string& name) {
    Journal journal(space, competition);
    journal.study(name);
    const search::Population population = population_of(recovered);
    std::vector<const search::Individual*> trials;  // numbered in the order in which they began
    for (const auto& [id, one] : population.individuals()) {
        trials.push_back(&one);
    }
    std::stable_sort(trials.begin(), trials.end(), [](const auto* a, const auto* b) { return began(*a) < began(*b); });
    for (const search::Individual* const one : trials) {
        journal.trial(*one);
    }
    return journal.take();
}

}  // namespace finch::report
