#include "config/problem.hpp"

#include <doctest/doctest.h>
#include <sstream>

namespace {

using namespace finch;
using namespace finch::test;

/// Returns a configuration with a single gene, `g`, with the specification `gene`.
std::string with_one_gene(const std::string& gene) {
    return "training:\n  learning_rate: $g\nsearch:\n  space:\n    g: " + gene + "\n";
}

search::Gene gene_of(const std::string& gene, const std::vector<std::string>& settings = {}) {
    return config::parse(with_one_gene(gene), "f", settings).space.genes.at(0);
}

/// Returns a configuration with four genes. Gene `momentum` sets sgd's momentum under the condition `when`. `more`
/// contains further lines of the search section.
std::string with_when(const std::string& when, const std::string& more = "") {
    return "model: [{conv: {channels: $width, repeat: $layers}}, flatten, linear]\n"
           "training: {optimizer: {sgd: {momentum: $momentum}}, learning_rate: $lr}\n"
           "search:\n" +
           more +
           "  space:\n"
           "    width: {choice: [8, 16, 32]}\n"
           "    layers: {int: [1, 3]}\n"
           "    lr: {real: [0.01, 0.1], step: 0.01}\n"
           "    momentum: {real: [0.5, 0.9], when: " +
           when + "}\n";
}

double momentum_of(const config::Config& config, const search::Genome& genome) {
    return std::get<backend::Sgd>(config.recipe(genome, 1).training.optimizer).momentum;
}

const std::string function = "search:\n  objective: {function: sphere, dimensions: 3}\n";

TEST_CASE("a gene can choose between alternatives that have their own keys, and these keys may be genes") {
    const std::string yaml =
        "model:\n  - $pool: {max_pool: {kernel: $k}, average_pool: {kernel: 4}}\n  - flatten\n  - linear\n"
        "training:\n  optimizer: {$o: {sgd: {momentum: $m, weight_decay: 0.5}, adam: {beta1: $beta}}}\n"
        "search:\n  space:\n    o: {choice: [sgd, adam, adadelta]}\n    m: {real: [0.1, 0.9], when: {o: [sgd]}}\n"
        "    beta: {real: [0.5, 0.8]}\n    pool: {choice: [max_pool, average_pool]}\n    k: {int: [2, 3]}\n";
    const config::Config config = config::parse(yaml, "file.yaml");
    const auto optimizer = [&](const search::Genome& genome) { return config.recipe(genome, 1).training.optimizer; };
    const auto pool = [&](const search::Genome& genome) {
        return std::get<nn::PoolLayer>(config.recipe(genome, 1).model[0]);
    };

    const auto sgd = std::get<backend::Sgd>(optimizer({0, 0.7, 0.6, 0, 3}));
    CHECK(sgd.momentum == 0.7);
    CHECK(sgd.weight_decay == 0.5);
    CHECK(std::get<backend::Adam>(optimizer({1, 0.1, 0.6, 0, 3})).beta1 == 0.6);
    CHECK(std::get<backend::Adam>(optimizer({1, 0.1, 0.6, 0, 3})).weight_decay == 0);
    CHECK(std::get<backend::Adadelta>(optimizer({2, 0.1, 0.6, 0, 3})).rho == backend::Adadelta{}.rho);
    CHECK(pool({0, 0.7, 0.6, 0, 3}).kernel == 3);
    CHECK(pool({0, 0.7, 0.6, 1, 3}).kernel == 4);
    CHECK(pool({0, 0.7, 0.6, 1, 3}).kind == backend::Pooling::average);
    CHECK(config::parse(config.text(), "again").text() == config.text());
    const config::Config frozen = config::parse(yaml, "f", {"search.space.o=adam"});
    CHECK(std::get<backend::Adam>(frozen.recipe({0, 0.1, 0.7, 0, 3}, 1).training.optimizer).beta1 == 0.7);
}

TEST_CASE("alternatives that are unknown or not among the gene's choices are refused") {
    const auto with = [](const std::string& listed) {
        return problem_of("training:\n  optimizer: {$o: " + listed +
                          "}\nsearch: {space: {o: {choice: [sgd, adam]}, m: {real: [0.1, 2]}}}\n");
    };

    CHECK(with("{adamw: {}}") ==
          "file.yaml:2: training.optimizer.adamw: is no value of search.space.o, which chooses here; accepted: one of "
          "sgd, "
          "adam");
    CHECK(contains(with("{sdg: {}}"), "file.yaml:2: training.optimizer.sdg: 'sdg' is unknown (did you mean 'sgd'?)"));
    CHECK(contains(with("{sgd: {momentun: 1}}"),
                   "training.optimizer.sgd.momentun: unknown key (did you mean 'momentum'?)"));
    CHECK(contains(with("{sgd: {momentum: $m}}"), "training.optimizer.sgd.momentum: '2', which gene search.space.m"));
    CHECK(contains(with("5"), "training.optimizer.$o: '5' is no section; accepted: a section of some of sgd, adam"));
    CHECK(contains(problem_of("training: {optimizer: {$x: {}}}\nsearch: {space: {}}"), "'$x' names no gene"));
    CHECK(contains(problem_of("search: {propagator: {$x: {}}}"), "search.propagator"));
    CHECK(contains(
        problem_of("model: [{$l: {block: {layers: [{conv: {channels: $c}}]}}}, flatten, linear]\nsearch: {space: {l: "
                   "{choice: [block, flatten]}, c: {int: [1, 2]}}}"),
        "model[0].block.layers: has genes inside, below an alternative that a gene chooses"));
}

}  // namespace

