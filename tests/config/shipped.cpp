#include "finch/config/config.hpp"

#include <cstdlib>
#include <doctest/doctest.h>

namespace {

using namespace finch;

config::Config shipped(const std::string& name) {
    const char* const source = std::getenv("FINCH_SOURCE_DIR");
    return config::load(std::filesystem::path(source == nullptr ? "." : source) / "configs" / name);
}

TEST_CASE("mnist.yaml matches the search in Propulate's tutorial") {
    const config::Config config = shipped("mnist.yaml");

    REQUIRE(config.space.size() == 4);
    CHECK(config.space.genes[0] == search::Gene{"conv_layers", search::IntGene{2, 10}});
    CHECK(config.space.genes[1] == search::Gene{"activation", search::ChoiceGene{{"relu", "sigmoid", "tanh"}}});
    CHECK(config.space.genes[2] == search::Gene{"lr", search::RealGene{1e-4, 1e-2, search::Scale::log}});
    CHECK(config.space.genes[3] == search::Gene{"gamma", search::RealGene{0.5, 0.999, search::Scale::linear}});

    const train::Recipe recipe = config.recipe({4, 2, 1e-3, 0.9}, 1);
    CHECK(recipe.training.epochs == 20);
    CHECK(recipe.training.batch_size == 16);
    CHECK(recipe.training.patience == 5);
    CHECK(recipe.training.learning_rate == 1e-3);
    CHECK(std::get<backend::Adadelta>(recipe.training.optimizer).rho == 0.9);
    CHECK(std::get<nn::StepSchedule>(recipe.training.schedule).every == 1);
    CHECK(std::get<nn::StepSchedule>(recipe.training.schedule).factor == 0.9);
    CHECK(recipe.data.validation_samples == 10000);
    const auto& conv = std::get<nn::ConvLayer>(recipe.model.at(0));
    CHECK(conv.channels == 10);
    CHECK(conv.kernel == 3);
    CHECK(conv.repeat == 4);
    CHECK(conv.activation == backend::Activation::tanh);
    CHECK(config.budget.evaluations == 200);
    CHECK(std::holds_alternative<search::GeneticOptions>(config.propagator_of(0)));
    CHECK_FALSE(config.final_choice);
    CHECK(config.workers.ranks == 2);
    CHECK(config.workers.islands == 2);
    CHECK_NOTHROW(config::check_models(config, {28, 28, 1}, 10));
}

TEST_CASE("quickstart.yaml trains on generated digits with 2 islands, each with one worker of 2 ranks") {
    const config::Config config = shipped("quickstart.yaml");

    CHECK(config.workers.ranks == 2);
    CHECK(config.workers.islands == 2);
    CHECK(std::holds_alternative<search::AutomaticOptions>(config.propagator_of(0)));
    CHECK(config.trains());
    CHECK(config.recipe(search::Genome{4, 0, 0, 0.01}, 1).data.kind == data::Kind::generated);
    CHECK_NOTHROW(config::check_models(config, {28, 28, 1}, 10));
}

TEST_CASE("cifar10_residual.yaml searches residual networks with 12 genes and passes check_models") {
    const config::Config config = shipped("gallery/cifar10_residual.yaml");

    CHECK(config.space.size() == 12);
    CHECK(config.recipe(search::Genome{0, 0, 0, 0, 0, 0, 0, 0, 0.0, 8, 0.1, 1e-4}, 1).model.size() == 10);
    CHECK_NOTHROW(config::check_models(config, {32, 32, 3}, 10));
}

TEST_CASE("sphere.yaml is a benchmark function") {
    const config::Config config = shipped("sphere.yaml");

    CHECK(!config.trains());
    CHECK(config.space.size() == 2);
}

}  // namespace
