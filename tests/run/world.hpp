#pragma once

#include "finch/data/dataset.hpp"
#include "finch/evaluate/cnn_evaluator.hpp"
#include "finch/run/publish.hpp"

#include "support/temporary_folder.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

/// A worker that trains tiny networks in its own run directory.
namespace finch::run::small {

using namespace finch::evaluate;

inline constexpr std::uint64_t this_run = 77;

inline constexpr const char* configuration = R"(
name: best
data: {kind: generated, samples: 120, size: 8, validation_samples: 20}
model: [conv: {channels: $channels, kernel: 3}, flatten, linear: {units: classes}]
training: {INHERITepochs: 2, batch_size: 20, learning_rate: 0.1}
search: {space: {channels: {int: [1, 8]}}, objective: validation_error, budget: {evaluations: 4}}
)";

inline search::Individual individual(std::uint64_t id) {
    search::Individual one;
    one.id.value = id;
    one.genome = {static_cast<double>(id % 8 + 1)};
    return one;
}

inline search::Individual evaluated(std::uint64_t id, double loss) {
    search::Individual one = individual(id);
    one.outcome = search::Outcome::evaluated;
    one.loss = loss;
    return one;
}

inline search::Population population_of(const std::vector<search::Individual>& all) {
    search::Population population(search::ExchangeKind::none, 1);
    for (const search::Individual& one : all) {
        population.merge(one);
    }
    return population;
}

/// A worker of one rank with its run directory. `known` is the population that its leader knows.
struct World {
    explicit World(const std::string& inherit = "")
        : config(config::parse(
              std::string(configuration).replace(std::string(configuration).find("INHERIT"), 7, inherit), "test")),
          datasets(data::load(config.recipe({1}, 0).data, config.seed)),
          device(backend::make_cpu_device(1)) {
        directory.create();
    }

    [[nodiscard]] CnnEvaluator evaluator(int worker, std::uint64_t run) {
        return {config, group, datasets, *device, cluster::AllReduceKind::none, {directory, run, worker}};
    }

    search::Individual train(CnnEvaluator& evaluator, std::uint64_t id) const {
        return train(evaluator, individual(id));
    }

    search::Individual train(CnnEvaluator& evaluator, const search::Individual& one) const {
        evaluator.start(one, known);
        while (true) {
            for (search::Individual& done : evaluator.advance(known)) {
                return done;
            }
        }
    }

    /// Returns the id of the individual in the worker's file of kept weights, or 0 if there is no file.
    [[nodiscard]] std::uint64_t kept(int worker) const { return held(directory.worker_best(worker)); }
    [[nodiscard]] std::uint64_t published() const { return held(directory.best_model()); }
    [[nodiscard]] static std::uint64_t held(const std::filesystem::path& path) {
        std::vector<std::string> problems;
        const auto file = store::read_model(path, problems, OnDamage::leave);
        return file ? file->individual.id.value : 0;
    }

    [[nodiscard]] NamedArrays published_arrays() const {
        std::vector<std::string> problems;
        const auto file = store::read_model(directory.best_model(), problems, OnDamage::leave);
        return file ? file->arrays : NamedArrays{};
    }

    /// Writes weights of `one` as the kept weights of `worker`.
    void keep(int worker, const search::Individual& one, std::uint64_t run) const {
        store::write_model(directory.worker_best(worker), {one, "", {{"x", {}, std::vector<float>{1}}}, run});
    }

    testing::TemporaryFolder folder;
    store::RunDirectory directory{folder / "run"};
    config::Config config;
    data::Datasets datasets;
    comm::Group group{MPI_COMM_SELF, 0, 0};
    std::unique_ptr<backend::Device> device;
    search::Population known = population_of({});
};

}  // namespace finch::run::small
