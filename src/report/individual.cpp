#include "finch/report/individual.hpp"

#include "finch/base/enum_words.hpp"
#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/base/words.hpp"
#include "finch/report/sparkline.hpp"
#include "finch/search/outcomes.hpp"

#include "grid.hpp"
#include "joules.hpp"
#include "metrics.hpp"
#include "population_of.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace finch::report {
namespace {

std::string rounded(double value) {
    return std::isnan(value) ? "-" : fmt::format("{:.6g}", value);
}

bool is_norm(const std::string& metric) {
    return metric.starts_with(Metric::weight_norm) || metric.starts_with(Metric::grad_norm);
}

std::string curve_table(const search::Individual& individual, const search::Measure& measure) {
    std::vector<std::string> head{"epoch",
                                  measure.name == "loss" ? "loss" : "validation loss",
                                  "accuracy",
                                  "training loss",
                                  "training accuracy",
                                  "learning rate",
                                  "seconds"};
    const bool has_f1 =
        std::ranges::any_of(individual.curve, [](const Epoch& epoch) { return !std::isnan(epoch.validation_f1); });
    if (has_f1) {
        head.emplace_back("macro F1");
    }
    std::vector<std::string> metrics = metric_names(std::array{&individual});
    std::erase_if(metrics, is_norm);
    const MetricsByEpoch values = by_epoch(individual.metrics);
    head.insert(head.end(), metrics.begin(), metrics.end());
    Grid grid(head);
    for (const Epoch& epoch : individual.curve) {
        std::vector<std::string> line{
            std::to_string(epoch.epoch),  rounded(epoch.validation_loss),   rounded(epoch.validation_accuracy),
            rounded(epoch.training_loss), rounded(epoch.training_accuracy), rounded(epoch.learning_rate),
            rounded(epoch.seconds)};
        if (has_f1) {
            line.push_back(rounded(epoch.validation_f1));
        }
        for (const double value : metrics_of(values, epoch.epoch, metrics)) {
            line.push_back(rounded(value));
        }
        grid.add(std::move(line));
    }
    if (grid.empty()) {
        return "";
    }
    std::vector<double> measured;
    for (const Epoch& epoch : individual.curve) {
        measured.push_back(measure.of_epoch(epoch));
    }
    return fmt::format("learning curve  {}  {}\n{}", sparkline(measured, true), measure.title, grid.text());
}

/// Returns a table of the norms of weights and gradients (training.watch): a line for each layer, with the values of
/// the first and the last epoch. Empty if there are no norms.
std::string norm_table(const search::Individual& individual) {
    Grid grid({"layer", "weights", "", "", "gradient", "", ""});
    std::map<std::string, std::vector<double>> courses;
    std::vector<std::string> layers;  // in the order of the model
    const std::string weights = Metric::weight_norm;
    for (const Metric& one : individual.metrics) {
        if (is_norm(one.name)) {
            if (courses[one.name].empty() && one.name.starts_with(weights)) {
                layers.push_back(one.name.substr(weights.size()));
            }
            courses[one.name].push_back(one.value);
        }
    }
    for (const std::string& layer : layers) {
        std::vector<std::string> line{layer};
        for (const std::string& name : {weights + layer, Metric::grad_norm + layer}) {
            const std::vector<double>& course = courses[name];
            const auto value = [&](bool first) {
                return course.empty() ? "-" : rounded(first ? course.front() : course.back());
            };
            line.insert(line.end(), {value(true), value(false), sparkline(course, true, 40)});
        }
        grid.add(std::move(line));
    }
    return grid.empty() ? "" : "norms of the layers after the first and the last epoch\n" + grid.text();
}

/// Returns which epochs of an heir's learning curve its parent trained: "4 to 9"; "-" if `child` is no heir of
/// `parent`.
std::string epochs_text(const search::Individual& parent, const search::Individual& child) {
    const bool continues = child.is_heir() && child.inherited_from == parent.id;
    return continues ? fmt::format("{} to {}", parent.inherited_epochs + 1, child.inherited_epochs) : "-";
}

/// Returns a table of the ancestors, nearest first, up to `generations` generations back. An ancestor that is reachable
/// by several paths appears once, at its shortest distance. Empty if the individual has no parents.
std::string lineage_table(const search::Space& space, const search::Population& population,
                          const search::Individual& individual, const std::string& fitness, int generations = 5) {
    const bool has_epochs = individual.is_heir();
    std::vector<std::string> head{"back", "id", fitness, "by"};
    if (has_epochs) {
        head.emplace_back("epochs");
    }
    head.emplace_back("genes");
    Grid grid(std::move(head));
    std::set<search::Id> seen{individual.id};
    std::vector<const search::Individual*> children{&individual};
    for (int back = 1; back <= generations && !children.empty(); ++back) {
        std::vector<const search::Individual*> found;
        for (const search::Individual* const child : children) {
            for (const search::Id id : child->parents) {
                const search::Individual* const parent = population.find(id);
                if (parent != nullptr && seen.insert(id).second) {
                    found.push_back(parent);
                    std::vector<std::string> line{std::to_string(back), to_text(id), rounded(parent->loss),
                                                  std::string(word(parent->bred_by))};
                    if (has_epochs) {
                        line.push_back(epochs_text(*parent, *child));
                    }
                    line.push_back(search::genome_text(space, parent->genome));
                    grid.add(std::move(line));
                }
            }
        }
        children = std::move(found);
    }
    return grid.empty() ? "" : fmt::format("lineage, up to {} generations back\n{}", generations, grid.text());
}

/// Returns a heading, and the last lines of a file, indented.
std::pair<std::string, std::string> tail(const std::filesystem::path& path, std::size_t lines) {
    std::ifstream file(path, std::ios::binary);
    const std::string output(std::istreambuf_iterator<char>(file), {});
    std::istringstream part{std::string(search::up_to_reason(output, lines))};
    std::deque<std::string> last;
    for (std::string line; std::getline(part, line); last.push_back(line)) {
        if (last.size() == lines) {
            last.pop_front();
        }
    }
    const auto count = static_cast<std::size_t>(std::count(output.begin(), output.end(), '\n'));
    std::string text;
    for (const std::string& line : last) {
        text += "  " + line + "\n";
    }
    return {path.string() + (count > lines ? fmt::format(", {} of {} lines", lines, count) : ""), text};
}

/// Returns the last lines of each rank's files. Omits a text if it equals the beginning of an earlier rank's text,
/// ignoring numbers.
std::string outputs(const store::RunDirectory& directory, const search::Individual& individual, std::size_t lines) {
    std::string text;
    std::vector<std::pair<std::string, std::string>> shown;  // texts without numbers, and their file names
    for (const char* what : {"output", "errors"}) {
        for (std::int32_t rank = 0; rank < individual.ranks; ++rank) {
            const std::filesystem::path path = directory.evaluation_file(
                individual.id, individual.ranks > 1 ? fmt::format("{}-{}", what, rank) : std::string(what));
            std::error_code none;
            if (std::filesystem::is_regular_file(path, none)) {
                const auto [heading, last] = tail(path, lines);
                const std::string key = search::without_numbers(last);
                const auto same = std::find_if(shown.begin(), shown.end(),
                                               [&key](const auto& earlier) { return earlier.first.starts_with(key); });
                text += heading + (same == shown.end() ? "\n" + last : ": as " + same->second + "\n");
                shown.emplace_back(key, path.filename());
            }
        }
    }
    return text;
}

}  // namespace

