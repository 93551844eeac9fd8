#include "config/problem.hpp"

#include <doctest/doctest.h>

namespace {

using namespace finch;
using namespace finch::test;

const std::string all_kinds = R"(
data: {kind: idx, path: here, axes: NCHW, training_samples: $samples, normalize: {mean: [0.1, $mean], deviation: 0.5}}
model:
  - conv: {channels: $channels, kernel: 5, padding: 1, activation: $act, repeat: $layers}
  - $pool
  - activation: $act
  - flatten
  - linear: {units: 30, activation: tanh}
  - linear
training:
  epochs: 7
  batch_size_per_rank: $channels
  scale_learning_rate: sqrt
  optimizer: $optimizer
  learning_rate: $lr
  schedule: {step: {every: 2, factor: $gamma}}
  early_stopping: {patience: 4}
search:
  space:
    samples: {int: [100, 200]}
    mean: {real: [0.25, 0.75]}
    channels: {choice: [4, 8, 16]}
    act: {choice: [relu, sigmoid]}
    layers: {int: [0, 3]}
    pool: {choice: [max_pool, average_pool]}
    optimizer: {choice: [sgd, adamw]}
    lr: {real: [1e-4, 1e-2], scale: log}
    gamma: {real: [0.5, 0.999]}
)";

TEST_CASE("recipe: the default learning rate depends on the optimizer, and config.yaml contains it") {
    const auto rate_of = [](const std::string& training) {
        return config::parse("training: {" + training + "}", "f").recipe({}, 1).training.learning_rate;
    };
    CHECK(rate_of("") == 1);
    CHECK(rate_of("optimizer: adam") == 0.001);
    CHECK(rate_of("optimizer: {adamw: {beta1: 0.8}}, learning_rate: auto") == 0.001);
    CHECK(rate_of("optimizer: {sgd: {momentum: 0.9}}") == 0.01);
    CHECK(rate_of("optimizer: sgd, learning_rate: 0.5") == 0.5);
    CHECK(contains(config::parse("training: {optimizer: adam}", "f").text(), "learning_rate: 0.001"));
    const config::Config chosen =
        config::parse("training: {optimizer: $o}\nsearch: {space: {o: {choice: [sgd, adam]}}}", "f");
    CHECK_FALSE(chosen.recipe({1}, 1).training.learning_rate);
}

TEST_CASE("recipe: training.average can be a gene, also a choice with the word none; the default is none") {
    const auto average_of = [](const std::string& space, double value) {
        const std::string text = "training: {average: $ema}\nsearch: {space: {ema: {" + space + "}}}";
        return config::parse(text, "f").recipe({value}, 1).training.average;
    };
    CHECK(average_of("real: [0.9, 0.999]", 0.95) == 0.95);
    CHECK(average_of("choice: [none, 0.99]", 1) == 0.99);
    CHECK_FALSE(average_of("choice: [none, 0.99]", 0));
    CHECK_FALSE(config::parse("name: x", "f").recipe({}, 1).training.average);
}

