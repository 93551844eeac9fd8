// Tests of trainings that run as a gang (src/backend/cuda/gang.hpp), with the stand-ins. They use several streams of
// one device and must have the bits of trainings alone.
#include "finch/backend/cuda.hpp"

#include "cuda/trained.hpp"
#include "support/captured_log.hpp"
#include "support/rehearsal/control.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace finch;
using namespace finch::test;
using backend::Activation;
using train::State;

namespace {

/// Returns recipes of the same shapes, with different activations, rates, weights and numbers of epochs.
std::vector<train::Recipe> equal_shapes(const train::Recipe& recipe) {
    std::vector<train::Recipe> recipes;
    for (const Activation activation : {Activation::relu, Activation::tanh, Activation::sigmoid}) {
        recipes.push_back(recipe);
        train::Recipe& own = recipes.back();
        std::get<nn::ConvLayer>(own.model.front()).activation = activation;
        own.individual = recipes.size();
        own.training.learning_rate = 0.01 * static_cast<double>(recipes.size());
        own.training.epochs = 1 + std::ssize(recipes);
    }
    return recipes;
}

/// Trainings on streams of one device, which advance in turn.
class Trainings {
public:
    explicit Trainings(const data::Datasets& datasets, const std::vector<train::Recipe>& recipes)
        : datasets_(datasets) {
        for (const train::Recipe& recipe : recipes) {
            add(recipe);
        }
    }

    void add(const train::Recipe& recipe) {
        streams_.push_back(device_->new_stream());
        trainings_.push_back(
            std::make_unique<train::Training>(*streams_.back(), group_, *all_reduce_, datasets_, recipe));
    }
    void remove_first() {
        trainings_.erase(trainings_.begin());
        streams_.erase(streams_.begin());
    }
    /// Advances each training that is running by another number of steps. Returns whether one is still running.
    bool advance(std::int64_t steps) {
        const bool is_running = advance_without_launch(steps);
        device_->launch_waiting_steps();
        for (const auto& training : trainings_) {
            training->enqueue_validation();
        }
        device_->launch_waiting_steps();
        return is_running;
    }
    bool advance_without_launch(std::int64_t steps) {
        bool is_running = false;
        for (const auto& training : trainings_) {
            if (training->state() == State::running) {
                is_running = training->advance(steps++) == State::running || is_running;
            }
        }
        return is_running;
    }
    void finish() {
        while (advance(3)) {
        }
    }
    [[nodiscard]] train::Training& training(std::size_t which) { return *trainings_.at(which); }
    [[nodiscard]] std::vector<NamedArrays> snapshots() {
        std::vector<NamedArrays> found;
        for (const auto& training : trainings_) {
            found.push_back(training->snapshot());
        }
        return found;
    }

private:
    const data::Datasets& datasets_;
    const comm::Group group_ = alone();
    std::unique_ptr<comm::AllReduce> all_reduce_ = comm::make_mpi_all_reduce(group_, 30);
    std::unique_ptr<backend::Device> device_ = backend::make_cuda_device(0);
    std::vector<std::unique_ptr<backend::Device>> streams_;
    std::vector<std::unique_ptr<train::Training>> trainings_;
};

bool equal(const std::vector<NamedArrays>& some, const std::vector<NamedArrays>& others) {
    return std::equal(some.begin(), some.end(), others.begin(), others.end(), equal_but_for_seconds);
}

/// Returns the snapshots at the end of trainings that run one after the other.
std::vector<NamedArrays> alone_one_by_one(const data::Datasets& datasets, const std::vector<train::Recipe>& recipes) {
    std::vector<NamedArrays> found;
    for (const train::Recipe& recipe : recipes) {
        Trainings one(datasets, {recipe});
        one.finish();
        found.push_back(one.snapshots().front());
    }
    return found;
}

}  // namespace

