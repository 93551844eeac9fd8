// Concurrent trainings on a worker with several ranks, with random delays. Run with 2 ranks. The watchdog in
// mpi_main.cpp ends a test case that hangs.
#include "finch/base/random.hpp"
#include "finch/data/dataset.hpp"
#include "finch/evaluate/cnn_evaluator.hpp"

#include "support/temporary_folder.hpp"
#include "support/wrapped_device.hpp"

#include <chrono>
#include <cmath>
#include <doctest/doctest.h>
#include <map>
#include <thread>

using namespace finch;
using namespace finch::evaluate;

namespace {

constexpr std::uint64_t individuals = 8;
constexpr std::int64_t steps_each = 1000;  ///< steps per individual: 20 epochs of 200 samples in batches of 4

constexpr const char* configuration = R"(
name: slots
data: {kind: generated, samples: 220, size: 8, validation_samples: 20}
model: [conv: {channels: $channels, kernel: 3, activation: relu}, max_pool: {kernel: 2}, flatten, linear: {units: classes}]
training: {epochs: 20, batch_size: 4, optimizer: {sgd: {momentum: 0.9}}, learning_rate: 0.01, watch: true}
search: {space: {channels: {int: [1, 8]}}, objective: validation_loss, budget: {evaluations: 8}}
workers: {ranks: 2, slots: 8}
)";

/// A CPU device with random pauses, which differ between ranks and slots.
class HesitantDevice : public test::WrappedDevice {
public:
    HesitantDevice(std::uint64_t seed, bool hesitates)
        : seed_(seed), hesitates_(hesitates), random_(seed, Purpose::test) {}

    [[nodiscard]] std::unique_ptr<backend::Device> new_stream() override {
        return std::make_unique<HesitantDevice>(seed_ + ++streams_, hesitates_);
    }
    void load_batch(backend::StepContext& step, float* out) override {
        hesitate();
        WrappedDevice::load_batch(step, out);
    }
    void optimizer_step(backend::StepContext& step, const backend::Optimizer& optimizer,
                        std::span<const backend::ParameterRange> ranges, float* parameters, const float* grads,
                        float* state_a, float* state_b) override {
        hesitate();
        WrappedDevice::optimizer_step(step, optimizer, ranges, parameters, grads, state_a, state_b);
    }

private:
    void hesitate() {
        if (hesitates_ && random_.below(100) == 0) {
            std::this_thread::sleep_for(std::chrono::microseconds(random_.below(2000)));
        }
    }

    std::uint64_t seed_;
    bool hesitates_;
    RandomStream random_;
    std::uint64_t streams_ = 0;
};

/// Collective over the world. Trains the individuals in `slot_count` slots. Returns the results by id on the leader,
/// and an empty map on the other rank.
std::map<std::uint64_t, search::Individual> train_all(int slot_count, bool hesitates,
                                                      const search::PruningOptions& pruning = {},
                                                      energy::Meter* meter = nullptr) {
    const testing::TemporaryFolder folder;
    config::Config config = config::parse(configuration, "test");
    config.workers.slots = slot_count;
    config.pruning = pruning;
    const data::Datasets datasets = data::load(config.recipe({1.0}, 0).data, config.seed);
    const int rank = comm::rank_of(MPI_COMM_WORLD);
    const comm::Group group(MPI_COMM_WORLD, 0, rank);
    HesitantDevice device(1000 * static_cast<std::uint64_t>(rank + 1), hesitates);
    CnnEvaluator evaluator(config, group, datasets, device, cluster::AllReduceKind::mpi,
                           {store::RunDirectory(folder.path())}, meter);
    std::map<std::uint64_t, search::Individual> ended;
    if (!group.is_leader()) {
        evaluator.follow();
        return ended;
    }
    search::Population known(search::ExchangeKind::none, 1);
    search::Individual unbeaten;  // so that no weights are written
    unbeaten.id.value = 100;
    unbeaten.outcome = search::Outcome::evaluated;
    unbeaten.loss = -1;
    unbeaten.pruning.edit().losses.front() = -1;
    known.merge(unbeaten);
    for (std::uint64_t next = 1; next <= individuals || !evaluator.idle();) {
        while (next <= individuals && evaluator.has_free_slot()) {
            search::Individual individual;
            individual.id.value = next;
            individual.genome = {static_cast<double>(next)};
            evaluator.start(std::move(individual), known);
            ++next;
        }
        for (search::Individual& individual : evaluator.advance(known)) {
            known.merge(individual);
            ended.emplace(individual.id.value, std::move(individual));
        }
        for (search::Individual& individual : evaluator.take_progress()) {
            known.merge(std::move(individual));
        }
    }
    evaluator.dismiss();
    return ended;
}

}  // namespace