TEST_CASE("steps, scales and ordered choices of genes are parsed") {
    CHECK(gene_of("{real: [0.1, 0.5], step: 0.1}") ==
          search::Gene{"g", search::RealGene{0.1, 0.5, search::Scale::linear, 0.1}});
    CHECK(gene_of("{int: [8, 64], step: 8, scale: log}") ==
          search::Gene{"g", search::IntGene{8, 64, search::Scale::log, 8}});
    CHECK(gene_of("{choice: [1, 2, 3], ordered: true}") ==
          search::Gene{"g", search::ChoiceGene{{"1", "2", "3"}, true}});
}

TEST_CASE("invalid steps of genes are refused") {
    CHECK(problem_of(with_one_gene("{real: [0.1, 1], scale: log, step: 0.1}")) ==
          "file.yaml:5: search.space.g.step: cannot be combined with scale log, whose values differ by factors; "
          "accepted: "
          "one "
          "of the two");
    CHECK(problem_of(with_one_gene("{real: [0, 0.5], step: 0.6}")) ==
          "file.yaml:5: search.space.g.step: 0.6 is too large; accepted: from 5e-10 to high - low, which is 0.5");
    CHECK(contains(problem_of(with_one_gene("{real: [0, 0.5], step: 1e-12}")), "1e-12 is too small"));
    CHECK(contains(problem_of(with_one_gene("{real: [0, 0.5], step: 0}")), "search.space.g.step: '0' is out of range"));
    CHECK(
        problem_of(with_one_gene("{int: [2, 10], step: 9}")) ==
        "file.yaml:5: search.space.g.step: 9 is no step of whole numbers from 2 to 10; accepted: a whole number from 1 "
        "to 8");
    CHECK(contains(problem_of(with_one_gene("{int: [2, 10], step: 0.5}")), "0.5 is no step of whole numbers"));
    CHECK(problem_of(with_one_gene("{int: [0, 10], scale: log}")) ==
          "file.yaml:5: search.space.g.int: the low bound 0 has no logarithm; accepted with scale log: a low bound "
          "above 0");
    CHECK(contains(problem_of(with_one_gene("{choice: [1, 2], step: 1}")), "g.step: is for real and int genes alone"));
    CHECK(contains(problem_of(with_one_gene("{value: 1, scale: log}")), "g.scale: is for real and int genes alone"));
    CHECK(contains(problem_of(with_one_gene("{int: [1, 2], ordered: true}")), "g.ordered: is for choices alone"));
    CHECK(contains(problem_of(with_one_gene("{real: [1, 2], int: [1, 2]}")), "has 2 of the keys real, int and choice"));
    CHECK(contains(problem_of(with_one_gene("{real: [0.5, 0.5]}")), "low < high, or {value: 0.5}"));
}

