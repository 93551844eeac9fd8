// Exceptions from a library, which are not of Finch's exception types. They end the individual or the process.
#include "finch/base/files.hpp"
#include "finch/cluster/end_notes.hpp"

#include "evaluate/cnn_world.hpp"
#include "support/wrapped_device.hpp"

#include <cstdlib>
#include <doctest/doctest.h>
#include <exception>
#include <memory>
#include <stdexcept>
#include <sys/wait.h>
#include <unistd.h>

using namespace finch;
using namespace finch::evaluate;

namespace {

constexpr std::int64_t channels_refused = 7;  ///< with this number of channels, make() throws for a convolution
constexpr std::int64_t channels_failing = 8;  ///< with this number of channels, forward() of a convolution throws
constexpr std::int64_t channels_unread = 9;   ///< with this number of channels, forward() throws a StorageError

class FailingConvolution : public backend::Operation {
public:
    explicit FailingConvolution(std::int64_t channels) : channels_(channels) {}
    void forward(const backend::Pass&, std::span<const float* const>, float*) override {
        if (channels_ == channels_unread) {
            throw StorageError("could not read the images");
        }
        throw std::runtime_error("could not execute a primitive");
    }
    void backward(const backend::Pass&, std::span<const float* const>, const float*, float*, std::span<float* const>,
                  float*) override {}
    [[nodiscard]] std::string implementation() const override { return "failing"; }

private:
    std::int64_t channels_;
};

/// A CPU device that throws exceptions like those of a library.
class FaultyDevice : public test::WrappedDevice {
public:
    explicit FaultyDevice(std::shared_ptr<bool> downloads = std::make_shared<bool>(true))
        : downloads_(std::move(downloads)) {}

    [[nodiscard]] std::unique_ptr<backend::Device> new_stream() override {
        return std::make_unique<FaultyDevice>(downloads_);
    }
    [[nodiscard]] std::unique_ptr<backend::Operation> make(const backend::OperationShape& shape) override {
        const auto* convolution = std::get_if<backend::ConvolutionShape>(&shape);
        if (convolution != nullptr && convolution->channels_out == channels_refused) {
            throw std::runtime_error("could not create a primitive");
        }
        if (convolution != nullptr && convolution->channels_out >= channels_failing &&
            convolution->channels_out <= channels_unread) {
            return std::make_unique<FailingConvolution>(convolution->channels_out);
        }
        return test::WrappedDevice::make(shape);
    }
    void download(const float* from, std::span<float> to) override {
        if (!*downloads_) {
            throw std::runtime_error("could not copy");
        }
        test::WrappedDevice::download(from, to);
    }

    void stop_downloads() { *downloads_ = false; }

private:
    std::shared_ptr<bool> downloads_;
};

using FaultyWorld = CnnWorld<FaultyDevice>;

/// Lets a forked process obey `order` and end. Returns the cause in the end note of this process, or ExitCause::none.
cluster::ExitCause note_after(FaultyWorld& world, const Order& order) {
    const std::filesystem::path path = world.folder / "notes";
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        cluster::keep_end_notes(path, 0, 7, 1);
        try {
            world.evaluator.obey(order);
        } catch (const std::exception&) {
            std::_Exit(1);  // main() does the same
        }
        std::_Exit(0);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    const auto notes = cluster::read_end_notes(path, 7);
    return notes.empty() ? cluster::ExitCause::none : notes.front().kind;
}

}  // namespace

TEST_CASE("a library exception during a training fails only this individual, with the exception's text") {
    for (const std::int64_t channels : {channels_refused, channels_failing}) {
        CAPTURE(channels);
        FaultyWorld world;

        world.start(1, 3);
        world.start(2, channels);
        world.start(3, 3);
        const std::vector<search::Individual> ended = world.finish();

        REQUIRE(ended.size() == 3);
        for (const search::Individual& individual : ended) {
            const bool is_faulty = individual.id.value == 2;
            CHECK(individual.outcome == (is_faulty ? search::Outcome::failed : search::Outcome::evaluated));
            CHECK((individual.problem.find("a primitive") != std::string::npos) == is_faulty);
        }
    }
}

TEST_CASE("a storage failure loses no result: individuals that ended before it in the same advance() come first") {
    FaultyWorld world;
    world.start(1, channels_unread);
    world.start(2, channels_refused);

    const std::vector<search::Individual> ended = world.evaluator.advance(world.population);

    REQUIRE(ended.size() == 1);
    CHECK(ended.front().id.value == 2);
    CHECK_FALSE(world.evaluator.has_free_slot());
    CHECK_FALSE(world.evaluator.idle());
    CHECK_THROWS_WITH_AS(static_cast<void>(world.evaluator.advance(world.population)), "could not read the images",
                         StorageError);
    CHECK(world.evaluator.idle());
}

TEST_CASE("an exception that escapes from an order is noted as own_fault; a successful order leaves no note") {
    FaultyWorld world;
    world.start(1, 3);
    const Order snapshot{.kind = Order::Kind::snapshot, .slot = 0};

    CHECK(note_after(world, snapshot) == cluster::ExitCause::none);
    world.device.stop_downloads();
    CHECK(note_after(world, snapshot) == cluster::ExitCause::own_fault);
}