TEST_CASE("recipe: genes of every kind are replaced by their values in data, model and training") {
    const config::Config config = config::parse("seed: 9" + all_kinds, "file.yaml");
    const double lr = 0.1 / 3;

    const train::Recipe recipe = config.recipe({150, 0.3, 2, 1, 3, 1, 1, lr / 10, 0.9}, 77);

    CHECK(recipe.seed == 9);
    CHECK(recipe.individual == 77);
    CHECK(recipe.data.kind == data::Kind::idx);
    CHECK(recipe.data.path == "here");
    CHECK(recipe.data.axes == data::Axes::nchw);
    CHECK(recipe.data.training_samples == 150);
    CHECK(recipe.data.mean == std::vector<double>{0.1, 0.3});
    CHECK(recipe.data.deviation == std::vector<double>{0.5});
    REQUIRE(recipe.model.size() == 6);
    const auto& conv = std::get<nn::ConvLayer>(recipe.model[0]);
    CHECK(conv.channels == 16);
    CHECK(conv.kernel == 5);
    CHECK(conv.stride == 1);
    CHECK(conv.padding == 1);
    CHECK(conv.activation == backend::Activation::sigmoid);
    CHECK(conv.repeat == 3);
    const auto& pool = std::get<nn::PoolLayer>(recipe.model[1]);
    CHECK(pool.kind == backend::Pooling::average);
    CHECK(pool.kernel == 2);
    CHECK(!pool.stride);  // no value: the stride equals the kernel
    CHECK(std::get<nn::ActivationLayer>(recipe.model[2]).activation == backend::Activation::sigmoid);
    CHECK(std::holds_alternative<nn::FlattenLayer>(recipe.model[3]));
    CHECK(std::get<nn::LinearLayer>(recipe.model[4]).units == 30);
    CHECK(std::get<nn::LinearLayer>(recipe.model[4]).activation == backend::Activation::tanh);
    CHECK(std::get<nn::LinearLayer>(recipe.model[5]).units == 0);
    CHECK(recipe.training.epochs == 7);
    CHECK(recipe.training.batch_size_per_rank == 16);
    CHECK(recipe.training.scale_learning_rate == train::ScaleLearningRate::sqrt);
    CHECK(std::get<backend::AdamW>(recipe.training.optimizer).weight_decay == 0.01);
    CHECK(recipe.training.learning_rate == lr / 10);
    CHECK(std::get<nn::StepSchedule>(recipe.training.schedule).every == 2);
    CHECK(std::get<nn::StepSchedule>(recipe.training.schedule).factor == 0.9);
    CHECK(recipe.training.patience == 4);
}

TEST_CASE("recipe_json: genes have their values, and every key of an alternative that a gene chooses has one") {
    const config::Config config = config::parse("seed: 9" + all_kinds, "file.yaml");

    const std::string json = config.recipe_json({150, 0.3, 2, 1, 3, 1, 1, 0.003, 0.9});

    CHECK(contains(json, R"({"model":[{"conv":{"channels":16,"kernel":5,"stride":1,"dilation":1,"groups":1,)"
                         R"("padding":1,"activation":"sigmoid","repeat":3}},{"average_pool":{"kernel":2,)"
                         R"("stride":"kernel","padding":0,"repeat":1}},)"));
    CHECK(contains(json, R"("learning_rate":0.003)"));
    CHECK(contains(json, R"("adamw":{"beta1":0.9,)"));
}

TEST_CASE("recipe_json: a gene that is not active leaves its key at the default") {
    const config::Config config = config::parse(
        "model: [{conv: {kernel: $k}}, {dropout: {rate: $r}}, flatten, linear]\n"
        "search: {space: {k: {choice: [3, 5]}, r: {real: [0.1, 0.3], when: {k: 5}}}}",
        "f");

    CHECK(contains(config.recipe_json({0, 0.2}), R"("dropout":{"rate":0.5})"));
    CHECK(contains(config.recipe_json({1, 0.2}), R"("dropout":{"rate":0.2})"));
}

TEST_CASE("recipe: without genes, the configured values and the defaults of torch.optim are used") {
    const config::Config config = config::parse("training: {optimizer: adam, schedule: {cosine: {minimum: 0.1}}}", "f");

    const train::Recipe recipe = config.recipe({}, 1);

    const auto& adam = std::get<backend::Adam>(recipe.training.optimizer);
    CHECK(adam.beta1 == 0.9);
    CHECK(adam.beta2 == 0.999);
    CHECK(adam.epsilon == 1e-8);
    CHECK(adam.weight_decay == 0);
    CHECK(std::get<nn::CosineSchedule>(recipe.training.schedule).minimum == 0.1);
    CHECK(recipe.training.batch_size == 64);
    CHECK(!recipe.training.batch_size_per_rank);
    CHECK(!recipe.training.patience);
    CHECK(recipe.data.kind == data::Kind::generated);
    CHECK(!recipe.data.training_samples);
    CHECK(!std::get<nn::ConvLayer>(recipe.model[0]).padding);
}