TEST_CASE("a single value instead of a range defines a fixed gene, in the file and with --set") {
    CHECK(gene_of("{value: 0.5}") == search::Gene{"g", search::RealGene{0.5, 0.5}});
    CHECK(gene_of("0.5") == gene_of("{value: 0.5}"));
    CHECK(gene_of("3") == search::Gene{"g", search::IntGene{3, 3}});
    CHECK(gene_of("{real: [0.1, 1], scale: log}", {"search.space.g=0.5"}) == gene_of("0.5"));
    CHECK(search::is_fixed(gene_of("0.5")));
    CHECK(config::parse(with_one_gene("0.5"), "f").recipe({0.5}, 1).training.learning_rate == 0.5);
    CHECK(config::parse("training: {optimizer: $o}\nsearch: {space: {o: adam}}", "f").space.genes[0] ==
          search::Gene{"o", search::ChoiceGene{{"adam"}}});
    CHECK(
        problem_of(with_one_gene("-1")) ==
        "file.yaml:2: training.learning_rate: '-1', which gene search.space.g (file.yaml:5) can take, is out of range; "
        "accepted: auto or a number above 0 and up to 1000");
    CHECK(contains(problem_of(with_one_gene("$x")), "search.space.g: no gene can stand here"));
    CHECK(contains(problem_of(with_one_gene("[1, 2]")), "search.space.g: a list is no gene"));

    const config::Config first = config::parse(with_one_gene("0.5"), "f");
    CHECK(config::parse(first.text(), "again").space == first.space);
}

namespace {

/// Returns the gene `g` of a search with a command objective.
search::Gene of_program(const std::string& gene, const std::vector<std::string>& settings = {}) {
    return config::parse("search: {objective: {command: a}, space: {g: " + gene + "}}", "f", settings)
        .space.genes.at(0);
}

/// Returns the text that a program gets for a fixed gene, and whether JSON contains it as a number.
std::pair<std::string, bool> given(const search::Gene& gene) {
    const auto* const choice = std::get_if<search::ChoiceGene>(&gene.kind);
    REQUIRE(search::is_fixed(gene));
    return {search::value_text(gene, search::first_value(gene)), choice == nullptr || choice->is_number};
}

}  // namespace

TEST_CASE("a fixed gene passes its value to programs exactly as written") {
    std::istringstream texts(
        "3.10 007 -01 00 00.5 01e3 1.50e3 .5e1 1.e3 0x10 0o17 1_000 +5 .5 5. 0.50 yes no on off true 2026-11-25 "
        "12:30:00 .inf .nan nan inf ~x 9223372036854775808 12345678901234567890123 "
        "0.1000000000000000055511151231257827");
    for (std::string text; texts >> text;) {
        CAPTURE(text);
        CHECK(given(of_program(text)) == std::pair(text, false));
        CHECK(given(of_program("{value: " + text + "}")) == std::pair(text, false));
        CHECK(given(of_program("1", {"search.space.g=" + text})) == std::pair(text, false));
    }
    for (const std::string text : {"3",
                                   "-3",
                                   "0",
                                   "-0",
                                   "0.5",
                                   "1.0",
                                   "-2.0",
                                   "0.001",
                                   "1.0e-05",
                                   "9007199254740992",
                                   "9007199254740993",
                                   "9223372036854775807",
                                   "1.0e+100",
                                   "1e3",
                                   "1e-3",
                                   "1E5",
                                   "1.0e-5",
                                   "0.00001",
                                   "-0.000025",
                                   "0e0",
                                   "100000000000000000000",
                                   "123456.75"}) {
        CAPTURE(text);
        CHECK(given(of_program(text)) == std::pair(text, true));
        CHECK(given(of_program("'" + text + "'")) == std::pair(text, false));
    }
    for (const std::string text : {"1e400", "-1e400", "1e-400"}) {
        CHECK(contains(test::problem_of("search: {objective: {command: a}, space: {g: " + text + "}}"),
                       "search.space.g: " + text + " is outside the range of a double"));
        CHECK(given(of_program("'" + text + "'")) == std::pair(text, false));
    }
}

