#include "finch/report/summary.hpp"

#include "finch/base/random.hpp"

#include "report/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <limits>

using namespace finch;
using report::Topic;
using search::Individual;
using search::Outcome;

namespace {

/// A run of one worker that evaluates networks one after another.
class SmallRun {
public:
    explicit SmallRun(std::vector<search::Cost> costs = {}) : population_(search::ExchangeKind::none, 1, costs) {
        competition.costs = std::move(costs);
        competition.measure = {.name = "error", .title = "validation error (share of images)", .is_rate = true};
        facts.state = RunState::complete;
        facts.budget_evaluations = 60;
    }

    Individual& next(double loss, search::Genome genome = {0.01, 8, 0}) {
        Individual one;
        one.id = search::Id::make(0, 0, ++count_);
        one.genome = std::move(genome);
        one.outcome = std::isfinite(loss) ? Outcome::evaluated : Outcome::failed;
        one.bred_by = count_ <= random ? search::Operator::random : search::Operator::crossover;
        one.loss = loss;
        one.epochs = 6;
        one.best_epoch = 4;
        one.parameters = 1000;
        one.finished = count_;
        return individuals_.emplace_back(one);
    }

    [[nodiscard]] report::SummaryInput input() {
        for (const Individual& one : individuals_) {
            population_.merge(one);
        }
        individuals_.clear();
        return {.space = space,
                .population = population_,
                .facts = facts,
                .competition = competition,
                .run = "runs/a",
                .commands = commands,
                .results = results,
                .trains = trains,
                .epochs = 6,
                .accepts = accepts};
    }

    [[nodiscard]] std::vector<report::Sentence> sentences() { return report::summary(input()); }

    /// All sentences of one topic, each in a line.
    [[nodiscard]] std::string about(Topic topic) {
        std::string text;
        for (const report::Sentence& sentence : sentences()) {
            text += sentence.topic == topic ? sentence.text + "\n" : "";
        }
        return text;
    }

