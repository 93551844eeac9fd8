#include "finch/run/reuse.hpp"

#include "finch/base/error.hpp"
#include "finch/base/files.hpp"
#include "finch/base/format.hpp"

#include "support/temporary_folder.hpp"

#include <doctest/doctest.h>
#include <fstream>

using namespace finch;
using namespace finch::run;
using testing::TemporaryFolder;

namespace {

const std::string network =
    "seed: 3\nmodel: [{conv: {channels: $width}}, flatten, linear]\n"
    "training: {epochs: 2}\nsearch: {space: {width: {int: [1, 9]}}}\n";

search::Individual trained(std::uint32_t number, double loss, double width) {
    search::Individual one;
    one.id = search::Id::make(0, 0, number);
    one.genome = {width};
    one.outcome = search::Outcome::evaluated;
    one.loss = loss;
    one.ranks = 2;
    return one;
}

store::RunDirectory write_run(const std::filesystem::path& folder, const std::vector<search::Individual>& all,
                              std::uint64_t run = 42, const std::string& yaml = network) {
    const config::Config config = config::parse(yaml, "earlier");
    store::ArchiveFacts facts;
    facts.run = run;
    facts.config = config.text();
    facts.data_fingerprint = "these";
    search::Population population(search::ExchangeKind::none, 1);
    for (const search::Individual& one : all) {
        population.merge(one);
    }
    const store::RunDirectory directory(folder);
    directory.create();
    store::write_archive(directory.archive(), config.space, population, facts);
    std::ofstream(directory.config()) << config.text();
    return directory;
}

/// A folder with the run "earlier", and a run "mine" that reuses its results.
struct Runs {
    TemporaryFolder folder;
    std::filesystem::path earlier = folder / "earlier";
    store::RunDirectory mine{folder / "mine"};