TEST_CASE("a gene frozen by --set gives the same text as the same value in a search") {
    const std::string versions = "{choice: [3.9, 3.10, 007, 1e3, '2', yes]}";
    for (const std::string option : {"3.9", "3.10", "007", "1e3", "2", "yes"}) {
        const search::Gene searched = of_program(versions);
        for (const std::string& setting : {"search.space.g=" + option, "search.space.g={value: " + option + "}",
                                           "search.space.g.value=" + option, "search.space.g='" + option + "'"}) {
            CAPTURE(setting);
            const search::Gene frozen = of_program(versions, {setting});
            CHECK(given(frozen) ==
                  std::pair(search::value_text(searched, search::value_in(searched, option).value()), false));
        }
    }
    CHECK(given(of_program("{real: [0, 1]}", {"search.space.g=1e-3"})) == std::pair(std::string("0.001"), true));
    CHECK(given(of_program("{real: [0, 1]}", {"search.space.g=1.0"})) == std::pair(std::string("1"), true));
    CHECK(given(of_program("{real: [0, 1], step: 0.1}", {"search.space.g=0.30"})) ==
          std::pair(std::string("0.3"), true));
    CHECK(given(of_program("{real: [0, 1]}", {"search.space.g={real: [0, 9], value: 7}"})) ==
          std::pair(std::string("7"), true));
    CHECK(given(of_program("{int: [0, 9]}", {"search.space.g=7"})) == std::pair(std::string("7"), true));
    CHECK(of_program(versions, {"search.space.g=3.10", "search.space.g=3.9"}) ==
          of_program(versions, {"search.space.g=3.9"}));
    CHECK(of_program(versions, {"search.space.g=3.10", "search.space.g={int: [1, 2]}"}) == of_program("{int: [1, 2]}"));
    const auto refused = [](const std::string& gene, const std::string& setting) {
        return test::problem_of("search: {objective: {command: a}, space: {g: " + gene + "}}", {setting});
    };
    CHECK(contains(refused("{choice: [sgd, adam]}", "search.space.g=adan"),
                   "'adan' is no option of the choice (did you mean 'adam'?); accepted: one of sgd, adam"));
    CHECK(contains(refused("{choice: [3.9, 3.10]}", "search.space.g=3.1"), "'3.1' is no option of the choice"));
    CHECK(contains(refused("{int: [0, 9]}", "search.space.g=1.5"), "'1.5' is no whole number up to 2^53"));
    CHECK(contains(refused("{int: [0, 9]}", "search.space.g=007"), "'007' is no whole number"));
    CHECK(contains(refused("{real: [-5, 5]}", "search.space.g=6"),
                   "6 is no value of the gene; accepted: a number in [-5, 5], or another gene in its place"));
    CHECK(contains(refused("{real: [0.1, 1], scale: log}", "search.space.g=0"), "0 is no value of the gene"));
    CHECK(contains(refused("{real: [0, 1], step: 0.25}", "search.space.g=0.3"), "0.3 is no value of the gene"));
    CHECK(contains(refused("{int: [0, 9]}", "search.space.g=10"), "10 is no value of the gene"));
    CHECK(contains(refused("{int: [0, 9], step: 3}", "search.space.g=4"), "4 is no value of the gene"));
    CHECK(contains(refused("{int: [0, 9]}", "search.space.g=9007199254740993"), "is no whole number up to 2^53"));
    CHECK(contains(refused("{real: [0, 1]}", "search.space.g=1e400"), "'1e400' is no number; accepted: a number in"));
    CHECK(contains(refused("{real: [0, 1]}", "search.space.g=word"), "'word' is no number"));
}

TEST_CASE("a gene frozen by --set keeps its conditions, round-trips through text() and equals a fixed gene") {
    const std::string yaml =
        "search: {objective: {command: a}, space: {o: {choice: [x, y]}, g: {choice: [3.9, 3.10], when: {o: [x]}}}}";
    const config::Config frozen = config::parse(yaml, "f", {"search.space.g=3.10"});
    const std::string alone =
        "search: {objective: {command: a}, space: {o: {choice: [x, y]}, g: {value: 3.10, when: {o: [x]}}}}";

    CHECK(frozen.space.genes[1].when.size() == 1);
    CHECK(config::parse(frozen.text(), "again").space == frozen.space);
    CHECK(config::difference(frozen.fixed_text(), config::parse(alone, "f").fixed_text()) == "");
    const std::string other = config::parse(yaml, "f", {"search.space.g=3.9"}).fixed_text();
    CHECK(config::difference(frozen.fixed_text(), other) == "search.space.g.value: 3.10 → 3.9");
}

