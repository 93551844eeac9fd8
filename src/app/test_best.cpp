#include "finch/app/verbs.hpp"
#include "finch/base/bytes.hpp"
#include "finch/base/format.hpp"
#include "finch/base/log.hpp"
#include "finch/base/message.hpp"
#include "finch/data/labels.hpp"
#include "finch/data/recorded_pixels.hpp"
#include "finch/nn/model.hpp"
#include "finch/run/devices.hpp"
#include "finch/run/load_data.hpp"
#include "finch/run/on_every_rank.hpp"
#include "finch/run/results.hpp"
#include "finch/run/startup.hpp"
#include "finch/search/outcomes.hpp"
#include "finch/store/model_file.hpp"
#include "finch/store/resume.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace finch::app {
namespace {

/// The network to test, as sent from world rank 0.
struct Tested {
    std::string config;  ///< configuration of the run, with the settings of the options
    std::string fingerprint;
    search::Individual individual;
    NamedArrays weights;
    std::vector<std::string> classes;  ///< class names
};

bool is_of(const std::string& setting, const std::string& section) {
    return setting.starts_with(section + ".") || setting.starts_with(section + "=");
}

void check_settings(const TestOptions& options) {
    for (const std::string& setting : options.settings) {
        if (!is_of(setting, "data") && !is_of(setting, "workers")) {
            throw ConfigError(
                fmt::format("--set {}: the network is there already; accepted: keys of data and of workers", setting));
        }
    }
}

/// True if the network is measured on the run's own test set.
bool tests_own_data(const TestOptions& options) {
    return !options.data && std::none_of(options.settings.begin(), options.settings.end(),
                                         [](const std::string& setting) { return is_of(setting, "data"); });
}

/// Reads models/best.h5. Throws ConfigError if the file does not exist, cannot be read, or belongs to another run.
store::ModelFile read_best_network(const store::RunDirectory& directory, const store::Recovered& recovered) {
    const std::string path = directory.best_model().string();
    std::vector<std::string> problems;
    search::Population population(search::ExchangeKind::none, 1);
    recovered.merge_into(population);
    auto file = store::read_model(path, problems, OnDamage::leave);
    if (!file) {
        throw ConfigError(problems.empty() ? fmt::format("{} is not there: the run has no trained network yet ({})",
                                                         path, search::Outcomes(population).text())
                                           : fmt::format("{} cannot be read: {}", path, fmt::join(problems, "; ")));
    }
    for (const std::string& problem : problems) {
        spdlog::warn("{}", problem);
    }
    const search::Individual* individual = population.find(file->individual.id);
    const std::string why = individual == nullptr
                                ? fmt::format("it is of {}, which the run does not know", to_text(file->individual.id))
                                : store::why_foreign(*file, recovered.facts.run, *individual);
    if (!why.empty()) {
        throw ConfigError(fmt::format("{} is not the best network of this run: {}", path, why));
    }
    return std::move(*file);
}

/// World rank 0 only. Packs the network and its configuration into a message.
std::string pack(const TestOptions& options) {
    check_settings(options);
    const store::RunDirectory directory(options.run);
    const store::Recovered recovered = store::recover_run(directory, store::Curves::leave);
    const std::string source = directory.config().string();
    const config::Config of_run = config::parse(recovered.facts.config, source);
    if (!of_run.trains()) {
        throw ConfigError(
            fmt::format("{}: finch test measures a network, and this run's objective is a function or a program",
                        options.run.string()));
    }
    // The network may be measured on any device, because the run may come from another machine.
    std::vector<std::string> settings{"workers.device=auto", "workers.threads=auto"};
    store::ModelFile best = read_best_network(directory, recovered);
    const auto kind = std::find_if(options.settings.begin(), options.settings.end(),
                                   [](const std::string& setting) { return setting.starts_with("data.kind="); });
    if (kind != options.settings.end()) {
        if (options.data) {
            settings.push_back("data.path=" + *options.data);  // data.kind needs a path
        }
        const auto recipe = of_run.recipe(best.individual.genome, best.individual.id.value);
        // If the kinds differ, resets the keys that only the run's kind of data has.
        if (*kind != fmt::format("data.kind={}", word(recipe.data.kind))) {
            settings.insert(settings.end(), {"data.size=auto", "data.grey=false", "data.background=none"});
        }
    }
    settings.insert(settings.end(), options.settings.begin(), options.settings.end());
    const config::Config config = config::parse(recovered.facts.config, source, settings);
    std::erase_if(best.arrays, [](const NamedArray& array) {
        return array.name.find('/') != std::string::npos && !array.name.starts_with("data/");
    });
    Bytes bytes;
    bytes.reserve(config.text().size());
    ByteWriter writer(bytes);
    writer.put_text(config.text());
    writer.put_text(recovered.facts.data_fingerprint);
    search::write_individual(best.individual, false, bytes);
    write_arrays(best.arrays, writer);
    writer.put_text(to_message(best.classes));
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Tested unpack(const std::string& packed) {
    ByteReader reader(std::as_bytes(std::span(packed)));
    Tested tested;
    tested.config = reader.get_text();
    tested.fingerprint = reader.get_text();
    tested.individual = search::read_individual(reader);
    tested.weights = read_arrays(reader);
    tested.classes = from_message<std::vector<std::string>>(reader.get_text());
    return tested;
}

train::Recipe recipe_of(const config::Config& config, const search::Individual& individual,
                        const TestOptions& options) {
    train::Recipe recipe = config.recipe(individual.genome, individual.id.value);
    if (options.data) {
        if (recipe.data.kind == data::Kind::generated) {
            throw ConfigError(
                "--data: this run's data are generated, not read; accepted with it: --set data.kind=idx, cifar, "
                "hdf5 or folder");
        }
        recipe.data.path = *options.data;
        recipe.data.systems.clear();
    }
    return recipe;
}

/// Throws ConfigError unless a network with these weights takes the images of `set`.
void check_shape(const nn::ModelSpec& model, const data::Dataset& set, const NamedArrays& weights) {
    try {
        const nn::ModelPlan plan = nn::plan_model(model, {set.height, set.width, set.channels}, set.outputs(), 1);
        static_cast<void>(nn::read_tensors(plan, weights));
    } catch (const Error& error) {
        throw ConfigError(fmt::format(
            "the network does not take images of ({}, {}, {}) with {} {}: {}; accepted: data like those that it was "
            "trained with",
            set.height, set.width, set.channels, set.outputs(), set.targets.empty() ? "classes" : "numbers each",
            error.what()));
    }
}

/// Collective over the world. Opens the device of this rank. All ranks form one worker.
run::OpenedDevice open_as_one_worker(const comm::Session& session, config::Config config) {
    config.workers.ranks = session.world_size();
    config.workers.islands = 1;
    config.workers.island_sizes.clear();
    config.workers.slots = 1;
    config.workers.communicator = cluster::AllReduceKind::automatic;
    return run::open_device(
        session, config,
        run::place_ranks(session, config, cluster::Slurm::read(cluster::Environment::of_this_process())));
}

}  // namespace

int test_best(comm::Session& session, const TestOptions& options) {
    LogOptions quiet;  // standard output has the results
    quiet.level = LogLevel::warning;
    set_up_log(quiet, session.world_rank(), false);
    Tested tested = unpack(run::on_rank_zero(MPI_COMM_WORLD, [&] { return pack(options); }));
    const config::Config config = config::parse(tested.config, (options.run / "config.yaml").string());
    const train::Recipe recipe = recipe_of(config, tested.individual, options);
    const bool is_own = tests_own_data(options);
    const run::OpenedDevice opened = open_as_one_worker(session, config);
    const run::LoadedData loaded =
        run::load_test_on_each_node(recipe.data, config.seed, is_own ? run::Reads::both_sets : run::Reads::test_set);
    if (is_own && loaded.sets.fingerprint != tested.fingerprint) {
        throw ConfigError(
            fmt::format("the data are others than the run's (checksum {} then, {} now); accepted: the run's, or others "
                        "by --data",
                        tested.fingerprint, loaded.sets.fingerprint));
    }
    data::Dataset set = loaded.sets.test;
    if (set.samples() == 0) {
        throw ConfigError("the run's data have no test set; accepted: other data by --data");
    }
    data::take_recorded_pixels(tested.weights, set);
    data::use_trained_classes(tested.classes, set);
    std::erase_if(tested.weights, [](const NamedArray& array) { return array.name.starts_with("data/"); });
    check_shape(recipe.model, set, tested.weights);
    set.class_names = tested.classes.empty() ? set.class_names : tested.classes;
    const comm::Group group(MPI_COMM_WORLD, 0, session.world_rank(), config.workers.timeout_seconds);
    const run::Results results = run::measure_results(*opened.device, group, recipe, tested.weights, set);
    static_cast<void>(run::on_rank_zero(MPI_COMM_WORLD, [&] {
        if (options.csv) {
            run::write_predictions(*options.csv, results);
        }
        return std::string();
    }));
    if (session.world_rank() == 0) {
        const std::string which = is_own ? "the run's test set"
                                  : recipe.data.kind == data::Kind::generated
                                      ? "other data"
                                      : "other data, " + data::places_text(recipe.data);
        fmt::print("best individual {} on {}\n{}\n{}", to_text(tested.individual.id), which,
                   run::results_text("test", results),
                   results.classification ? report::calibration_text(*results.classification) +
                                                report::confusion_text(*results.classification)
                                          : "");
    }
    return exit_done;
}

}  // namespace finch::app
