// Tests of whole trainings on the CUDA device, on the stand-ins: compared with the CPU, interrupted, and moved between
// devices.
#include "finch/backend/cuda.hpp"

#include "cuda/trained.hpp"
#include "support/float16_device.hpp"
#include "support/rehearsal/control.hpp"
#include "support/rehearsal/engines.hpp"

#include <functional>

using namespace finch;
using namespace finch::test;
using train::State;

namespace {

struct Trained {
    NamedArrays snapshot;
    std::vector<Epoch> curve;
};

Trained finish(train::Training& training, std::int64_t steps = 10) {
    while (training.advance(steps) == State::running) {
    }
    return {training.snapshot(), training.curve()};
}

Trained train_on(backend::Device& device, const comm::Group& group, const train::Recipe& recipe,
                 const data::Datasets& datasets, std::int64_t steps = 10) {
    const auto all_reduce = comm::make_mpi_all_reduce(group, 30);
    train::Training training(device, group, *all_reduce, datasets, recipe);
    return finish(training, steps);
}

void check_close(const Trained& one, const Trained& other) {
    REQUIRE(one.curve.size() == other.curve.size());
    for (std::size_t epoch = 0; epoch < one.curve.size(); ++epoch) {
        CHECK(one.curve[epoch].training_loss == doctest::Approx(other.curve[epoch].training_loss).epsilon(1e-5));
        CHECK(one.curve[epoch].validation_loss == doctest::Approx(other.curve[epoch].validation_loss).epsilon(1e-5));
    }
    CHECK(difference(tensors(one.snapshot, "weights/"), tensors(other.snapshot, "weights/")) < 1e-4);
}

}  // namespace

TEST_CASE("a training gives the CPU's curve and weights within rounding, with all kinds of kernels") {
    rehearsal::reset();
    const comm::Group group = alone();
    const auto datasets = bright_rows(90);
    const auto cpu = backend::make_cpu_device(1);
    const Trained expected = train_on(*cpu, group, calm_recipe(), datasets);

    for (const backend::CudaPath path : {backend::CudaPath::automatic, backend::CudaPath::library}) {
        check_close(train_on(*backend::make_cuda_device(0, path), group, calm_recipe(), datasets), expected);
    }
}

TEST_CASE("every optimizer gives the CPU's curve and weights within rounding") {
    rehearsal::reset();
    const comm::Group group = alone();
    const auto datasets = bright_rows(60);
    for (const backend::Optimizer& optimizer : std::vector<backend::Optimizer>{
             backend::Sgd{.momentum = 0.9, .nesterov = true}, backend::Adam{}, backend::AdamW{}, backend::Adadelta{}}) {
        train::Recipe recipe = calm_recipe();
        recipe.training.optimizer = optimizer;
        recipe.training.learning_rate = 0.001;
        const auto cpu = backend::make_cpu_device(1);
        const auto gpu = backend::make_cuda_device(0);

        check_close(train_on(*gpu, group, recipe, datasets), train_on(*cpu, group, recipe, datasets));
    }
}

TEST_CASE("a residual network with batch_norm and dropout gives the CPU's weights and running statistics") {
    rehearsal::reset();
    const comm::Group group = alone();
    const auto datasets = bright_rows(71);  // the last batch of an epoch is small
    const auto all_reduce = comm::make_mpi_all_reduce(group, 30);
    const auto cpu = backend::make_cpu_device(1);
    const std::vector<float> expected = trained_weights(*cpu, group, *all_reduce, datasets, residual_recipe());

    for (const backend::CudaPath path : {backend::CudaPath::automatic, backend::CudaPath::library}) {
        const auto gpu = backend::make_cuda_device(0, path);
        const std::vector<float> trained = trained_weights(*gpu, group, *all_reduce, datasets, residual_recipe());

        CHECK(difference(trained, expected) < 1e-5);
        CHECK(trained_weights(*gpu, group, *all_reduce, datasets, residual_recipe(), 1) ==
              trained);  // call by call, without a graph
    }
    CHECK(rehearsal::calls("cudaGraphLaunch") > 0);
}