TEST_CASE("integer genes refuse numbers that a double cannot represent exactly") {
    const search::Gene gene{"n", search::IntGene{0, std::int64_t{1} << 53}};
    CHECK(search::value_in(gene, "9007199254740992") == 9007199254740992.0);
    CHECK_FALSE(search::value_in(gene, "9007199254740993"));
    CHECK_FALSE(search::value_in(gene, "007"));
    CHECK_FALSE(search::value_in(gene, "7.0"));
    CHECK(contains(test::problem_of("search: {objective: {command: a}, space: {g: {int: [0, 9007199254740993]}}}"),
                   "search.space.g.int"));
}

TEST_CASE("difference: compares choices and fixed genes as text, and whole numbers exactly") {
    const auto with = [](const std::string& gene) { return "search: {space: {g: " + gene + "}}"; };
    CHECK(config::difference(with("{real: [1e-4, 1]}"), with("{real: [0.0001, 1.0]}")) == "");
    CHECK(config::difference(with("{choice: [3.9, 3.10]}"), with("{choice: [3.9, 3.1]}")) ==
          "search.space.g.choice[1]: 3.10 → 3.1");
    CHECK(config::difference(with("{value: 1e3}"), with("{value: 1000}")) == "search.space.g.value: 1e3 → 1000");
    CHECK(config::difference(with("{value: '1'}"), with("{value: 1}")) == "search.space.g.value: 1 → 1");
    CHECK(config::difference("seed: 9007199254740993", "seed: 9007199254740992") ==
          "seed: 9007199254740993 → 9007199254740992");
}

TEST_CASE("a gene with an unfulfilled `when` condition leaves its key at the default") {
    const config::Config config = config::parse(with_when("{width: [16, 32], layers: [2]}"), "f");

    CHECK(config.space.genes[3].when == std::vector<search::Condition>{{0, {1, 2}}, {1, {2}}});
    CHECK(momentum_of(config, {1, 2, 0.05, 0.75}) == 0.75);
    CHECK(momentum_of(config, {2, 2, 0.05, 0.6}) == 0.6);
    CHECK(momentum_of(config, {0, 2, 0.05, 0.75}) == 0);
    CHECK(momentum_of(config, {1, 3, 0.05, 0.75}) == 0);
    CHECK(config::parse(config.text(), "again").space == config.space);
}

TEST_CASE("an inactive gene leaves the default of its key, even if the default of the C++ struct differs") {
    const config::Config config = config::parse(
        "model: [{conv: {channels: $c, repeat: $n}}, activation: $a, flatten, linear]\n"
        "training: {early_stopping: {patience: $p}, optimizer: $o}\n"
        "search:\n  space:\n    n: {int: [2, 3], when: {on: [1]}}\n    p: {int: [7, 9], when: {on: [1]}}\n"
        "    a: {choice: [tanh, sigmoid], when: {on: 1}}\n    o: {choice: [adam, adamw], when: {on: [1]}}\n"
        "    on: {int: [0, 1]}\n    c: {int: [4, 5], when: {on: [0]}}\n",
        "f");
    const train::Recipe on = config.recipe({3, 8, 1, 1, 1, 4}, 1);
    const train::Recipe off = config.recipe({3, 8, 1, 1, 0, 4}, 1);

    CHECK(std::get<nn::ConvLayer>(on.model[0]).repeat == 3);
    CHECK(std::get<nn::ConvLayer>(off.model[0]).repeat == nn::ConvLayer{}.repeat);
    CHECK(std::get<nn::ConvLayer>(on.model[0]).channels == nn::ConvLayer{}.channels);
    CHECK(std::get<nn::ConvLayer>(off.model[0]).channels == 4);
    CHECK(on.training.patience == 8);
    CHECK(off.training.patience == 5);
    CHECK(std::get<nn::ActivationLayer>(on.model[1]).activation == backend::Activation::sigmoid);
    CHECK(std::get<nn::ActivationLayer>(off.model[1]).activation == backend::Activation::relu);
    CHECK(std::holds_alternative<backend::AdamW>(on.training.optimizer));
    CHECK(off.training.optimizer.index() == train::Options{}.optimizer.index());
}