    search::Space space{{{"lr", search::RealGene{0.001, 0.1, search::Scale::log}},
                         {"channels", search::IntGene{4, 12}},
                         {"activation", search::ChoiceGene{{"relu", "tanh"}}}}};
    report::Competition competition;
    store::ArchiveFacts facts;
    NamedArrays results;
    bool trains = true;
    report::Commands commands;
    std::uint32_t random = 10;  ///< so many of the first individuals are random
    std::function<bool(const std::vector<std::string>&)> accepts = [](const auto&) { return true; };

private:
    search::Population population_;
    std::vector<Individual> individuals_;
    std::uint32_t count_ = 0;
};

bool mentions(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

/// 60 networks whose loss depends on lr alone, and falls in the first 30 evaluations.
SmallRun converged_run() {
    SmallRun run;
    RandomStream random(1, Purpose::test);
    for (int i = 0; i < 60; ++i) {
        const double lr = std::pow(10, random.uniform(-3, -1));
        const double loss = i == 30 ? 0.02 : 0.05 + 0.1 * std::abs(std::log10(lr) + 2);
        run.next(loss, {i == 30 ? 0.01 : lr, std::floor(random.uniform(4, 13)), random.below(2) == 0 ? 0.0 : 1.0});
    }
    return run;
}

NamedArrays classification_results(const std::string& set, std::int64_t samples, double accuracy) {
    NamedArrays arrays;
    arrays.push_back({set + "/loss", {}, std::vector{0.5}});
    arrays.push_back({set + "/accuracy", {}, std::vector{accuracy}});
    arrays.push_back({set + "/index", {samples}, std::vector<std::int64_t>(static_cast<std::size_t>(samples))});
    return arrays;
}

}  // namespace

TEST_CASE("the best: its value, its id and when it was found") {
    SmallRun run = converged_run();

    CHECK(run.about(Topic::best) == "The best error is 2.00 %: network 0.0.31, which was evaluation 31 of 60.\n");
}

TEST_CASE("without a result: the failures and their most frequent reason, and nothing about what was found") {
    SmallRun run;
    for (int i = 0; i < 4; ++i) {
        run.next(std::nan("")).problem = i == 0 ? "out of space" : "no such file: data.h5";
    }

    CHECK(run.about(Topic::best) == "No evaluation gave a result.\n");
    CHECK(mentions(run.about(Topic::failures),
                   "4 of 4 evaluations gave no result (4 failed): 3 × no such file: data.h5"));
    CHECK(mentions(run.about(Topic::next), "see why it failed: finch show runs/a 0.0.1"));
    for (const Topic topic : {Topic::convergence, Topic::genes, Topic::random_search, Topic::bounds, Topic::curves}) {
        CHECK(run.about(topic).empty());
    }
    CHECK(SmallRun().about(Topic::best) == "Nothing is evaluated yet.\n");
}

TEST_CASE("commands name the program, the report and the job script as the shell finds them") {
    const report::Commands elsewhere{
        .program = "/a/finch", .report = "/a/finch-report", .job_script = "/a/evolve.sbatch"};
    SmallRun run = converged_run();
    run.commands = elsewhere;
    CHECK(mentions(run.about(Topic::next), "look at it: /a/finch-report runs/a"));

    run.facts.state = RunState::interrupted;
    CHECK(mentions(run.about(Topic::next), "resume it: /a/finch evolve runs/a/config.yaml --run runs/a"));
    run.facts.starts.emplace_back().job = "17";
    CHECK(mentions(run.about(Topic::next), "resume it: sbatch /a/evolve.sbatch runs/a/config.yaml --run runs/a"));
    run.facts.state = RunState::running;
    CHECK(mentions(run.about(Topic::next), "watch it: /a/finch show runs/a --follow"));

    SmallRun failed;
    failed.commands = elsewhere;
    failed.next(std::nan("")).problem = "out of space";
    CHECK(mentions(failed.about(Topic::next), "see why it failed: /a/finch show runs/a 0.0.1"));
}

TEST_CASE("failures are told only if there are any") {
    SmallRun run = converged_run();

    CHECK(run.about(Topic::failures).empty());
}

TEST_CASE("convergence: the last third found nothing, improved the best, or is too short to tell") {
    SmallRun converged = converged_run();
    CHECK(mentions(converged.about(Topic::convergence), "The last 20 evaluations found nothing better"));
    CHECK(mentions(converged.about(Topic::convergence), "has converged"));
    CHECK_FALSE(mentions(converged.about(Topic::next), "continue it"));

    SmallRun improving;
    for (int i = 0; i < 30; ++i) {
        improving.next(0.5 - 0.01 * i);
    }
    CHECK(mentions(improving.about(Topic::convergence),
                   "The last 10 evaluations improved the best error from 31.00 % to 21.00 %: more evaluations"));
    CHECK(mentions(improving.about(Topic::next),
                   "continue it: finch evolve runs/a/config.yaml --run runs/a --set search.budget.evaluations=120"));

    SmallRun few;
    for (int i = 0; i < 60; ++i) {
        few.next(i < 11 ? 0.5 : std::nan(""));  // a failure is not an evaluation that found nothing better
    }
    CHECK(few.about(Topic::convergence) == "Too few results to tell whether the search has converged: 11.\n");
}

TEST_CASE("a training of one individual with given genes is not judged or continued as a search") {
    SmallRun run;
    run.facts.budget_evaluations = 1;
    run.next(0.5).bred_by = search::Operator::given;

    for (const Topic topic : {Topic::convergence, Topic::random_search, Topic::genes}) {
        CHECK(run.about(topic).empty());
    }
    CHECK_FALSE(mentions(run.about(Topic::next), "continue it"));
    CHECK(mentions(run.about(Topic::next), "use its network"));
    run.facts.budget_evaluations = 2;
    CHECK(mentions(run.about(Topic::next), "continue it"));

    SmallRun search;
    search.facts.budget_evaluations = 1;
    search.next(0.5);
    CHECK(mentions(search.about(Topic::next), "continue it"));
}

TEST_CASE("an improvement within the noise of the validation samples is called so") {
    SmallRun run;
    for (int i = 0; i < 30; ++i) {
        run.next(i < 20 ? 0.021 : 0.02);
    }
    run.results = classification_results("validation", 1000, 0.98);
    CHECK(mentions(run.about(Topic::convergence), "which is within the noise of 1000 validation samples"));

    run.results = classification_results("validation", 10000000, 0.98);
    CHECK_FALSE(mentions(run.about(Topic::convergence), "noise"));
}

TEST_CASE("the test result has Wilson's interval; without a test set there is no sentence") {
    SmallRun run = converged_run();
    CHECK(run.about(Topic::test).empty());

    run.results = classification_results("test", 100, 0.9);

    CHECK(mentions(run.about(Topic::test), "On the 100 test samples"));
    CHECK(mentions(run.about(Topic::test), "an error of 10.00 % (95 % interval: 5.52 to 17.44 %)"));
}

TEST_CASE("a network that is worse on the test set than on the validation set, beyond both intervals, is called so") {
    SmallRun run = converged_run();
    run.results = classification_results("test", 200, 0.8);
    NamedArrays validation = classification_results("validation", 100, 0.99);
    run.results.insert(run.results.end(), validation.begin(), validation.end());
    CHECK(mentions(run.about(Topic::test), "This is worse than an error of 1.00 % on the 100 validation samples"));

    run.results = classification_results("test", 200, 0.95);
    run.results.insert(run.results.end(), validation.begin(), validation.end());
    CHECK_FALSE(mentions(run.about(Topic::test), "worse"));

    run.results = classification_results("test", 200, 1);  // better
    validation = classification_results("validation", 100, 0.5);
    run.results.insert(run.results.end(), validation.begin(), validation.end());
    CHECK_FALSE(mentions(run.about(Topic::test), "worse"));
}

TEST_CASE("a test loss of targets has the bootstrap's interval, if the recorded loss is their mean") {
    SmallRun run = converged_run();
    run.competition.measure = {};
    std::vector<float> predictions;
    for (int i = 0; i < 400; ++i) {
        predictions.push_back(i % 2 == 0 ? 0.0F : 2.0F);  // squared errors 0 and 4: mean 2, standard error 0.1
    }
    run.results = {{"test/loss", {}, std::vector{2.0}},
                   {"test/index", {400}, std::vector<std::int64_t>(400)},
                   {"test/truth", {400, 1}, std::vector<float>(400)},
                   {"test/predictions", {400, 1}, predictions}};
    const std::string text = run.about(Topic::test);
    CHECK(mentions(text, "a loss of 2 (95 % interval: 1."));

    run.results[0].values = std::vector{7.0};  // weighted: not the mean
    CHECK(mentions(run.about(Topic::test), "a loss of 7."));
}

TEST_CASE("equally good networks are counted by the interval of the validation samples, the smallest is named") {
    SmallRun run;
    run.next(0.10).parameters = 5000;
    run.next(0.15).parameters = 700;  // within 5.5 to 17.4 %
    run.next(0.18).parameters = 10;
    CHECK(run.about(Topic::equals).empty());  // the number of validation samples is not known

    run.results = classification_results("validation", 100, 0.9);

    CHECK(
        run.about(Topic::equals) ==
        "1 other network is equally good, given 100 validation samples: its error is at most 17.44 %, the upper end of "
        "the best one's 95 % interval; 0.0.2 has 700 parameters instead of 5000.\n");
    run.results = classification_results("validation", 1000000, 0.9);
    CHECK(mentions(run.about(Topic::equals), "No other network is as good, given 1000000 validation samples"));
}

TEST_CASE("genes: those with an effect beyond chance, and where the best fifth lies") {
    SmallRun run = converged_run();

    const std::string text = run.about(Topic::genes);

    CHECK(mentions(text, "1 gene mattered"));
    CHECK(mentions(text, "lr ("));
    CHECK(mentions(text, "best fifth: 0.00"));
    CHECK_FALSE(mentions(text, "channels"));
    CHECK_FALSE(mentions(text, "activation"));
}

TEST_CASE("pure noise: no gene is called important, no bound, no gain over random search") {
    int wrong = 0;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        SmallRun run;
        RandomStream random(seed, Purpose::test);
        for (int i = 0; i < 60; ++i) {
            run.next(random.uniform(), {std::pow(10, random.uniform(-3, -1)), std::floor(random.uniform(4, 13)),
                                        random.below(2) == 0 ? 0.0 : 1.0});
        }
        wrong += mentions(run.about(Topic::genes), "mattered") ? 1 : 0;
        wrong += mentions(run.about(Topic::random_search), "is better than") ? 1 : 0;
    }
    CHECK(wrong <= 5);  // 40 claims, each wrong in 5 % of all runs: more than 5 in 1.4 % of all choices of seeds
}

