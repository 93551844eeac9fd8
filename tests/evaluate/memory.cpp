// Several individuals on one device whose memory does not take them all.
#include "finch/data/dataset.hpp"
#include "finch/evaluate/cnn_evaluator.hpp"

#include "support/temporary_folder.hpp"
#include "support/wrapped_device.hpp"

#include <doctest/doctest.h>

using namespace finch;
using namespace finch::evaluate;

namespace {

constexpr const char* configuration = R"(
name: memory
data: {kind: generated, samples: 120, size: 12, validation_samples: 20}
model: [conv: {channels: $channels}, flatten, linear: {units: classes}]
training: {epochs: 1, batch_size: 20, learning_rate: 0.1}
search: {space: {channels: {int: [1, 400]}}, objective: validation_loss, budget: {evaluations: 4}}
workers: {slots: 3}
)";

/// The CPU, with so much memory and no more: free_bytes() and allocate() know of it.
class SmallDevice : public test::WrappedDevice {
public:
    explicit SmallDevice(std::int64_t bytes) : free_(std::make_shared<std::int64_t>(bytes)) {}
    explicit SmallDevice(std::shared_ptr<std::int64_t> free) : free_(std::move(free)) {}

    [[nodiscard]] std::unique_ptr<backend::Device> new_stream() override {
        return std::make_unique<SmallDevice>(free_);
    }
    [[nodiscard]] std::int64_t free_bytes() const override { return *free_; }
    [[nodiscard]] backend::Buffer allocate(std::size_t floats) override {
        const auto bytes = static_cast<std::int64_t>(floats * sizeof(float));
        if (bytes > *free_) {
            throw std::bad_alloc();
        }
        *free_ -= bytes;
        auto inner = std::make_shared<backend::Buffer>(test::WrappedDevice::allocate(floats));
        return {inner->data(), floats, [inner, bytes, free = free_](float*) { *free += bytes; }};
    }

private:
    std::shared_ptr<std::int64_t> free_;
};

struct World {
    explicit World(std::int64_t device_bytes)
        : config(config::parse(configuration, "test")),
          datasets(data::load(config.recipe(genome(1), 0).data, config.seed)),
          device(device_bytes),
          slots(config, datasets, device, group, cluster::AllReduceKind::none),
          evaluator(config, slots, group, store::RunDirectory(folder.path()), {0, 1, "here"}, "small", [] {
              return search::Standing{true, 0, {}};
          }) {
        evaluator.set_sample_shape({12, 12, 1}, 10);
    }

    static search::Genome genome(int channels) { return {static_cast<double>(channels)}; }
    void start(std::uint64_t id, int channels) {
        search::Individual individual;
        individual.id.value = id;
        individual.genome = genome(channels);
        evaluator.start(std::move(individual));
    }
    /// Advances until nothing runs; the outcomes in the order in which the individuals ended.
    std::vector<search::Individual> finish() {
        std::vector<search::Individual> ended;
        while (!evaluator.idle()) {
            for (search::Individual& individual : evaluator.advance()) {
                ended.push_back(std::move(individual));
            }
        }
        return ended;
    }

    testing::TemporaryFolder folder;
    config::Config config;
    data::Datasets datasets;
    comm::Group group{MPI_COMM_WORLD, 0, 0};
    SmallDevice device;
    Slots slots;
    CnnEvaluator evaluator;
};

/// Bytes of one training with so many channels.
std::int64_t bytes_of(int channels) {
    const World world(1);
    return nn::plan_model(world.config.recipe(World::genome(channels), 0).model, {12, 12, 1}, 10, 20).bytes;
}

}  // namespace

TEST_CASE("an individual for which no memory is left beside the others waits until one of them has ended") {
    World world(bytes_of(10) * 3 / 2);

    world.start(1, 10);
    CHECK(world.evaluator.has_free_slot());
    world.start(2, 10);
    CHECK(!world.evaluator.has_free_slot());
    const std::vector<search::Individual> ended = world.finish();

    REQUIRE(ended.size() == 2);
    for (const search::Individual& individual : ended) {
        CHECK(individual.outcome == search::Outcome::evaluated);
    }
    CHECK(world.evaluator.has_free_slot());
}

TEST_CASE("an individual that needs more memory than there is ends as out_of_memory, and the others go on") {
    World world(bytes_of(10) * 3 / 2);

    world.start(1, 10);
    world.start(2, 400);
    std::vector<search::Individual> ended = world.finish();
    world.start(3, 10);
    for (search::Individual& individual : world.finish()) {
        ended.push_back(std::move(individual));
    }

    REQUIRE(ended.size() == 3);
    for (const search::Individual& individual : ended) {
        const bool large = individual.id.value == 2;
        CHECK(individual.outcome == (large ? search::Outcome::out_of_memory : search::Outcome::evaluated));
    }
}

TEST_CASE("all memory is given back by those that ended, whatever their outcome") {
    World world(bytes_of(10) * 3 / 2);
    const std::int64_t before = world.device.free_bytes();

    for (std::uint64_t id = 1; id <= 4; ++id) {
        world.start(id, id % 2 == 0 ? 400 : 10);
        static_cast<void>(world.finish());
    }

    CHECK(world.device.free_bytes() == before);
}

TEST_CASE("what waits for memory has nothing to save, and is not forgotten") {
    World world(bytes_of(10) * 3 / 2);
    store::RunDirectory(world.folder.path()).create();
    world.start(1, 10);
    world.start(2, 10);

    const std::vector<search::Individual> saved = world.evaluator.checkpoint();

    REQUIRE(saved.size() == 1);
    CHECK(saved[0].id.value == 1);
    CHECK(world.finish().size() == 2);
    CHECK(world.evaluator.idle());
}
