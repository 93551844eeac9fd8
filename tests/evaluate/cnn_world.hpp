#pragma once

#include "finch/comm/group.hpp"
#include "finch/config/config.hpp"
#include "finch/data/dataset.hpp"
#include "finch/evaluate/cnn_evaluator.hpp"

#include "support/temporary_folder.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace finch::evaluate {

/// Evaluates networks with one convolution on one rank and a `Device`. The gene is the number of channels.
template <class Device>
struct CnnWorld {
    static constexpr const char* configuration = R"(
name: world
data: {kind: generated, samples: 120, size: 12, validation_samples: 20}
model: [conv: {channels: $channels}, flatten, linear: {units: classes}]
training: {epochs: 2, batch_size: 20, learning_rate: 0.1}
search: {space: {channels: {int: [1, 400]}}, objective: validation_loss, budget: {evaluations: 4}}
workers: {slots: 3}
)";

    template <class... Arguments>
    explicit CnnWorld(Arguments&&... of_device)
        : config(config::parse(configuration, "test", settings())),
          datasets(data::load(config.recipe(genome(1), 0).data, config.seed)),
          device(std::forward<Arguments>(of_device)...),
          evaluator(config, group, datasets, device, cluster::AllReduceKind::none,
                    {store::RunDirectory(folder.path())}) {
        search::Individual unbeaten;  // so that no weights are written
        unbeaten.id.value = 100;
        unbeaten.outcome = search::Outcome::evaluated;
        unbeaten.loss = -1;
        population.merge(unbeaten);
    }

    /// Returns additional settings from Device::settings(), if it exists.
    static std::vector<std::string> settings() {
        if constexpr (requires { Device::settings(); }) {
            return Device::settings();
        }
        return {};
    }
    static search::Genome genome(std::int64_t channels) { return {static_cast<double>(channels)}; }
    void start(std::uint64_t id, std::int64_t channels) {
        search::Individual individual;
        individual.id.value = id;
        individual.genome = genome(channels);
        evaluator.start(std::move(individual), population);
    }
    /// Advances until no individual is running. Returns the individuals in the order in which they ended.
    std::vector<search::Individual> finish() {
        std::vector<search::Individual> ended;
        while (!evaluator.idle()) {
            for (search::Individual& individual : evaluator.advance(population)) {
                ended.push_back(std::move(individual));
            }
        }
        return ended;
    }

    testing::TemporaryFolder folder;
    config::Config config;
    data::Datasets datasets;
    comm::Group group{MPI_COMM_SELF, 0, 0};
    search::Population population{search::ExchangeKind::none, 1};
    Device device;
    CnnEvaluator evaluator;
};

}  // namespace finch::evaluate