TEST_CASE("averaged weights match the CPU's, with validation between asynchronous steps; calls give the same bits") {
    rehearsal::reset();
    const comm::Group group = alone();
    const auto datasets = bright_rows(71);
    train::Recipe recipe = residual_recipe();
    recipe.training.average = 0.8;
    const auto cpu = backend::make_cpu_device(1);
    const Trained expected = train_on(*cpu, group, recipe, datasets);
    const std::vector<float> averages = tensors(expected.snapshot, "average_weights/");
    CHECK(difference(averages, tensors(expected.snapshot, "weights/")) > 1e-3);

    for (const backend::CudaPath path : {backend::CudaPath::automatic, backend::CudaPath::library}) {
        const auto gpu = backend::make_cuda_device(0, path);
        const Trained trained = train_on(*gpu, group, recipe, datasets, 1000);
        check_close(trained, expected);
        CHECK(difference(tensors(trained.snapshot, "average_weights/"), averages) < 1e-5);
        CHECK(equal_but_for_seconds(train_on(*gpu, group, recipe, datasets, 1).snapshot, trained.snapshot));
        for (const auto execution : {rehearsal::Execution::late, rehearsal::Execution::others_first}) {
            rehearsal::set_execution(execution);
            CHECK(equal_but_for_seconds(train_on(*gpu, group, recipe, datasets, 5).snapshot, trained.snapshot));
            rehearsal::reset();
        }
    }
}

TEST_CASE("float16 with overflows: scale, skipped steps, weights and averages match the CPU; resuming keeps the bits") {
    rehearsal::reset();
    const comm::Group group = alone();
    const auto datasets = bright_rows(71);
    const auto all_reduce = comm::make_mpi_all_reduce(group, 30);
    Float16Device cpu;
    const NamedArrays start =
        with_large_scale(train::Training(cpu, group, *all_reduce, datasets, float16_recipe()).snapshot());
    const Overflowing expected = trained_in_float16(cpu, group, *all_reduce, datasets, start);
    CHECK(expected.scale.skipped > 2);
    CHECK(expected.scale.skipped < 12);

    const auto gpu = backend::make_cuda_device(0, backend::CudaPath::library);
    const Overflowing trained = trained_in_float16(*gpu, group, *all_reduce, datasets, start, 1000);
    CHECK(rehearsal::calls("cudaGraphLaunch") > 0);
    CHECK(trained.scale == expected.scale);
    // A sum in another order may be rounded to the neighbouring float16. Then the gradients of later steps differ.
    for (const auto& [tensor, most] :
         {std::pair{"weights/", 5e-4}, {"average_weights/", 5e-4}, {"optimizer/state", 0.1}}) {
        CAPTURE(std::string(tensor));
        CHECK(difference(tensors(trained.snapshot, tensor), tensors(expected.snapshot, tensor)) < most);
    }
    const auto check_same = [&](const Overflowing& other) {
        CHECK(other.scale == trained.scale);
        CHECK(equal_but_for_seconds(other.snapshot, trained.snapshot));
    };
    check_same(trained_in_float16(*gpu, group, *all_reduce, datasets, start, 1));
    for (const auto execution : {rehearsal::Execution::late, rehearsal::Execution::others_first}) {
        rehearsal::set_execution(execution);
        check_same(trained_in_float16(*gpu, group, *all_reduce, datasets, start, 5));
        rehearsal::reset();
    }
    for (const std::int64_t steps : {1, 2, 3, 6, 9}) {
        CAPTURE(steps);
        train::Training first(*gpu, group, *all_reduce, datasets, float16_recipe());
        first.restore(start);
        static_cast<void>(first.advance(steps));
        check_same(trained_in_float16(*gpu, group, *all_reduce, datasets, first.snapshot()));
    }
}

TEST_CASE("loss scaling adds two kernels to a step, only in float16, and changes no bit with Finch's kernels") {
    rehearsal::reset();
    const comm::Group group = alone();
    const auto datasets = bright_rows(60);
    const auto device = backend::make_cuda_device(0, backend::CudaPath::direct);
    train::Recipe recipe = small_recipe(20);
    const Trained plain = train_on(*device, group, recipe, datasets);
    recipe.data.validation_samples = 1;  // so the last graph is a training step's
    const auto nodes_of = [&](train::Precision precision) {
        recipe.training.precision = precision;
        const auto all_reduce = comm::make_mpi_all_reduce(group, 30);
        train::Training training(*device, group, *all_reduce, datasets, recipe);
        static_cast<void>(training.advance(4));
        static_cast<void>(training.advance(1));
        return rehearsal::nodes_of_last_graph();
    };

    CHECK(nodes_of(train::Precision::float16) == nodes_of(train::Precision::float32) + 2);
    CHECK(nodes_of(train::Precision::bfloat16) == nodes_of(train::Precision::float32));
    recipe.data.validation_samples = 20;
    recipe.training.precision = train::Precision::float16;
    Trained scaled = train_on(*device, group, recipe, datasets);
    std::erase_if(scaled.snapshot, [](const NamedArray& array) { return array.name.starts_with("loss_scale"); });
    CHECK(equal_but_for_seconds(scaled.snapshot, plain.snapshot));
}

