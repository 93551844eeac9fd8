// Several individuals on one device with too little memory for all of them.
#include "evaluate/cnn_world.hpp"
#include "support/wrapped_device.hpp"

#include <doctest/doctest.h>

using namespace finch;
using namespace finch::evaluate;

namespace {

/// A CPU device with limited memory. free_bytes() and allocate() respect the limit.
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

using World = CnnWorld<SmallDevice>;

/// Returns the memory of one training with `channels` channels, in bytes.
std::int64_t bytes_of(int channels) {
    const World world(std::int64_t{1});
    return nn::plan_model(world.config.recipe(World::genome(channels), 0).model, {12, 12, 1}, 10, 20).bytes;
}

}  // namespace

TEST_CASE("an individual that does not fit into the free memory waits until another individual has ended") {
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

TEST_CASE("an individual that needs more memory than the device has ends as out_of_memory; others continue") {
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

TEST_CASE("every individual frees all its memory at its end, also after out_of_memory") {
    World world(bytes_of(10) * 3 / 2);
    const std::int64_t before = world.device.free_bytes();

    for (std::uint64_t id = 1; id <= 4; ++id) {
        world.start(id, id % 2 == 0 ? 400 : 10);
        static_cast<void>(world.finish());
    }

    CHECK(world.device.free_bytes() == before);
}

TEST_CASE("checkpoint skips individuals that wait for memory, and these individuals are trained later") {
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