TEST_CASE("too few results to tell which genes matter") {
    SmallRun run;
    for (int i = 0; i < 24; ++i) {
        run.next(0.01 * i, {0.001 * (i + 1), 8, 0});
    }

    CHECK(mentions(run.about(Topic::genes), "Too few results to tell which genes matter: 24 of at least 25"));
    CHECK(run.about(Topic::bounds).empty());
}

TEST_CASE("a gene at its bound: a wider range is proposed, with a command that begins with this run's best") {
    SmallRun run;
    RandomStream random(2, Purpose::test);
    for (int i = 0; i < 60; ++i) {
        const double channels = 4 + i % 9;
        run.next(1 / channels + 0.001 * random.uniform(), {std::pow(10, random.uniform(-3, -1)), channels, 0});
    }
    CHECK(run.about(Topic::bounds) == "The best values of channels lie at its upper bound 12: try larger values.\n");
    CHECK(
        mentions(run.about(Topic::next),
                 "search on from the best, with larger channels: finch evolve runs/a/config.yaml --run runs/a-2 --set "
                 "'search.first={run: runs/a, best: 5}' --set 'search.space.channels.int=[4, 16]'"));

    run.accepts = [](const auto& settings) { return settings.size() < 2; };
    CHECK_FALSE(mentions(run.about(Topic::next), "search on"));
}

