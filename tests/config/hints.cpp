#include "finch/config/keys.hpp"
#include "finch/config/synonyms.hpp"

#include "config/problem.hpp"

#include <doctest/doctest.h>
#include <set>

namespace {

using namespace finch;
using namespace finch::test;

/// Collects all keys, alternatives and words of a configuration.
struct CollectWords {
    std::set<std::string>& words;

    void operator()(const config::Section& section) const { add(section.keys); }
    void operator()(const config::Variants& variants) const { add(variants.alternatives); }
    void operator()(const config::Word& word) const { words.insert(word.words.begin(), word.words.end()); }
    void operator()(const config::List& list) const { descend(list.element.front()); }
    void operator()(const config::Named& named) const { descend(named.element.front()); }
    void operator()(const config::Either& either) const {
        for (const config::Domain& domain : either.domains) {
            descend(domain);
        }
    }
    template <class Other>
    void operator()(const Other&) const {}

    void add(const std::vector<config::Key>& keys) const {
        for (const config::Key& key : keys) {
            words.insert(key.name);
            descend(key.domain);
        }
    }
    void descend(const config::Domain& domain) const { std::visit(*this, domain.is); }
};

std::string of_training(const std::string& keys) {
    return problem_of("training: {" + keys + "}");
}
std::string of_search(const std::string& keys) {
    return problem_of("search: {" + keys + "}");
}
std::string of_gene(const std::string& gene) {
    return problem_of("training:\n  learning_rate: $lr\nsearch:\n  space:\n    lr: " + gene + "\n");
}
std::string of_layer(const std::string& layer) {
    return problem_of("model: [" + layer + "]");
}

bool is_refused_without_hint(const std::string& problem) {
    return !problem.empty() && !contains(problem, "did you mean");
}

TEST_CASE("synonyms: each leads to a key, a word, a verb or an option, and none is the same word") {
    // tests/end_to_end/command_lines.py checks the rows of these verbs and options.
    std::set<std::string> words{"evolve", "train",  "show", "status", "test", "plan",   "replay",
                                "doctor", "config", "data", "fresh",  "top",  "follow", "set"};
    CollectWords{words}(config::configuration());

    for (const config::Synonym& synonym : config::synonyms()) {
        CAPTURE(synonym.typed);
        CAPTURE(synonym.own);
        CHECK(words.contains(synonym.own));
        CHECK_FALSE(config::is_same_word(synonym.typed, synonym.own));
        CHECK(config::own_word(synonym.typed, std::vector{synonym.own}) == synonym.own);
    }
}

TEST_CASE("is_same_word ignores case, separators, a qualification and arguments") {
    CHECK(config::is_same_word("AdamW", "adamw"));
    CHECK(config::is_same_word("batchSize", "batch_size"));
    CHECK(config::is_same_word("learning-rate", "learning_rate"));
    CHECK(config::is_same_word("torch.nn.ReLU()", "relu"));
    CHECK(config::is_same_word("loguniform(1e-4, 1e-1)", "loguniform"));
    CHECK_FALSE(config::is_same_word("adam", "adamw"));
    CHECK_FALSE(config::is_same_word("", ""));
    CHECK_FALSE(config::is_same_word("(1, 2)", "(1, 3)"));
}

TEST_CASE("own_word finds the same word before a synonym, and only among the known words") {
    const std::vector<std::string> known{"channels", "kernel", "validation_error"};

    CHECK(config::own_word("out_channels", known) == "channels");
    CHECK(config::own_word("units", known) == "channels");
    CHECK(config::own_word("units", std::vector<std::string>{"units", "channels"}) == "units");
    CHECK(config::own_word("Channels", known) == "channels");
    CHECK_FALSE(config::own_word("lr", known).has_value());
    CHECK_FALSE(config::own_word("kernels", known).has_value());
}

TEST_CASE("did_you_mean: a synonym, an explained synonym, the nearest word, or nothing") {
    const std::vector<std::string> known{"channels", "kernel", "validation_error"};

    CHECK(config::did_you_mean("kernel_size", known) == " (did you mean 'kernel'?)");
    CHECK(config::did_you_mean("accuracy", known) == " (did you mean validation_error, which is 1 - accuracy?)");
    CHECK(config::did_you_mean("kernal", known) == " (did you mean 'kernel'?)");
    CHECK(config::did_you_mean("zebra", known).empty());
}

TEST_CASE("names of PyTorch, Keras, Optuna and Propulate lead to Finch's keys and words") {
    CHECK(contains(of_layer("{conv: {out_channels: 8}}"), "unknown key (did you mean 'channels'?)"));
    CHECK(contains(of_layer("{conv: {units: 8}}"), "(did you mean 'channels'?)"));
    CHECK(contains(of_layer("{linear: {features: 8}}"), "(did you mean 'units'?)"));
    CHECK(contains(of_layer("{Conv2d: {}}"), "'Conv2d' is unknown (did you mean 'conv'?)"));
    CHECK(contains(of_layer("nn.MaxPool2d(2)"), "(did you mean 'max_pool'?)"));
    CHECK(contains(of_layer("{conv: {activation: LeakyReLU}}"), "(did you mean 'leaky_relu'?)"));
    CHECK(contains(of_layer("{conv: {activation: swish}}"), "(did you mean 'silu'?)"));
    CHECK(contains(of_training("lr: 0.1"), "(did you mean 'learning_rate'?)"));
    CHECK(contains(of_training("optimizer: torch.optim.AdamW"), "(did you mean 'adamw'?)"));
    CHECK(contains(of_search("objective: accuracy"), "(did you mean validation_error, which is 1 - accuracy?)"));
    CHECK(contains(of_search("objective: [val_loss]"), "(did you mean 'validation_loss'?)"));
    CHECK(contains(of_search("propagator: TPESampler"), "'TPESampler' is unknown (did you mean 'auto'?)"));
    CHECK(contains(of_search("propagator: {genetic: {pop_size: 9}}"), "(did you mean 'population'?)"));
    CHECK(contains(of_search("pruning: hyperband"), "(did you mean 'halving'?)"));
    CHECK(contains(problem_of("data: {kind: mnist}"), "(did you mean 'idx'?)"));
}

TEST_CASE("one message names all unknown keys of a section, and gives each hint once") {
    CHECK(begins(of_gene("{float: [0.1, 1], log: true}"),
                 "file.yaml:5: search.space.lr.float: unknown key (did you mean 'real'?), log too (did you mean scale: "
                 "log?); accepted: real, int"));
    CHECK(
        begins(of_gene("{low: 0.1, high: 1}"),
               "file.yaml:5: search.space.lr.low: unknown key (did you mean {real: [low, high]}, {int: [low, high]} or "
               "{choice: [a, b]}?), high too; accepted"));
}

TEST_CASE("the hint for a key in the wrong section is its path") {
    CHECK(begins(problem_of("epochs: 3"),
                 "file.yaml:1: epochs: unknown key (did you mean training.epochs or search.objective.epochs or "
                 "search.budget.epochs?)"));
    CHECK(contains(problem_of("name: x", {"budget.evaluations=80"}), "(did you mean search.budget.evaluations?)"));
    CHECK(contains(of_search("n_trials: 80"), "(did you mean search.budget.evaluations?)"));
    CHECK(contains(of_training("momentum: 0.9"), "(did you mean training.optimizer.sgd.momentum?)"));
    CHECK(contains(of_training("patience: 9"), "(did you mean training.early_stopping.patience?)"));
    CHECK(contains(problem_of("training: {learning_rate: $lr}\nsearch: {space: {lr: {real: [0.1, 1]}}}", {"lr=0.5"}),
                   "(did you mean search.space.lr?)"));
    CHECK(contains(of_training("epochs_: 3"), "(did you mean 'epochs'?)"));
}

TEST_CASE("values that look like a gene: the hint is the gene") {
    CHECK(begins(
        of_gene("[0.1, 0.5, 0.7]"),
        "file.yaml:5: search.space.lr: a list is no gene (did you mean {choice: [0.1, 0.5, 0.7]}?); accepted: "));
    CHECK(contains(of_gene("[0.1, 0.5]"), "(did you mean {real: [0.1, 0.5]} or {choice: [0.1, 0.5]}?)"));
    CHECK(contains(of_gene("[1, 3]"), "(did you mean {int: [1, 3]} or {choice: [1, 3]}?)"));
    CHECK(contains(of_gene("(1e-4, 1e-1)"), "(did you mean {real: [1e-4, 1e-1]} or {choice: [1e-4, 1e-1]}?)"));
    CHECK(contains(of_gene("loguniform(1e-4, 1e-1)"), "(did you mean {real: [low, high], scale: log}?)"));
    CHECK(contains(of_layer("{conv: {activation: [relu, tanh]}}"),
                   "a list is not accepted (did you mean a gene? write $activation here, and activation: {choice: "
                   "[relu, tanh]} in search.space)"));
    CHECK(contains(of_training("learning_rate: {loguniform: [0.1, 1]}"),
                   "(did you mean a gene? write $learning_rate here, and learning_rate: {real: ...} in search.space)"));
    CHECK(contains(of_training("optimizer: {choice: [sgd, adam]}"),
                   "(did you mean a gene? write $optimizer here, and optimizer: {choice: ...} in search.space)"));
    CHECK(is_refused_without_hint(problem_of("workers: {ranks: [1, 2]}")));
}

TEST_CASE("a value in place of a section: the hint is the first key that accepts it") {
    CHECK(contains(of_search("budget: 100"), "'100' is no section (did you mean {evaluations: 100}?); accepted: "));
    CHECK(contains(of_search("exchange: migration"), "(did you mean {kind: migration}?)"));
    CHECK(contains(of_training("early_stopping: 5"), "'5' does not fit (did you mean {patience: 5}?); accepted: "));
    CHECK(contains(of_layer("{dropout: 0.5}"), "(did you mean {rate: 0.5}?)"));
    CHECK(contains(problem_of("data: data/mnist"), "(did you mean {path: data/mnist}?)"));
    CHECK(is_refused_without_hint(problem_of("data: {normalize: true}")));
}

TEST_CASE("YAML slips: a list for a section, a section for a list, a tab, an exponent, an activation as a layer") {
    CHECK(contains(problem_of("search: {space: [{lr: {real: [0, 1]}}]}"), "a list is no section (leave out the '- ')"));
    CHECK(contains(problem_of("model: {conv: {channels: 3}}"), "a section is no list (begin each entry with '- ')"));
    CHECK(contains(problem_of("training:\n\tepochs: 3"), "; indent with blanks, not with tabs"));
    CHECK(contains(of_training("epochs: 1e3"), "'1e3' is no whole number (did you mean 1000?)"));
    CHECK(contains(of_layer("relu"), "(did you mean {activation: NAME}?)"));
    CHECK(contains(problem_of("training: {learning_rate: $lr}\nsearch: {space: {learning_rate: {real: [0.1, 1]}}}"),
                   "'$lr' names no gene (did you mean '$learning_rate'?)"));
}

TEST_CASE("a path with an environment variable is not taken for a gene") {
    CHECK(contains(problem_of("data: {kind: idx, path: $HOME/mnist}"),
                   "data.path: environment variables are not expanded; accepted: "));
}

TEST_CASE("several keys in the place of one alternative: the hint is the alternative, or the indentation") {
    CHECK(contains(of_training("optimizer: {type: SGD, momentum: 0.9}"), "(did you mean {sgd: {...}}?)"));
    CHECK(contains(problem_of("model:\n  - conv:\n    channels: 3\n"), "(indent channels more than conv)"));
    CHECK(is_refused_without_hint(of_training("optimizer: {sgd: {}, adam: {}}")));
}

}  // namespace
