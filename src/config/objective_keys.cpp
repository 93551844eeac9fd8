#include "finch/config/config.hpp"
#include "finch/search/function.hpp"

#include "bind.hpp"
#include "domains.hpp"
#include "search_section.hpp"

#include <algorithm>
#include <filesystem>
#include <limits>

/// The keys of search.objective.
namespace finch::config {
namespace {

/// Sets the benchmark function's default number of dimensions if none is given. Throws ConfigError if the function does
/// not support the given number.
void complete_function(FunctionObjective& objective, const Tree& written) {
    const search::Function& function = search::find_function(objective.function);
    if (objective.dimensions == 0) {
        objective.dimensions = function.default_dimensions;
    }
    try {
        (void)search::function_space(function, objective.dimensions);
    } catch (const ConfigError& error) {
        fail(written["dimensions"], "search.objective.dimensions", error.what());
    }
}

Section function_section() {
    using F = FunctionObjective;
    std::vector<std::string> names;
    for (const search::Function& function : search::functions()) {
        names.push_back(function.name);
    }
    return {
        {key("function", &F::function, word_of(names), "benchmark function to minimise").with_default("sphere"),
         key("dimensions", &F::dimensions, or_null(whole(1, 500)),
             "number of genes; null: the function's default number")
             .with_default("null"),
         key("shift", &F::shift, "moves the optimum to a random place in the inner 80 % of the box"),
         key("rotate", &F::rotate, "rotates the axes about the optimum by a random orthogonal matrix"),
         key("instance", &F::instance, whole(1, std::numeric_limits<std::int64_t>::max()),
             "number that selects the random place and the random matrix"),
         key("seconds", &F::seconds, real(0, 86400), "median of the artificial duration of an evaluation, in seconds"),
         key("spread", &F::spread, real(0, 10), "standard deviation of the logarithm of the artificial duration")}};
}

/// The key `files`: files that are written into an evaluation's folder, with their templates.
Key files() {
    const auto set = [](const Tree& tree, const Target& place) {
        auto& files = place.as<CommandObjective>().files;
        for (std::size_t i = 0; i < tree.keys.size(); ++i) {
            const std::filesystem::path name(tree.keys[i]);
            const bool leaves = std::any_of(name.begin(), name.end(), [](const auto& part) { return part == ".."; });
            if (name.empty() || name.is_absolute() || leaves || !name.has_filename()) {
                fail(tree.items[i], path_of("search.objective.files", tree.keys[i]),
                     "is no file within an evaluation's folder; accepted: a relative path without '..'");
            }
            if (name.lexically_normal() == checkpoints_folder) {
                fail(tree.items[i], path_of("search.objective.files", tree.keys[i]),
                     "is the folder of FINCH_CHECKPOINT_DIR; accepted: another name");
            }
            files[tree.keys[i]] = tree.items[i].text;
        }
    };
    return {"files",
            "{}",
            {Named{{path()}}},
            "NAME: template: files that Finch writes into the folder of each evaluation; a gene's value replaces "
            "{GENE} in a template",
            set};
}

/// A list of objectives; objectives.cpp reads their names.
Domain list_of_objectives(Domain name) {
    return {List{.element = {std::move(name)}, .most = 1 + search::most_costs}};
}

/// The key `objectives`; objective() reads it.
Key objectives_of_program() {
    const Text name{
        "the name of an objective", [](const std::string& text) { return !text.empty(); }, {"loss"}, {"''"}};
    return {
        "objectives", "[loss]", list_of_objectives({name}),
        "quantities to minimise: loss, then each of -accuracy, seconds, joules, metric.NAME and -metric.NAME, where "
        "NAME is a metric that the program reports, and a minus maximises it",
        [](const Tree&, const Target&) {}};
}

Section command_section() {
    using C = CommandObjective;
    const Text command{"a program and its arguments",
                       [](const std::string& text) { return !text.empty() && text.size() <= 100000; },
                       {"true"},
                       {"''"}};
    const std::int64_t gibibyte = std::int64_t{1} << 30;
    return {
        {key("command", &C::command, {command},
             "program that Finch starts for each individual in a separate folder; Finch replaces {GENE}, {id}, {seed}, "
             "{run}, {folder}, {here}, {hosts} and {hostfile}; {{ and }} are literal braces")
             .with_default("'python train.py --lr {lr}'"),
         key("shell", &C::shell, "/bin/sh runs the command; replaced values are quoted"),
         key("launch", &C::launch,
             "ranks: every rank of a worker starts the program, with torchrun's variables; leader: only the leader "
             "starts it, as one process for the whole worker"),
         key("slurm", &C::slurm,
             "Slurm's variables in the program's environment: worker: as in a job step of its worker alone; none: only "
             "SLURM_CONF")
             .with_fixed(Rule::no),
         key("persistent", &C::persistent,
             "starts the program only once; it reads a line of JSON for each individual, and prints 'finch done' when "
             "it has evaluated it"),
         key("interactive", &C::interactive,
             "the program's standard input stays open, for answers to its question 'finch stop?'"),
         objectives_of_program(), files(),
         key("timeout_seconds", &C::timeout_seconds, or_null(above(0, 1e9)),
             "seconds after which Finch ends an evaluation; null: never")
             .with_fixed(Rule::no),
         key("grace_seconds", &C::grace_seconds, real(0, 86400),
             "seconds between TERM and KILL, and for the program to save its state at a stop")
             .with_fixed(Rule::no),
         key("epochs", &C::epochs, whole(0, 1000000000),
             "number of epochs that a complete evaluation reports, used by pruning and for the progress; 0: not known"),
         key("keep", &C::keep, "evaluations that keep their folder after they end").with_fixed(Rule::no),
         key("output_bytes", &C::output_bytes, whole(0, gibibyte),
             "number of bytes kept of standard output, and of standard error")
             .with_fixed(Rule::no)}};
}

template <class Chosen>
void read_as(const Section& section, const Tree& tree, Objective& objective) {
    read_section(section, tree, Target{.object = &objective.emplace<Chosen>(), .path = "search.objective"});
}

}  // namespace

Key objective() {
    const Section function = function_section();
    const Section command = command_section();
    const auto set = [function, command](const Tree& tree, const Target& place) {
        auto& config = place.as<Config>();
        if (tree.kind == Tree::Kind::list) {
            read_objectives(tree, config);
        } else if (tree.kind == Tree::Kind::scalar) {
            config.objective = enumerator<LossObjective>(tree.text).value();
        } else if (tree.find("command") != nullptr) {
            read_as<CommandObjective>(command, tree, config.objective);
            read_program_objectives(tree["objectives"], config);
        } else {
            read_as<FunctionObjective>(function, tree, config.objective);
            complete_function(std::get<FunctionObjective>(config.objective), tree);
        }
    };
    std::vector<std::string> words = all_words<LossObjective>();
    words.insert(words.end(), {"-accuracy", "-f1", "parameters", "seconds", "joules"});
    return {
        "objective", "validation_loss",
        either({word_of(all_words<LossObjective>()), {function}, {command}, list_of_objectives(word_of(words))}),
        "quantity to minimise: a loss of networks; a benchmark function, which has its own genes x0, x1, …; or the "
        "loss that a program reports; functions and programs need no model and data; a list: the loss, then each of "
        "-accuracy, -f1 (macro F1), parameters, seconds, joules to minimise too (seconds and joules vary from run to "
        "run)",
        set};
}

}  // namespace finch::config
