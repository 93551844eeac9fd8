// Outcomes and log messages for individuals with gradients that overflow float16.
#include "evaluate/cnn_world.hpp"
#include "support/captured_log.hpp"
#include "support/wrapped_device.hpp"

#include <doctest/doctest.h>
#include <limits>

using namespace finch;
using namespace finch::evaluate;

namespace {

constexpr std::int64_t channels_overflowing_once = 6;
constexpr std::int64_t channels_overflowing = 7;

/// A CPU device that claims to support float16. Gradients overflow for some numbers of channels.
class OverflowingDevice : public test::WrappedDevice {
public:
    static std::vector<std::string> settings() { return {"training.precision=float16", "training.batch_size=1"}; }
    [[nodiscard]] bool supports(backend::Precision) const override { return true; }
    [[nodiscard]] std::unique_ptr<backend::Device> new_stream() override {
        return std::make_unique<OverflowingDevice>();
    }
    [[nodiscard]] std::unique_ptr<backend::Operation> make(const backend::OperationShape& shape) override {
        if (const auto* convolution = std::get_if<backend::ConvolutionShape>(&shape)) {
            channels_ = convolution->channels_out;
            overflows_once_ = channels_ == channels_overflowing_once;
        }
        return test::WrappedDevice::make(shape);
    }
    void softmax_cross_entropy(backend::StepContext& step, const float* logits, std::int64_t classes,
                               float* grad) override {
        test::WrappedDevice::softmax_cross_entropy(step, logits, classes, grad);
        if (grad != nullptr && (channels_ == channels_overflowing || std::exchange(overflows_once_, false))) {
            grad[0] = std::numeric_limits<float>::infinity();
        }
    }

private:
    std::int64_t channels_ = 0;
    bool overflows_once_ = false;
};

}  // namespace

TEST_CASE("an individual diverges if it skips all steps, and a message is logged if it skips some steps") {
    const testing::CapturedLog log;
    CnnWorld<OverflowingDevice> world;

    world.start(1, 3);
    world.start(2, channels_overflowing);
    world.start(3, channels_overflowing_once);
    const std::vector<search::Individual> ended = world.finish();

    REQUIRE(ended.size() == 3);
    for (const search::Individual& individual : ended) {
        const bool diverges = individual.id.value == 2;
        CHECK(individual.outcome == (diverges ? search::Outcome::diverged : search::Outcome::evaluated));
        CHECK(individual.problem == (diverges ? "its gradients overflow float16 at every scale of the loss down to "
                                                "6.10352e-05"
                                              : ""));
    }
    CHECK(log.text().find("0.0.3: skipped 1 of its steps, whose gradients overflowed float16; the scale of the loss "
                          "ends at 32768") != std::string::npos);
    CHECK(log.text().find("0.0.1: skipped") == std::string::npos);
}