TEST_CASE("recipe: a genome with a wrong number of genes throws Error") {
    CHECK_THROWS_AS((void)config::parse("name: x", "f").recipe({1.0}, 1), Error);
    CHECK_THROWS_AS((void)config::parse("search: {objective: {function: sphere}}", "f").recipe({1.0, 1.0}, 1), Error);
}

TEST_CASE("text: parsing text() gives an equal configuration") {
    for (const std::string& yaml :
         {std::string("name: x"), all_kinds, std::string("search: {objective: {function: rastrigin, dimensions: 20}}"),
          std::string(
              "training: {batch_size_per_rank: 8, optimizer: {sgd: {momentum: 0.9}}}\nsearch: {propagator: random, "
              "budget: {hours: 2, target_loss: -1e-3}}\nworkers: {islands: [3, 1], threads: 2}\nlog: {path: \"a "
              "b\"}")}) {
        const config::Config first = config::parse(yaml, "file.yaml");
        const config::Config second = config::parse(first.text(), "again");

        CHECK(second.text() == first.text());
        CHECK(second.fixed_text() == first.fixed_text());
        CHECK(second.space == first.space);
        CHECK(second.log.path == first.log.path);
        CHECK(second.workers.island_sizes == first.workers.island_sizes);
        CHECK(second.workers.threads == first.workers.threads);
        CHECK(second.budget.evaluations == first.budget.evaluations);
        CHECK(second.budget.target_loss == first.budget.target_loss);
        CHECK(second.propagator.index() == first.propagator.index());
        CHECK(second.trains() == first.trains());
    }
}

TEST_CASE("a benchmark function defines its own genes and has a default number of dimensions") {
    const config::Config config = config::parse("search: {objective: {function: rastrigin, seconds: 2}}", "f");

    const auto& objective = std::get<config::FunctionObjective>(config.objective);
    CHECK(objective.function == "rastrigin");
    CHECK(objective.dimensions == 20);
    CHECK(objective.seconds == 2);
    CHECK(config.space.size() == 20);
    CHECK(config.space.genes[19].name == "x19");
    CHECK(!contains(config.text(), "model:"));
    CHECK(objective.make_instance().rotation().empty());
    CHECK(objective.make_instance().optimum()[0] == 0);
    CHECK(objective.duration().median_seconds == 2);
}

TEST_CASE("a benchmark function is shifted and rotated on request, identically in every process") {
    const auto instance_of = [](const std::string& keys) {
        const config::Config config =
            config::parse("search: {objective: {function: rastrigin, dimensions: 5, " + keys + "}}", "f");
        return std::get<config::FunctionObjective>(config::parse(config.text(), "again").objective).make_instance();
    };
    const search::FunctionInstance first = instance_of("shift: true, rotate: true, instance: 4");
    const search::FunctionInstance again = instance_of("shift: true, rotate: true, instance: 4");
    const search::FunctionInstance other = instance_of("shift: true, rotate: true, instance: 5");
    const std::vector<double> x{1, 2, -1, 0.5, 3};

    CHECK(first.value(x) == again.value(x));
    CHECK(first.value(x) != other.value(x));
    CHECK(instance_of("shift: true").rotation().empty());
    CHECK(instance_of("rotate: true").rotation().size() == 25);
    CHECK(instance_of("rotate: true").optimum()[0] == 0);
}

TEST_CASE("difference: names each different key, and treats equal numbers in other notations as equal") {
    const auto fixed = [](const std::string& yaml) { return config::parse(yaml, "f").fixed_text(); };
    const std::string before = fixed("training: {batch_size: 16, learning_rate: 1e-4}");

    CHECK(config::difference(before, before) == "");
    CHECK(config::difference(before, fixed("training: {batch_size: 16, learning_rate: 0.0001}")) == "");
    CHECK(config::difference(before, fixed("training: {batch_size: 32, learning_rate: 1e-4}")) ==
          "training.batch_size: 16 → 32");
    CHECK(config::difference(before, fixed("seed: 2\ntraining: {batch_size: 16, learning_rate: 1e-4}\nmodel: [flatten, "
                                           "linear]")) != "");
    CHECK(contains(config::difference(fixed("model: [flatten, linear]"), fixed("model: [flatten, linear, linear]")),
                   "model[2].linear.units: nothing → classes"));
}

