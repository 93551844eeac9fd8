#include "config/problem.hpp"

#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>

namespace {

using namespace finch;
using namespace finch::test;

/// Returns a configuration with a single gene, `lr`, with the specification `gene`.
std::string with_gene(const std::string& gene) {
    return "training:\n  learning_rate: $lr\nsearch:\n  space:\n    lr: " + gene + "\n";
}

TEST_CASE("the message for an invalid value has the file, line, path, problem and accepted values") {
    CHECK(problem_of("name: x\ntraining:\n  epochs: 0\n") ==
          "file.yaml:3: training.epochs: '0' is out of range; accepted: a whole number from 1 to 1000000");
    CHECK(problem_of("training: {epochs: many}") ==
          "file.yaml:1: training.epochs: 'many' is no whole number; accepted: a whole number from 1 to 1000000");
    CHECK(problem_of("training:\n  learning_rate: .nan\n") ==
          "file.yaml:2: training.learning_rate: '.nan' is not a finite number; accepted: auto or a number above 0 and "
          "up to "
          "1000");
    CHECK(
        begins(problem_of("training:\n  learning_rate: .inf\n"), "file.yaml:2: training.learning_rate: '.inf' is not"));
    CHECK(begins(problem_of("training:\n  deterministic: yes\n"),
                 "file.yaml:2: training.deterministic: 'yes' is neither true nor false"));
    CHECK(begins(problem_of("training: 5\n"), "file.yaml:1: training: '5' is no section"));
    CHECK(begins(problem_of("training:\n  epochs: [1]\n"), "file.yaml:2: training.epochs: a list is not accepted"));
    CHECK(begins(problem_of("training:\n  epochs:\n"), "file.yaml:2: training.epochs: it has no value"));
    CHECK(begins(problem_of("just words"), "file.yaml:1: 'just words' is no section"));
}

TEST_CASE("whole numbers: 3.0 is refused with a hint, and numbers beyond 64 bits are out of range") {
    const auto with = [](const std::string& epochs) { return problem_of("training: {epochs: " + epochs + "}"); };

    CHECK(contains(with("3.0"), "'3.0' is no whole number (did you mean 3?); accepted"));
    CHECK(contains(with("-1e3"), "'-1e3' is no whole number (did you mean -1000?); accepted"));
    CHECK(contains(with("2.5"), "'2.5' is no whole number; accepted"));
    CHECK(contains(with("1e16"), "'1e16' is no whole number; accepted"));
    CHECK(contains(with("99999999999999999999"), "'99999999999999999999' is out of range; accepted"));
}

TEST_CASE("search.inherit needs trainings, rungs, one objective, and no final choice") {
    const auto with = [](const std::string& keys) { return problem_of("search:\n  inherit: {parents: 2}\n" + keys); };

    CHECK(with("  pruning: halving\n") == "");
    CHECK(begins(with("  pruning: curve\n"),
                 "file.yaml:2: search.inherit: replaces trainings that end at a rung, and search.pruning has none"));
    CHECK(begins(with("  pruning: none\n  objective: {function: sphere}\n"),
                 "file.yaml:2: search.inherit: continues trainings of networks and programs, and a function has none; "
                 "accepted: none"));
    CHECK(
        problem_of("search: {pruning: halving, inherit: {move: [lr]}}") ==
        "file.yaml:1: search.inherit.move: is for programs: Finch knows which genes of a network can change; accepted: "
        "none");
    CHECK(begins(with("  pruning: halving\n  propagator: genetic\n  objective: [validation_loss, parameters]\n"),
                 "file.yaml:2: search.inherit: ranks the parents by the loss"));
    CHECK(begins(with("  pruning: halving\n  final: {candidates: 2, repeats: 2}\n"),
                 "file.yaml:4: search.final: evaluates genes from the first epoch on"));
    CHECK_FALSE(config::parse("search: {pruning: halving, inherit: {parents: 2}, budget: {evaluations: 100}}", "test")
                    .final_choice);
}

TEST_CASE("search.inherit of programs needs epochs, genes to move, and a program that starts for each individual") {
    const auto with = [](const std::string& inherit, const std::string& more) {
        return problem_of(
            "search:\n  space: {lr: {real: [0, 1]}, width: {int: [1, 9]}, depth: 3}\n  pruning: halving\n  inherit: {" +
            inherit + "}\n  objective: {command: 'true'" + more + "}\n");
    };

    CHECK(with("move: [lr, width]", ", epochs: 9") == "");
    CHECK(with("move: [lr]", "") ==
          "file.yaml:4: search.inherit: needs search.objective.epochs, the number of epochs of a complete evaluation; "
          "accepted: that key, or none here");
    CHECK(with("parents: 2", ", epochs: 9") ==
          "file.yaml:4: search.inherit: needs the key move, the genes that the program can change when it continues a "
          "checkpoint; accepted: move: [lr], for example");
    CHECK(with("move: [lr, widht]", ", epochs: 9") ==
          "file.yaml:4: search.inherit.move[1]: 'widht' is no gene (did you mean 'width'?); accepted: lr, width");
    CHECK(with("move: [lr, depth]", ", epochs: 9") ==
          "file.yaml:4: search.inherit.move[1]: 'depth' has a single value, so heirs cannot change it; accepted: lr, "
          "width");
    CHECK(with("move: [lr, lr]", ", epochs: 9") ==
          "file.yaml:4: search.inherit.move[1]: 'lr' is listed twice; accepted: each gene once");
    CHECK(begins(with("move: lr", ", epochs: 9"),
                 "file.yaml:4: search.inherit.move: 'lr' is unknown (did you mean "
                 "[lr]?); accepted: none or a list"));
    CHECK(with("move: [lr]", ", epochs: 2") == "");
    CHECK(with("move: [lr]", ", epochs: 1") ==
          "file.yaml:4: search.inherit: needs a rung before the last epoch, but the first rung is epoch 1 of 1; "
          "accepted: a larger search.objective.epochs, or none here");
    CHECK(with("move: [lr]", ", epochs: 9, persistent: true") ==
          "file.yaml:4: search.inherit: starts the program with the checkpoint of its parent, and a persistent program "
          "is "
          "started only once; accepted: search.objective.persistent: false, or none here");
}

TEST_CASE("exchange.matrix needs one row and one column per island and is accepted only with topology matrix") {
    const auto with = [](const std::string& exchange, const std::string& islands) {
        return problem_of("search:\n  exchange: " + exchange + "\nworkers: {islands: " + islands + "}\n");
    };

    CHECK(with("{topology: matrix, matrix: [[0, 0.5], [1, 0]]}", "2") == "");
    CHECK(with("{topology: matrix, matrix: [[0, 0.5], [1, 0]]}", "[3, 1]") == "");
    CHECK(
        with("{topology: matrix, matrix: [[0, 0.5], [1, 0]]}", "3") ==
        "file.yaml:2: search.exchange.matrix: is no matrix of 3 × 3, as many as workers.islands has; accepted: 3 rows "
        "of 3 probabilities");
    CHECK(contains(with("{topology: matrix, matrix: [[0, 0.5], [1]]}", "2"), "is no matrix of 2 × 2"));
    CHECK(contains(with("{topology: matrix}", "2"), "search.exchange.matrix: is no matrix of 2 × 2"));
    CHECK(contains(with("{topology: matrix, matrix: [[0]]}", "auto"), "workers.islands is auto; accepted: a number"));
    CHECK(contains(with("{matrix: [[0]]}", "1"),
                   "search.exchange.matrix: cannot be combined with topology all; accepted:"));
    CHECK(contains(with("{topology: matrix, matrix: [[2]]}", "1"), "'2' is out of range"));
    CHECK(
        config::parse("search: {exchange: {topology: matrix, matrix: [[0, 0.5], [1, 0]]}}\nworkers: {islands: 2}", "f")
            .exchange.matrix == std::vector<std::vector<double>>{{0, 0.5}, {1, 0}});
}

TEST_CASE("exchange.migrants is a number, or whole numbers with one row and one column per island") {
    const auto with = [](const std::string& migrants, const std::string& islands) {
        return problem_of("search: {exchange: {migrants: " + migrants + "}}\nworkers: {islands: " + islands + "}\n");
    };

    CHECK(with("[[0, 2], [1, 0]]", "2") == "");
    CHECK(with("[[0, 2], [1, 0]]", "3") ==
          "file.yaml:1: search.exchange.migrants: is no matrix of 3 × 3, as many as workers.islands has; accepted: 3 "
          "rows of 3 whole numbers");
    CHECK(contains(with("[[0, 2], [1]]", "2"), "is no matrix of 2 × 2"));
    CHECK(contains(with("[[0]]", "auto"), "workers.islands is auto; accepted: a number"));
    CHECK(contains(with("[[0.5]]", "1"), "'0.5' is no whole number"));
    CHECK(contains(with("0", "1"), "search.exchange.migrants: '0'"));
    const auto parsed =
        config::parse("search: {exchange: {migrants: [[0, 2], [1, 0]]}}\nworkers: {islands: 2}", "f").exchange;
    CHECK(parsed.migrants_between == std::vector<std::vector<std::int64_t>>{{0, 2}, {1, 0}});
    CHECK(config::parse("search: {exchange: {migrants: 3}}", "f").exchange.migrants == 3);
}

TEST_CASE("genetic.population is a number or a multiple of the workers, which a start resolves for each island") {
    const std::string yaml =
        "search: {objective: {function: sphere}, propagator: {genetic: {population: 3x workers}}}\n";
    CHECK(problem_of(yaml) == "");
    CHECK(contains(problem_of("search: {propagator: {genetic: {population: 3 workers}}}"),
                   "search.propagator.genetic.population: '3 workers'"));
    config::Config config = config::parse(yaml, "f");
    const std::string text = config.text();
    CHECK(text.find("3x workers") != std::string::npos);
    CHECK(config.populations_text() == "");

    config.resolve_populations(std::vector{4, 2});

    CHECK(config.populations_text() == "population: island 0: 12 (3x workers), island 1: 6 (3x workers)");
    CHECK(std::get<search::GeneticOptions>(config.propagator_of(0)).population == 12);
    CHECK(std::get<search::GeneticOptions>(config.propagator_of(1)).population == 6);
    CHECK(config.first_points() == 12);
    CHECK(config.text() == text);
    config.resolve_populations(std::vector{1});
    CHECK(std::get<search::GeneticOptions>(config.propagator_of(0)).population == 3);
}

TEST_CASE("a population without a multiple of the workers is not resolved") {
    config::Config config = config::parse("search: {propagator: {genetic: {population: 20}}}", "f");

    config.resolve_populations(std::vector{4, 2});

    CHECK(config.islands.empty());
    CHECK(std::get<search::GeneticOptions>(config.propagator_of(1)).population == 20);
}

TEST_CASE("data.auto_prob: the blocks cover all systems in order, and exclude weights") {
    const auto with = [](const std::string& blocks, const std::string& system = "{path: c}") {
        return problem_of("data: {kind: hdf5, systems: [{path: a}, {path: b}, " + system + "], auto_prob: '" + blocks +
                          "'}\n");
    };

    CHECK(with("prob_sys_size") == "");
    CHECK(with("prob_sys_size;0:2:0.7;2:3:0.3") == "");
    CHECK(with("prob_sys_size;0:2:0.7;2:4:0.3") ==
          "file.yaml:1: data.auto_prob: the block 2:4 does not fit; accepted: blocks that cover the 3 data.systems in "
          "order, each from the end of the last");
    CHECK(contains(with("prob_sys_size;0:2:1;1:3:1"), "the block 1:3 does not fit"));
    CHECK(contains(with("prob_sys_size;0:0:1;0:3:1"), "the block 0:0 does not fit"));
    CHECK(contains(with("prob_sys_size;0:2:1"), "the blocks end at 2; accepted: blocks that cover all 3"));
    CHECK(contains(problem_of("data: {kind: hdf5, path: a, auto_prob: 'prob_sys_size;0:1:1'}"),
                   "data.auto_prob: needs data.systems; accepted: none"));
    CHECK(contains(problem_of("data: {kind: hdf5, systems: [{path: a, weight: 1}], auto_prob: 'prob_sys_size;0:1:1'}"),
                   "data.auto_prob: cannot be combined with weights"));
    CHECK(config::parse("data: {kind: hdf5, systems: [{path: a}, {path: b}], auto_prob: 'prob_sys_size;0:2:1e-3'}", "f")
              .recipe({}, 0)
              .data.system_blocks == std::vector<data::SystemBlock>{{0, 2, 1e-3}});
}

TEST_CASE("the message for an unknown key or word suggests the most similar known one") {
    CHECK(begins(problem_of("training:\n  epohcs: 3\n"),
                 "file.yaml:2: training.epohcs: unknown key (did you mean 'epochs'?); accepted: epochs, batch_size"));
    CHECK(begins(problem_of("serch: {}\n"), "file.yaml:1: serch: unknown key (did you mean 'search'?)"));
    CHECK(begins(problem_of("training:\n  optimizer:\n    adadlta: {}\n"),
                 "file.yaml:3: training.optimizer.adadlta: 'adadlta' is unknown (did you mean 'adadelta'?)"));
    CHECK(begins(problem_of("training:\n  optimizer: addadelta\n"),
                 "file.yaml:2: training.optimizer: 'addadelta' is unknown (did you mean 'adadelta'?)"));
    CHECK(begins(problem_of("model:\n  - flatten\n  - conv: {kernal: 3}\n"),
                 "file.yaml:3: model[1].conv.kernal: unknown key (did you mean 'kernel'?)"));
    CHECK(begins(problem_of("search:\n  objective: {function: spere}\n"),
                 "file.yaml:2: search.objective.function: 'spere' is unknown (did you mean 'sphere'?)"));
    // The key of another objective: no hint at the key itself.
    CHECK(begins(problem_of("search: {objective: {command: a, dimensions: 7}}\n"),
                 "file.yaml:1: search.objective.dimensions: unknown key; accepted: "));
    CHECK(contains(problem_of("search:\n  objective: validation_los\n"), "did you mean 'validation_loss'?"));
}

TEST_CASE("final choice: needs a budget of evaluations only; the default is none for small or other budgets") {
    const auto with = [](const std::string& search) { return problem_of("search: {" + search + "}"); };
    CHECK(contains(with("final: {candidates: 4}, budget: {hours: 1}"), "search.final: takes the last evaluations"));
    CHECK(contains(with("final: {candidates: 4}, budget: {evaluations: 500, target_loss: 1}"),
                   "accepted: none, or a search.budget that has evaluations and nothing else"));
    CHECK(contains(with("final: {candidates: 5, repeats: 4}, budget: {evaluations: 20}"),
                   "search.final: 5 candidates, 4 times each, leave nothing of 20 evaluations to search with"));
    CHECK(with("final: {candidates: 5, repeats: 4}, budget: {evaluations: 21}") == "");
    const auto choice_of = [](const std::string& search) {
        return config::parse("search: {" + search + "}", "file.yaml").final_choice;
    };
    CHECK(choice_of("budget: {evaluations: 100}")->evaluations() == 24);
    CHECK(choice_of("budget: {evaluations: 50}, final: {repeats: 5}")->repeats == 5);
    CHECK_FALSE(choice_of("budget: {evaluations: 99}"));
    CHECK_FALSE(choice_of("budget: {evaluations: 1000, hours: 1}"));
    CHECK_FALSE(choice_of("budget: {evaluations: 1000, epochs: 300}"));
    CHECK_FALSE(choice_of("budget: {evaluations: 1000}, final: none"));
    CHECK_FALSE(choice_of("budget: {evaluations: 1000}, objective: {function: sphere}"));
    CHECK(choice_of("budget: {evaluations: 1000}, objective: {function: sphere}, final: {candidates: 2}")->candidates ==
          2);
}

TEST_CASE("search.give_up_after accepts a number of evaluations, auto (by the number of workers) and none (never)") {
    const auto after = [](const std::string& value) {
        return config::parse("search: {give_up_after: " + value + "}", "file.yaml").give_up_after;
    };
    CHECK(after("12") == 12);
    CHECK(after("auto") == 0);
    CHECK(config::parse("{}", "file.yaml").give_up_after == 0);
    CHECK_FALSE(after("none"));
    CHECK(contains(problem_of("search: {give_up_after: 0}"), "search.give_up_after"));
}

TEST_CASE("a duplicate key, an empty file and invalid YAML are refused") {
    CHECK(problem_of("training:\n  epochs: 3\n  epochs: 4\n") ==
          "file.yaml:3: training.epochs: duplicate key, first given at file.yaml:2; remove one");
    CHECK(begins(problem_of(""), "file.yaml: is empty"));
    CHECK(begins(problem_of("# nothing but a comment\n"), "file.yaml: is empty"));
    CHECK(contains(problem_of("a: [1\nb: 2"), "is no YAML"));
}

TEST_CASE("a text with a colon, which YAML reads as a key, is refused with the hint to put it in quotes") {
    const std::string hint = "a section is not accepted (YAML reads 'echo loss: ' as a key; put the whole text in ";

    CHECK(contains(problem_of("search: {objective: {command: {echo loss: 1}}}"), hint));
    CHECK(contains(problem_of("data: {path: {echo loss: 1}}"), hint));
    CHECK_FALSE(contains(problem_of("seed: {a: 1}"), "YAML reads"));
    CHECK(contains(problem_of("search:\n  objective:\n    command: echo loss: 1\n"), "must be in quotes"));
}

TEST_CASE("gene bounds are refused if they are reversed, empty, too many, not finite or not positive with scale log") {
    CHECK(problem_of(with_gene("{real: [1e-2, 1e-4]}")) ==
          "file.yaml:5: search.space.lr.real: [1e-2, 1e-4] is reversed; accepted: [low, high] with low < high");
    CHECK(contains(problem_of(with_gene("{real: [0.5, 0.5]}")), "[0.5, 0.5] is empty"));
    CHECK(contains(problem_of(with_gene("{real: []}")), "search.space.lr.real: has 0 entries"));
    CHECK(contains(problem_of(with_gene("{real: [1]}")), "search.space.lr.real: has 1 entries"));
    CHECK(contains(problem_of(with_gene("{real: [1, 2, 3]}")), "search.space.lr.real: has 3 entries"));
    CHECK(
        contains(problem_of(with_gene("{real: [.nan, 1]}")), "search.space.lr.real[0]: '.nan' is not a finite number"));
    CHECK(contains(problem_of(with_gene("{real: [0, 1], scale: log}")),
                   "file.yaml:5: search.space.lr.real: the low bound 0 has no logarithm"));
    CHECK(contains(problem_of(with_gene("{int: [3, 2]}")), "[3, 2] is reversed"));
    CHECK(contains(problem_of(with_gene("{int: [1.5, 2]}")), "search.space.lr.int[0]: '1.5' is no whole number"));
    CHECK(contains(problem_of(with_gene("{choice: []}")), "search.space.lr.choice: has 0 entries"));
    CHECK(contains(problem_of(with_gene("{choice: [1, 2, 1]}")), "'1' stands there twice"));
    CHECK(contains(problem_of(with_gene("{choice: [1, $lr]}")), "search.space.lr.choice[1]"));
    CHECK(problem_of(with_gene("{real: [0.1, 1], scale: log}")) == "");
    CHECK(problem_of(with_gene("{int: [1, 1]}")) == "");
}

TEST_CASE("a gene has exactly one kind, and only numeric genes accept a scale") {
    CHECK(contains(problem_of(with_gene("{scale: log}")),
                   "search.space.lr: has 0 of the keys real, int, choice and value"));
    CHECK(contains(problem_of(with_gene("{real: [1, 2], int: [1, 2]}")), "search.space.lr: has 2 of the keys"));
    CHECK(contains(problem_of(with_gene("{choice: [1, 2], scale: log}")),
                   "search.space.lr.scale: is for real and int genes alone"));
    CHECK(
        contains(problem_of(with_gene("{reel: [1, 2]}")), "search.space.lr.reel: unknown key (did you mean 'real'?)"));
    CHECK(contains(problem_of(with_gene("[1, 2]")), "search.space.lr: a list is no gene"));
}

TEST_CASE("an unused gene and a $name without a gene are refused") {
    CHECK(problem_of("search:\n  space:\n    depth: {int: [1, 2]}\n") ==
          "file.yaml:3: search.space.depth: nothing uses this gene; write $depth for a value of data, model or "
          "training, or remove it");
    CHECK(problem_of("training:\n  learning_rate: $lrr\n  epochs: $lr\nsearch: {space: {lr: {int: [1, 2]}}}\n") ==
          "file.yaml:2: training.learning_rate: '$lrr' names no gene (did you mean '$lr'?); accepted: a value, or $lr");
    CHECK(contains(problem_of("training: {learning_rate: $lr}"), "'$lr' names no gene"));
    CHECK(contains(problem_of("workers: {ranks: $n}"), "file.yaml:1: workers.ranks: no gene can stand here"));
    CHECK(contains(problem_of("data: {kind: $n}"), "file.yaml:1: data.kind: no gene can stand here"));
}

TEST_CASE("gene names: reserved columns, invalid characters and more than 500 genes are refused") {
    CHECK(begins(problem_of("training: {learning_rate: $loss}\nsearch:\n  space:\n    loss: {int: [1, 2]}\n"),
                 "file.yaml:4: search.space.loss: is a column of every individual's row"));
    CHECK(contains(problem_of("training: {epochs: $epochs}\nsearch: {space: {epochs: {int: [1, 2]}}}"), "is a column"));
    CHECK(contains(problem_of("training: {epochs: $a-b}\nsearch: {space: {a-b: {int: [1, 2]}}}"), "is no name"));
    CHECK(contains(problem_of("training: {epochs: $1a}\nsearch: {space: {1a: {int: [1, 2]}}}"), "is no name"));
    std::string many = "search:\n  space:\n";
    for (int i = 0; i < 501; ++i) {
        many += "    g" + std::to_string(i) + ": {int: [1, 2]}\n";
    }
    CHECK(contains(problem_of(many), "search.space: has 501 genes; accepted: at most 500"));
}

TEST_CASE("a gene value that the key does not accept is refused; the message names the key and the gene") {
    CHECK(problem_of(with_gene("{real: [-1, 1]}")) ==
          "file.yaml:2: training.learning_rate: '-1', which gene search.space.lr (file.yaml:5) can take, is out of "
          "range; accepted: auto or a number above 0 and up to 1000");
    CHECK(contains(problem_of(with_gene("{int: [1, 1001]}")), "'1001', which gene search.space.lr"));
    CHECK(contains(problem_of(with_gene("{choice: [0.1, high]}")), "'high', which gene search.space.lr (file.yaml:5)"));
    CHECK(contains(problem_of("training: {epochs: $n}\nsearch: {space: {n: {real: [1, 3]}}}"), "is no whole number"));
    CHECK(contains(problem_of("training: {optimizer: $o}\nsearch: {space: {o: {choice: [adam, sdg]}}}"),
                   "'sdg', which gene search.space.o (file.yaml:2) can take, is unknown (did you mean 'sgd'?)"));
}

TEST_CASE("training.average: the decay must be in [0, 1), because 1 would keep the initial weights") {
    CHECK(begins(problem_of("training:\n  average: 1\n"), "file.yaml:2: training.average: '1' is out of range"));
    CHECK(begins(problem_of("training: {average: -0.1}"), "file.yaml:1: training.average: '-0.1' is out of range"));
    CHECK(contains(problem_of("training: {average: 1}"), "accepted: none or a number from 0 to 0.999999"));
    CHECK(problem_of("training: {average: 0}") == "");
    CHECK(problem_of("training: {average: none}") == "");
}

TEST_CASE("invalid combinations of keys are refused") {
    CHECK(contains(problem_of("data:\n  kind: idx\n"), "data.path: has no value; data of kind idx is read from there"));
    CHECK(begins(problem_of("training:\n  batch_size: 16\n  batch_size_per_rank: 8\n"),
                 "file.yaml:3: training.batch_size_per_rank: cannot be combined with batch_size"));
    CHECK(contains(problem_of("training: {batch_size: null}"), "is null, and so is batch_size"));
    CHECK(contains(problem_of("training: {scale_learning_rate: linear}"), "needs batch_size_per_rank"));
    CHECK(problem_of("log: {path: here, tee: true}") == "");
    CHECK(contains(problem_of("log: {tee: true}"), "log.tee: needs log.path"));
    CHECK(contains(problem_of("training: {optimizer: {sgd: {nesterov: true}}}"), "needs a momentum above 0"));
    CHECK(contains(problem_of("search:\n  budget: {evaluations: null}\n"), "file.yaml:2: search.budget: never ends"));
    CHECK(contains(problem_of("search: {objective: {function: sphere}, space: {a: {int: [1, 2]}}}"),
                   "search.space: cannot be combined with the function sphere"));
    CHECK(contains(problem_of("search: {objective: {function: rosenbrock, dimensions: 1}}"),
                   "search.objective.dimensions: rosenbrock has 2 dimensions or more, not 1"));
    CHECK(contains(problem_of("search: {objective: {function: keane}}"),
                   "search.objective.function: 'keane' is unknown"));
    CHECK(contains(problem_of("search: {objective: {function: keane}}"), "accepted: sphere, rosenbrock, rastrigin"));
    CHECK(
        contains(problem_of("training: {optimizer: {sgd: {}, adam: {}}}"), "training.optimizer: a section has 2 keys"));
}

TEST_CASE("the keys for folders of images are refused for other kinds of data") {
    const std::string folder = "data: {kind: folder, path: here, ";
    const std::string idx = "data:\n  kind: idx\n  path: here\n  ";
    CHECK(problem_of(folder + "size: [9, 7], grey: true, background: [0, 0, 255]}") == "");
    CHECK(begins(problem_of(folder + "size: 28}"),
                 "file.yaml:1: data.size: does not fit data of kind folder; accepted: [height, width]"));
    CHECK(begins(problem_of("data: {size: [28, 28]}"),
                 "file.yaml:1: data.size: does not fit data of kind generated; accepted: one number"));
    CHECK(begins(problem_of(idx + "size: [28, 28]\n"), "file.yaml:4: data.size: does not fit data of kind idx"));
    CHECK(begins(problem_of(idx + "grey: true\n"), "file.yaml:4: data.grey: is for data of kind folder"));
    CHECK(begins(problem_of(idx + "background: [0, 0, 0]\n"), "file.yaml:4: data.background: is for data of kind"));
}

TEST_CASE("--set is applied before the configuration is checked, and its error messages name --set") {
    const std::string yaml = "training:\n  epochs: 0\n";

    CHECK(problem_of(yaml, {"training.epochs=3"}) == "");
    CHECK(problem_of("name: x", {"training.epochs=-1"}) ==
          "--set training.epochs: '-1' is out of range; accepted: a whole number from 1 to 1000000");
    CHECK(begins(problem_of("name: x", {"training={epochs: 0}"}),
                 "--set training: training.epochs: '0' is out of range"));
    CHECK(begins(problem_of("name: x", {"training.epoch=1"}),
                 "--set training.epoch: unknown key (did you mean 'epochs'?)"));
    CHECK(begins(problem_of("name: x", {"training.epochs"}), "--set training.epochs: expected path.to.key=value"));
    CHECK(config::parse("name: x", "f", {"search.budget.evaluations=7"}).budget.evaluations == 7);
}

TEST_CASE("search.pruning is a word or a section, and is refused for functions, which have no epochs") {
    const auto pruning = [](const std::string& value) {
        return config::parse("name: x", "f", {"search.pruning=" + value}).pruning;
    };
    CHECK_FALSE(search::prunes(pruning("none")));
    CHECK(std::get<search::HalvingOptions>(pruning("halving")).factor == 3);
    CHECK(std::get<search::MedianOptions>(pruning("{median: {first_epoch: 4}}")).first_epoch == 4);
    CHECK(std::get<search::CurveOptions>(pruning("{curve: {least: 9}}")).least == 9);

    const std::string function = "search: {objective: {function: sphere}, ";
    CHECK(problem_of(function + "pruning: halving}") ==
          "file.yaml:1: search.pruning: a function has no epochs after which its evaluation could be ended; accepted: "
          "none");
    CHECK(problem_of(function + "budget: {epochs: 100}}") ==
          "file.yaml:1: search.budget.epochs: a function has no epochs; accepted: evaluations, generations, hours, "
          "node_hours, target_loss");
    CHECK(problem_of(function + "pruning: none}") == "");
}

TEST_CASE("the pruning rule is part of the fixed text, and the default rule is none") {
    const auto fixed = [](const std::string& yaml) { return config::parse(yaml, "f").fixed_text(); };
    CHECK(fixed("search: {pruning: none}") == fixed("name: x"));
    CHECK(config::difference(fixed("search: {pruning: none}"), fixed("search: {pruning: halving}")) != "");
}

TEST_CASE("load: the error for a missing file suggests the most similar name; a folder is refused") {
    namespace fs = std::filesystem;
    const fs::path folder = fs::temp_directory_path() / "finch-test-config-load";
    fs::create_directories(folder);
    std::ofstream(folder / "mnist.yaml") << "name: there\n";

    CHECK(config::load(folder / "mnist.yaml").name == "there");
    CHECK_THROWS_WITH_AS(
        (void)config::load(folder / "mnits.yaml"),
        doctest::Contains(("there is no such file (did you mean " + (folder / "mnist.yaml").string() + "?)").c_str()),
        ConfigError);
    CHECK_THROWS_WITH_AS((void)config::load(folder), doctest::Contains("is no file"), ConfigError);
    CHECK_THROWS_WITH_AS((void)config::load(folder / "none" / "x.yaml"), doctest::Contains("there is no such file"),
                         ConfigError);
    fs::remove_all(folder);
}

}  // namespace
