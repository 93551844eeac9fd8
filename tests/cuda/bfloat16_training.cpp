// Tests of whole trainings that store activations as bfloat16, on the stand-ins.
#include "finch/backend/cuda.hpp"

#include "cuda/trained.hpp"
#include "support/rehearsal/control.hpp"

using namespace finch;
using namespace finch::test;

TEST_CASE("bfloat16 activations give nearly float32's weights; resumes and other launches give the same bits") {
    rehearsal::reset();
    const comm::Group group = alone();
    const auto datasets = bright_rows(45);
    const auto all_reduce = comm::make_mpi_all_reduce(group, 30);
    const auto gpu = backend::make_cuda_device(0);
    train::Recipe exact = bfloat16_recipe();
    exact.training.precision = train::Precision::float32;
    const std::vector<float> expected = trained_weights(*gpu, group, *all_reduce, datasets, exact);

    const std::vector<float> trained = trained_weights(*gpu, group, *all_reduce, datasets, bfloat16_recipe());

    CHECK(difference(trained, expected) < 0.03);
    CHECK(difference(trained, expected) > 1e-4);  // they were rounded
    CHECK(rehearsal::calls("cudaGraphLaunch") > 0);
    CHECK(trained_weights(*gpu, group, *all_reduce, datasets, bfloat16_recipe(), 1) == trained);
    for (const auto execution : {rehearsal::Execution::late, rehearsal::Execution::others_first}) {
        rehearsal::set_execution(execution);
        CHECK(trained_weights(*gpu, group, *all_reduce, datasets, bfloat16_recipe()) == trained);
        rehearsal::reset();
    }
    train::Training first(*gpu, group, *all_reduce, datasets, bfloat16_recipe());
    static_cast<void>(first.advance(3));
    train::Training second(*gpu, group, *all_reduce, datasets, bfloat16_recipe());
    second.restore(first.snapshot());
    while (second.advance(5) == train::State::running) {
    }
    CHECK(tensors(second.snapshot(), "weights/") == trained);
}

TEST_CASE("a training on one rank has no kernels for statistics of several ranks") {
    rehearsal::reset();
    const comm::Group group = alone();
    const auto datasets = bright_rows(60);
    const auto device = backend::make_cuda_device(0);
    const auto nodes_with = [&](std::int64_t layers) {
        train::Recipe recipe = small_recipe(20);
        recipe.data.validation_samples = 1;  // so the last graph is a training step's
        recipe.training.precision = train::Precision::bfloat16;
        recipe.model = {
            nn::BlockLayer{
                .layers = {nn::ConvLayer{.channels = 24}, nn::BatchNormLayer{}}, .residual = false, .repeat = layers},
            nn::FlattenLayer{}, nn::LinearLayer{}};
        const auto all_reduce = comm::make_mpi_all_reduce(group, 30);
        train::Training training(*device, group, *all_reduce, datasets, recipe);
        static_cast<void>(training.advance(4));
        static_cast<void>(training.advance(1));
        return rehearsal::nodes_of_last_graph();
    };
    CHECK(nodes_with(4) - nodes_with(3) == 5);  // as in step_nodes.cpp
}