TEST_CASE("the bound of a real gene on a logarithmic scale is written as in the configuration") {
    SmallRun run;
    RandomStream random(2, Purpose::test);
    for (int i = 0; i < 60; ++i) {
        const double lr = std::pow(10, random.uniform(-3, -1));
        run.next(std::log10(lr) + 4, {lr, 8, 0});
    }
    CHECK(run.about(Topic::bounds) == "The best values of lr lie at its lower bound 0.001: try smaller values.\n");
}

TEST_CASE("the best values in the middle of the range are at no bound") {
    SmallRun run = converged_run();

    CHECK(run.about(Topic::bounds).empty());
}

TEST_CASE("learning curves: train longer if most of the best were best in their last epoch") {
    SmallRun run = converged_run();
    CHECK(run.about(Topic::curves).empty());

    SmallRun falling;
    for (int i = 0; i < 5; ++i) {
        falling.next(0.1 + 0.01 * i).best_epoch = i < 3 ? 6 : 4;
    }
    CHECK(falling.about(Topic::curves) == "Most of the 5 best networks were best in their last epoch: train longer.\n");
    CHECK(mentions(falling.about(Topic::next), "--set training.epochs=12"));

    SmallRun stopped_early;
    for (int i = 0; i < 5; ++i) {
        Individual& one = stopped_early.next(0.1);
        one.epochs = one.best_epoch = 4;  // of 6: patience, not the number of epochs, ended it
    }
    CHECK(stopped_early.about(Topic::curves).empty());
}

TEST_CASE("random search: bred networks that beat all random ones, against the number that chance gives") {
    SmallRun better;
    for (int i = 0; i < 40; ++i) {
        better.next(i < 10 ? 0.5 : 0.4);
    }
    CHECK(
        mentions(better.about(Topic::random_search),
                 "30 of 30 bred networks beat the best of 10 random ones (by chance 2.7 on average), and their median "
                 "error is 40.00 % instead of 50.00 %"));
    CHECK(mentions(better.about(Topic::random_search), "the search is better than random search"));

    SmallRun worse;
    for (int i = 0; i < 40; ++i) {
        worse.next(i < 10 ? 0.4 : 0.5);
    }
    CHECK(mentions(worse.about(Topic::random_search), "such a difference can be chance"));

    SmallRun reliable;
    for (int i = 0; i < 40; ++i) {
        reliable.next(i == 0 ? 0.1 : i < 10 ? std::nan("") : 0.2);
    }
    CHECK(mentions(reliable.about(Topic::random_search), "0 of 30 bred networks"));
    CHECK(
        mentions(reliable.about(Topic::random_search), "better than random search on average, but has no better best"));

    SmallRun few;
    few.random = 2;
    few.next(0.5);
    few.next(0.5);
    few.next(0.4);
    CHECK(few.about(Topic::random_search) == "Too few results to compare with random search: 2 random, 1 bred.\n");
}

