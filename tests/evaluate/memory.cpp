// Several individuals on one device whose memory does not take them all.
#include "evaluate/cnn_world.hpp"
#include "support/wrapped_device.hpp"

#include <doctest/doctest.h>

using namespace finch;
using namespace finch::evaluate;

namespace {

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

using World = CnnWorld<SmallDevice>;

/// Bytes of one training with so many channels.
std::int64_t bytes_of(int channels) {
    const World world(std::int64_t{1});
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