TEST_CASE("8 slots on 2 ranks with random delays give bitwise the same results as one slot without delays") {
    REQUIRE(comm::size_of(MPI_COMM_WORLD) == 2);

    const auto together = train_all(static_cast<int>(individuals), true);
    const auto one_by_one = train_all(1, false);

    CHECK(together.size() == one_by_one.size());
    for (const auto& [id, individual] : together) {
        CAPTURE(id);
        CHECK(individual.outcome == search::Outcome::evaluated);
        CHECK(individual.batch_size == 4);
        CHECK(individual.epochs * (220 - 20) / individual.batch_size == steps_each);
        const auto& expected = one_by_one.at(id).curve;
        REQUIRE(individual.curve.size() == expected.size());
        for (std::size_t epoch = 0; epoch < expected.size(); ++epoch) {
            CHECK(individual.curve[epoch].training_loss == expected[epoch].training_loss);
            CHECK(individual.curve[epoch].validation_loss == expected[epoch].validation_loss);
        }
        const auto& norms = one_by_one.at(id).metrics;
        CHECK(individual.metrics.size() == 20 * 2 * 2);  // weights and gradients of 2 layers
        CHECK(std::equal(norms.begin(), norms.end(), individual.metrics.begin(), individual.metrics.end(),
                         [](const Metric& a, const Metric& b) { return a.name == b.name && a.value == b.value; }));
    }
    if (comm::rank_of(MPI_COMM_WORLD) == 0) {
        CHECK(together.size() == individuals);
    }
}

TEST_CASE("8 slots on 2 ranks: the leader decides about pruning, and a pruned training ends at a rung") {
    const auto pruned = train_all(static_cast<int>(individuals), true, search::HalvingOptions{});
    const auto whole = train_all(1, false);

    std::size_t ended_early = 0;
    for (const auto& [id, individual] : pruned) {
        CAPTURE(id);
        const bool is_pruned = individual.outcome == search::Outcome::pruned;
        ended_early += is_pruned ? 1 : 0;
        CHECK((is_pruned || individual.outcome == search::Outcome::evaluated));
        REQUIRE(individual.curve.size() == static_cast<std::size_t>(individual.epochs));
        CHECK((is_pruned ? search::Rungs{1, 3}.contains(individual.epochs) : individual.epochs == 20));
        CHECK(is_pruned == (individual.loss > individual.pruning->threshold && individual.epochs < 20));
        for (std::size_t epoch = 0; epoch < individual.curve.size(); ++epoch) {
            CHECK(individual.curve[epoch].validation_loss == whole.at(id).curve[epoch].validation_loss);
        }
    }
    if (comm::rank_of(MPI_COMM_WORLD) == 0) {
        CHECK(ended_early >= 4);  // of 2 to 5 losses at a rung, halving promotes one: `unbeaten`
    }
}

TEST_CASE("joules of a training are the sum over the meters of the worker's ranks") {
    const bool is_leader = comm::rank_of(MPI_COMM_WORLD) == 0;
    for (const bool leader_takes_most : {true, false}) {
        CAPTURE(leader_takes_most);
        const auto watts = energy::make_estimate(is_leader == leader_takes_most ? 1000 : 1).meter;
        for (const auto& [id, individual] : train_all(2, false, {}, watts.get())) {
            CAPTURE(id);
            // 1001 W is the power of both ranks together. The mean is lower if a rank starts late.
            const double mean_watts = individual.joules / individual.training_seconds;
            CHECK(mean_watts <= 1001 * (1 + 1e-9));
            CHECK(mean_watts > 100);
        }
    }
    const auto watts = energy::make_estimate(10).meter;
    for (const auto& [id, individual] : train_all(2, false, {}, is_leader ? watts.get() : nullptr)) {
        CAPTURE(id);
        CHECK(std::isnan(individual.joules));
    }
}
