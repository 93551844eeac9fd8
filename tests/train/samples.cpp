// Tests that the images and distortions of a step do not depend on the ranks and threads that load them. Run with 4
// ranks.
#include "finch/base/bytes.hpp"

#include "in_file.hpp"
#include "support/wrapped_device.hpp"
#include "world.hpp"

#include <algorithm>
#include <numeric>

using namespace finch;
using namespace finch::test;

namespace {

constexpr std::int64_t most_steps = 64;

/// A CPU device that sums a checksum of each image that a training step loads. The sum does not depend on the images'
/// order.
class Recorder : public WrappedDevice {
public:
    [[nodiscard]] std::unique_ptr<backend::StepContext> make_step_context(const backend::Images& images,
                                                                          std::int64_t batch) override {
        auto context = WrappedDevice::make_step_context(images, batch);
        if (training_ == nullptr) {  // the training's context is made before the validation's
            training_ = context.get();
            batch_ = static_cast<std::size_t>(batch);
            image_ = static_cast<std::size_t>(images.pixels_per_image);
        }
        return context;
    }
    void load_batch(backend::StepContext& step, float* out) override {
        WrappedDevice::load_batch(step, out);
        if (&step != training_) {
            return;
        }
        for (std::size_t row = 0; row < batch_; ++row) {
            const std::span<const float> image(out + row * image_, image_);
            const bool is_padding = std::all_of(image.begin(), image.end(), [](float value) { return value == 0; });
            sums_.at(step_) += is_padding ? 0 : crc32c(std::as_bytes(image));
            images_.at(step_) += is_padding ? 0 : 1;
        }
        ++step_;
    }
    /// Sums of checksums and numbers of images, by step.
    std::vector<std::int64_t> sums_ = std::vector<std::int64_t>(most_steps);
    std::vector<std::int64_t> images_ = std::vector<std::int64_t>(most_steps);

private:
    backend::StepContext* training_ = nullptr;
    std::size_t batch_ = 0;
    std::size_t image_ = 0;
    std::size_t step_ = 0;
};

/// Returns the checksums of a training's steps, followed by the steps' numbers of images, summed over all ranks.
std::vector<std::int64_t> loaded(const comm::Group& group, const data::Datasets& sets, const train::Recipe& recipe) {
    Recorder device;
    const auto all_reduce = comm::make_mpi_all_reduce(group, 30);
    train::Training training(device, group, *all_reduce, sets, recipe);
    while (training.advance(1000) == train::State::running) {
    }
    std::vector<std::int64_t> all = device.sums_;
    all.insert(all.end(), device.images_.begin(), device.images_.end());
    group.sum(all);
    return all;
}

/// Returns a recipe for two systems of 60 and 40 images, with uneven batches and every distortion. The second system
/// has the larger share of each epoch.
train::Recipe distorted_recipe() {
    train::Recipe recipe = small_recipe(20);
    recipe.training.batch_size = 11;
    recipe.data.systems = {{.path = "a", .weight = 1}, {.path = "b", .weight = 3}};
    recipe.data.augmentation = {.shift = 2, .mirror = true, .cutout = 2, .rotation = 30};
    return recipe;
}

data::Datasets two_systems() {
    data::Datasets sets = bright_rows(100);
    sets.training.system_ends = std::vector<std::int64_t>{60, 100};
    return sets;
}

}  // namespace

TEST_CASE("samples: each step has the same images and distortions for any number of ranks and threads") {
    const data::Datasets sets = two_systems();
    train::Recipe recipe = distorted_recipe();
    const std::vector<std::int64_t> expected = loaded(alone(), sets, recipe);
    const std::int64_t steps = 3 * 8;  // ceil(80 / 11) steps per epoch
    CHECK(std::count(expected.begin(), expected.begin() + most_steps, 0) == most_steps - steps);
    CHECK(std::accumulate(expected.begin() + most_steps, expected.end(), std::int64_t{0}) == 3 * 80);
    for (const int ranks : {1, 2, 3, 4}) {
        CAPTURE(ranks);
        const comm::Group group = first_ranks(ranks);
        CHECK(loaded(group, sets, recipe) == expected);
        const InFile file(sets);
        for (const std::int64_t threads : {1, 8}) {
            CAPTURE(threads);
            recipe.data.prefetch = {.threads = threads, .batches = 3};
            CHECK(loaded(group, file.sets(), recipe) == expected);
        }
    }
}

TEST_CASE("samples: an epoch's training loss is the mean over the samples that it used, with class weights") {
    const data::Datasets sets = two_systems();
    train::Recipe recipe = distorted_recipe();
    recipe.data.augmentation = {};
    recipe.training.epochs = 1;
    recipe.training.learning_rate = 1e-30;  // so that weights do not change
    recipe.training.class_weights = {0.5, 3, 1};
    const comm::Group group = alone();
    Run run(group, sets, recipe);
    const NamedArrays weights = run->best_weights();
    CHECK(run.finish() == train::State::finished);

    const data::Split split = data::split(recipe.data, sets.training, recipe.seed);
    const auto shares = data::shares_of(recipe.data, sets.training, split);
    std::vector<std::vector<std::int64_t>> seen(3);  // by class; some samples occur twice
    for (const std::uint32_t place : data::epoch_order(recipe.seed, recipe.individual, 0, shares)) {
        const std::int64_t sample = split.training[place];
        seen[static_cast<std::size_t>(sets.training.labels[static_cast<std::size_t>(sample)])].push_back(sample);
    }
    double sum = 0;
    double weight = 0;
    for (std::size_t label = 0; label < seen.size(); ++label) {
        const auto device = backend::make_cpu_device(1);
        const double loss = train::measure(*device, group, recipe, weights, sets.training, 8, seen[label]).loss;
        const double counts = recipe.training.class_weights[label] * static_cast<double>(seen[label].size());
        sum += counts * loss;
        weight += counts;
    }
    CHECK(run->curve().front().training_loss == doctest::Approx(sum / weight).epsilon(1e-6));
}

TEST_CASE("samples: other individuals and seeds use other images or distortions") {
    const data::Datasets sets = two_systems();
    const std::vector<std::int64_t> expected = loaded(alone(), sets, distorted_recipe());
    for (const bool other_seed : {true, false}) {
        train::Recipe recipe = distorted_recipe();
        (other_seed ? recipe.seed : recipe.individual) += 1;
        CHECK(loaded(alone(), sets, recipe) != expected);
    }
}