TEST_CASE("fixed_text() excludes keys that may change between two starts of a run") {
    const auto fixed = [](const std::string& yaml) { return config::parse(yaml, "f").fixed_text(); };

    CHECK(fixed("name: x") ==
          fixed("{name: y, workers: {ranks: 2}, search: {budget: {evaluations: 5}, exchange: {kind: "
                "none}, propagator: random}, checkpoint: {archive_seconds: 1}, log: {level: debug}}"));
    CHECK(fixed("name: x") == fixed("data: {path: elsewhere}"));
    CHECK(fixed("data: {kind: cifar, path: x}") ==
          fixed("data: {kind: cifar, path: x, memory: streamed, prefetch: {threads: 5, batches: 9}}"));
    CHECK(!contains(fixed("name: x"), "memory:"));
    CHECK(!contains(fixed("name: x"), "prefetch:"));
    CHECK(fixed("name: x") != fixed("seed: 2"));
    CHECK(fixed("name: x") != fixed("data: {size: 20}"));
    CHECK(fixed("name: x") != fixed("data: {axes: NCHW}"));
    for (const char* key : {"kind", "axes", "normalize", "training_samples", "validation_samples", "samples", "size"}) {
        CHECK_MESSAGE(contains(fixed("name: x"), std::string("  ") + key + ":"), key);
    }
    CHECK(!contains(fixed("name: x"), "path:"));
    CHECK(fixed("name: x") != fixed("model: [flatten, linear]"));
    CHECK(fixed("name: x") != fixed("search: {objective: validation_error}"));
    const auto validation = [&](const std::string& yaml) {
        return fixed("data: {kind: cifar, path: here, validation: " + yaml + "}");
    };
    CHECK(validation("{own: {path: a}}") == validation("{own: {path: b}}"));  // the path may change between two starts
    CHECK(validation("own") != validation("sampled"));
}

TEST_CASE("check_models accepts a space with at least one valid network; otherwise the message names the layer") {
    const std::string head =
        "training: {learning_rate: $lr}\nmodel:\n  - max_pool: {kernel: 2, repeat: $pools}\n  - flatten\n"
        "  - linear\nsearch:\n  space:\n    lr: {real: [0.1, 1]}\n";

    CHECK_NOTHROW(config::check_models(config::parse(head + "    pools: {int: [0, 9]}\n", "f"), {28, 28, 1}, 10));
    CHECK_THROWS_WITH_AS(config::check_models(config::parse(head + "    pools: {int: [6, 9]}\n", "f"), {28, 28, 1}, 10),
                         doctest::Contains("model[0]"), ConfigError);
    CHECK_THROWS_WITH_AS(
        config::check_models(config::parse("model: [flatten, {linear: {units: 7}}]", "f"), {28, 28, 1}, 10),
        "model[1] (linear): the last layer gives 7 numbers (1 x 1 x 7), but 10 are needed, one for each class or "
        "target; "
        "end with flatten and linear: {units: classes}; so no network of this configuration can exist for samples of "
        "28 x 28 x 1 and 10 outputs",
        ConfigError);
}

TEST_CASE("recipe: data.memory streamed needs data from files, and prefetch options cannot be genes") {
    const auto data = config::parse("data: {kind: idx, path: x, memory: streamed, prefetch: {threads: 3}}", "f");

    const data::Options options = data.recipe({}, 1).data;
    CHECK(options.memory == data::Memory::streamed);
    CHECK(options.prefetch == pixels::Prefetch{.threads = 3, .batches = 4});
    CHECK(contains(problem_of("data: {memory: streamed}"), "data.memory: streamed is for data from files"));
    CHECK(problem_of("data: {kind: idx, path: x, prefetch: {threads: $t}}\nsearch: {space: {t: {int: [1, 4]}}}") != "");
    CHECK(problem_of("data: {kind: idx, path: x, prefetch: {threads: 65}}") != "");
}

}  // namespace