TEST_CASE("invalid `when` conditions are refused") {
    CHECK(problem_of(with_when("{widht: [16]}")) ==
          "file.yaml:8: search.space.momentum.when.widht: is no gene (did you mean 'width'?); accepted: width, layers, "
          "lr, "
          "momentum");
    CHECK(problem_of(with_when("{layers: [4]}")) ==
          "file.yaml:8: search.space.momentum.when.layers: '4' is no value of layers; accepted: a whole number in [1, "
          "3]");
    CHECK(problem_of(with_when("{lr: [0.015]}")) ==
          "file.yaml:8: search.space.momentum.when.lr: '0.015' is no value of lr; accepted: a number in [0.01, 0.1] in "
          "steps of 0.01");
    CHECK(problem_of(with_when("{lr: [0.03]}")) == "");
    CHECK(contains(problem_of(with_when("{momentum: [0.5]}")),
                   "search.space.momentum.when.momentum: is a real gene without "
                   "a step"));
    CHECK(contains(
        problem_of("training: {optimizer: $o, epochs: $e}\nsearch: {space: {o: {choice: [sgd, adam]}, e: {int: "
                   "[1, 2], when: {o: [adm]}}}}"),
        "search.space.e.when.o: 'adm' is no value of o (did you mean 'adam'?); accepted: one of sgd, adam"));
    CHECK(contains(problem_of(with_when("{width: []}")), "search.space.momentum.when.width: has 0 entries"));
    CHECK(problem_of(
              "training: {epochs: $a, batch_size: $b}\nsearch:\n  space:\n    a: {int: [1, 2], when: {b: 1}}\n    b: "
              "{int: [1, 2], when: {a: 1}}\n") ==
          "file.yaml:4: search.space.a.when: cyclic condition: a → b → a; accepted: conditions without a cycle");
    CHECK(contains(problem_of("training: {epochs: $a}\nsearch: {space: {a: {int: [1, 2], when: {a: 1}}}}"),
                   "cyclic condition: a → a"));
    CHECK(problem_of("model:\n  - $layer\n  - flatten\n  - linear\nsearch:\n  space:\n    on: {int: [0, 1]}\n    "
                     "layer: {choice: "
                     "[max_pool, average_pool], when: {on: [1]}}\n") ==
          "file.yaml:2: model[0]: '$layer' stands where there is no default to take its place while the gene is not "
          "active, "
          "and search.space.layer has `when`; accepted: a gene without it, or a key that has a default");
}

TEST_CASE("a gene that is only used in a `when` condition is accepted and can be frozen by --set at any value") {
    const std::string yaml =
        "training: {optimizer: {sgd: {momentum: $m}}}\nsearch: {space: {on: {choice: [no, yes]}, m: {real: [0, 0.9], "
        "when: {on: [yes]}}}}";

    CHECK(problem_of(yaml) == "");
    CHECK(momentum_of(config::parse(yaml, "f", {"search.space.on=yes"}), {0, 0.5}) == 0.5);
    CHECK(momentum_of(config::parse(yaml, "f", {"search.space.on=no"}), {0, 0.5}) == 0);
}

