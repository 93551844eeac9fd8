// Tests of a training that a timer signal interrupts 10 000 times per second. oneDNN's generated GEMM kernels use the
// stack pointer register for data. A signal handler on the thread's own stack would then overwrite the heap or tensors.
// Run with 1 and 2 ranks.
#include "finch/cluster/signals.hpp"

#include "world.hpp"

#include <atomic>
#include <csignal>
#include <ctime>

using namespace finch;
using namespace finch::test;

namespace {

std::atomic<std::int64_t> interruptions{0};

extern "C" void count_interruption(int) {
    ++interruptions;
}

/// Sends this process 10 000 signals per second during its lifetime.
class Interruptions {
public:
    Interruptions() {
        cluster::catch_signals();
        cluster::set_handler(SIGRTMIN + 5, count_interruption);
        sigevent event{};
        event.sigev_notify = SIGEV_SIGNAL;
        event.sigev_signo = SIGRTMIN + 5;
        REQUIRE(::timer_create(CLOCK_MONOTONIC, &event, &timer_) == 0);
        const itimerspec often{{0, 100'000}, {0, 100'000}};
        REQUIRE(::timer_settime(timer_, 0, &often, nullptr) == 0);
    }
    Interruptions(const Interruptions&) = delete;
    Interruptions& operator=(const Interruptions&) = delete;
    ~Interruptions() { ::timer_delete(timer_); }

private:
    timer_t timer_{};
};

/// Returns images of 20 × 20 pixels: the smallest network in which the kernel failed had this input.
data::Datasets noise() {
    data::Dataset set{.height = 20, .width = 20, .channels = 1, .classes = 10};
    RandomStream random(12, Purpose::test);
    for (int sample = 0; sample < 300; ++sample) {
        set.labels.own().push_back(static_cast<std::int32_t>(random.below(10)));
        for (int pixel = 0; pixel < 400; ++pixel) {
            set.pixels.own().push_back(static_cast<std::uint8_t>(random.below(256)));
        }
    }
    data::Datasets sets;
    sets.training = std::move(set);
    return sets;
}

train::Recipe recipe_of(std::vector<nn::Layer> model) {
    train::Recipe recipe = small_recipe(50);
    recipe.training.epochs = 6;
    recipe.model = std::move(model);
    return recipe;
}

/// Collective over the world. Checks that a training with at least 2000 interruptions gives the same bits as one
/// without.
void check_same_bits(const train::Recipe& recipe) {
    const comm::Group group = first_ranks(comm::size_of(MPI_COMM_WORLD));
    const auto datasets = noise();
    Run quiet(group, datasets, recipe);
    (void)quiet.finish();
    const NamedArrays expected = quiet->snapshot();

    for (std::int64_t enough = interruptions + 2000; group.maximum(interruptions < enough ? 1 : 0) != 0;) {
        NamedArrays found;
        {
            const Interruptions now;
            Run disturbed(group, datasets, recipe);
            (void)disturbed.finish();
            found = disturbed->snapshot();
        }
        CHECK(equal_but_for_seconds(found, expected));
    }
}

}  // namespace

TEST_CASE("a training that is interrupted 10 000 times per second gives the same bits: linear layers") {
    check_same_bits(recipe_of({nn::FlattenLayer{}, nn::LinearLayer{}}));
    check_same_bits(recipe_of({nn::FlattenLayer{}, nn::LinearLayer{.units = 32}, nn::LinearLayer{}}));
}

TEST_CASE("a training that is interrupted 10 000 times per second gives the same bits: convolutions") {
    check_same_bits(recipe_of({nn::ConvLayer{.channels = 4, .kernel = 3, .activation = backend::Activation::relu},
                               nn::FlattenLayer{}, nn::LinearLayer{}}));
    check_same_bits(recipe_of({nn::ConvLayer{.channels = 10, .kernel = 3, .activation = backend::Activation::relu},
                               nn::PoolLayer{}, nn::FlattenLayer{}, nn::LinearLayer{}}));
}
