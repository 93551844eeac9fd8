#include "config/problem.hpp"

#include <doctest/doctest.h>

namespace {

using namespace finch;

const std::string base = R"(
data: {kind: generated, samples: 300, size: 8, validation_samples: 100}
model:
  - conv: {channels: $channels, activation: $act, repeat: $layers}
  - flatten
  - linear
training: {epochs: 3, optimizer: $opt, learning_rate: $lr}
)";
const std::string wide =
    "search: {space: {channels: {int: [2, 8]}, act: {choice: [relu, tanh]}, layers: {int: [0, 2]}, "
    "opt: {choice: [sgd, adam]}, lr: {real: [0.001, 1], scale: log}}}";

std::string with(std::string text, const std::string& from, const std::string& to) {
    text.replace(text.find(from), from.size(), to);
    return text;
}

/// The genome in `mine` of what is evaluated as `genome` is in `other`.
std::optional<search::Genome> same(const config::Config& mine, const config::Config& other,
                                   const search::Genome& genome) {
    search::Genome like = mine.genome_like(other, genome);
    return mine.evaluation(like) == other.evaluation(genome) ? std::optional(like) : std::nullopt;
}

using Genome = search::Genome;

}  // namespace

TEST_CASE("evaluation: bounds, names, order and words of genes make no difference, their values do") {
    const auto a = config::parse(base + wide, "a");
    std::string text = with(with(base, "$lr", "$rate"), "$act", "$f");
    const auto b = config::parse(text +
                                     "search: {space: {rate: {real: [0.01, 0.5]}, f: {choice: [gelu, tanh]}, opt: "
                                     "{choice: [adam, sgd]}, channels: {choice: [4, 6]}, layers: {int: [1, 5]}}}",
                                 "b");

    CHECK(same(b, a, {4, 1, 2, 0, 0.125}) == Genome{0.125, 1, 1, 0, 2});
    CHECK(same(a, b, {0.125, 1, 1, 0, 2}) == Genome{4, 1, 2, 0, 0.125});
    CHECK_FALSE(same(b, a, {4, 0, 2, 0, 0.125}));  // relu
    CHECK_FALSE(same(b, a, {5, 1, 2, 0, 0.125}));
    CHECK_FALSE(same(b, a, {4, 1, 2, 0, 0.75}));
}

TEST_CASE("evaluation: a gene here may be a value there, and the other way round") {
    const auto genes = config::parse(base + wide, "genes");
    const auto fixed = config::parse(
        with(with(base, "$opt", "adam"), "$act", "tanh") +
            "search: {space: {channels: {int: [2, 8]}, layers: {int: [0, 2]}, lr: {real: [0.001, 1], scale: log}}}",
        "fixed");

    CHECK(same(fixed, genes, {4, 1, 2, 1, 0.125}) == Genome{4, 2, 0.125});
    CHECK(same(genes, fixed, {4, 2, 0.125}) == Genome{4, 1, 2, 1, 0.125});
    CHECK_FALSE(same(fixed, genes, {4, 0, 2, 1, 0.125}));
    CHECK_FALSE(same(fixed, genes, {4, 1, 2, 0, 0.125}));
}

TEST_CASE("evaluation: what is left out of the network makes no difference") {
    const auto a = config::parse(base + wide, "a");
    const auto b = config::parse(base + with(wide, "[2, 8]", "[3, 9]"), "b");

    CHECK(same(b, a, search::canonical(a.space, {5, 1, 0, 0, 0.5})) == search::canonical(b.space, {3, 0, 0, 0, 0.5}));
}

TEST_CASE("evaluation: every other value counts, however it is written, and the data's path does not") {
    const auto a = config::parse(base + wide, "a");
    const Genome genome{4, 1, 2, 0, 0.125};
    const auto is_same = [&](const std::string& setting) {
        return same(config::parse(base + wide, "b", {setting}), a, genome).has_value();
    };

    CHECK(is_same("training.batch_size=64"));  // the default
    CHECK(is_same("training.schedule=constant"));
    CHECK(is_same("data.path=elsewhere"));
    CHECK(is_same("search.propagator=random"));
    CHECK(is_same("workers.ranks=3"));
    CHECK_FALSE(is_same("training.epochs=4"));
    CHECK_FALSE(is_same("training.batch_size=32"));
    CHECK_FALSE(is_same("data.validation_samples=99"));
    CHECK_FALSE(is_same("search.objective=validation_error"));
    CHECK_FALSE(is_same("model.0.conv.kernel=5"));
}

