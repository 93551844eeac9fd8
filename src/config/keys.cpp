#include "finch/config/keys.hpp"

#include "finch/config/config.hpp"

#include "bind.hpp"
#include "domains.hpp"

#include <limits>

/// Every key of a configuration: its name, the member that it sets (with the key's default), its bounds and its
/// meaning. Other files define the keys of objectives (objective_keys.cpp), propagators (propagator_keys.cpp), budgets
/// (budget_keys.cpp), data (data_keys.cpp), and model and training (recipe_keys.cpp).
namespace finch::config {
namespace {

/// Returns a key that sets no member; other code reads its value.
Key unbound(std::string name, std::string fallback, Domain domain, std::string meaning) {
    return {std::move(name), std::move(fallback), std::move(domain), std::move(meaning)};
}

bool is_run_name(const std::string& text) {
    static const std::string letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.";
    return !text.empty() && text.size() <= 100 && text.front() != '.' && text.front() != '-' &&
           text.find_first_not_of(letters) == std::string::npos;
}

/// A word or a number, kept as it is written.
Domain plain_value() {
    return {Text{"a word or a number",
                 [](const std::string& text) { return !text.empty() && text.front() != '$'; },
                 {"1", "word"},
                 {"$word"}}};
}

Domain gene_section() {
    const double huge = 1e300;
    const std::int64_t exact = std::int64_t{1} << 53;  // a genome holds whole numbers up to it exactly
    return {Section{
        .keys = {unbound("real", "[0, 1]", {List{{real(-huge, huge)}, 2, 2}}, "[low, high]: range of a real number"),
                 unbound("int", "[0, 1]", {List{{whole(-exact, exact)}, 2, 2}}, "[low, high]: range of a whole number"),
                 unbound("choice", "[a, b]", {List{{plain_value()}, 1, 10000}},
                         "list of words or numbers; the gene is one of them"),
                 unbound("value", "1", plain_value(),
                         "fixes the gene at one value, which is not searched (short form: `NAME: 1`); with real, int "
                         "or choice, programs get the value as if the search had chosen it; without them exactly as "
                         "written, and in JSON as a string unless it is written like 0.5 or 12"),
                 unbound("scale", "linear", word_of(all_words<search::Scale>()),
                         "real, int: log draws values uniformly in their logarithm"),
                 unbound("step", "1", above(0, huge),
                         "real, int: the values are low + k * step; a real gene with a step needs scale: linear"),
                 unbound("ordered", "false", {Flag{}},
                         "choice: neighbouring options are alike; half of the mutations move to a neighbour"),
                 unbound("when", "{}", {Named{{one_or_list(plain_value())}}},
                         "GENE: [values]: this gene is active only if each GENE listed here is active and has one of "
                         "its values; otherwise the keys that use this gene keep their defaults")},
        .sparse = true}};
}

/// The key `matrix`: the exchange probabilities between islands, with one row per island.
Key exchange_matrix() {
    const Domain row = {List{.element = {real(0, 1)}}};
    const auto set = [](const Tree& tree, const Target& place) {
        auto& matrix = place.as<search::ExchangeOptions>().matrix;
        for (const Tree& written : tree.items) {
            auto& probabilities = matrix.emplace_back();
            for (const Tree& value : written.items) {
                probabilities.push_back(real_number(value).value());
            }
        }
    };
    return {"matrix", "none", either({word_of({"none"}), {List{.element = {row}}}}),
            "for topology: matrix: probabilities of an exchange, one row per sending island; with [[0, 0.5], [1, 0]] "
            "island 0 sends to island 1 with probability 0.5, and island 1 always sends to island 0; the diagonal is "
            "ignored",
            set};
}

/// The key `migrants` of exchange: a number, or a matrix of numbers with one row per island.
Key migrants() {
    const Domain row = {List{.element = {whole(0, million)}}};
    const auto set = [](const Tree& tree, const Target& place) {
        auto& exchange = place.as<search::ExchangeOptions>();
        exchange.migrants = whole_number(tree).value_or(exchange.migrants);
        for (const Tree& written : tree.items) {
            auto& numbers = exchange.migrants_between.emplace_back();
            for (const Tree& value : written.items) {
                numbers.push_back(whole_number(value).value());
            }
        }
    };
    return {"migrants", "1", either({whole(1, million), {List{.element = {row}}}}),
            "number of individuals per target island and exchange; or one row of numbers per sending island, as in "
            "Propulate's migration topology: with [[0, 2], [1, 0]] island 0 sends two individuals to island 1, and "
            "island 1 sends one to island 0; the diagonal is ignored",
            set};
}

/// The key `islands` of search: a list of the options that differ between islands.
Key islands_apart() {
    const Section entry{{key("propagator", &IslandOptions::propagator, propagator(), "propagator of the island")}};
    const auto set = [entry](const Tree& tree, const Target& config) {
        auto& islands = config.as<Config>().islands;
        islands.assign(tree.items.size(), IslandOptions{});
        for (std::size_t i = 0; i < islands.size(); ++i) {
            read_section(entry, tree.items[i], Target{.object = &islands[i], .path = path_of("search.islands", i)});
        }
    };
    return {"islands", "none", either({word_of({"none"}), {List{.element = {{entry}}, .most = 10000}}}),
            "[{propagator: …}, …]: a propagator for each island; island i uses entry i, and with more islands than "
            "entries the list repeats; none: all islands use search.propagator",
            set};
}

Domain exchange_section() {
    using Options = search::ExchangeOptions;
    return section(
        {key("kind", &Options::kind,
             "migration: individuals move to other islands; pollination: copies of individuals do"),
         key("topology", &Options::topology,
             "islands to which an island sends: all: all others; ring: the next; torus: four neighbours; star: island "
             "0 to all others, all others to island 0; random: any one other island; nodes: all on the same node, and "
             "the first island of a node also to the first of the next node; matrix: as in the key `matrix`"),
         exchange_matrix(),
         key("probability", &Options::probability, real(0, 1),
             "probability of an exchange, per island and round (one evaluation by each of its workers)"),
         migrants(),
         key("emigrants", &Options::emigrants,
             "individuals to send: the best, random ones, or the better of two random ones (tournament)")});
}

/// The values of `search.first`: a list of guessed genomes, or an earlier run that supplies genomes.
Domain first_guesses() {
    const Domain guesses = {List{.element = {{Named{{plain_value()}}}}, .most = 10000}};
    return either(
        {word_of({"none"}), guesses,
         section({unbound("run", "runs/earlier", path(), "directory of an earlier run"),
                  unbound("best", "5", whole(1, 10000), "number of its best individuals to take"),
                  unbound("guesses", "none", either({word_of({"none"}), guesses}),
                          "genes of these individuals; Finch fills them in when the run begins, and keeps them")})});
}

/// The values of `search.final`; parse.cpp reads them.
Domain final_choice() {
    using search::FinalChoice;
    return either(
        {word_of({"auto", "none"}),
         section({key("candidates", &FinalChoice::candidates, whole(1, 1000),
                      "number of best individuals to evaluate again, all with different genes"),
                  key("repeats", &FinalChoice::repeats, whole(1, 1000), "number of evaluations of each candidate")})});
}

/// The values of `search.inherit`.
Domain inherit_section() {
    using search::InheritOptions;
    const Text name{"the name of a gene", [](const std::string& text) { return !text.empty(); }, {"lr"}, {"''"}};
    return either(
        {word_of({"none"}),
         section({key("population", &InheritOptions::population, whole(1, million),
                      "number of individuals of an island that must have ended before it breeds heirs"),
                  key("parents", &InheritOptions::parents, whole(1, 1000),
                      "largest number of trainings at a rung that heirs continue: the best quarter of those that "
                      "reached it, at "
                      "most this many; each has a snapshot in the run directory"),
                  key("perturb", &InheritOptions::perturb, real(0, 1),
                      "standard deviation of the change of a number, as a share of its range, and the probability that "
                      "a choice is drawn anew"),
                  key("move", &InheritOptions::move, either({word_of({"none"}), {List{.element = {{name}}}}}),
                      "for programs: genes that a program can change when it continues a checkpoint, such as [lr, "
                      "dropout]; heirs keep all other genes of their parents; for networks Finch knows these genes")
                      .with_default("none")})});
}

/// The key `give_up_after`. The word `auto` becomes 0.
Key give_up_after() {
    const auto set = [](const Tree& tree, const Target& config) {
        auto& after = config.as<Config>().give_up_after;
        after = whole_number(tree).value_or(0);
        if (tree.text == "none") {
            after.reset();
        }
    };
    return {"give_up_after", "auto", either({word_of({"auto", "none"}), whole(1, 4000 * million)}),
            "a start ends with exit code 75 after this many evaluations without a result (failed, out of memory, "
            "diverged), if most workers have ended one and the run has no result; auto: 8, or twice the number of "
            "workers if that is more; none: never",
            set};
}

/// A list of run directories.
Key reused_runs() {
    const auto set = [](const Tree& tree, const Target& config) {
        for (const Tree& run : tree.items) {
            config.as<Config>().reuse.push_back(run.text);
        }
    };
    return {"reuse", "none", either({word_of({"none"}), {List{.element = {path()}}}}),
            "directories of other runs; a bred genome immediately gets the result of an individual of these runs if "
            "genome, data, model and training are the same; reused results use no evaluations of the budget",
            set};
}

Domain search_section() {
    const Text constraint{"a comparison, such as a * b <= 512",
                          [](const std::string& text) { return !text.empty() && text.size() <= 1000; },
                          {"1 <= 2"},
                          {"''"}};
    const Text limit{"a limit, such as parameters <= 50000",
                     [](const std::string& text) { return !text.empty() && text.size() <= 1000; },
                     {"seconds <= 60"},
                     {"''"}};
    return section({
        unbound("space", "{}", {Named{{gene_section()}}},
                "genes of the search: NAME: {real: [low, high]}, {int: …}, {choice: […]} or {value: …}")
            .with_fixed(Rule::yes),
        unbound("constraints", "none", either({word_of({"none"}), {List{{{constraint}}}}}),
                "conditions that all genomes must satisfy, made of numbers, genes, + - * / ( ), < <= > >= == !=, and, "
                "or; a condition that names an inactive gene always holds")
            .with_fixed(Rule::yes),
        unbound(
            "limits", "none", either({word_of({"none"}), {List{{{limit}}}}}),
            "conditions on results, NAME <= NUMBER or NAME >= NUMBER, where NAME is loss, accuracy, f1, parameters, "
            "seconds, joules or metric.NAME of a program; results that break one rank behind all others; networks "
            "with too many parameters are not trained")
            .with_fixed(Rule::yes),
        unbound("first", "none", first_guesses(),
                "genes of the first individuals, in this order: [{GENE: value, …}, …]; omitted genes are drawn at "
                "random; or the best individuals of an earlier run")
            .with_fixed(Rule::yes),
        key("start", &Config::start,
            "placement of the individuals after those of `first`, until there are as many in all as the propagator's "
            "population: at random, at Sobol's points, or as a Latin hypercube")
            .with_fixed(Rule::yes),
        objective().with_fixed(Rule::yes),
        key("propagator", &Config::propagator, propagator(), "method that breeds individuals"),
        key("duplicates", &Config::duplicates,
            "treatment of a bred genome that an individual of the island already has: breed: another genome is bred; "
            "reuse: it gets the known result, which uses no evaluation of the budget; train: it is trained again"),
        reused_runs(),
        key("retries", &Config::retries, whole(0, 10),
            "number of times that a failed evaluation is tried again, each time as a new individual that counts in the "
            "budget; after the last failure its genes are not evaluated any more"),
        give_up_after(),
        islands_apart(),
        key("exchange", &Config::exchange, exchange_section(), "exchange of individuals between islands"),
        key("pruning", &Config::pruning, pruning(),
            "ends unpromising trainings early, of networks and programs but not of functions")
            .with_fixed(Rule::yes),
        key("inherit", &Config::inherit, inherit_section(),
            "population-based training: each training that pruning ends at a rung is replaced by an heir, which "
            "continues one of the best trainings from this rung on, with moved genes; needs pruning: halving or "
            "median; programs report checkpoints"),
        key("budget", &Config::budget, budget_section(),
            "limits of the search, which ends at the first limit that it reaches")
            .with_default("{evaluations: 100}"),
        unbound("final", "auto", final_choice(),
                "evaluates the best individuals again with fresh seeds, and publishes the one that a model of all "
                "results, or with fewer than 20 the mean loss, predicts to be the best; uses the last evaluations of "
                "the budget, which must have no other limit; auto: for networks, from 100 evaluations on"),
    });
}

/// The key `islands` of workers: the number of islands, or the size of each island. The word `auto` becomes 0.
Key islands() {
    const auto set = [](const Tree& tree, const Target& place) {
        auto& workers = place.as<Workers>();
        for (const Tree& size : tree.items) {
            workers.island_sizes.push_back(static_cast<int>(whole_number(size).value()));
        }
        workers.islands = static_cast<int>(whole_number(tree).value_or(std::ssize(workers.island_sizes)));
    };
    return {"islands", "auto", either({word_of({"auto"}), whole(1, million), {List{.element = {whole(1, million)}}}}),
            "number of islands, or the number of workers of each island: [3, 1]; auto: one island for each 256 "
            "workers, rounded up",
            set};
}

Domain workers_section() {
    return section({
        key("ranks", &Workers::ranks, whole(1, million),
            "number of ranks of one worker, which train one network together"),
        islands(),
        key("slots", &Workers::slots, whole(1, 1024), "number of individuals that one worker trains at the same time"),
        key("threads", &Workers::threads, either({word_of({"auto"}), whole(1, 4096)}),
            "number of threads of one rank; auto: the number of CPUs that the rank may use"),
        key("device", &Workers::device, "device that trains; auto: a GPU if there is one"),
        key("communicator", &Workers::communicator, word_but_none<cluster::AllReduceKind>(),
            "library that sums gradients over the ranks; auto: NCCL on GPUs, MPI on CPUs"),
        key("share_device", &Workers::share_device, "allows several ranks to use one GPU"),
        key("timeout_seconds", &Workers::timeout_seconds, real(1, 86400),
            "timeout in seconds for the start of a worker's group, and for each collective operation"),
        key("watts", &Workers::watts, or_null(above(0, million)),
            "watts of one rank while it trains, to estimate an individual's joules if no energy counter can be read; "
            "null: the joules are then not known"),
    });
}

Domain checkpoint_section() {
    return section({key("archive_seconds", &Checkpoint::archive_seconds, real(0.01, million),
                        "minimum number of seconds between two writes of population.h5"),
                    key("training_seconds", &Checkpoint::training_seconds, real(0.01, million),
                        "seconds between two snapshots of an unfinished training"),
                    key("sync_seconds", &Checkpoint::sync_seconds, real(0, 3600),
                        "seconds after which a leader syncs a new record of its journal to the disk; a kill of "
                        "processes loses no record, a crash of a node may lose the newest")});
}

void check_log(const LogOptions& log, const Tree& written) {
    if (log.tee && log.path.empty()) {
        fail(written["tee"], "log.tee", "needs log.path, since the log already goes to standard output");
    }
}

Domain log_section() {
    return {Section{.keys = {key("level", &LogOptions::level, "lowest level of the messages that are logged"),
                             key("ranks", &LogOptions::ranks,
                                 "ranks that log: world rank 0, every worker's leader, or all; other ranks log only "
                                 "warnings and errors"),
                             key("path", &LogOptions::path, or_null(path()),
                                 "log file; null: standard output; ranks above 0 append their number"),
                             key("tee", &LogOptions::tee, "with path: the lines also go to standard output"),
                             key("batches", &LogOptions::batches, or_null(whole(1, million)),
                                 "number of batches between two lines about a training: the loss of the leader's "
                                 "samples in this epoch, "
                                 "and samples per second; null: no such lines; `ranks` selects the workers that log"),
                             key("interval_seconds", &LogOptions::interval_seconds, real(0.1, million),
                                 "seconds between two progress lines in the log of a batch job")},
                    .check = check_of<LogOptions>(check_log)}};
}

Section build_configuration() {
    const Text name{"letters, digits, '.', '_' and '-', at most 100, a letter, digit or '_' first",
                    is_run_name,
                    {"a", "run-1.b"},
                    {"a/b", ".hidden", "''", "'two words'", "-a"}};
    return {{
        key("name", &Config::name, {name},
            "name of the run; the run directory is runs/NAME, unless --run DIR gives another one"),
        key("seed", &Config::seed, whole(0, std::numeric_limits<std::int64_t>::max()), "seed of all random numbers")
            .with_fixed(Rule::yes),
        key("data", &train::Recipe::data, data_section(), "the images; $name may replace a value")
            .with_genes(Rule::yes)
            .with_fixed(Rule::yes),
        key("model", &train::Recipe::model, model_layers(),
            "layers of the network, in order; $name may replace a value")
            .with_default("[{conv: {activation: relu}}, max_pool, flatten, linear]")
            .with_genes(Rule::yes)
            .with_fixed(Rule::yes),
        key("training", &train::Recipe::training, training_section(),
            "training of each individual; $name may replace a value")
            .with_genes(Rule::yes)
            .with_fixed(Rule::yes),
        group("search", search_section(), "the search space and the search method"),
        key("workers", &Config::workers, workers_section(),
            "how ranks form workers and islands, and on which devices they run"),
        key("checkpoint", &Config::checkpoint, checkpoint_section(),
            "how often a run saves its state, which limits the loss if the run is killed"),
        key("log", &Config::log, log_section(), "what is logged, and where"),
    }};
}

}  // namespace

const Section& configuration() {
    static const Section all = build_configuration();
    return all;
}

}  // namespace finch::config