TEST_CASE("trainings in a gang have the bits of trainings alone, in each order of execution of the device") {
    const auto datasets = bright_rows(90);
    train::Recipe plain = calm_recipe();
    plain.training.average = 0.8;
    train::Recipe normalised = residual_recipe();
    std::get<nn::ConvLayer>(normalised.model.front()).channels = 6;  // else cuDNN computes the block's shortcut
    normalised.data.augmentation.shift = 1;
    for (const train::Recipe& recipe : {plain, normalised}) {
        rehearsal::reset();
        const std::vector<train::Recipe> recipes = equal_shapes(recipe);
        const std::vector<NamedArrays> expected = alone_one_by_one(datasets, recipes);
        CHECK(rehearsal::calls("cudaStreamWaitEvent") == 0);
        for (const auto execution :
             {rehearsal::Execution::at_once, rehearsal::Execution::late, rehearsal::Execution::others_first}) {
            rehearsal::reset();
            rehearsal::set_execution(execution);
            Trainings together(datasets, recipes);

            together.finish();

            CHECK(rehearsal::calls("cudaStreamWaitEvent") > 10);  // there was a gang
            CHECK(equal(together.snapshots(), expected));
        }
    }
}

TEST_CASE("a training joins a gang that is running, and gangs of two devices are separate; the bits stay") {
    rehearsal::reset();
    const auto datasets = bright_rows(90);
    const std::vector<train::Recipe> recipes = equal_shapes(calm_recipe());
    const std::vector<NamedArrays> expected = alone_one_by_one(datasets, recipes);
    rehearsal::set_execution(rehearsal::Execution::others_first);
    Trainings some(datasets, {recipes[0], recipes[1]});
    for (int i = 0; i < 4; ++i) {
        some.advance(2);
    }
    some.add(recipes[2]);
    {
        Trainings others(datasets, {recipes[0], recipes[1]});  // on another device
        others.advance(2);
    }

    const int waits = rehearsal::calls("cudaStreamWaitEvent");
    some.advance(2);
    some.advance(2);

    CHECK(rehearsal::calls("cudaStreamWaitEvent") - waits >= 6);  // of three members, before and after their steps
    some.finish();
    CHECK(equal(some.snapshots(), expected));
}

TEST_CASE("the others continue with the same bits when a training leaves the gang, and another one takes its place") {
    rehearsal::reset();
    const auto datasets = bright_rows(90);
    const std::vector<train::Recipe> recipes = equal_shapes(calm_recipe());
    std::vector<NamedArrays> expected = alone_one_by_one(datasets, recipes);
    std::rotate(expected.begin(), expected.begin() + 1, expected.end());
    Trainings some(datasets, recipes);
    some.advance(2);  // captures each step
    some.advance(2);

    some.remove_first();
    some.advance(1);  // training steps of the others
    some.add(recipes.front());
    some.finish();

    CHECK(equal(some.snapshots(), expected));
}

TEST_CASE("steps that wait are launched before anything else of their training, also without launch_waiting_steps()") {
    rehearsal::reset();
    const auto datasets = bright_rows(90);
    const std::vector<train::Recipe> recipes = equal_shapes(calm_recipe());
    const std::vector<NamedArrays> expected = alone_one_by_one(datasets, recipes);
    for (const auto execution : {rehearsal::Execution::at_once, rehearsal::Execution::others_first}) {
        rehearsal::set_execution(execution);
        Trainings some(datasets, recipes);
        some.advance(2);
        while (some.advance_without_launch(3)) {
            static_cast<void>(some.training(1).snapshot());
        }

        CHECK(equal(some.snapshots(), expected));
    }
}