std::string directory_of(const store::ArchiveFacts& facts, std::uint64_t run) {
    for (const store::ReusedRun& known : facts.reused_runs) {
        if (known.run == run) {
            return known.directory;
        }
    }
    return fmt::format("run {:016x}", run);
}

std::string reused_from_text(const search::Individual& individual, const store::ArchiveFacts& facts) {
    const std::string id = to_text(individual.reused_from);
    return individual.is_of_another_run() ? id + " of " + directory_of(facts, individual.reused_run) : id;
}

std::string individual_text(const store::Recovered& recovered, const store::RunDirectory& directory, search::Id id,
                            const search::Measure& measure, std::size_t lines) {
    const search::Population population = population_of(recovered);
    const search::Individual* const one = population.find(id);
    if (one == nullptr) {
        throw ConfigError(fmt::format("{}: there is no individual {}", directory.root().string(), to_text(id)));
    }
    std::string text = fmt::format("individual {}: {}", to_text(id), word(one->outcome));
    text += std::isnan(one->loss) ? "" : fmt::format(", {} {:.17g}", measure.name, one->loss);
    text += std::isnan(one->accuracy) ? "" : fmt::format(", accuracy {:.2f} %", 100 * one->accuracy);
    text += fmt::format(", {}\n  genes: {}\n  born on island {} as number {} of its worker, by {}",
                        counted(one->epochs, "epoch"), search::genome_text(recovered.space, one->genome), one->island,
                        one->generation, word(one->bred_by));
    for (const search::Id parent : one->parents) {
        text += parent == search::Id{} ? "" : ", from " + to_text(parent);
    }
    if (one->is_heir()) {
        text += fmt::format(", continues it after epoch {}", one->inherited_epochs);
    } else if (one->inherited_from != search::Id{}) {
        text += fmt::format(", begins with the weights of {}", to_text(one->inherited_from));
    }
    text += one->retry_of == search::Id{} ? "" : ", again after " + to_text(one->retry_of) + " failed";
    text += fmt::format("\n  on {}, {} of {}, {:.1f} s", one->node, counted(one->ranks, "rank"),
                        counted(one->threads, "thread"), one->training_seconds);
    text += std::isnan(one->joules) || one->is_reused() ? "\n" : fmt::format(", {}\n", joules_text(one->joules));
    text += one->is_reused()
                ? fmt::format("not trained: this is the result of {}\n", reused_from_text(*one, recovered.facts))
                : "";
    const std::string said = outputs(directory, *one, lines);
    const bool is_said =
        said.find("  " + one->problem.substr(one->problem.rfind('\n') + 1) + "\n") != std::string::npos;
    text += one->problem.empty()
                ? ""
                : fmt::format("problem: {}\n", is_said ? search::one_line(one->problem) : one->problem);
    return text + curve_table(*one, measure) + norm_table(*one) +
           lineage_table(recovered.space, population, *one, measure.name) + said;
}

}  // namespace finch::report
