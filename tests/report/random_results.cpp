// All readers must accept a worker's record of any evaluation result: the readers of messages, journals and archives,
// the next start, and the exports. FINCH_TEST_DRAWS is the number of random results. A long test uses 1e6.
#include "finch/report/csv.hpp"
#include "finch/report/json.hpp"
#include "finch/store/journal.hpp"
#include "finch/store/resume.hpp"

#include "store/samples.hpp"
#include "support/temporary_folder.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <doctest/doctest.h>
#include <limits>
#include <rapidjson/document.h>
#include <sstream>

using namespace finch;
using search::Individual;
using search::Outcome;

namespace {

constexpr std::uint32_t batch = 500;  ///< number of individuals per run

std::uint32_t draws() {
    const char* const text = std::getenv("FINCH_TEST_DRAWS");  // NOLINT: one thread
    return text == nullptr ? 2 * batch : static_cast<std::uint32_t>(std::stoul(text));
}

double any_number(RandomStream& random) {
    using Limits = std::numeric_limits<double>;
    const std::array numbers{0.0,
                             -0.0,
                             1.5,
                             -1.5,
                             1e300,
                             -1e300,
                             Limits::max(),
                             Limits::lowest(),
                             Limits::denorm_min(),
                             Limits::infinity(),
                             -Limits::infinity(),
                             Limits::quiet_NaN(),
                             store::samples::strange_nan(),
                             Individual::not_measured};
    const std::uint64_t place = random.below(numbers.size() + 4);
    return place < numbers.size() ? numbers[place] : random.normal();
}

/// Returns a random result that an evaluator may produce. Its outcome, numbers and curve are independent of each other.
Individual any_result(std::uint32_t number, const search::Space& space, RandomStream& random) {
    Individual one;
    one.id = search::Id::make(number % 5, number % 7, number + 1);
    one.genome = search::random_genome(space, random);
    one.bred_by = search::Operator::given;
    one.outcome = static_cast<Outcome>(random.below(words_of(Outcome{}).size()));
    one.loss = any_number(random);
    one.accuracy = any_number(random);
    one.born = one.started = 1.7e9 + number;
    one.finished = one.started + 1;
    one.attempt.worker = static_cast<std::int32_t>(one.id.worker());
    one.problem = random.below(3) == 0 ? "exit code 1, \"no\nmemory\"" : "";
    const auto odd = [&random](double usual) { return random.below(20) == 0 ? any_number(random) : usual; };
    one.training_seconds = odd(1);
    one.progress = odd(0.5);
    one.joules = odd(7);
    one.epochs = one.best_epoch = static_cast<std::int32_t>(random.below(5));
    for (std::int32_t epoch = 1; epoch <= one.epochs; ++epoch) {
        one.curve.push_back({epoch, 1, any_number(random), any_number(random), any_number(random), any_number(random),
                             any_number(random), odd(0.25)});
        one.metrics.push_back({epoch, "top5", any_number(random)});
    }
    if (one.outcome == Outcome::pruned || random.below(2) == 0) {
        search::Pruning& pruning = one.pruning.edit();
        pruning.rung = static_cast<std::int32_t>(random.below(search::most_rungs + 1));
        pruning.threshold = any_number(random);
        std::generate_n(pruning.losses.begin(), pruning.rung, [&random] { return any_number(random); });
    }
    return one;
}

/// Checks the documented effects of make_recordable() on a result.
void check_meaning(const Individual& drawn, const Individual& made, const search::Space& space) {
    const bool has_loss = drawn.outcome == Outcome::evaluated || drawn.outcome == Outcome::pruned;
    CHECK_FALSE(search::problem_of(made, space));
    if (has_loss && !std::isfinite(drawn.loss)) {
        CHECK(made.outcome == (drawn.outcome == Outcome::pruned ? Outcome::pruned : Outcome::diverged));
        CHECK(std::isnan(made.loss));
        CHECK((drawn.problem.empty() ? made.problem.find("its last loss") == 0 : made.problem == drawn.problem));
    } else {
        CHECK(made.outcome == drawn.outcome);
        CHECK(store::samples::same_bits(made.loss, drawn.loss));
        CHECK(made.problem == drawn.problem);
    }
    CHECK(made.genome == drawn.genome);
    CHECK(made.ranks_by_loss() == (has_loss && std::isfinite(drawn.loss)));
}

void check_message(const Individual& made) {
    const Bytes message = search::encode(search::Result{made}, 7);
    search::RecordReader reader(message, 7, "a message");
    const auto record = reader.next();
    REQUIRE(record);
    CHECK(identical(std::get<search::Result>(*record).individual, made));
    CHECK(reader.problems().empty());
}

rapidjson::Document parsed_json(const std::string& text) {
    rapidjson::Document document;
    document.Parse<rapidjson::kParseNanAndInfFlag>(text.c_str());
    REQUIRE_MESSAGE(!document.HasParseError(), text.substr(0, 2000));
    return document;
}

void check_exports(const store::Recovered& recovered, const std::vector<Individual>& all) {
    const std::string table = report::csv(recovered, {});
    std::size_t found = 0;
    for (const Individual& one : all) {
        found += table.find("\n" + to_text(one.id) + ",") != std::string::npos ? 1 : 0;
    }
    CHECK(found == all.size());
    static_cast<void>(parsed_json(report::run_json(recovered, recovered.space, {}, "run", 20)));
    for (std::size_t i = 0; i < all.size(); i += 50) {
        const auto shown =
            parsed_json(report::individual_json(recovered, recovered.space, search::Measure{}, all[i].id));
        CHECK(std::string_view(shown["outcome"].GetString()) == word(all[i].outcome));
    }
    const auto exported = parsed_json(report::individuals_json(recovered, recovered.space, {}, "run"));
    CHECK(exported["individuals"].Size() == all.size());
}

/// Writes half of the individuals to an archive and half to a journal, and checks that recovery finds all. Then checks
/// the same for an archive with all individuals.
void check_run(const std::vector<Individual>& all, const search::Space& space) {
    const testing::TemporaryFolder folder;
    const store::RunDirectory directory(folder / "run");
    directory.create();
    search::Population archived(search::ExchangeKind::none, 1);
    store::Journal journal(directory.journal(0), store::samples::facts().run);
    std::size_t evaluations = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
        evaluations += all[i].finished_training() ? 1 : 0;
        if (i % 2 == 0) {
            archived.merge(all[i]);
        } else {
            journal.write(search::encode(search::Started{all[i]}, store::samples::facts().run));
            journal.write(search::encode(search::Result{all[i]}, store::samples::facts().run));
        }
    }
    write_archive(directory.archive(), space, archived, store::samples::facts());
    for (int start = 0; start < 2; ++start) {
        const auto recovered = store::recover_run(directory);
        CHECK_MESSAGE(recovered.problems.empty(), recovered.problems.front());
        search::Population population(search::ExchangeKind::none, 1);
        recovered.merge_into(population);
        CHECK(population.size() == all.size());
        CHECK(population.evaluations() == evaluations);
        for (const Individual& one : all) {
            REQUIRE(population.find(one.id) != nullptr);
            CHECK(identical(*population.find(one.id), one));
        }
        check_exports(recovered, all);
        write_archive(directory.archive(), space, population, recovered.facts);
    }
}

}  // namespace

TEST_CASE("all readers accept the records of random results, and no result is lost") {
    const search::Space space = store::samples::mnist_space();
    for (std::uint32_t first = 0; first < draws(); first += batch) {
        RandomStream random(11, Purpose::test, first);
        std::vector<Individual> all;
        for (std::uint32_t number = first; number < std::min(draws(), first + batch); ++number) {
            CAPTURE(number);
            const Individual drawn = any_result(number, space, random);
            Individual made = drawn;
            static_cast<void>(search::make_recordable(made, space));
            check_meaning(drawn, made, space);
            check_message(made);
            all.push_back(std::move(made));
        }
        check_run(all, space);
    }
}
