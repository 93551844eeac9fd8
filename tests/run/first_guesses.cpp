#include "finch/run/first_guesses.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/store/archive.hpp"
#include "finch/store/run_directory.hpp"

#include "support/temporary_folder.hpp"

#include <doctest/doctest.h>
#include <fstream>

using namespace finch;
using namespace finch::run;
using testing::TemporaryFolder;

namespace {

std::string configuration_of(const std::string& space, const std::string& more = "") {
    return "model: [{conv: {channels: $width, activation: $act}}, flatten, linear]\n"
           "training: {learning_rate: $lr, optimizer: {sgd: {momentum: $m}}}\n"
           "search:\n  space: " +
           space + "\n" + more;
}
const std::string earlier =
    "{width: {int: [4, 64]}, act: {choice: [relu, tanh]}, lr: {real: [0.001, 1]}, m: {real: [0, 0.9], when: {act: "
    "[relu]}}}";

search::Individual trained(std::uint32_t number, double loss, search::Genome genome) {
    search::Individual one;
    one.id = search::Id::make(0, 0, number);
    one.genome = std::move(genome);
    one.outcome = search::Outcome::evaluated;
    one.loss = loss;
    return one;
}

/// Writes a run with the individuals 3, 2, 1, 4 in order of loss. Individuals 3 and 2 have the same genes.
void write_run(const std::filesystem::path& folder) {
    const config::Config config = config::parse(configuration_of(earlier), "earlier");
    store::ArchiveFacts facts;
    facts.config = config.text();
    search::Population population(search::ExchangeKind::none, 1);
    population.merge(trained(1, 0.3, {16, 0, 0.5, 0.8}));
    population.merge(trained(2, 0.2, {48, 1, 0.01, 0}));
    population.merge(trained(3, 0.1, {48, 1, 0.01, 0}));
    population.merge(trained(4, 0.4, {5, 0, 0.25, 0.5}));
    const store::RunDirectory directory(folder);
    directory.create();
    store::write_archive(directory.archive(), config.space, population, facts);
}

RunOptions in(const std::filesystem::path& run, bool fresh = false) {
    RunOptions options;
    options.run = run;
    options.fresh = fresh;
    return options;
}

/// Returns the first guesses of a new run with space `space`. Adds messages to `notes`.
std::vector<search::Guess> guesses(const std::string& space, const std::filesystem::path& run, int best,
                                   std::vector<std::string>& notes, const RunOptions& options = {}) {
    const std::string first = fmt::format("  first: {{run: {}, best: {}}}\n", run.string(), best);
    return with_first_guesses(config::parse(configuration_of(space, first), "new"), options, 0, notes).first.guesses;
}

}  // namespace

TEST_CASE("search.first takes the best different genomes of an earlier run, and leaves inactive genes open") {
    const TemporaryFolder folder;
    write_run(folder / "run");
    std::vector<std::string> notes;

    CHECK(guesses(earlier, folder / "run", 3, notes, in(folder / "new")) ==
          std::vector<search::Guess>{{48, 1, 0.01, {}}, {16, 0, 0.5, 0.8}, {5, 0, 0.25, 0.5}});
    CHECK(notes == std::vector{fmt::format("search.first: 3 guesses from {}", (folder / "run").string())});
}

TEST_CASE("first: values outside of the space become the nearest values, unknown words stay open; notes report both") {
    const TemporaryFolder folder;
    write_run(folder / "run");
    std::vector<std::string> notes;
    const std::string space =
        "{lr: {real: [0.05, 0.2], step: 0.05}, act: {choice: [sigmoid, relu]}, width: {choice: [8, 16, 40]}, m: 0.5}";

    CHECK(guesses(space, folder / "run", 2, notes, in(folder / "new")) ==
          std::vector<search::Guess>{{0.05, {}, 2, {}}, {0.2, 1, 1, 0.5}});
    REQUIRE(notes.size() == 3);
    CHECK(notes[0] == fmt::format("search.first: individual 0.0.3 of {} has values that this space has not: lr: 0.01 → "
                                  "0.05, act: tanh → at random, width: 48 → 40",
                                  (folder / "run").string()));
    CHECK(notes[1].find("lr: 0.5 → 0.2, m: 0.8 → 0.5") != std::string::npos);
}

TEST_CASE("first: a continued run keeps its guesses even if the earlier run is gone") {
    const TemporaryFolder folder;
    write_run(folder / "run");
    write_run(folder / "new");
    std::vector<std::string> notes;
    const std::string first = fmt::format("  first: {{run: {}, best: 2}}\n", (folder / "run").string());
    const auto config =
        with_first_guesses(config::parse(configuration_of(earlier, first), "new"), in(folder / "elsewhere"), 0, notes);
    std::ofstream(store::RunDirectory(folder / "new").config()) << config.text();
    std::filesystem::remove_all(folder / "run");

    CHECK(guesses(earlier, folder / "run", 2, notes, in(folder / "new")) == config.first.guesses);
    CHECK_THROWS_AS((void)guesses(earlier, folder / "run", 3, notes, in(folder / "new")), ConfigError);
    CHECK_THROWS_AS((void)guesses(earlier, folder / "run", 2, notes, in(folder / "new", true)), ConfigError);
}

TEST_CASE("first: a missing run and a run without common genes are refused") {
    const TemporaryFolder folder;
    write_run(folder / "run");
    std::vector<std::string> notes;

    CHECK_THROWS_WITH_AS((void)guesses(earlier, folder / "none", 2, notes),
                         doctest::Contains("none: there is no run here (no population.h5)"), ConfigError);
    const auto other = config::parse(
        fmt::format("search: {{objective: {{function: sphere}}, first: {{run: {}}}}}", (folder / "run").string()), "f");
    CHECK_THROWS_WITH_AS((void)with_first_guesses(other, {}, 0, notes),
                         doctest::Contains("none of its genes has a name of these: x0, x1"), ConfigError);
}
