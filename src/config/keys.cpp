#include "finch/config/keys.hpp"

#include "finch/config/config.hpp"

#include "bind.hpp"
#include "domains.hpp"

#include <limits>

/// Every key of a configuration: its name, the member that it sets (with the key's default), its bounds and its
/// meaning. Other files define the keys of objectives (objective_keys.cpp), propagators (propagator_keys.cpp), data
/// (data_keys.cpp), and model and training (recipe_keys.cpp).
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
        .keys = {unbound("real", "[0, 1]", {List{{real(-huge, huge)}, 2, 2}}, "[low, high]: a real number"),
                 unbound("int", "[0, 1]", {List{{whole(-exact, exact)}, 2, 2}}, "[low, high]: a whole number"),
                 unbound("choice", "[a, b]", {List{{plain_value()}, 1, 10000}}, "one of several words or numbers"),
                 unbound("value", "1", plain_value(),
                         "the gene's only value, which is not searched (`NAME: 1` says the same); beside real, int or "
                         "choice it is passed as if the search had chosen it, alone as it is written; in JSON it "
                         "is then a string unless it is written like 0.5 or 12"),
                 unbound("scale", "linear", word_of(all_words<search::Scale>()),
                         "real, int: log draws uniformly in the logarithm"),
                 unbound("step", "1", above(0, huge), "real, int: the values are low + k * step; linear for real"),
                 unbound("ordered", "false", {Flag{}},
                         "choice: neighbours are alike, so that mutation moves from one to the next"),
                 unbound("when", "{}", {Named{{one_or_list(plain_value())}}},
                         "GENE: [values]: it is active only where each such gene is, with one of these values; "
                         "else its keys keep their defaults")},
        .sparse = true}};
}

void check_budget(const island::Budget& budget, const Tree& written) {
    if (!budget.evaluations && !budget.generations && !budget.epochs && !budget.hours && !budget.node_hours &&
        !budget.target_loss) {
        fail(written, "search.budget",
             "never ends; accepted: at least one of evaluations, generations, epochs, hours, node_hours, target_loss "
             "with a number");
    }
}

Domain budget_section() {
    using island::Budget;
    return {
        Section{.keys = {key("evaluations", &Budget::evaluations, or_null(whole(1, 4000 * million)),
                             "of the whole run, exact, over restarts"),
                         key("generations", &Budget::generations, or_null(whole(1, 4000 * million)),
                             "evaluations of each worker"),
                         key("epochs", &Budget::epochs, or_null(whole(1, 1000000 * million)),
                             "that all individuals train, over restarts; what is in training then is saved"),
                         key("hours", &Budget::hours, or_null(above(0, million)), "wall time, summed over restarts"),
                         key("node_hours", &Budget::node_hours, or_null(above(0, million)),
                             "distinct nodes times wall time, summed over restarts"),
                         key("target_loss", &Budget::target_loss, or_null(real(-1e300, 1e300)),
                             "end once the best loss is this or smaller")},
                .check = check_of<Budget>(check_budget)}};
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
            "topology matrix: [[0, 0.5], [1, 0]], from island 0 to 1 with probability 0.5, back always; the diagonal "
            "is not looked at",
            set};
}

/// The key `islands` of search: a list of the options that differ between islands.
Key islands_apart() {
    const Section entry{{key("propagator", &IslandOptions::propagator, propagator(), "how it breeds")}};
    const auto set = [entry](const Tree& tree, const Target& config) {
        auto& islands = config.as<Config>().islands;
        islands.assign(tree.items.size(), IslandOptions{});
        for (std::size_t i = 0; i < islands.size(); ++i) {
            read_section(entry, tree.items[i], Target{.object = &islands[i], .path = path_of("search.islands", i)});
        }
    };
    return {"islands", "none", either({word_of({"none"}), {List{.element = {{entry}}, .most = 10000}}}),
            "[{propagator: …}, …]: island i breeds as entry i says, from the first again where there are more islands; "
            "none: all as search.propagator says",
            set};
}