TEST_CASE("with an average, graphs captured after a validation train the weights and validate the average") {
    rehearsal::reset();
    const comm::Group group = alone();
    const auto datasets = bright_rows(80);
    train::Recipe recipe = residual_recipe();
    recipe.data.validation_samples = 35;
    recipe.training.batch_size = 1;
    recipe.training.epochs = 5;
    recipe.training.average = 0.8;
    const auto gpu = backend::make_cuda_device(0);
    const Trained expected = train_on(*gpu, group, recipe, datasets, 1);
    const auto all_reduce = comm::make_mpi_all_reduce(group, 30);
    train::Training training(*gpu, group, *all_reduce, datasets, recipe);
    while (training.curve().size() < 4) {
        static_cast<void>(training.advance(5));  // too few for a graph of many steps
    }

    const Trained trained = finish(training, 1000);

    CHECK(equal_but_for_seconds(trained.snapshot, expected.snapshot));
}

TEST_CASE("the number of steps per call, and the time at which work runs, change no bit") {
    rehearsal::reset();
    const comm::Group group = alone();
    const auto datasets = bright_rows(90);
    const auto recipe = small_recipe(20);
    const auto device = backend::make_cuda_device(0);
    const Trained expected = train_on(*device, group, recipe, datasets, 1000);

    for (const std::int64_t steps : {1, 3, 7, 40}) {
        CAPTURE(steps);
        CHECK(equal_but_for_seconds(train_on(*device, group, recipe, datasets, steps).snapshot, expected.snapshot));
    }
    for (const auto execution : {rehearsal::Execution::late, rehearsal::Execution::others_first}) {
        rehearsal::set_execution(execution);
        CHECK(equal_but_for_seconds(train_on(*device, group, recipe, datasets, 5).snapshot, expected.snapshot));
        rehearsal::reset();
    }
}

TEST_CASE("a training stopped and restored gives the same bits; restored on another device, within rounding") {
    rehearsal::reset();
    const comm::Group group = alone();
    const auto datasets = bright_rows(90);
    const auto recipe = calm_recipe();
    const auto cpu = backend::make_cpu_device(1);
    const auto gpu = backend::make_cuda_device(0);
    const auto all_reduce = comm::make_mpi_all_reduce(group, 30);
    const Trained expected = train_on(*gpu, group, recipe, datasets);

    for (const int calls : {1, 5, 8, 14}) {
        CAPTURE(calls);
        const auto interrupted = [&](backend::Device& device) {
            train::Training training(device, group, *all_reduce, datasets, recipe);
            for (int call = 0; call < calls; ++call) {
                static_cast<void>(training.advance(2));
            }
            return training.snapshot();
        };
        const auto resumed = [&](backend::Device& device, const NamedArrays& snapshot) {
            train::Training training(device, group, *all_reduce, datasets, recipe);
            training.restore(snapshot);
            return finish(training);
        };

        CHECK(equal_but_for_seconds(resumed(*gpu, interrupted(*gpu)).snapshot, expected.snapshot));
        check_close(resumed(*cpu, interrupted(*gpu)), expected);
        check_close(resumed(*gpu, interrupted(*cpu)), expected);
    }
}

