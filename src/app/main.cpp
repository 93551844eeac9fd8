// The program finch: parses the command line, runs one verb, and converts exceptions to a message and an exit code.
#include "finch/app/completion.hpp"
#include "finch/app/doctor.hpp"
#include "finch/app/launch.hpp"
#include "finch/app/misuse.hpp"
#include "finch/app/plan.hpp"
#include "finch/app/verbs.hpp"
#include "finch/base/format.hpp"
#include "finch/base/parsed.hpp"
#include "finch/base/version.hpp"
#include "finch/cluster/signals.hpp"
#include "finch/config/tree.hpp"
#include "finch/process/launcher.hpp"
#include "finch/run/evolve.hpp"

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <utility>

namespace finch::app {
namespace {

/// The parsed command line. The callback of the chosen verb sets `run`.
struct CommandLine {
    int argc = 0;
    char** argv = nullptr;
    std::function<int()> run;
    run::RunOptions options;
    PlanOptions plan;
    ShowOptions show;
    ExportOptions exported;
    TestOptions test;
    std::vector<std::string> genes;
    std::string id;
    bool progress = false;
    bool directory = false;
    std::vector<std::filesystem::path> runs;  ///< of `finch status`
    std::filesystem::path folder;
    std::int64_t samples = 12000;
    std::int64_t size = 28;
    std::uint64_t seed = 1;
};

/// A check of an option's value: a whole number from `low`.
CLI::Validator whole_from(std::int64_t low) {
    return CLI::Validator(
        [low](const std::string& text) {
            const auto value = parsed<std::int64_t>(text);
            return value && *value >= low
                       ? ""
                       : fmt::format("'{}' is not accepted; accepted: a whole number from {}", text, low);
        },
        "");
}

void add_settings(CLI::App& verb, std::vector<std::string>& settings) {
    verb.add_option("--set", settings,
                    "override one key of the configuration, e.g. search.budget.evaluations=12; may be repeated")
        ->type_name("KEY=VALUE")
        ->default_str("")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

/// Adds the options that evolve, train and status share.
void add_run_options(CLI::App& verb, run::RunOptions& options) {
    verb.add_option("--run", options.run,
                    "the run directory (default: runs/NAME, with the key name of the configuration)")
        ->type_name("DIR");
    add_settings(verb, options.settings);
    verb.add_flag("--fresh", options.fresh, "rename an existing run directory, and begin a new run");
}

void add_config(CLI::App& verb, run::RunOptions& options) {
    verb.add_option("config", options.config, "the configuration (YAML)")->required()->type_name("CONFIG");
}

/// Adds --reuse, a short form of the key search.reuse.
void add_reuse(CLI::App& verb, std::vector<std::string>& settings) {
    verb.add_option_function<std::vector<std::string>>(
            "--reuse",
            [&settings](const std::vector<std::string>& runs) {
                config::Tree list{.kind = config::Tree::Kind::list};
                for (const std::string& run : runs) {
                    list.items.push_back({.kind = config::Tree::Kind::scalar, .text = run, .quoted = true});
                }
                std::string text = config::emit(list);
                text.erase(text.find_last_not_of('\n') + 1);
                settings.push_back("search.reuse=" + text);
            },
            "reuse the results of the run RUN for identical evaluations; may be repeated (short for the key "
            "search.reuse)")
        ->type_name("RUN")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

/// Sets the callback of a verb that may start programs: it forks its launcher before MPI_Init.
void set_work(CLI::App* verb, CommandLine& line, std::function<int(comm::Session&, process::Launcher)> work) {
    verb->callback([&line, work = std::move(work)] {
        line.run = [&line, work] {
            process::Launcher launcher = process::Launcher::fork();
            return on_all_ranks(
                line.argc, line.argv, [&](comm::Session& session) { return work(session, std::move(launcher)); },
                BadLaunch::refuse);
        };
    });
}

void add_training_verbs(CLI::App& app, CommandLine& line) {
    CLI::App* evolving = app.add_subcommand("evolve", "run or resume a search (start it with srun or mpirun)");
    add_config(*evolving, line.options);
    add_run_options(*evolving, line.options);
    add_reuse(*evolving, line.options.settings);
    set_work(evolving, line, [&line](comm::Session& session, process::Launcher launcher) {
        return run::evolve(session, line.options, std::move(launcher));
    });

    CLI::App* training = app.add_subcommand("train", "train one individual, in its own run directory");
    add_config(*training, line.options);
    add_run_options(*training, line.options);
    training
        ->add_option("--gene", line.genes,
                     "a value for a gene; needed for every active gene of the search space, may be repeated")
        ->type_name("NAME=VALUE")
        ->default_str("")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    training->add_flag("--profile", line.options.profile,
                       "measure where each rank spends its time: prints a line per epoch and a table at the end, and "
                       "writes profile.json into the run directory");
    set_work(training, line, [&line](comm::Session& session, process::Launcher launcher) {
        line.options.genes = line.genes;
        return run::train_one(session, line.options, std::move(launcher));
    });
}

/// Adds the verbs that need all ranks and measure a run again.
void add_measuring_verbs(CLI::App& app, CommandLine& line) {
    const auto with_ranks = [&line](CLI::App* verb, std::function<int(comm::Session&)> work,
                                    BadLaunch bad_launch = BadLaunch::refuse) {
        verb->callback([&line, work, bad_launch] {
            line.run = [&line, work, bad_launch] { return on_all_ranks(line.argc, line.argv, work, bad_launch); };
        });
    };
    CLI::App* again = app.add_subcommand(
        "replay", "train one individual of a run again, and compare every epoch with the run bit for bit");
    again->add_option("run", line.options.config, "the run directory")->required()->type_name("RUN");
    again->add_option("id", line.id, "id of the individual, e.g. 0.3.17")->required()->type_name("ID");
    set_work(again, line, [&line](comm::Session& session, process::Launcher launcher) {
        cluster::unwatch();
        return replay(session, std::move(launcher), line.options.config, line.id);
    });

    CLI::App* testing = app.add_subcommand("test",
                                           "measure the best network of a run on its test set or on another one: loss, "
                                           "accuracy, F1, calibration, recall and confusions of each class");
    testing->add_option("run", line.test.run, "the run directory")->required()->type_name("RUN");
    testing
        ->add_option("--data", line.test.data,
                     "another folder or file with test data, instead of data.path; needs no training set")
        ->type_name("PATH");
    add_settings(*testing, line.test.settings);
    testing
        ->add_option("--csv", line.test.csv,
                     "file to write, with a row per image: index, truth, guess, a score per class")
        ->type_name("FILE");
    with_ranks(testing, [&line](comm::Session& session) {
        cluster::release_signals();
        return test_best(session, line.test);
    });

    CLI::App* examining = app.add_subcommand("doctor",
                                             "report the hardware and libraries of this machine, and what evolve would "
                                             "refuse (start it like a run, with srun or mpirun)");
    with_ranks(
        examining,
        [](comm::Session& session) {
            cluster::release_signals();
            return doctor(session);
        },
        BadLaunch::tell);
}

void add_planning(CLI::App& app, CommandLine& line) {
    PlanOptions& options = line.plan;
    CLI::App* planning = app.add_subcommand("plan",
                                            "check a configuration, and print which ranks and workers would run on "
                                            "which nodes; trains nothing without --measure or --try");
    planning->add_option("config", options.config, "the configuration (YAML)")->required()->type_name("CONFIG");
    add_settings(*planning, options.settings);
    add_reuse(*planning, options.settings);
    planning
        ->add_option("--nodes", options.nodes,
                     "number of nodes to plan for (default: the nodes of the current Slurm allocation)")
        ->check(whole_from(1));
    planning->add_option("--ranks-per-node", options.ranks_per_node, "number of ranks on each of these nodes")
        ->check(whole_from(1));
    planning->add_option("--gpus-per-node", options.gpus_per_node, "number of GPUs of each of these nodes")
        ->check(whole_from(0));
    CLI::Option* const measure =
        planning->add_flag("--measure", options.measure,
                           "train some genomes for some steps on this machine; print how long individuals and the "
                           "search will take, which layout of workers is fastest, and the command to submit (start it "
                           "with srun or mpirun, on as many ranks as the largest worker may have)");
    planning
        ->add_flag("--try", options.tries,
                   "evaluate the first individual once, on all ranks together, and print its reports or the reason for "
                   "its failure; keeps no files; exit code 1 if there is no result")
        ->excludes(measure);
    planning->add_option("--measure-seconds", options.measure_seconds, "approximate duration of --measure in seconds")
        ->check(CLI::Range(1.0, 86400.0))
        ->needs(measure);
    planning
        ->add_option("--time", options.time_limit,
                     "time limit of each start, in the format of sbatch --time: 30, 4:00:00, 1-12")
        ->type_name("LIMIT")
        ->needs(measure);
    planning->callback([&line] {
        line.run = [&line] {
            if (line.plan.tries) {
                process::Launcher launcher = process::Launcher::fork();  // before MPI_Init
                return on_all_ranks(
                    line.argc, line.argv,
                    [&](comm::Session& session) { return try_plan(session, line.plan, std::move(launcher)); },
                    BadLaunch::refuse);
            }
            return line.plan.measure ? on_all_ranks(
                                           line.argc, line.argv,
                                           [&line](comm::Session& session) {
                                               cluster::release_signals();
                                               return measure_plan(session, line.plan);
                                           },
                                           BadLaunch::refuse)
                                     : on_first_rank([&line] { return plan(line.plan); });
        };
    });
}

int ask_status(CommandLine& line) {
    if (line.runs.size() == 1) {
        line.options.config = line.runs.front();
        return line.directory ? print_run_directory(line.options) : status(line.options, line.progress);
    }
    if (line.options.run || line.options.fresh || line.progress || line.directory || !line.options.settings.empty()) {
        throw ConfigError(
            "finch status: --run, --set, --reuse, --fresh, --progress and --directory need exactly one run or "
            "configuration");
    }
    return status_of_several(line.runs);
}

void add_status(CLI::App& app, CommandLine& line) {
    CLI::App* asking = app.add_subcommand(
        "status",
        "print the state of a run from its run directory, and return it as exit code: complete (0), stopped early "
        "(75), interrupted (76), running (77), complete or given up without a result (78); for several runs print a "
        "table, and return the code of the worst run, in the order unreadable (2), 78, 76, 75, 77, 0");
    asking
        ->add_option("runs", line.runs,
                     "one or more run directories; or one configuration, which stands for its run directory")
        ->required()
        ->type_name("RUN")
        ->default_str("");
    add_run_options(*asking, line.options);
    add_reuse(*asking, line.options.settings);
    asking->add_flag(
        "--progress", line.progress,
        "before the state, print a number that grows with the progress of the run, and the name of its last start");
    asking->add_flag("--directory", line.directory,
                     "print only the path of the run directory, even if it does not exist");
    asking->callback([&line] { line.run = [&line] { return alone([&line] { return ask_status(line); }); }; });
}

void add_reading_verbs(CLI::App& app, CommandLine& line) {
    const auto by_itself = [&line](CLI::App* verb, std::function<int()> work) {
        verb->callback([&line, work] { line.run = [work] { return alone(work); }; });
    };
    CLI::App* showing = app.add_subcommand(
        "show", "print the results of a run: the best individuals, counts and utilisation; or one individual");
    showing->add_option("run", line.show.run, "the run directory")->required()->type_name("RUN");
    showing
        ->add_option("id", line.show.id,
                     "id of one individual to show, e.g. 0.3.17, with its learning curve and the output of its program")
        ->type_name("ID");
    showing->add_option("--top", line.show.top.count, "number of best individuals to list")->check(whole_from(1));
    showing->add_flag("--islands", line.show.top.of_each_island,
                      "list the best individuals of each island, even if copies make these lists equal");
    auto* const csv = showing->add_flag("--csv", line.show.csv, "print every individual as comma-separated values");
    auto* const json = showing->add_flag("--json", line.show.json, "print the same results as one JSON object");
    auto* const follow =
        showing->add_flag("--follow", line.show.follow,
                          "update the output until the run ends: a live table on a terminal, otherwise lines");
    csv->excludes(json, follow);
    json->excludes(follow);
    by_itself(showing, [&line] { return show(line.show); });

    CLI::App* exporting = app.add_subcommand("export", "export every individual of a run for other programs");
    exporting->add_option("run", line.exported.run, "the run directory")->required()->type_name("RUN");
    exporting
        ->add_option(
            "--format", line.exported.format,
            "csv: a table; json: the individuals with learning curves and metrics; use finch-export for the best "
            "network in PyTorch or as ONNX, and for Optuna, Perfetto and networkx")
        ->required()
        ->type_name(fmt::format("{{{}}}", fmt::join(all_words<ExportFormat>(), ",")));
    exporting->add_option("-o,--output", line.exported.output, "file to write (default: standard output)")
        ->type_name("PATH");
    by_itself(exporting, [&line] { return export_run(line.exported); });

    CLI::App* keys =
        app.add_subcommand("config", "print every key of a configuration with its default and its meaning");
    by_itself(keys, print_config);

    CLI::App* generating = app.add_subcommand("data", "make data sets")
                               ->require_subcommand(1)
                               ->add_subcommand("generate", "write a data set of distorted digits as IDX files");
    generating->add_option("folder", line.folder, "folder for the files")->required()->type_name("DIR");
    generating->add_option("--samples", line.samples, "number of training images")->check(whole_from(1));
    generating->add_option("--size", line.size, "height and width of an image in pixels")->check(whole_from(1));
    generating->add_option("--seed", line.seed, "seed of the random numbers");
    by_itself(generating, [&line] { return generate_data(line.folder, line.samples, line.size, line.seed); });
}

/// Adds --completion-table, an option that the build uses to create the bash completion. The help does not show this
/// option.
void add_completion_table(CLI::App& app) {
    app.add_flag_callback("--completion-table",
                          [&app] {
                              fmt::print("{}", completion_table(app));
                              throw CLI::Success();
                          })
        ->group("");
}

/// Parses the command line into `line`. Returns an exit code if there is no verb to run.
std::optional<int> parse_command_line(CLI::App& app, CommandLine& line) {
    const auto [argc, argv] = std::pair(line.argc, line.argv);
    app.set_version_flag("--version", std::string("Finch ") + program_version());
    app.require_subcommand(1);
    app.option_defaults()->always_capture_default();
    add_training_verbs(app, line);
    add_measuring_verbs(app, line);
    add_planning(app, line);
    add_reading_verbs(app, line);
    add_status(app, line);
    add_completion_table(app);
    app.footer(
        "Exit codes: 0 done; 1 a search without a result, or an error; 2 wrong input; 75 stopped early, start it again "
        "to resume; others: an error.\n"
        "Environment: NO_COLOR switches colours off, FORCE_COLOR switches them on without a terminal; LC_ALL, LC_CTYPE "
        "and LANG decide between Unicode and ASCII; FINCH_DEADLINE is the end of the time to use, in Unix seconds.");
    if (const std::string problem = verb_problem(app, argc > 1 ? argv[1] : "-"); !problem.empty()) {
        return refuse(problem);
    }
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() == 0) {
            return app.exit(error);  // --help, --version
        }
        return refuse(misuse_text(app, error));
    }
    return std::nullopt;
}

/// Runs the verb that the command line names. Returns the exit code.
int run_verb(int argc, char** argv) {
    CLI::App app("Finch evolves convolutional networks on a Slurm cluster.", "finch");
    CommandLine line;
    line.argc = argc;
    line.argv = argv;
    try {
        if (const std::optional<int> code = parse_command_line(app, line)) {
            return *code;
        }
    } catch (const std::exception& error) {  // another CLI11 may refuse what the tested versions accept
        return refuse(fmt::format("a fault of Finch with CLI11 {}: {}", CLI11_VERSION, error.what()), exit_fault);
    }
    return line.run();
}

}  // namespace
}  // namespace finch::app

int main(int argc, char** argv) {
    finch::cluster::catch_signals();  // before any thread exists, and before a stop request can arrive
    return finch::app::run_verb(argc, argv);
}
