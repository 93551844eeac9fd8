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
#include "finch/search/inheritance.hpp"
#include "finch/search/initial_design.hpp"
#include "finch/search/measure.hpp"
#include "finch/search/propagator.hpp"
#include "finch/search/pruning.hpp"
#include "finch/train/recipe.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace finch::config {

struct Tree;

using LossObjective = train::Objective;
/// A benchmark function as the objective; no network is trained. An evaluation simulates a duration: `seconds` times a
/// log-normal factor (`spread` is the standard deviation of its logarithm). If `seconds` is 0, an evaluation has no
/// delay.
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
    double sync_seconds = 1;
};

/// Proposed genomes for the first individuals. The configuration lists the genomes, or the app module takes them from
/// the best individuals of an earlier run.
struct FirstGuesses {
    std::vector<search::Guess> guesses;
    std::optional<std::string> run;  ///< directory of the earlier run
    int best = 0;                    ///< number of its best individuals
};

/// The options that can differ between islands.
struct IslandOptions {
    search::PropagatorOptions propagator = search::AutomaticOptions{};
};

/// The whole configuration, checked. Values of data, model and training that are genes are known only for a given
/// genome: see recipe().
class Config {
public:
    std::string name = "finch";
    std::uint64_t seed = 1;
    search::Space space;
    Objective objective = LossObjective::validation_loss;
    search::Measure measure;          ///< name and meaning of the first objective
    std::vector<search::Cost> costs;  ///< minimised in addition to the objective
    std::vector<search::Limit> limits;
    search::PropagatorOptions propagator = search::AutomaticOptions{};
    search::Duplicates duplicates = search::Duplicates::breed;
    std::vector<std::string> reuse;  ///< directories of other runs; their results are reused
    int retries = 0;                 ///< of a failed evaluation
    /// A start of the run ends after this many evaluations without a result, unless the run already has a result. 0:
    /// auto; nothing: never.
    std::optional<std::int64_t> give_up_after = 0;
    std::vector<IslandOptions> islands;  ///< empty: all islands are alike
    search::ExchangeOptions exchange;
    search::PruningOptions pruning;
    std::optional<search::InheritOptions> inherit;
    FirstGuesses first;
    search::Start start = search::Start::random;
    std::vector<search::Constraint> constraints;
    island::Budget budget;
    std::optional<search::FinalChoice> final_choice;  ///< `search.final`, with auto resolved
    Workers workers;
    Checkpoint checkpoint;
    LogOptions log;

    /// Returns the effective configuration as YAML: every key with its value. parse() of this YAML gives an equal
    /// configuration.
    [[nodiscard]] const std::string& text() const noexcept { return text_; }
    /// Returns the settings that must not change between two starts of a run, as YAML: seed, data, model, training, and
    /// in search: space, constraints, limits, first, start, objective, pruning. The paths of data may change: the
    /// data's fingerprint is checked instead.
    [[nodiscard]] const std::string& fixed_text() const noexcept { return fixed_text_; }

    /// Returns the settings that determine how an individual is evaluated, as YAML: data (without paths), model,
    /// training and objective. A gene appears as $NAME in place of its value.
    [[nodiscard]] const std::string& evaluation_text() const noexcept { return evaluation_text_; }

    /// Returns the recipe of the individual with `genome`: every gene is replaced by its value. Requires trains().
    /// Throws ConfigError with the key's path if the values do not fit together.
    [[nodiscard]] train::Recipe recipe(const search::Genome& genome, std::uint64_t individual) const;
    /// Returns the sections model and training of the individual with `genome` as a JSON object: every gene is replaced
    /// by its value, and every key has a value. Requires trains().
    [[nodiscard]] std::string recipe_json(const search::Genome& genome) const;
    /// Returns the propagator options of `island`.
    [[nodiscard]] const search::PropagatorOptions& propagator_of(int island) const;
    /// Replaces populations that are multiples of an island's number of workers by numbers.
    void resolve_populations(std::span<const int> workers_of_island);
    /// Returns the populations that resolve_populations() has set, as text: "population: island 0: 8, island 1: 6";
    /// empty if there are none.
    [[nodiscard]] std::string populations_text() const;
    /// Returns the largest number of first points that the propagator of any island needs.
    [[nodiscard]] std::size_t first_points() const;
    /// Returns the initial design of a run whose propagators need `first_points` individuals before they breed.
    [[nodiscard]] search::InitialDesign initial_design(std::size_t first_points) const;
    /// True if individuals are networks, false if they are points of a function or runs of a program.
    [[nodiscard]] bool trains() const noexcept { return std::holds_alternative<LossObjective>(objective); }

private:
    class Recipes;
    friend Config parse(const std::string&, const std::string&, const std::vector<std::string>&);
    std::string text_;
    std::string fixed_text_;
    std::string evaluation_text_;
    std::shared_ptr<const Recipes> recipes_;
};

/// Parses and checks `yaml`. `source` is the file's name for messages. `settings` are applied first: each is
/// "path.to.key=value" with the value in YAML. Checks everything that does not need the data, including the recipes of
/// genomes with extreme gene values. Throws ConfigError with a text such as "configs/mnist.yaml:12: search.space.lr:
/// …".
[[nodiscard]] Config parse(const std::string& yaml, const std::string& source,
                           const std::vector<std::string>& settings = {});
/// Parses and checks a file as parse() does. Throws ConfigError if the file cannot be read; the message names similar
/// files in the same folder.
[[nodiscard]] Config load(const std::filesystem::path& path, const std::vector<std::string>& settings = {});

/// True if `genome` gives a valid network for samples of this shape whose number of parameters keeps the limits.
[[nodiscard]] bool can_exist(const Config& config, const search::Genome& genome, nn::SampleShape sample,
                             std::int64_t classes);

/// Throws ConfigError if no tried genome gives a valid network for samples of this shape. Tries the corners of the
/// search space and 1 000 random genomes. The message reports the genome that failed at the deepest layer, and names
/// the layer. If all valid networks have too many parameters, the message names the smallest number.
void check_models(const Config& config, nn::SampleShape sample, std::int64_t classes);

/// Returns the measure of the first objective. `text` is an effective configuration; its keys are not checked.
[[nodiscard]] search::Measure measure_of(const std::string& text);

/// Describes the difference between two configurations in YAML, a line for each key: "training.batch_size: 16 → 32".
/// Returns an empty text if the configurations are equal.
[[nodiscard]] std::string difference(const std::string& before, const std::string& now);

/// Returns the reference that `finch config` prints, as valid YAML: every key with its default, bounds and meaning.
[[nodiscard]] std::string reference_text();

}  // namespace finch::config