TEST_CASE("the duration of a member with fewer steps is its share of the duration of the gang's steps") {
    rehearsal::reset();
    const auto datasets = bright_rows(200);
    train::Recipe recipe = calm_recipe();
    Trainings two(datasets, {recipe, recipe});
    two.advance(2);
    two.advance(2);
    two.advance(2);  // 2 and 3 steps in about the same time
    rehearsal::set_clock([ticks = std::uint64_t{0}]() mutable { return ticks += 1'000'000; });
    const auto seconds_of_next = [&](std::size_t which, double before) {
        static_cast<void>(two.training(which).snapshot());  // waits
        return two.training(which).step_seconds() - before;
    };
    static_cast<void>(two.snapshots());
    const double first = two.training(0).step_seconds();
    const double second = two.training(1).step_seconds();
    two.advance(2);

    CHECK(seconds_of_next(0, first) == doctest::Approx(seconds_of_next(1, second) * 2 / 3));
}

TEST_CASE("a step of three trainings is launched as one graph with the nodes of one training") {
    rehearsal::reset();
    const auto datasets = bright_rows(200);
    const train::Recipe recipe = equal_shapes(calm_recipe()).back();
    Trainings one(datasets, {recipe});
    const auto launches_of = [](Trainings& trainings) {
        trainings.advance(2);  // the first step runs call by call, then the step is captured
        trainings.advance(2);
        const int before = rehearsal::calls("cudaGraphLaunch");
        trainings.advance(2);
        return rehearsal::calls("cudaGraphLaunch") - before;
    };
    const int launches = launches_of(one);
    const std::size_t nodes = rehearsal::nodes_of_last_graph();
    Trainings three(datasets, {recipe, recipe, recipe});

    const int launches_of_three = launches_of(three);

    MESSAGE(nodes << " nodes per step");
    CHECK(launches == 2);
    CHECK(launches_of_three == 4);  // the third training executes 4 steps
    CHECK(rehearsal::nodes_of_last_graph() == nodes);
}

TEST_CASE("a gang has at most eight members, and trainings of other shapes do not join it") {
    rehearsal::reset();
    const auto datasets = bright_rows(200);
    train::Recipe recipe = calm_recipe();
    recipe.training.epochs = 1;
    std::vector<train::Recipe> recipes(9, recipe);
    const NamedArrays expected = alone_one_by_one(datasets, {recipe}).front();
    recipe.training.batch_size = 5;
    recipes.push_back(recipe);
    std::get<nn::ConvLayer>(recipe.model.front()).channels = 3;
    recipes.push_back(recipe);
    const NamedArrays expected_of_last = alone_one_by_one(datasets, {recipe}).front();
    Trainings together(datasets, recipes);
    together.advance(2);  // captures each step
    const int waits = rehearsal::calls("cudaStreamWaitEvent");
    together.advance(2);

    CHECK(rehearsal::calls("cudaStreamWaitEvent") - waits == 2 * 8);  // not the ninth, not the other shapes
    together.finish();
    const auto snapshots = together.snapshots();
    for (std::size_t i = 0; i < 9; ++i) {
        CHECK(equal_but_for_seconds(snapshots[i], expected));
    }
    CHECK(equal_but_for_seconds(snapshots.back(), expected_of_last));
}

TEST_CASE("steps that contain a library's kernels run alone") {
    rehearsal::reset();
    const auto datasets = bright_rows(60);
    train::Recipe recipe = calm_recipe();
    std::get<nn::ConvLayer>(recipe.model.front()).channels = 20;
    Trainings two(datasets, {recipe, recipe});

    two.finish();

    CHECK(rehearsal::calls("cudaStreamWaitEvent") == 0);
    CHECK(two.training(0).state() == State::finished);
}

TEST_CASE("members run alone if there is no memory for a graph of the gang, with the same bits") {
    rehearsal::reset();
    const auto datasets = bright_rows(90);
    const std::vector<train::Recipe> recipes = equal_shapes(calm_recipe());
    const std::vector<NamedArrays> expected = alone_one_by_one(datasets, recipes);
    testing::CapturedLog log;
    Trainings together(datasets, recipes);
    together.advance(2);  // captures each step
    rehearsal::fail("cudaGraphInstantiate", 1, cudaErrorMemoryAllocation);

    together.finish();

    CHECK(log.text().find("its members run separately") != std::string::npos);
    CHECK(equal(together.snapshots(), expected));
}