Domain exchange_section() {
    using Options = search::ExchangeOptions;
    return section(
        {key("kind", &Options::kind, "migration: individuals move; pollination: copies"),
         key("topology", &Options::topology,
             "all: every island to every other; ring: to the next; torus: to four neighbours; star: by island 0; "
             "random: to any one; nodes: within a node, and by the first island there to the next node; matrix: as "
             "`matrix` says"),
         exchange_matrix(),
         key("probability", &Options::probability, real(0, 1),
             "per island and round of its workers (one evaluation of each)"),
         key("migrants", &Options::migrants, whole(1, million), "individuals per target island and exchange"),
         key("emigrants", &Options::emigrants, "who goes: the best, any, or for each the better of two")});
}

/// The values of `search.first`: a list of guessed genomes, or an earlier run that supplies genomes.
Domain first_guesses() {
    const Domain guesses = {List{.element = {{Named{{plain_value()}}}}, .most = 10000}};
    return either({word_of({"none"}), guesses,
                   section({unbound("run", "runs/earlier", path(), "directory of an earlier run"),
                            unbound("best", "5", whole(1, 10000), "so many of its individuals"),
                            unbound("guesses", "none", either({word_of({"none"}), guesses}),
                                    "their genes; Finch fills them in when the run begins, and keeps them")})});
}

/// The values of `search.final`; parse.cpp reads them.
Domain final_choice() {
    using search::FinalChoice;
    return either({word_of({"auto", "none"}),
                   section({key("candidates", &FinalChoice::candidates, whole(1, 1000),
                                "so many of the best, of different genes"),
                            key("repeats", &FinalChoice::repeats, whole(1, 1000), "evaluations of each")})});
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
            "ends a start with exit code 75 after this many evaluations without a result (failed, out of memory, "
            "diverged), as long as the run has no result; auto: 8, or twice the workers if that is more; none: never",
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
            "directories of other runs, whose results a genome that is bred has at once if it, the data, the model and "
            "its training are those of one there; takes none of the budget's evaluations",
            set};
}