TEST_CASE("several objectives: the ends of the front") {
    SmallRun run({search::Cost{search::Quantity::parameters}});
    run.next(0.1).parameters = 9000;
    run.next(0.3).parameters = 100;
    run.next(0.4).parameters = 200;

    CHECK(run.about(Topic::front) ==
          "The front has 2 networks, which no other beats in all objectives: from 0.0.1 (error 10.00 %, 9000 "
          "parameters) to 0.0.2 (error 30.00 %, 100 parameters).\n");
    CHECK(converged_run().about(Topic::front).empty());
    SmallRun late({search::Cost{search::Quantity::parameters}});
    for (int i = 0; i < 30; ++i) {
        late.next(i == 2 ? 0.1 : 0.2).parameters = i == 25 ? 500 : 1000;
    }
    CHECK(late.about(Topic::convergence) ==
          "The last 10 evaluations found 1 of the 2 networks of the front: more evaluations may improve it further.\n");
    SmallRun early({search::Cost{search::Quantity::parameters}});
    for (int i = 0; i < 30; ++i) {
        early.next(i == 2 ? 0.1 : 0.2).parameters = i == 5 ? 500 : 1000;
    }
    CHECK(mentions(early.about(Topic::convergence), "found nothing better"));
}

TEST_CASE("the final choice: the winner's mean and deviation") {
    SmallRun run;
    run.competition.final_choice = search::FinalChoice{.candidates = 1, .repeats = 2};
    run.next(0.1);
    CHECK(run.about(Topic::final_choice).empty());

    for (const double loss : {0.2, 0.3}) {
        Individual& repeat = run.next(loss);
        repeat.bred_by = search::Operator::repeat;
        repeat.parents[0] = search::Id::make(0, 0, 1);
    }

    CHECK(mentions(run.about(Topic::final_choice), "0.0.1 is the most reliable: error 25.00 % ± 7.07 % in 2 repeats"));
    CHECK(mentions(run.about(Topic::best), "evaluation 1 of 1"));
}

TEST_CASE("next: a stopped run is resumed as it was started, in a job or with its number of ranks") {
    SmallRun run = converged_run();
    run.facts.state = RunState::stopped;
    run.facts.reports[{0, 0}].ranks = 2;
    run.facts.reports[{0, 1}].ranks = 2;
    CHECK(mentions(run.about(Topic::next), "resume it: mpirun -n 4 finch evolve runs/a/config.yaml --run runs/a\n"));

    run.facts.starts.push_back({.job = "17"});
    CHECK(mentions(run.about(Topic::next), "resume it: sbatch jobs/evolve.sbatch runs/a/config.yaml --run runs/a\n"));

    run.facts.state = RunState::running;
    CHECK(run.about(Topic::next) == "watch it: finch show runs/a --follow\n");
}

TEST_CASE("next: a trained network is exported for PyTorch, but a program's is not") {
    SmallRun run = converged_run();
    CHECK(mentions(run.about(Topic::next), "use its network: tools/export.py runs/a --format pytorch\n"));

    run.trains = false;
    CHECK_FALSE(mentions(run.about(Topic::next), "export.py"));

    SmallRun failed;
    failed.next(std::nan(""));
    CHECK_FALSE(mentions(failed.about(Topic::next), "export.py"));
}

TEST_CASE("next: commands name programs as the user can type them, and oversubscribe a small machine") {
    SmallRun run = converged_run();
    run.commands = {.program = "build/finch", .report = "'my tools/report.py'", .most_ranks = 2};
    run.facts.state = RunState::stopped;
    run.facts.reports[{0, 0}].ranks = 4;
    CHECK(mentions(run.about(Topic::next), "resume it: mpirun -n 4 --oversubscribe build/finch evolve "));
    CHECK(mentions(run.about(Topic::next), "look at it: 'my tools/report.py' runs/a\n"));

    run.commands.most_ranks = 4;
    run.commands.is_root = true;
    CHECK(mentions(run.about(Topic::next), "resume it: mpirun -n 4 --allow-run-as-root build/finch evolve "));
    run.commands.is_root = false;
    CHECK(mentions(run.about(Topic::next), "resume it: mpirun -n 4 build/finch evolve "));
    run.facts.state = RunState::running;
    CHECK(run.about(Topic::next) == "watch it: build/finch show runs/a --follow\n");
}