TEST_CASE("several concurrent trainings, each on its own stream, give the same bits as each alone") {
    rehearsal::reset();
    const comm::Group group = alone();
    const auto datasets = bright_rows(90);
    const auto device = backend::make_cuda_device(0);
    const auto all_reduce = comm::make_mpi_all_reduce(group, 30);
    const auto recipe_of = [](std::uint64_t individual) {
        train::Recipe recipe = small_recipe(20);
        recipe.individual = individual;
        return recipe;
    };
    std::vector<std::unique_ptr<backend::Device>> streams;
    std::vector<std::unique_ptr<train::Training>> trainings;
    for (std::uint64_t individual = 0; individual < 4; ++individual) {
        streams.push_back(device->new_stream());
        trainings.push_back(
            std::make_unique<train::Training>(*streams.back(), group, *all_reduce, datasets, recipe_of(individual)));
    }
    rehearsal::set_execution(rehearsal::Execution::late);
    for (bool running = true; running;) {
        running = false;
        for (const auto& training : trainings) {
            running = training->advance(5) == State::running || running;
        }
    }
    rehearsal::set_execution(rehearsal::Execution::at_once);

    for (std::uint64_t individual = 0; individual < 4; ++individual) {
        CHECK(equal_but_for_seconds(trainings[individual]->snapshot(),
                                    train_on(*device, group, recipe_of(individual), datasets).snapshot));
    }
}

TEST_CASE("an individual without enough memory leaks none, and the next individual trains") {
    rehearsal::reset();
    const comm::Group group = alone();
    const auto datasets = bright_rows(60);
    const auto recipe = small_recipe(20);
    const auto device = backend::make_cuda_device(0);
    const auto all_reduce = comm::make_mpi_all_reduce(group, 30);
    { const train::Training warm(*device, group, *all_reduce, datasets, recipe); }
    const std::size_t before = rehearsal::device_bytes_in_use();
    int failures = 0;
    for (int nth = 1; nth < 20; ++nth) {
        rehearsal::fail("cudaMallocFromPoolAsync", nth, cudaErrorMemoryAllocation);
        try {
            const train::Training training(*device, group, *all_reduce, datasets, recipe);
        } catch (const std::bad_alloc&) {
            ++failures;
        }
        CHECK(rehearsal::device_bytes_in_use() == before);
    }
    rehearsal::reset();

    CHECK(failures > 5);
    CHECK(train_on(*device, group, recipe, datasets).curve.size() == 3);
}

TEST_CASE("an individual with too large scratch memory fails before it allocates memory") {
    rehearsal::reset();
    rehearsal::set_engines({{"needs much", {}, std::int64_t{50} << 20}});
    rehearsal::set_memory(std::size_t{40} << 20);
    const comm::Group group = alone();
    const auto datasets = bright_rows(60);
    const auto all_reduce = comm::make_mpi_all_reduce(group, 30);
    const auto device = backend::make_cuda_device(0, backend::CudaPath::library);

    CHECK_THROWS_AS(train::Training(*device, group, *all_reduce, datasets, small_recipe(20)), std::bad_alloc);

    CHECK(rehearsal::calls("cudaMallocFromPoolAsync") == 0);
    rehearsal::set_engines({rehearsal::Engine{}});
    rehearsal::reset();
}

TEST_CASE("starting and ending an individual does not wait for other slots' work") {
    rehearsal::reset();
    const comm::Group group = alone();
    const auto datasets = bright_rows(60);
    const auto recipe = small_recipe(20);
    const auto device = backend::make_cuda_device(0);
    const auto other = device->new_stream();
    const auto all_reduce = comm::make_mpi_all_reduce(group, 30);
    // Keeps the data set on the device, as another individual would.
    const train::Training beside(*device, group, *all_reduce, datasets, recipe);
    const backend::Buffer memory = device->allocate(1);
    rehearsal::set_execution(rehearsal::Execution::late);
    REQUIRE(cudaMemsetAsync(memory.data(), 0x40, 4, static_cast<cudaStream_t>(device->stream())) == cudaSuccess);

    static_cast<void>(train_on(*other, group, recipe, datasets));

    CHECK(*memory.data() == 0);  // in the stand-in device memory is host memory: the memset has not run yet
    device->synchronize();
    CHECK(*memory.data() != 0);
    rehearsal::reset();
}

TEST_CASE("a loss that is not finite makes the training diverge; the device remains usable") {
    rehearsal::reset();
    const comm::Group group = alone();
    const auto datasets = bright_rows(60);
    auto recipe = small_recipe(20);
    recipe.training.learning_rate = 1e30;
    const auto device = backend::make_cuda_device(0);
    const auto all_reduce = comm::make_mpi_all_reduce(group, 30);
    train::Training training(*device, group, *all_reduce, datasets, recipe);
    State state = State::running;
    for (int call = 0; call < 100 && state == State::running; ++call) {
        state = training.advance(3);
    }

    CHECK(state == State::diverged);
    CHECK(train_on(*device, group, small_recipe(20), datasets).curve.size() == 3);
}
