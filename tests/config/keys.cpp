#include "finch/config/keys.hpp"

#include "finch/base/format.hpp"

#include "config/describe.hpp"
#include "config/problem.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <set>

namespace {

using namespace finch;
using namespace finch::test;

std::vector<KeyDescription> all_keys() {
    return describe({config::configuration()}, "");
}

/// Returns whether `key` belongs to a gene or an island. messages.cpp tests the keys of genes, because they depend on
/// each other. The keys of islands equal the keys of search.propagator.
bool is_gene_key(const KeyDescription& key) {
    return begins(key.path, "search.space") || begins(key.path, "search.islands[]");
}

/// Returns a setting for one key, for example "training.epochs=3". For a layer's key it sets a model with that layer.
std::string setting(const KeyDescription& key, const std::string& value) {
    const std::string systems = "data.systems[].";
    if (begins(key.path, systems)) {
        const std::string path = key.path == systems + "path" ? "" : "path: somewhere, ";
        return fmt::format("data.systems=[{{{}{}: {}}}]", path, key.path.substr(systems.size()), value);
    }
    const std::string layers = "model[].";
    if (!begins(key.path, layers)) {
        return fmt::format("{}={}", key.path, value);
    }
    std::string path = key.path.substr(layers.size());
    std::string text = value;
    while (!path.empty()) {
        const std::size_t dot = path.rfind('.');
        std::string name = path.substr(dot == std::string::npos ? 0 : dot + 1);
        path = dot == std::string::npos ? "" : path.substr(0, dot);
        if (const std::size_t list = name.find("[]"); list != std::string::npos) {
            name = name.substr(0, list);
            text = fmt::format("[{}]", text);
        }
        text = fmt::format("{{{}: {}}}", name, text);
    }
    return fmt::format("model=[{}]", text);
}

/// Returns other settings that a key requires, so that only its own bounds decide whether `value` is accepted.
std::vector<std::string> companions(const std::string& path, const std::string& value) {
    if (path == "data.kind") {
        return {"data.path=somewhere"};
    }
    if (path == "data.grey" || path == "data.background" || (path == "data.size" && value.front() == '[')) {
        return {"data={kind: folder, path: somewhere}"};
    }
    if (begins(path, "data.systems") && value != "none") {
        return {"data.kind=hdf5"};
    }
    if (begins(path, "data.validation") || path == "training.loss") {
        return {"data.kind=hdf5", "data.path=somewhere"};
    }
    if (path == "training.scale_learning_rate" || (path == "training.batch_size" && value == "null")) {
        return {"training.batch_size_per_rank=4"};
    }
    if (path == "training.optimizer.sgd.nesterov") {
        return {"training.optimizer.sgd.momentum=0.5"};
    }
    if (path == "log.tee") {
        return {"log.path=somewhere"};
    }
    if (path == "data.memory" && value == "streamed") {
        return {"data={kind: cifar, path: here}"};
    }
    if (begins(path, "search.inherit.move") && value != "none") {
        return {"search.pruning=halving", "search.objective={command: 'true', epochs: 9}",
                "search.space={lr: {real: [0, 1]}}"};
    }
    if (begins(path, "search.inherit.")) {
        return {"search.pruning=halving"};
    }
    if (begins(path, "search.final.")) {
        return {"search.budget.evaluations=10000000"};
    }
    if (path == "search.exchange.topology" && value == "matrix") {
        return {"search.exchange.matrix=[[0]]", "workers.islands=1"};
    }
    if (begins(path, "search.exchange.matrix") && value != "none") {
        return {"search.exchange.topology=matrix", "workers.islands=1"};
    }
    if (begins(path, "search.exchange.migrants") && value.front() == '[') {
        return {"workers.islands=1"};
    }
    if (path == "search.propagator.swarm.cognitive" || path == "search.propagator.swarm.social") {
        return {"search.propagator.swarm.variant=basic"};
    }
    static const std::set<std::string> of_functions{"function", "dimensions", "shift", "rotate",
                                                    "instance", "seconds",    "spread"};
    if (begins(path, "search.objective.")) {
        const bool is_of_function = of_functions.contains(path.substr(path.find_last_of('.') + 1));
        return {is_of_function ? "search.objective.function=sphere" : "search.objective.command=true"};
    }
    if (begins(path, "search.budget.")) {
        return {path == "search.budget.hours" ? "search.budget.evaluations=1" : "search.budget.hours=1"};
    }
    return {};
}

std::string problem_with(const KeyDescription& key, const std::string& value, std::vector<std::string> more = {}) {
    std::vector<std::string> settings = companions(key.path, value);
    settings.push_back(setting(key, value));
    settings.insert(settings.end(), more.begin(), more.end());
    return problem_of("name: test", settings);
}

/// Replaces "[]" by "[0]": "model[].conv.kernel" becomes "model[0].conv.kernel".
std::string path_in_messages(std::string path) {
    for (std::size_t at = path.find("[]"); at != std::string::npos; at = path.find("[]")) {
        path.replace(at, 2, "[0]");
    }
    return path;
}

TEST_CASE("every key accepts the values at its bounds") {
    int tried = 0;
    for (const KeyDescription& key : all_keys()) {
        for (const std::string& value : is_gene_key(key) ? std::vector<std::string>{} : key.accepted) {
            if (key.path == "search.objective" && value.front() == '[') {
                continue;  // messages.cpp tests lists: their values depend on each other
            }
            if (key.path == "data.systems[].path" && value == "null") {
                continue;  // null is only used in comparisons of data; a configuration must give a path
            }
            const std::string problem = problem_with(key, value);
            CHECK_MESSAGE(problem == "", key.path << "=" << value << ": " << problem);
            ++tried;
        }
    }
    CHECK(tried > 150);
}

TEST_CASE("every key refuses values outside of its bounds and other types; the message names the accepted values") {
    int tried = 0;
    for (const KeyDescription& key : all_keys()) {
        for (const std::string& value : is_gene_key(key) ? std::vector<std::string>{} : key.refused) {
            const std::string problem = problem_with(key, value);
            CHECK_MESSAGE(contains(problem, path_in_messages(key.path)), key.path << "=" << value << ": " << problem);
            CHECK_MESSAGE(contains(problem, "accepted: "), key.path << "=" << value << ": " << problem);
            ++tried;
        }
    }
    CHECK(tried > 500);
}

TEST_CASE("a key accepts a $gene if and only if the key tables allow genes for this key") {
    for (const KeyDescription& key : all_keys()) {
        const bool plain = !key.accepted.empty() && key.accepted.back() != "null" &&
                           key.accepted.back().find_first_of("[{") == std::string::npos;
        if (is_gene_key(key) || !plain) {
            continue;
        }
        const std::string value = key.accepted.back();
        const std::string problem = problem_with(key, "$g", {fmt::format("search.space.g.choice=[{}]", value)});
        if (key.genes) {
            CHECK_MESSAGE(problem == "", key.path << " = " << value << ": " << problem);
        } else {
            CHECK_MESSAGE(contains(problem, path_in_messages(key.path)), problem);
            CHECK_MESSAGE(problem != "", key.path);
        }
    }
}

TEST_CASE("every key has a valid default, a description and an entry in the reference text") {
    const std::string reference = config::reference_text();
    for (const KeyDescription& key : all_keys()) {
        const std::string name = key.path.substr(key.path.find_last_of('.') + 1);
        CHECK_MESSAGE(!key.meaning.empty(), key.path);
        CHECK_MESSAGE(!key.accepts.empty(), key.path);
        CHECK_MESSAGE((contains(reference, name + ":") || contains(reference, " " + name + "\n")), key.path);
        if (!is_gene_key(key) && key.path != "search.budget" && key.fallback != "null") {
            CHECK_MESSAGE(problem_with(key, key.fallback) == "", key.path << ": " << problem_with(key, key.fallback));
        }
    }
}

TEST_CASE("reference_text() parses to the default configuration") {
    const config::Config defaults = config::parse("name: finch", "file.yaml");

    CHECK(config::parse(config::reference_text(), "reference").text() == defaults.text());
}

TEST_CASE("the documented bounds of keys hold") {
    const std::set<std::string> accepted{"training.epochs=1",
                                         "training.learning_rate=1e-300",
                                         "search.exchange.probability=1",
                                         "search.exchange.probability=0",
                                         "search.propagator.genetic.population=2",
                                         "seed=0",
                                         "workers.islands=[3, 1]",
                                         "training.precision=bfloat16",
                                         "training.precision=float16",
                                         "search.space={}",
                                         "data.normalize.deviation=[0.1, 0.2, 0.3]"};
    const std::set<std::string> refused{"training.epochs=0",
                                        "training.learning_rate=0",
                                        "search.exchange.probability=1.0000001",
                                        "search.exchange.probability=-0.0000001",
                                        "search.propagator.genetic.population=1",
                                        "seed=-1",
                                        "workers.islands=[3, 0]",
                                        "workers.islands=[]",
                                        "training.precision=float64",
                                        "training.precision=half",
                                        "data.normalize.deviation=0",
                                        "data.normalize.mean=1e10",
                                        "training.class_weights=[1e-7, 1]",
                                        "name=a/b"};
    for (const std::string& some : accepted) {
        CHECK_MESSAGE(problem_of("name: test", {some}) == "", some);
    }
    for (const std::string& some : refused) {
        CHECK_MESSAGE(problem_of("name: test", {some}) != "", some);
    }
}

}  // namespace
