// The lines of `log.batches`, on one rank.
#include "evaluate/cnn_world.hpp"
#include "support/captured_log.hpp"
#include "support/wrapped_device.hpp"

#include <doctest/doctest.h>
#include <regex>

using namespace finch;
using namespace finch::evaluate;

namespace {

/// Five training batches and one validation batch per epoch, two epochs.
struct LoggingDevice : test::WrappedDevice {
    [[nodiscard]] std::unique_ptr<backend::Device> new_stream() override { return std::make_unique<LoggingDevice>(); }
    static std::vector<std::string> settings() { return {"log.batches=2"}; }
};
struct QuietDevice : test::WrappedDevice {
    [[nodiscard]] std::unique_ptr<backend::Device> new_stream() override { return std::make_unique<QuietDevice>(); }
};

/// Returns the places of the lines: "1 2/5" is batch 2 of epoch 1. Writes the last loss to `loss`.
std::vector<std::string> places_of(const std::string& log, double& loss) {
    const std::regex line(R"(0\.0\.1: epoch (\d+), batch (\d+/\d+), training loss (\S+), \d+ samples/s)");
    std::vector<std::string> places;
    for (std::sregex_iterator found(log.begin(), log.end(), line), end; found != end; ++found) {
        places.push_back((*found)[1].str() + " " + (*found)[2].str());
        loss = std::stod((*found)[3].str());
    }
    return places;
}

}  // namespace

TEST_CASE("log.batches: a line after every n training batches of all epochs; the last has the epoch's loss") {
    const testing::CapturedLog log;
    CnnWorld<LoggingDevice> world;
    world.start(1, 3);

    const std::vector<search::Individual> ended = world.finish();

    double loss = 0;
    CHECK(places_of(log.text(), loss) == std::vector<std::string>{"1 2/5", "1 4/5", "2 1/5", "2 3/5", "2 5/5"});
    REQUIRE(ended.size() == 1);
    CHECK(loss == doctest::Approx(ended.front().curve.back().training_loss).epsilon(1e-4));
}

TEST_CASE("log.batches: off by default, and the results have the same bits") {
    CnnWorld<QuietDevice> quiet;
    CnnWorld<LoggingDevice> logging;
    const testing::CapturedLog log;
    quiet.start(1, 3);
    const auto expected = quiet.finish();
    CHECK(log.text().find("batch") == std::string::npos);
    logging.start(1, 3);

    const auto ended = logging.finish();

    REQUIRE(ended.front().curve.size() == expected.front().curve.size());
    for (std::size_t epoch = 0; epoch < expected.front().curve.size(); ++epoch) {
        CHECK(ended.front().curve[epoch].training_loss == expected.front().curve[epoch].training_loss);
        CHECK(ended.front().curve[epoch].validation_loss == expected.front().curve[epoch].validation_loss);
    }
}