TEST_CASE("the text has lines of at most 100 columns, except commands; lines of one sentence are aligned") {
    CHECK(report::summary_text(SmallRun().input()) == "summary\n  - Nothing is evaluated yet.\n");

    SmallRun run;
    run.next(0.10).parameters = 5000;
    run.next(0.11).parameters = 700;
    run.results = classification_results("validation", 100, 0.9);
    run.commands.exporter = std::string(100, 'x');
    const std::string text = report::summary_text(run.input());

    CHECK(mentions(
        text,
        "\n  - 1 other network is equally good, given 100 validation samples: its error is at most 17.44 %, the\n"
        "    upper end of the best one's 95 % interval; 0.0.2 has 700 parameters instead of 5000.\n"));
    CHECK(mentions(text, "\n  use its network: " + run.commands.exporter + " runs/a --format pytorch\n"));
    run.results = classification_results("validation", 1000, 0.9);  // "the" would end in column 101
    CHECK(mentions(report::summary_text(run.input()), " %,\n    the upper end of "));
}

TEST_CASE("Wilson's interval: 10 of 100, none, all, no samples") {
    const report::Interval tenth = report::wilson_interval(10, 100);
    CHECK(tenth.low == doctest::Approx(0.05522914));
    CHECK(tenth.high == doctest::Approx(0.17436566));
    CHECK(report::wilson_interval(0, 10).low == 0);
    CHECK(report::wilson_interval(0, 10).high == doctest::Approx(0.27753280));
    CHECK(report::wilson_interval(10, 10).high == 1);
    CHECK(report::wilson_interval(0, 0).high == 1);
}

TEST_CASE("exceedances: known small cases, and a mean of draws / (reference + 1)") {
    CHECK(report::exceedance_probability(1, 1, 1) == doctest::Approx(0.5));
    CHECK(report::exceedance_probability(2, 2, 1) == doctest::Approx(1.0 / 3));
    CHECK(report::exceedance_probability(1, 1, 3) == doctest::Approx(0.25));
    CHECK(report::exceedance_probability(0, 7, 3) == doctest::Approx(1));
    double mean = 0;
    for (std::int64_t k = 1; k <= 180; ++k) {
        mean += report::exceedance_probability(k, 180, 20);
    }
    CHECK(mean == doctest::Approx(180.0 / 21));
}

TEST_CASE("rank sums: a known score, its sign, ties, none") {
    const std::vector low{1.0, 2.0, 3.0};
    const std::vector high{4.0, 5.0, std::numeric_limits<double>::infinity()};
    CHECK(report::rank_sum_score(low, high) == doctest::Approx(4.5 / std::sqrt(9.0 * 7 / 12)));
    CHECK(report::rank_sum_score(high, low) == -report::rank_sum_score(low, high));
    CHECK(report::rank_sum_score(low, low) == 0);
    CHECK(report::rank_sum_score({}, low) == 0);
}

TEST_CASE("explained variance: all, ε² of a small case, none left out, and ranks with ties") {
    const std::vector values{1.0, 2.0, 3.0, 4.0};
    CHECK(report::explained_variance(values, std::vector{0, 0, 1, 1}, 2) == doctest::Approx(0.7));
    CHECK(report::explained_variance(values, std::vector{0, 1, 0, 1}, 2) < 0);
    CHECK(report::explained_variance(values, std::vector{0, 0, 0, 0}, 2) == 0);
    CHECK(report::explained_variance(std::vector{1.0, 1.0, 2.0, 2.0, 9.0}, std::vector{0, 0, 1, 1, -1}, 2) == 1);
    CHECK(report::ranks_of_sorted(std::vector{1.0, 2.0, 2.0, 5.0}) == std::vector{0.0, 0.5, 0.5, 1.0});
}