Domain search_section() {
    const Text constraint{"a comparison, such as a * b <= 512",
                          [](const std::string& text) { return !text.empty() && text.size() <= 1000; },
                          {"1 <= 2"},
                          {"''"}};
    return section({
        unbound("space", "{}", {Named{{gene_section()}}},
                "the genes: NAME: {real: [low, high]}, {int: …}, {choice: […]} or {value: …}")
            .with_fixed(Rule::yes),
        unbound("constraints", "none", either({word_of({"none"}), {List{{{constraint}}}}}),
                "what all genomes obey: numbers, genes, + - * / ( ), < <= > >= == !=, and, or; one that names a gene "
                "which is not active holds")
            .with_fixed(Rule::yes),
        unbound(
            "first", "none", first_guesses(),
            "genes of the first individuals, in this order: [{GENE: value, …}, …], those left out at random; or the "
            "best of an earlier run")
            .with_fixed(Rule::yes),
        key("start", &Config::start,
            "where the individuals after those of `first` lie, as many in all as the propagator's population: random, "
            "Sobol's points, or a latin hypercube")
            .with_fixed(Rule::yes),
        objective().with_fixed(Rule::yes),
        key("propagator", &Config::propagator, propagator(), "how individuals are bred"),
        key("duplicates", &Config::duplicates,
            "a bred genome that an individual of the island has already: breed another, reuse its result, which takes "
            "none of the budget's evaluations, or train it again"),
        reused_runs(),
        key("retries", &Config::retries, whole(0, 10),
            "how often an evaluation that failed is tried again, each time as another individual of the budget; after "
            "that its genes are not evaluated any more"),
        give_up_after(),
        islands_apart(),
        key("exchange", &Config::exchange, exchange_section(), "between islands"),
        key("pruning", &Config::pruning, pruning(), "ends unpromising trainings early; not those of a function")
            .with_fixed(Rule::yes),
        key("budget", &Config::budget, budget_section(), "when the search ends: whichever comes first")
            .with_default("{evaluations: 100}"),
        unbound("final", "auto", final_choice(),
                "evaluates the best again with fresh seeds, within a budget of evaluations alone, and publishes the "
                "one with the smallest mean; auto: networks, from 100 evaluations on"),
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
            "a number, or the size of each in workers: [3, 1]; auto: one for each 256 workers begun", set};
}

Domain workers_section() {
    return section({
        key("ranks", &Workers::ranks, whole(1, million), "of one worker, which train one network together"),
        islands(),
        key("slots", &Workers::slots, whole(1, 1024), "individuals that one worker trains at once"),
        key("threads", &Workers::threads, either({word_of({"auto"}), whole(1, 4096)}),
            "of one rank; auto: the CPUs that it may use"),
        key("device", &Workers::device, "auto: a GPU where there is one"),
        key("communicator", &Workers::communicator, word_but_none<cluster::AllReduceKind>(),
            "for gradients; auto: NCCL on GPUs, MPI on CPUs"),
        key("share_device", &Workers::share_device, "let several ranks use one GPU"),
        key("timeout_seconds", &Workers::timeout_seconds, real(1, 86400),
            "for the start of a group, and for a collective that does not end"),
        key("watts", &Workers::watts, or_null(above(0, million)),
            "of one rank while it trains: estimates an individual's joules where no counter is read; null: not known "
            "then"),
    });
}

Domain checkpoint_section() {
    return section({key("archive_seconds", &Checkpoint::archive_seconds, real(0.01, million),
                        "between two writings of population.h5, at least"),
                    key("training_seconds", &Checkpoint::training_seconds, real(0.01, million),
                        "between two snapshots of unfinished trainings")});
}

Domain log_section() {
    return section({key("level", &LogOptions::level, "the least that is told"),
                    key("ranks", &LogOptions::ranks, "who tells: world rank 0, every worker's leader, or all"),
                    key("path", &LogOptions::path, or_null(path()), "a file; null: standard output"),
                    key("interval_seconds", &LogOptions::interval_seconds, real(0.1, million),
                        "between two progress lines in a batch log")});
}

Section build_configuration() {
    const Text name{"letters, digits, '.', '_' and '-', at most 100, a letter, digit or '_' first",
                    is_run_name,
                    {"a", "run-1.b"},
                    {"a/b", ".hidden", "''", "'two words'", "-a"}};
    return {{
        key("name", &Config::name, {name}, "the run directory: runs/NAME (--run DIR says otherwise)"),
        key("seed", &Config::seed, whole(0, std::numeric_limits<std::int64_t>::max()),
            "all random choices depend on it")
            .with_fixed(Rule::yes),
        key("data", &train::Recipe::data, data_section(), "the images; $name may stand for a value")
            .with_genes(Rule::yes)
            .with_fixed(Rule::yes),
        key("model", &train::Recipe::model, model_layers(), "layers in order; $name may stand for a value")
            .with_default("[{conv: {activation: relu}}, max_pool, flatten, linear]")
            .with_genes(Rule::yes)
            .with_fixed(Rule::yes),
        key("training", &train::Recipe::training, training_section(), "of each individual; $name may stand for a value")
            .with_genes(Rule::yes)
            .with_fixed(Rule::yes),
        group("search", search_section(), "what is searched, and how"),
        key("workers", &Config::workers, workers_section(), "how ranks are grouped, and what they run on"),
        key("checkpoint", &Config::checkpoint, checkpoint_section(), "what a killed run can lose"),
        key("log", &Config::log, log_section(), "what is told, and where"),
    }};
}

}  // namespace

const Section& configuration() {
    static const Section all = build_configuration();
    return all;
}

}  // namespace finch::config