TEST_CASE("if a gang's launch fails, the host waits for the gang's stream, and each member throws") {
    const auto datasets = bright_rows(200);
    for (const int nth : {1, 2}) {
        rehearsal::reset();
        rehearsal::set_execution(rehearsal::Execution::others_first);
        Trainings together(datasets, equal_shapes(calm_recipe()));
        together.advance(2);
        together.advance(2);
        const auto waits_of_advance = [&] {
            const int before = rehearsal::calls("cudaStreamSynchronize");
            together.advance(2);
            return rehearsal::calls("cudaStreamSynchronize") - before;
        };
        const int waits = waits_of_advance();
        rehearsal::fail("cudaGraphLaunch", nth, cudaErrorLaunchFailure);

        CHECK(waits_of_advance() == waits + 1);  // for the gang
        for (std::size_t i = 0; i < 3; ++i) {
            CHECK_THROWS_WITH(together.training(i).advance(1), doctest::Contains("cudaGraphLaunch"));
        }
    }
}

TEST_CASE("if a gang has no graph and one member's launch fails, only that member fails") {
    rehearsal::reset();
    const auto datasets = bright_rows(200);
    Trainings together(datasets, equal_shapes(calm_recipe()));
    together.advance(2);
    rehearsal::fail("cudaGraphUpload", 1, cudaErrorMemoryAllocation);  // of the gang's graph
    rehearsal::fail("cudaGraphLaunch", 2, cudaErrorLaunchFailure);
    together.advance(1);

    CHECK(together.training(0).advance(1) == State::running);
    CHECK_THROWS_WITH(together.training(1).advance(1), doctest::Contains("cudaGraphLaunch"));
    CHECK(together.training(2).advance(1) == State::running);
}

TEST_CASE("a step without a batch or a loss joins no gang") {
    for (const auto& [has_batch, has_loss] : {std::pair{false, false}, {true, false}, {false, true}}) {
        rehearsal::reset();
        const auto device = backend::make_cuda_device(0);
        std::vector<std::unique_ptr<backend::Device>> streams;
        std::vector<std::unique_ptr<backend::StepContext>> contexts;
        std::vector<backend::Buffer> buffers;
        std::vector<std::unique_ptr<backend::CapturedStep>> steps;
        const std::vector<std::uint8_t> pixel(1);
        const std::vector<std::int32_t> label(1);
        for (std::int64_t i = 0; i < 2; ++i) {
            backend::Device& stream = *streams.emplace_back(device->new_stream());
            backend::StepContext& context = *contexts.emplace_back(
                stream.make_step_context({.pixels = pixel, .labels = label, .pixels_per_image = 1}, 1));
            context.fill(std::vector<std::int64_t>(30), std::vector<backend::StepScalars>(30));
            float* const sum = buffers.emplace_back(stream.allocate(1)).data();
            float* const one = buffers.emplace_back(stream.allocate(1)).data();
            float* const image = buffers.emplace_back(stream.allocate(1)).data();
            stream.upload(std::vector{1.0F}, one);
            steps.push_back(stream.capture(
                [has_batch = has_batch, has_loss = has_loss, image, one, sum, &stream, &context] {
                    if (has_batch) {
                        stream.load_batch(context, image);
                    }
                    if (has_loss) {
                        stream.softmax_cross_entropy(context, image, 1, nullptr);
                    }
                    stream.accumulate(one, sum, 1);
                },
                backend::CaptureAs::graph));
        }
        for (const std::int64_t times : {3, 4, 5}) {
            steps[0]->run(times);
            steps[1]->run(times + 1);
        }

        for (std::size_t i = 0; i < 2; ++i) {
            std::vector<float> sum(1);
            streams[i]->download(buffers[3 * i].data(), sum);
            CHECK(sum.front() == static_cast<float>(12 + 3 * i));
        }
    }
}
