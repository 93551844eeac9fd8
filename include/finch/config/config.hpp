#pragma once

#include "finch/base/log_options.hpp"
#include "finch/cluster/device_map.hpp"
#include "finch/config/command.hpp"
#include "finch/island/options.hpp"
#include "finch/nn/plan.hpp"
#include "finch/search/duplicates.hpp"
#include "finch/search/exchange.hpp"
#include "finch/search/final_choice.hpp"
#include "finch/search/function.hpp"
#include "finch/search/initial_design.hpp"
#include "finch/search/measure.hpp"
#include "finch/search/propagator.hpp"
#include "finch/search/pruning.hpp"
#include "finch/train/recipe.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace finch::config {

struct Tree;

using LossObjective = train::Objective;
/// A benchmark function in place of training; each evaluation pretends to last `seconds` times a log-normal number of
/// deviation `spread` (0: it lasts no time).
struct FunctionObjective {
    std::string function;
    int dimensions = 0;
    bool shift = false;
    bool rotate = false;
    std::int64_t instance = 1;
    double seconds = 0;
    double spread = 0.5;

    [[nodiscard]] search::FunctionInstance make_instance() const;
    [[nodiscard]] search::PretendedDuration duration() const { return {seconds, spread}; }
};
using Objective = std::variant<LossObjective, FunctionObjective, CommandObjective>;

struct Workers {
    int ranks = 1;
    int islands = 0;                ///< 0: auto
    std::vector<int> island_sizes;  ///< in workers; empty if `islands` is a number
    int slots = 1;
    int threads = 0;  ///< 0: auto
    cluster::DeviceKind device = cluster::DeviceKind::automatic;
    cluster::AllReduceKind communicator = cluster::AllReduceKind::automatic;
    bool share_device = false;
    double timeout_seconds = 60;
    std::optional<double> watts;
};

struct Checkpoint {
    double archive_seconds = 10;
    double training_seconds = 60;
};

/// Guesses at genomes for the first individuals: listed, or the best of an earlier run, which app looks up.
struct FirstGuesses {
    std::vector<search::Guess> guesses;
    std::optional<std::string> run;  ///< directory of the earlier run
    int best = 0;                    ///< of it
};

/// Options of one island that differ from the others'.
struct IslandOptions {
    search::PropagatorOptions propagator = search::AutomaticOptions{};
};

/// The whole configuration, checked. Values of data, model and training that name a gene are known only for a genome:
/// see recipe().
class Config {
public:
    std::string name = "finch";
    std::uint64_t seed = 1;
    search::Space space;
    Objective objective = LossObjective::validation_loss;
    search::Measure measure;          ///< what the objective is called
    std::vector<search::Cost> costs;  ///< minimised beside it
    search::PropagatorOptions propagator = search::AutomaticOptions{};
    search::Duplicates duplicates = search::Duplicates::breed;
    std::vector<std::string> reuse;  ///< directories of runs whose results are taken over
    int retries = 0;                 ///< of what failed
    /// A start ends after this many evaluations without a result, as long as the run has none. 0: auto; nothing: never.
    std::optional<std::int64_t> give_up_after = 0;
    std::vector<IslandOptions> islands;  ///< none: all are alike
    search::ExchangeOptions exchange;
    search::PruningOptions pruning;
    FirstGuesses first;
    search::Start start = search::Start::random;
    std::vector<search::Constraint> constraints;
    island::Budget budget;
    std::optional<search::FinalChoice> final_choice;  ///< `search.final`, where auto is decided
    Workers workers;
    Checkpoint checkpoint;
    LogOptions log;

    /// The effective configuration: every key with its value, as YAML that parses to an equal configuration.
    [[nodiscard]] const std::string& text() const noexcept { return text_; }
    /// The part that must not change between two starts of a run, as YAML: seed, data (without their path: their
    /// fingerprint is checked), model, training, space, objective.
    [[nodiscard]] const std::string& fixed_text() const noexcept { return fixed_text_; }

    /// How an individual is evaluated, as YAML: data (but their path), model, training and objective, with $NAME where
    /// a gene stands.
    [[nodiscard]] const std::string& evaluation_text() const noexcept { return evaluation_text_; }

    /// Recipe of the individual with `genome`: all genes replaced by their values. Only if trains(). Throws ConfigError
    /// with the key's path if the values do not fit together.
    [[nodiscard]] train::Recipe recipe(const search::Genome& genome, std::uint64_t individual) const;
    /// How `island` breeds.
    [[nodiscard]] const search::PropagatorOptions& propagator_of(int island) const;
    /// What the propagators of all islands need together: first points, and individuals to breed from.
    struct Needs {
        std::size_t first_points = 0;
        std::size_t population = 0;
    };
    [[nodiscard]] Needs needs() const;
    /// The initial design of a run whose propagator breeds from the best `population`.
    [[nodiscard]] search::InitialDesign initial_design(std::size_t population) const;
    /// Whether individuals are networks, rather than places of a function or runs of a program.
    [[nodiscard]] bool trains() const noexcept { return std::holds_alternative<LossObjective>(objective); }

private:
    class Recipes;
    friend Config parse(const std::string&, const std::string&, const std::vector<std::string>&);
    std::string text_;
    std::string fixed_text_;
    std::string evaluation_text_;
    std::shared_ptr<const Recipes> recipes_;
};

/// Parses and checks `yaml`. `source` names it in messages; `settings` are "path.to.key=value" in YAML, applied first.
/// Throws ConfigError: "configs/mnist.yaml:12: search.space.lr: …". Checks everything that needs no data: also that at
/// least one genome of the space gives recipes within bounds.
[[nodiscard]] Config parse(const std::string& yaml, const std::string& source,
                           const std::vector<std::string>& settings = {});
/// The same for a file. Throws ConfigError if it cannot be read, naming similar files beside it.
[[nodiscard]] Config load(const std::filesystem::path& path, const std::vector<std::string>& settings = {});

/// Refuses a space in which no genome gives a network that can exist for such data: tries the corners and 1 000 random
/// genomes. Throws ConfigError with the reason of the most promising one, naming the layer.
void check_models(const Config& config, nn::SampleShape sample, std::int64_t classes);

/// The measure of the first objective in the text of an effective configuration, whose keys are not checked.
[[nodiscard]] search::Measure measure_of(const std::string& text);

/// The difference between two fixed texts in words, a line for each key, empty if equal:
/// "training.batch_size: 16 → 32".
[[nodiscard]] std::string difference(const std::string& before, const std::string& now);

/// Every key with its default, its bounds and its meaning: what `finch config` prints; valid YAML.
[[nodiscard]] std::string reference_text();

}  // namespace finch::config