TEST_CASE("genes of unchosen alternatives and layers with repeat 0 are inactive: equal trainings have one genome") {
    const std::string yaml = R"(
model:
  - conv: {channels: $width, activation: $act, repeat: $layers}
  - block: {layers: [{conv: {kernel: $kernel, repeat: $inner}}], repeat: $blocks}
  - conv: {channels: $last, repeat: $always}
  - activation: $act
  - flatten
  - linear
training: {optimizer: {$o: {sgd: {momentum: $m}, adam: {beta1: $beta}}}}
search:
  space:
    o: {choice: [sgd, adam, adadelta]}
    m: {real: [0.1, 0.9]}
    beta: {real: [0.5, 0.8]}
    layers: {choice: [2, 0]}
    width: {int: [8, 16]}
    act: {choice: [relu, tanh]}
    blocks: {int: [0, 2]}
    inner: {int: [0, 2]}
    kernel: {choice: [1, 3]}
    always: {int: [1, 3]}
    last: {int: [4, 8]}
)";
    const config::Config config = config::parse(yaml, "f");
    const auto canonical = [&](const search::Genome& genome) { return search::canonical(config.space, genome); };
    const auto optimizer = [&](const search::Genome& genome) {
        const backend::Optimizer chosen = config.recipe(genome, 1).training.optimizer;
        const auto* const sgd = std::get_if<backend::Sgd>(&chosen);
        const auto* const adam = std::get_if<backend::Adam>(&chosen);
        return std::tuple(chosen.index(), sgd != nullptr ? sgd->momentum : 0, adam != nullptr ? adam->beta1 : 0);
    };
    const search::Genome all{0, 0.5, 0.6, 0, 9, 1, 1, 1, 1, 2, 5};

    // o, m, beta, layers, width, act, blocks, inner, kernel, always, last
    CHECK(canonical(all) == search::Genome{0, 0.5, 0.5, 0, 9, 1, 1, 1, 1, 2, 5});
    CHECK(canonical({1, 0.5, 0.6, 1, 9, 1, 1, 0, 1, 2, 5}) == search::Genome{1, 0.1, 0.6, 1, 8, 1, 1, 0, 0, 2, 5});
    CHECK(canonical({2, 0.5, 0.6, 0, 9, 1, 0, 2, 1, 2, 5}) == search::Genome{2, 0.1, 0.5, 0, 9, 1, 0, 0, 0, 2, 5});
    CHECK(config.space.genes[10].uses.empty());
    for (const search::Genome& genome :
         {all, {1, 0.5, 0.6, 1, 9, 1, 1, 0, 1, 2, 5}, {2, 0.5, 0.6, 0, 9, 1, 0, 2, 1, 2, 5}}) {
        const auto plan = [&](const search::Genome& one) {
            return nn::plan_model(config.recipe(one, 1).model, {12, 12, 1}, 10, 1).parameters;
        };
        CHECK(plan(genome) == plan(canonical(genome)));
        CHECK(optimizer(genome) == optimizer(canonical(genome)));
    }
    const config::Config frozen = config::parse(yaml, "f", {"search.space.blocks=0"});
    CHECK_FALSE(search::active_genes(frozen.space, {0, 0.5, 0.6, 0, 9, 1, 0, 1, 1, 2, 5})[8]);
}

TEST_CASE("search.constraints: errors name the column, and constraints that no genome fulfils are refused") {
    const config::Config config =
        config::parse(with_when("{layers: [2]}", "  constraints: [\"width * layers <= 48\", lr < 0.1]\n"), "f");
    REQUIRE(config.constraints.size() == 2);
    CHECK_FALSE(search::all_hold(config.constraints, config.space, {2, 2, 0.05, 0.5}));
    CHECK(search::all_hold(config.constraints, config.space, {1, 3, 0.05, 0.5}));

    CHECK(problem_of(function + "  constraints:\n    - x0 <= x1\n    - x0 <= y1\n") ==
          "file.yaml:5: search.constraints[1]: 'x0 <= y1', column 7: 'y1' is no gene (did you mean 'x1'?); accepted: "
          "x0, x1, "
          "x2");
    CHECK(
        problem_of(function + "  constraints:\n    - x0 <= 1\n    - x0 > 6\n") ==
        "file.yaml:5: search.constraints[1]: 'x0 > 6' is violated by each of 10000 random genomes; accepted: what some "
        "genomes obey");
    CHECK(problem_of(function + "  constraints: [x0 < 1, x0 > 2]\n") ==
          "file.yaml:3: search.constraints: each of 10000 random genomes violates one of them; accepted: what some "
          "genomes "
          "obey all of");
    CHECK(contains(problem_of(function + "  constraints: [x0]\n"), "column 1: a number stands here"));
}

TEST_CASE("checks of key combinations skip genomes that the constraints forbid") {
    const std::string nesterov =
        "training: {optimizer: {sgd: {momentum: $m, nesterov: $n}}}\nsearch:\n  space: {m: {real: [0, "
        "0.9], step: 0.3}, n: {choice: [false, true]}}\n";

    CHECK(contains(problem_of(nesterov), "needs a momentum above 0"));
    CHECK(problem_of(nesterov + "  constraints: [n == false or m > 0]\n") == "");
}

