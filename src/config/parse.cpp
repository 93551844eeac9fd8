#include "finch/base/enum_words.hpp"
#include "finch/base/error.hpp"
#include "finch/base/files.hpp"
#include "finch/base/format.hpp"
#include "finch/base/words.hpp"
#include "finch/config/config.hpp"
#include "finch/config/keys.hpp"
#include "finch/config/tree.hpp"

#include "bind.hpp"
#include "domains.hpp"
#include "search_section.hpp"

#include <algorithm>

namespace finch::config {
namespace {

/// With `search.final: auto`, a budget of at least this many evaluations reserves some for the final choice.
constexpr std::int64_t least_evaluations = 100;

/// True if a number of evaluations is the only limit in the budget. With other limits, the last evaluations could not
/// be reserved for the final choice.
bool counts_evaluations_alone(const island::Budget& budget) {
    return budget.evaluations && !budget.generations && !budget.hours && !budget.node_hours && !budget.epochs &&
           !budget.target_loss;
}

/// Sets `config.final_choice` from the complete section `search`. The budget and the objective must already be set in
/// `config`. Throws ConfigError.
void read_final_choice(const Tree& search, Config& config) {
    const Tree& written = search["final"];
    const bool fits = counts_evaluations_alone(config.budget);
    if (written.kind == Tree::Kind::scalar) {
        // A benchmark function usually returns the same value when it is evaluated again. For a noisy function, the
        // user sets `final` explicitly.
        const bool is_chosen_by_loss = config.trains() && config.costs.empty() && !config.inherit;
        if (written.text == "auto" && fits && is_chosen_by_loss && *config.budget.evaluations >= least_evaluations) {
            config.final_choice = search::FinalChoice{};
        }
        return;
    }
    const search::FinalChoice choice{whole_number(written["candidates"]).value(),
                                     whole_number(written["repeats"]).value()};
    if (config.inherit) {
        fail(
            written, "search.final",
            "evaluates genes from the first epoch on, but with search.inherit a result depends on its ancestors' genes "
            "too; accepted: none");
    }
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

/// Replaces a learning rate of `auto` by the optimizer's default rate, unless a gene chooses the optimizer. `training`
/// is the section with all its defaults.
void resolve_learning_rate(Tree& training) {
    Tree& rate = *training.find("learning_rate");
    const Tree& optimizer = training["optimizer"];
    const std::string name = optimizer.kind == Tree::Kind::map ? optimizer.keys.front() : optimizer.text;
    for (const auto& [rule, usual] : usual_rates()) {
        if (rate.text == "auto" && name == rule) {
            rate.text = fmt::format("{}", usual);
        }
    }
}

/// Returns the part of a complete configuration that determines how an individual is evaluated: data (without its
/// path), model, training and search.objective. Genes stay as `$NAME`.
Tree evaluation_part(const Tree& all) {
    const Tree fixed = fixed_part(configuration(), all);
    Tree part{.kind = Tree::Kind::map};
    for (const char* const name : {"data", "model", "training"}) {
        if (const Tree* const section = fixed.find(name)) {
            part.keys.emplace_back(name);
            part.items.push_back(*section);
        }
    }
    part.keys.emplace_back("objective");
    part.items.push_back(fixed["search"]["objective"]);
    return part;
}

namespace fs = std::filesystem;

constexpr std::uintmax_t largest_file = 1 << 20;  // bytes
constexpr std::size_t most_settings = 1000;

/// Removes the default of batch_size if batch_size_per_rank is given.
void resolve_batch_size(const Tree& given, Tree& all) {
    const Tree* const training = given.find("training");
    Tree& completed = *all.find("training");
    const bool per_rank = completed["batch_size_per_rank"].kind != Tree::Kind::null;
    if (per_rank && (training == nullptr || training->find("batch_size") == nullptr)) {
        Tree& batch_size = *completed.find("batch_size");
        batch_size = {.place = batch_size.place};
    }
}

/// Sets the kind of target, a class or numbers, from the loss. Throws ConfigError if the data, the objectives or the
/// limits do not fit the loss.
void resolve_target(const Tree& all, const Config& config, train::Recipe& base) {
    if (base.training.loss == train::Loss::cross_entropy) {
        return;
    }
    base.data.answer = data::TargetKind::target;
    if (base.data.kind != data::Kind::hdf5) {
        fail(all["training"]["loss"], "training.loss",
             fmt::format("'{}' is of numbers, but data of kind {} have classes; accepted: cross_entropy, or data of "
                         "kind hdf5",
                         word(base.training.loss), word(base.data.kind)));
    }
    if (base.objective == train::Objective::validation_error) {
        fail(all["search"]["objective"], "search.objective",
             fmt::format("validation_error counts wrong classes, but training.loss is {}; accepted: validation_loss",
                         word(base.training.loss)));
    }
    const auto check = [&](const search::Cost& cost, const Tree& written, const std::string& path, bool is_limit) {
        if (cost.quantity == search::Quantity::accuracy || cost.quantity == search::Quantity::f1) {
            fail(written, path,
                 fmt::format("'{}' needs classes, but training.loss is {}; accepted: {}parameters, seconds, joules",
                             written.text, word(base.training.loss), is_limit ? "loss, " : ""));
        }
    };
    const Tree& search = all["search"];
    for (std::size_t i = 0; i < config.costs.size(); ++i) {
        check(config.costs[i], search["objective"].items[i + 1], path_of("search.objective", i + 1), false);
    }
    for (std::size_t i = 0; i < config.limits.size(); ++i) {
        check(config.limits[i].cost, search["limits"].items[i], path_of("search.limits", i), true);
    }
}

/// True if the key sets a member of the recipe.
bool is_of_recipe(const Key& key) {
    return key.genes == Rule::yes;
}

/// Removes data, model and training unless the user gave them: a function or a program does not need them.
void leave_out_unused(const Tree& given, Tree& all) {
    Tree used{.kind = Tree::Kind::map, .place = all.place};
    for (const Key& key : configuration().keys) {
        if (!is_of_recipe(key) || given.find(key.name) != nullptr) {
            used.keys.push_back(key.name);
            used.items.push_back(all[key.name]);
        }
    }
    all = used;
}

/// Throws ConfigError if data, model or training is given: a program has its own data and trains by itself.
void refuse_recipe(const Tree& given) {
    for (const Key& key : configuration().keys) {
        if (const Tree* const section = given.find(key.name); section != nullptr && is_of_recipe(key)) {
            fail(*section, key.name,
                 "means nothing beside search.objective.command, whose program brings its own; accepted: genes in the "
                 "command, or no such section");
        }
    }
}

/// Throws ConfigError if the matrix at `path` does not have one row and one column for each island.
template <class Number>
void check_island_matrix(const std::vector<std::vector<Number>>& matrix, std::size_t islands, const Tree& written,
                         const std::string& path, const std::string& what) {
    if (islands == 0) {
        fail(written, path, "has a row for each island, and workers.islands is auto; accepted: a number of islands");
    }
    const auto fits = [&](const std::vector<Number>& row) { return row.size() == islands; };
    if (matrix.size() != islands || !std::all_of(matrix.begin(), matrix.end(), fits)) {
        fail(written, path,
             fmt::format("is no matrix of {0} × {0}, as many as workers.islands has; accepted: {0} rows of {0} {1}",
                         islands, what));
    }
}

void check_exchange(const Config& config, const Tree& written) {
    const search::ExchangeOptions& exchange = config.exchange;
    const bool is_asked_for = exchange.topology == search::Topology::matrix;
    const auto islands = static_cast<std::size_t>(config.workers.islands);
    if (!is_asked_for && !exchange.matrix.empty()) {
        fail(written["matrix"], "search.exchange.matrix",
             fmt::format("cannot be combined with topology {}; accepted: topology matrix, or none here",
                         word(exchange.topology)));
    }
    if (is_asked_for) {
        check_island_matrix(exchange.matrix, islands, written["matrix"], "search.exchange.matrix", "probabilities");
    }
    if (!exchange.migrants_between.empty()) {
        check_island_matrix(exchange.migrants_between, islands, written["migrants"], "search.exchange.migrants",
                            "whole numbers");
    }
}

search::Space space_of(const FunctionObjective& objective, const Tree& written) {
    if (!written.items.empty()) {
        fail(written, "search.space",
             fmt::format(
                 "cannot be combined with the function {}, which brings its own genes x0 to x{}; remove one of the two",
                 objective.function, objective.dimensions - 1));
    }
    return search::function_space(search::find_function(objective.function), objective.dimensions);
}

/// Throws ConfigError if a benchmark function is combined with pruning or an epoch budget: functions have no epochs.
void refuse_epochs(const Config& config, const Tree& search) {
    if (search::prunes(config.pruning)) {
        fail(search["pruning"], "search.pruning",
             "a function has no epochs after which its evaluation could be ended; accepted: none");
    }
    if (config.budget.epochs) {
        fail(search["budget"]["epochs"], "search.budget.epochs",
             "a function has no epochs; accepted: evaluations, generations, hours, node_hours, target_loss");
    }
}

}  // namespace

search::FunctionInstance FunctionObjective::make_instance() const {
    return {search::find_function(function), dimensions, {shift, rotate, instance}};
}

/// The recipe of an individual without the values of its genes, and the places of the genes.
class Config::Recipes {
public:
    Recipes(train::Recipe recipe, Genes where) : base(std::move(recipe)), genes(std::move(where)) {}
    train::Recipe base;
    Genes genes;
};

Config parse(const std::string& yaml, const std::string& source, const std::vector<std::string>& settings) {
    Tree given = parse_yaml(yaml, source);
    if (given.kind == Tree::Kind::null) {
        throw ConfigError(fmt::format("{}: is empty; `finch config` prints every key with its default", source));
    }
    if (settings.size() > most_settings) {
        throw ConfigError(fmt::format("{} settings by --set; accepted: up to {}", settings.size(), most_settings));
    }
    for (const std::string& setting : settings) {
        apply_setting(given, setting);
    }
    spell_out_fixed_genes(given);
    Tree all = complete({configuration()}, given, "");
    resolve_batch_size(given, all);
    resolve_learning_rate(*all.find("training"));
    const auto read_keys = [&all](bool of_recipe, const Target& place) {
        for (const Key& key : configuration().keys) {
            if (is_of_recipe(key) == of_recipe) {
                key.set(all[key.name], place);
            }
        }
    };
    Config config;
    read_keys(false, {.object = &config});
    check_exchange(config, all["search"]["exchange"]);
    const Tree& space = all["search"]["space"];
    const auto* const function = std::get_if<FunctionObjective>(&config.objective);
    config.space = function != nullptr ? space_of(*function, space) : read_space(space);
    check_objectives(all["search"], config);
    read_limits(all["search"]["limits"], config);
    resolve_inherit(all["search"], config);
    read_final_choice(all["search"], config);
    Genes genes(config.trains() ? config.space : search::Space{}, space);
    train::Recipe base;
    base.seed = config.seed;
    read_keys(true, {.object = &base, .genes = &genes});
    if (config.trains()) {
        config.space = genes.space_with_uses();
    }
    if (config.final_choice) {
        config.final_choice->space = config.space;
    }
    read_initial_design(all["search"], config);
    if (function != nullptr) {
        refuse_epochs(config, all["search"]);
    }
    if (const auto* const command = std::get_if<CommandObjective>(&config.objective)) {
        check_command(*command, config, all["search"]);
        refuse_recipe(given);
    }
    if (!config.trains()) {
        leave_out_unused(given, all);
    } else {
        base.objective = std::get<LossObjective>(config.objective);
        resolve_target(all, config, base);
        genes.check(base, config.constraints);
    }
    config.recipes_ = std::make_shared<const Config::Recipes>(std::move(base), std::move(genes));
    config.evaluation_text_ = emit(evaluation_part(all));
    Tree fixed = fixed_part(configuration(), all);
    if (Tree* const its_space = fixed.find("search")->find("space")) {
        leave_frozen_values(*its_space);
    }
    config.fixed_text_ = emit(fixed);
    config.text_ = emit(all);
    config.measure = measure_of(config.text_);
    return config;
}

train::Recipe Config::recipe(const search::Genome& genome, std::uint64_t individual) const {
    if (!trains() || genome.size() != space.size()) {
        throw Error(fmt::format("no recipe: {} values for {} genes of a search that {}", genome.size(), space.size(),
                                trains() ? "trains" : "trains no networks"));
    }
    train::Recipe recipe = recipes_->base;
    recipe.individual = individual;
    recipes_->genes.apply(genome, recipe);
    return recipe;
}

Config load(const fs::path& path, const std::vector<std::string>& settings) {
    std::error_code failure;
    if (!fs::is_regular_file(path, failure)) {
        check_storage_of(path);
        std::vector<std::string> beside;
        std::error_code ignored;
        const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
        for (const auto& entry : fs::directory_iterator(folder, ignored)) {
            if (entry.path().extension() == ".yaml" || entry.path().extension() == ".yml") {
                beside.push_back(entry.path().filename().string());
            }
        }
        std::sort(beside.begin(), beside.end());
        const std::string link = dangling_link(path);
        throw ConfigError(fmt::format("{}: {}{}", path.string(), link.empty() ? why_not("file", path, failure) : link,
                                      beside.empty() ? "" : fmt::format("; beside it: {}", join(beside))));
    }
    const auto text = read_text(path, largest_file);
    if (!text) {
        check_storage_of(path);
        throw ConfigError(fmt::format("{}: cannot be read, or is larger than 1 MiB", path.string()));
    }
    return parse(*text, path.string(), settings);
}

}  // namespace finch::config