    [[nodiscard]] OtherRuns read(const std::vector<std::string>& settings = {}, const std::string& data = "these",
                                 bool goes_on = true) const {
        auto all = settings;
        all.insert(all.begin(), fmt::format("search.reuse=[{}]", earlier.string()));
        return read_other_runs(config::parse(network, "mine", all), mine, goes_on, data);
    }
    [[nodiscard]] std::string problem(const std::vector<std::string>& settings = {}, const std::string& data = "these",
                                      bool goes_on = true) const {
        try {
            static_cast<void>(read(settings, data, goes_on));
        } catch (const ConfigError& error) {
            return error.what();
        }
        return "";
    }
};

bool has(const std::string& text, const std::string& part) {
    INFO(text);
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("reuse: returns results of equal evaluations with their individual and run") {
    const Runs runs;
    write_run(runs.earlier, {trained(1, 0.5, 4), trained(2, 0.25, 4), trained(3, 0.125, 8)});

    const OtherRuns all = runs.read();
    const OtherRuns narrow = runs.read({"search.space.width.int=[3, 5]"});
    const OtherRuns anew = runs.read({}, "these", false);

    CHECK(all.results.all().size() == 2);
    CHECK(all.results.find({4})->reused_from == search::Id::make(0, 0, 1));
    CHECK(all.results.find({4})->loss == 0.5);
    CHECK(all.results.find({8})->reused_run == 42);
    CHECK(all.runs == std::vector<store::ReusedRun>{{42, runs.earlier.string()}});
    CHECK(has(all.notes.back(), "3 of 3 results of " + runs.earlier.string()));
    CHECK(narrow.results.all().size() == 1);
    CHECK(anew.results.all().size() == 2);
}

TEST_CASE("reuse: unsuitable runs are refused with the reason") {
    const Runs runs;
    CHECK(has(runs.problem(), "search.reuse: " + runs.earlier.string() + ": there is no run here"));
    write_run(runs.earlier, {trained(1, 0.5, 4)});

    CHECK(has(runs.problem({}, "those"), "other data (checksum these there, those here)"));
    CHECK(has(runs.problem({"seed=4"}), "its seed is 3, here it is 4"));
    CHECK(has(runs.problem({"training.epochs=5"}), "it evaluates otherwise: training.epochs: 2 → 5"));
    CHECK(has(runs.problem({"training.epochs=5", "training.batch_size=8"}), ";training."));
    CHECK(
        has(runs.problem({"search.space.width.int=[6, 9]"}), "none of its results (1 in all) has genes of this space"));
    CHECK(has(runs.problem({"search.space.width.int=[6, 9]"}), "; 0.0.1 has width = 4"));
    CHECK(has(runs.problem({"training.batch_size_per_rank=16"}), "training.batch_size"));
    std::ofstream(runs.earlier / "population.h5") << "no archive";
    CHECK(has(runs.problem(), "its archive cannot be read"));
}

TEST_CASE("reuse: another Finch version is refused for built-in objectives, but not for programs") {
    const config::Config function = config::parse("search: {objective: {function: sphere}}", "f");
    const config::Config program =
        config::parse("search: {space: {a: {int: [0, 9]}}, objective: {command: 'run {a}'}}", "c");
    store::ArchiveFacts facts;
    facts.program_version = "0.0.1";

    CHECK(has(why_unfit(facts, function, function, "").value_or(""), "of Finch 0.0.1, and this is Finch "));
    CHECK_FALSE(why_unfit(facts, program, program, ""));
    CHECK(has(why_unfit(facts, program, program, "files").value_or(""), "other files of the program"));
}

TEST_CASE("reuse: a result fits if its active genes and values are the same, in any order and with any bounds") {
    const std::string objective = "search: {objective: {command: run}, space: {";
    const config::Config earlier = config::parse(
        objective + "a: {choice: [x, y]}, b: {int: [1, 9], when: {a: x}}, c: {real: [0, 1]}}}", "earlier");
    const Runs runs;
    search::Individual with_b = trained(1, 0.5, 0);
    with_b.genome = {0, 4, 0.25};
    search::Individual without_b = trained(2, 0.5, 0);
    without_b.genome = {1, 1, 0.75};
    write_run(runs.earlier, {with_b, without_b}, 42, earlier.text());
    const auto found = [&](const std::string& space) {
        const config::Config config =
            config::parse(objective + space + fmt::format("}}, reuse: [{}]}}", runs.earlier.string()), "mine");
        return read_other_runs(config, runs.mine, true, "these").results;
    };

    const OtherRuns all = {found("c: {real: [0, 2]}, b: {int: [4, 5], when: {a: x}}, a: {choice: [z, y, x]}"), {}, {}};
    CHECK(all.results.all().size() == 2);
    CHECK(all.results.find({0.25, 4, 2})->reused_from == with_b.id);
    CHECK(all.results.find({0.75, 4, 1})->reused_from == without_b.id);
    CHECK(found("a: {choice: [x, y]}, b: {int: [1, 9]}, c: {real: [0, 1]}").all().size() == 1);
    CHECK_THROWS_AS(static_cast<void>(found("a: {choice: [x, y]}, c: {real: [0, 0.5]}, d: {int: [1, 2]}")),
                    ConfigError);
    CHECK(found("a: {choice: [x, y]}, c: {real: [0, 1]}").find({1, 0.75})->reused_from == without_b.id);
    CHECK(found("a: {choice: [x, y]}, c: {real: [0, 1]}").all().size() == 1);
}

TEST_CASE("reuse: with batch_size_per_rank, the number of ranks must be the same") {
    const Runs runs;
    const std::vector<std::string> per_rank{"training.batch_size_per_rank=16"};
    const config::Config earlier = config::parse(network, "earlier", per_rank);
    write_run(runs.earlier, {trained(1, 0.5, 4)}, 42, earlier.text());

    CHECK(has(runs.problem(per_rank), "with batch_size_per_rank the same number of ranks"));
    CHECK(runs.read({"training.batch_size_per_rank=16", "workers.ranks=2"}).results.all().size() == 1);
}

TEST_CASE("reuse: a run that names itself is refused") {
    const Runs runs;
    write_run(runs.mine.root(), {trained(1, 0.5, 4)});
    std::filesystem::create_symlink(runs.mine.root(), runs.earlier);

    CHECK(has(runs.problem(), "this is the run itself"));
}

TEST_CASE("reuse: a continued run tolerates that a reused run is gone") {
    const Runs runs;
    write_run(runs.mine.root(), {trained(1, 0.5, 4)}, 7);
    CHECK(has(runs.problem(), "there is no run here"));
    const config::Config given =
        config::parse(network, "mine", {fmt::format("search.reuse=[{}]", runs.earlier.string())});
    std::ofstream(runs.mine.config()) << given.text();

    const OtherRuns found = runs.read();

    CHECK(found.results.all().empty());
    CHECK(has(found.notes.back(), "there is no run here"));
    CHECK(has(found.notes.back(), "what was taken over from it stays"));
    CHECK(has(runs.problem({}, "these", false), "there is no run here"));
}

TEST_CASE("reuse: a run without results is accepted; add_runs updates the path of a known run") {
    std::vector<store::ReusedRun> known{{1, "a"}, {2, "b"}};
    const Runs runs;
    write_run(runs.earlier, {});

    add_runs(known, {{2, "c"}, {3, "d"}});

    CHECK(runs.read().results.all().empty());
    CHECK(known == std::vector<store::ReusedRun>{{1, "a"}, {2, "c"}, {3, "d"}});
}