TEST_CASE("search.first accepts a list of partial genomes; genes without a value stay open") {
    const config::Config config = config::parse(
        with_when("{layers: [2]}", "  first: [{lr: 0.03, width: 32}, {momentum: 0.7, layers: 2}]\n"), "f");

    REQUIRE(config.first.guesses.size() == 2);
    CHECK(config.first.guesses[0] == search::Guess{2, {}, 0.03, {}});
    CHECK(config.first.guesses[1] == search::Guess{{}, 2, {}, 0.7});
    CHECK(!config.first.run);
    CHECK(config.initial_design(16).initial_points() == 2);
    const config::Config again = config::parse(config.text(), "again");
    CHECK(again.first.guesses == config.first.guesses);
    CHECK(again.fixed_text() == config.fixed_text());
}

TEST_CASE("invalid first guesses are refused") {
    CHECK(problem_of(function + "  first:\n    - {x0: 1}\n    - {x9: 1}\n") ==
          "file.yaml:5: search.first[1].x9: is no gene (did you mean 'x0'?); accepted: x0, x1, x2");
    CHECK(problem_of(function + "  first: [{x0: 7}]\n") ==
          "file.yaml:3: search.first[0].x0: '7' is no value of this gene; accepted: a number in [-5.12, 5.12]");
    CHECK(problem_of(function + "  constraints: [x0 < x1]\n  first: [{x1: 1}, {x0: 2, x1: 1}]\n") ==
          "file.yaml:4: search.first[1]: violates the constraints, whatever the genes are that it leaves open (10000 "
          "were "
          "tried)");
    CHECK(contains(problem_of(function + "  first: [{x0: [1]}]\n"), "search.first[0].x0: a list is not accepted"));
    CHECK(contains(problem_of(function + "  first: []\n"), "search.first: has 0 entries"));
    CHECK(contains(problem_of("training: {epochs: $e}\nsearch: {first: [{e: 3}], space: {e: 2}}"),
                   "search.first[0].e: '3' is no value of this gene; accepted: 2, its only value"));
}

TEST_CASE("search.first: parsing stores the path of an earlier run without reading the run, and accepts guesses") {
    const config::Config named = config::parse(function + "  first: {run: some/where, best: 3}\n", "f");
    CHECK(named.first.run == "some/where");
    CHECK(named.first.best == 3);
    CHECK(named.first.guesses.empty());

    const config::Config found =
        config::parse(function + "  first: {run: some/where, best: 3}\n", "f", {"search.first.guesses=[{x1: 2}]"});
    CHECK(found.first.guesses == std::vector<search::Guess>{{{}, 2, {}}});
    CHECK(contains(problem_of(function + "  first: {run: a, guesses: [{x1: 20}]}\n"),
                   "search.first.guesses[0].x1: '20'"));
}

TEST_CASE("search.start: sobol needs at most 21 free genes and a propagator with a population") {
    const auto sphere = [](int dimensions, const std::string& more) {
        return "search: {objective: {function: sphere, dimensions: " + std::to_string(dimensions) + "}, " + more + "}";
    };
    CHECK(config::parse(sphere(21, "start: sobol"), "f").initial_design(16).points == 16);
    CHECK(config::parse(sphere(30, "start: latin"), "f").start == search::Start::latin);
    CHECK(problem_of(sphere(22, "start: sobol")) ==
          "file.yaml:1: search.start: sobol has points for up to 21 genes, and 22 are free here; accepted: random or "
          "latin");
    CHECK(contains(problem_of(sphere(2, "start: sobol, propagator: random")),
                   "search.start: 'sobol' is for as many individuals as the propagator breeds from"));
}

TEST_CASE("search.start, search.first and search.constraints are part of a configuration's fixed text") {
    const auto fixed = [](const std::string& yaml) { return config::parse(yaml, "f").fixed_text(); };

    CHECK(fixed(function) != fixed(function + "  start: latin\n"));
    CHECK(fixed(function) != fixed(function + "  first: [{x0: 1}]\n"));
    CHECK(fixed(function) != fixed(function + "  constraints: [x0 < 1]\n"));
}