TEST_CASE("evaluation: a gene that is not active, and alternatives with genes of their own") {
    const std::string text =
        "model: [flatten, linear]\ntraining: {learning_rate: $lr, optimizer: {$opt: {sgd: {momentum: $m}}}}\n";
    const auto a = config::parse(text +
                                     "search: {space: {lr: {real: [0.001, 1]}, opt: {choice: [sgd, adam]}, m: "
                                     "{real: [0.1, 0.9], when: {opt: [sgd]}}}}",
                                 "a");
    const auto b = config::parse(
        "model: [flatten, linear]\ntraining: {learning_rate: $lr, optimizer: {sgd: {momentum: "
        "0.5}}}\nsearch: {space: {lr: {real: [0.01, 1]}}}",
        "b");
    const auto c = config::parse(
        "model: [flatten, linear]\ntraining: {learning_rate: $lr, optimizer: adam}\n"
        "search: {space: {lr: {real: [0.01, 1]}}}",
        "c");

    CHECK(same(b, a, {0.5, 0, 0.5}) == Genome{0.5});
    CHECK_FALSE(same(b, a, {0.5, 0, 0.25}));
    CHECK(same(a, b, {0.5}) == Genome{0.5, 0, 0.5});
    CHECK(same(c, a, {0.5, 1, 0.1}) == Genome{0.5});
    CHECK(same(a, c, {0.5}) == search::canonical(a.space, {0.5, 1, 0.1}));
}

TEST_CASE("evaluation: functions and programs by their genes' names and values") {
    const auto f = config::parse("search: {objective: {function: sphere, dimensions: 2}}", "f");
    const auto shifted = config::parse("search: {objective: {function: sphere, dimensions: 2, shift: true}}", "g");
    const auto command = [](const std::string& space, const std::string& program = "run {a} {b}") {
        return config::parse(
            "search: {space: {" + space + "}, objective: {command: '" + program + "', timeout_seconds: 3}}", "c");
    };
    const auto ab = command("a: {int: [0, 9]}, b: {int: [0, 9]}");

    CHECK(same(f, f, {1.5, 2.5}) == Genome{1.5, 2.5});
    CHECK_FALSE(same(shifted, f, {1.5, 2.5}));
    CHECK_FALSE(same(f, ab, {1, 2}));
    CHECK(same(command("b: {int: [1, 9]}, a: {int: [0, 9]}"), ab, {1, 2}) == Genome{2, 1});
    CHECK_FALSE(same(command("b: {int: [3, 9]}, a: {int: [0, 9]}"), ab, {1, 2}));
    CHECK_FALSE(same(command("a: {int: [0, 9]}, b: {int: [0, 9]}, c: {int: [0, 9]}", "run {a} {b} {c}"), ab, {1, 2}));
    CHECK_FALSE(same(command("a: {int: [0, 9]}, b: {int: [0, 9]}", "run {b} {a}"), ab, {1, 2}));
}

TEST_CASE("measure: its name and unit are the same from the configuration and from the recorded text") {
    const auto title = [](const std::string& objective, const std::string& text) {
        const std::string search = "search: {objective: " + objective + ", space: {x: {real: [0.1, 1]}}}\n";
        const config::Config config = config::parse(search + text, "a");
        const search::Measure recorded = config::measure_of(config.text());
        CHECK(recorded.title == config.measure.title);
        return config.measure.name + ": " + recorded.title;
    };
    const std::string network = "model: [flatten, linear]\ntraining: {learning_rate: $x, epochs: 3";
    const std::string genetic =
        "search: {objective: [validation_error, parameters], propagator: genetic, space: {x: "
        "{real: [0.1, 1]}}}\n";

    CHECK(title("validation_loss", network + "}") == "loss: validation loss (cross entropy)");
    CHECK(title("validation_error", network + "}") == "error: validation error (share of images)");
    CHECK(config::parse(genetic + network + "}", "a").measure.name == "error");
    CHECK(title("validation_loss", network + ", loss: mean_absolute_error}\ndata: {kind: hdf5, path: data.h5}") ==
          "loss: validation loss (mean absolute error)");
    CHECK(title("{command: train}", "") == "loss: loss (as the program reports it)");
    CHECK(config::parse("search: {objective: {function: sphere}}", "a").measure.title == "value of sphere");
    CHECK(config::measure_of("name: of another program").title == "loss");
    const Epoch epoch{.validation_loss = 2, .validation_accuracy = 0.75};
    CHECK(config::parse(genetic + network + "}", "a").measure.of_epoch(epoch) == 0.25);
}
