#include "finch/run/given.hpp"

#include "finch/base/error.hpp"
#include "finch/run/evolve.hpp"

#include <doctest/doctest.h>

using namespace finch;
using namespace finch::run;

namespace {

constexpr const char* configuration_text = R"(
name: tiny
data: {kind: generated, samples: 120, size: 8, validation_samples: 20}
model: [conv: {channels: $channels, kernel: 3}, flatten, linear: {units: classes}]
training: {epochs: 1, batch_size: 20, learning_rate: $lr}
search: {space: {channels: {int: [1, 8]}, lr: {real: [0.001, 1]}}, objective: validation_loss, budget: {evaluations: 1}}
)";

std::string directory_of(const std::vector<std::string>& genes) {
    RunOptions options;
    options.genes = genes;
    return run_directory_of(config::parse(configuration_text, "test"), options).string();
}

}  // namespace

TEST_CASE("the default run directory depends on the genome, not on its notation") {
    const std::string one = directory_of({"channels=2", "lr=0.5"});

    CHECK(one.starts_with("runs/tiny-train-"));
    CHECK(one == directory_of({"lr=5e-1", "channels=2"}));
    CHECK(one != directory_of({"channels=2", "lr=0.01"}));
    CHECK(one != directory_of({"channels=3", "lr=0.5"}));
}

TEST_CASE("a given run directory is used unchanged") {
    RunOptions options;
    options.genes = {"channels=2", "lr=0.5"};
    options.run = "elsewhere";

    CHECK(run_directory_of(config::parse(configuration_text, "test"), options) == "elsewhere");
}

TEST_CASE("a run directory with other genes is refused, naming the difference") {
    const search::Space space = config::parse(configuration_text, "test").space;
    search::Individual known;
    known.id = search::Id::make(0, 0, 1);
    known.genome = {2, 0.01};
    search::Population population(search::ExchangeKind::none, 1);
    population.merge(known);

    CHECK_NOTHROW(check_same_genes(space, {2, 0.01}, population, "runs/x"));
    CHECK_THROWS_WITH_AS(check_same_genes(space, {2, 0.5}, population, "runs/x"), doctest::Contains("lr: 0.01 → 0.5"),
                         ConfigError);
}

TEST_CASE("given_genome needs a value for each active gene that is not fixed, and returns a canonical genome") {
    const search::Space space{{{"optimizer", search::ChoiceGene{{"sgd", "adam"}}},
                               {"momentum", search::RealGene{0.1, 0.9}, {{0, {0}}}},
                               {"rate", search::RealGene{0.5, 0.5}}}};

    CHECK(given_genome(space, {"optimizer=adam"}) == search::Genome{1, 0.1, 0.5});
    CHECK(given_genome(space, {"momentum=0.7", "optimizer=adam"}) == search::Genome{1, 0.1, 0.5});
    CHECK(given_genome(space, {"momentum=0.7", "optimizer=sgd", "rate=0.5"}) == search::Genome{0, 0.7, 0.5});
    CHECK_THROWS_WITH_AS((void)given_genome(space, {"optimizer=sgd"}),
                         "--gene is missing for momentum: one individual needs a value for every gene that is active",
                         ConfigError);
    CHECK_THROWS_WITH_AS((void)given_genome(space, {"optimizer=adam", "rate=0.4"}),
                         "gene rate: \"0.4\" is not 0.5, its only value", ConfigError);
}
