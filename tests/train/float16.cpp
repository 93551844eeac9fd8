// Tests of float16 trainings on a test device that rounds in software. Losses are scaled. If a step's gradients
// overflow on any rank, all ranks skip the step. Run with 4 ranks.
#include "finch/base/error.hpp"

#include "support/float16_device.hpp"
#include "world.hpp"

#include <limits>
#include <set>

using namespace finch;
using namespace finch::test;
using backend::LossScale;
using train::State;

namespace {

/// Reports support for float16, but computes in float32: a device may be more exact than the precision requires.
class ExactDevice : public WrappedDevice {
public:
    [[nodiscard]] bool supports(backend::Precision) const override { return true; }
};

/// A device on which gradients are never finite.
class OverflowingDevice : public ExactDevice {
public:
    void softmax_cross_entropy(backend::StepContext& step, const float* logits, std::int64_t columns,
                               float* grad) override {
        WrappedDevice::softmax_cross_entropy(step, logits, columns, grad);
        if (grad != nullptr) {
            grad[0] = std::numeric_limits<float>::infinity();
        }
    }
};

/// A training with its own device and all-reduce.
class Float16Run {
public:
    Float16Run(const comm::Group& group, const data::Datasets& datasets, const train::Recipe& recipe,
               std::unique_ptr<backend::Device> device = std::make_unique<Float16Device>())
        : device_(std::move(device)),
          all_reduce_(comm::make_mpi_all_reduce(group, 30.0)),
          training_(*device_, group, *all_reduce_, datasets, recipe) {}
    Float16Run(const comm::Group& group, const data::Datasets& datasets, const train::Recipe& recipe,
               std::set<int> overflows)
        : Float16Run(group, datasets, recipe, std::make_unique<Float16Device>(std::move(overflows))) {}

    train::Training* operator->() { return &training_; }
    State finish(std::int64_t steps = 1000) {
        while (training_.advance(steps) == State::running) {
        }
        return training_.state();
    }
    [[nodiscard]] LossScale scale() const { return training_.loss_scale().value(); }

private:
    std::unique_ptr<backend::Device> device_;
    std::unique_ptr<comm::AllReduce> all_reduce_;
    train::Training training_;
};

train::Recipe float16_recipe(bool residual = false) {
    train::Recipe recipe = small_recipe(20);
    recipe.training.precision = train::Precision::float16;
    if (residual) {
        recipe.model = residual_model();
        recipe.training.optimizer = backend::AdamW{};
        recipe.training.learning_rate = 0.01;
        recipe.training.average = 0.8;
        recipe.training.clip_norm = 0.5;
        recipe.training.micro_batches = 2;
        recipe.data.augmentation = {.shift = 2, .mirror = true, .cutout = 3};
    }
    return recipe;
}

/// Training steps of an epoch: 40 samples in batches of 8. 20 samples are for validation.
constexpr std::int64_t training_steps = 5;

NamedArrays without(NamedArrays snapshot, const std::string& prefix) {
    std::erase_if(snapshot, [&](const NamedArray& array) { return array.name.starts_with(prefix); });
    return snapshot;
}
NamedArrays with(NamedArrays snapshot, const std::string& name, auto value) {
    for (NamedArray& array : snapshot) {
        if (array.name == name) {
            array.values = std::vector{value};
        }
    }
    return snapshot;
}
std::vector<float> parameters_of(const NamedArrays& snapshot) {
    std::vector<float> values;
    for (const NamedArray& array : snapshot) {
        const auto* part = std::get_if<std::vector<float>>(&array.values);
        if (array.name.starts_with("weights/") && array.name.find("running") == std::string::npos && part != nullptr) {
            values.insert(values.end(), part->begin(), part->end());
        }
    }
    return values;
}

}  // namespace

TEST_CASE("float16: learns as well as float32 with other bits, and repeated trainings give the same bits") {
    const comm::Group group = alone();
    const auto datasets = bright_rows(300);
    auto recipe = small_recipe(100);
    recipe.training.epochs = 6;
    Run exact(group, datasets, recipe);
    CHECK(exact.finish() == State::finished);
    CHECK(!exact->loss_scale());
    CHECK(tensors(exact->snapshot(), "loss_scale").empty());
    recipe.training.precision = train::Precision::float16;
    Float16Run rounded(group, datasets, recipe);
    CHECK(rounded.finish() == State::finished);
    Float16Run again(group, datasets, recipe);
    CHECK(again.finish(3) == State::finished);

    const Epoch& expected = exact->curve().back();
    const Epoch& found = rounded->curve().back();
    CHECK(expected.validation_accuracy > 0.9);
    CHECK(found.validation_accuracy == doctest::Approx(expected.validation_accuracy).epsilon(0.02));
    CHECK(found.training_loss == doctest::Approx(expected.training_loss).epsilon(0.02));
    CHECK(found.training_loss != expected.training_loss);
    CHECK(equal_but_for_seconds(again->snapshot(), rounded->snapshot()));
}

TEST_CASE("float16: scaling itself does not round; with exact products it gives float32's bits, on 1 to 4 ranks") {
    const auto datasets = bright_rows(60);
    for (const bool residual : {false, true}) {
        for (int ranks = 1; ranks <= 4; ++ranks) {
            CAPTURE(residual);
            CAPTURE(ranks);
            const comm::Group group = first_ranks(ranks);
            auto recipe = float16_recipe(residual);
            Float16Run scaled(group, datasets, recipe, std::make_unique<ExactDevice>());
            CHECK(scaled.finish() == State::finished);
            recipe.training.precision = train::Precision::float32;
            Run plain(group, datasets, recipe);
            CHECK(plain.finish() == State::finished);

            CHECK(scaled.scale() == LossScale{.scale = 65536, .good_steps = 15});
            CHECK(equal_but_for_seconds(without(scaled->snapshot(), "loss_scale"), plain->snapshot()));
        }
    }
}

TEST_CASE("float16: without a scale small gradients round to 0; with it they are close to float32's gradients") {
    const comm::Group group = alone();
    const auto datasets = bright_rows(60);
    auto recipe = gradient_recipe(8);
    const nn::Layer convolution = recipe.model.front();
    recipe.model.insert(recipe.model.begin(), convolution);
    // The last layer's weights are so small that the gradients of the earlier layers underflow in float16.
    Run first(group, datasets, recipe);
    NamedArrays weights = weights_of(first->snapshot());
    for (NamedArray& array : weights) {
        if (array.name == "6.weight") {
            for (float& weight : std::get<std::vector<float>>(array.values)) {
                weight *= 1e-4F;
            }
        }
    }
    const auto moved = [&](auto& run, std::optional<double> scale) {
        run->begin_with(weights);
        NamedArrays start = run->snapshot();
        if (scale) {
            run->restore(with(start, "loss_scale/scale", *scale));
        }
        (void)run->advance(1);
        std::vector<float> move = tensors(run->snapshot(), "weights/0.weight");
        const std::vector<float> from = tensors(start, "weights/0.weight");
        for (std::size_t i = 0; i < move.size(); ++i) {
            move[i] -= from[i];
        }
        return move;
    };
    const std::vector<float> expected = moved(first, {});
    recipe.training.precision = train::Precision::float16;
    Float16Run scaled(group, datasets, recipe);
    Float16Run plain(group, datasets, recipe);

    CHECK(difference(moved(scaled, {}), expected) < 5e-3);
    CHECK(difference(moved(plain, 1.0), expected) > 0.01);
}

TEST_CASE("float16: if a gradient overflows on one rank, all ranks skip the step and halve the scale") {
    const comm::Group group = first_ranks(4);
    const auto datasets = bright_rows(60);
    for (const bool residual : {false, true}) {
        CAPTURE(residual);
        const auto recipe = float16_recipe(residual);
        const int parts = residual ? 2 : 1;
        // The first part of the third step overflows, on rank 2 only.
        const std::set<int> overflows = group.rank() == 2 ? std::set<int>{2 * parts + 1} : std::set<int>{};
        Float16Run run(group, datasets, recipe, overflows);
        (void)run->advance(2);
        const NamedArrays before = run->snapshot();
        CHECK(run.scale() == LossScale{.scale = 65536, .good_steps = 2});

        (void)run->advance(1);

        const NamedArrays after = run->snapshot();
        CHECK(run.scale().scale == 32768);
        CHECK(run.scale().skipped == 1);
        CHECK(run.scale().good_steps == 0);
        CHECK(parameters_of(after) == parameters_of(before));
        CHECK(tensors(after, "optimizer/state") == tensors(before, "optimizer/state"));
        CHECK(tensors(after, "average_weights/") == tensors(before, "average_weights/"));
        if (residual) {
            CHECK(tensors(after, "weights/1.running") != tensors(before, "weights/1.running"));
        }
        CHECK(run->state() == State::running);
        CHECK(run.finish() == State::finished);
        CHECK(run.scale() == LossScale{.scale = 32768, .good_steps = 12, .skipped = 1});
        const NamedArrays end = run->snapshot();
        CHECK(parameters_of(end) != parameters_of(after));
        // All ranks must have the same bits.
        std::vector<double> mine;
        for (const float value : tensors(end, "")) {
            mine.push_back(static_cast<double>(value));
        }
        const std::vector<double> all = group.gather(mine);
        std::size_t unlike = 0;
        for (std::size_t i = 0; i < all.size(); ++i) {
            unlike += all[i] == mine[i % mine.size()] ? 0 : 1;
        }
        CHECK(unlike == 0);
    }
}

TEST_CASE("float16: the same steps are skipped on 1 to 4 ranks, independent of the rank that overflows") {
    const auto datasets = bright_rows(60);
    const auto recipe = float16_recipe();
    const std::set<int> overflows{1, 2, 6};
    const comm::Group one = alone();
    Float16Run reference(one, datasets, recipe, overflows);
    (void)reference.finish();
    for (int ranks = 2; ranks <= 4; ++ranks) {
        CAPTURE(ranks);
        const comm::Group group = first_ranks(ranks);
        Float16Run run(group, datasets, recipe, group.rank() == group.size() - 1 ? overflows : std::set<int>{});
        CHECK(run.finish() == State::finished);

        CHECK(run.scale() == reference.scale());
        CHECK(run.scale() == LossScale{.scale = 8192, .good_steps = 9, .skipped = 3, .skips = run.scale().skips});
        REQUIRE(run->curve().size() == 3);
        for (std::size_t epoch = 0; epoch < 3; ++epoch) {
            CHECK(run->curve()[epoch].training_loss ==
                  doctest::Approx(reference->curve()[epoch].training_loss).epsilon(1e-3));
            CHECK(run->curve()[epoch].validation_loss ==
                  doctest::Approx(reference->curve()[epoch].validation_loss).epsilon(1e-3));
        }
    }
}

TEST_CASE("float16: a training with skipped steps, resumed from a snapshot, gives the same bits on 2 ranks") {
    const int rank = comm::rank_of(MPI_COMM_WORLD);
    const comm::Group pair(MPI_COMM_WORLD, rank / 2, rank % 2);
    const auto datasets = bright_rows(60);
    for (const bool residual : {false, true}) {
        const auto recipe = float16_recipe(residual);
        // The gradients overflow at this initial scale, until enough steps have halved it.
        Float16Run begun(pair, datasets, recipe);
        const NamedArrays start = with(begun->snapshot(), "loss_scale/scale", double{1 << 22});
        Float16Run whole(pair, datasets, recipe);
        whole->restore(start);
        CHECK(whole.finish() == State::finished);
        CHECK(whole.scale().skipped > 2);
        CHECK(whole.scale().skipped < 15);
        CHECK(whole.scale().scale == std::ldexp(1.0F, 22 - static_cast<int>(whole.scale().skipped)));
        for (const std::int64_t steps : {1, 2, 3, 7, 11}) {
            CAPTURE(residual);
            CAPTURE(steps);
            Float16Run first(pair, datasets, recipe);
            first->restore(start);
            (void)first->advance(steps);
            const NamedArrays snapshot = first->snapshot();
            Float16Run second(pair, datasets, recipe);
            second->restore(snapshot);
            CHECK(equal_but_for_seconds(second->snapshot(), snapshot));

            CHECK(second.finish() == State::finished);

            CHECK(equal_but_for_seconds(second->snapshot(), whole->snapshot()));
        }
    }
}

TEST_CASE("float16: an average starts at the first step that is not skipped; until then it has the initial weights") {
    const comm::Group group = alone();
    const auto datasets = bright_rows(60);
    auto recipe = float16_recipe();
    recipe.training.average = 0.75;
    Float16Run run(group, datasets, recipe, {1, 2, 3, 4, 5, 6});
    const std::vector<float> start = tensors(run->snapshot(), "weights/");

    (void)run->advance(training_steps);
    CHECK(tensors(run->snapshot(), "average_weights/") == start);
    (void)run->advance(3);
    CHECK(run->curve().size() == 1);
    (void)run->advance(2);
    CHECK(tensors(run->snapshot(), "average_weights/") == tensors(run->snapshot(), "weights/"));
    CHECK(run.scale().skipped == 6);
    const std::vector<float> first = tensors(run->snapshot(), "weights/");
    CHECK(first != start);
    (void)run->advance(1);

    const std::vector<float> second = tensors(run->snapshot(), "weights/");
    std::vector<float> expected;
    for (std::size_t i = 0; i < first.size(); ++i) {
        expected.push_back(
            static_cast<float>(0.75 * static_cast<double>(first[i]) + 0.25 * static_cast<double>(second[i])));
    }
    CHECK(difference(tensors(run->snapshot(), "average_weights/"), expected) < 1e-6);
}

TEST_CASE("float16: gradients that overflow at every scale make the training diverge on all ranks") {
    const auto datasets = bright_rows(60);
    for (const int ranks : {1, 3}) {
        for (const std::int64_t steps : {1, 7, 1000}) {
            CAPTURE(ranks);
            CAPTURE(steps);
            const comm::Group group = first_ranks(ranks);
            auto recipe = float16_recipe();
            recipe.training.epochs = 20;
            std::unique_ptr<backend::Device> device = std::make_unique<ExactDevice>();
            if (group.rank() == group.size() - 1) {
                device = std::make_unique<OverflowingDevice>();
            }
            Float16Run run(group, datasets, recipe, std::move(device));
            const std::vector<float> start = tensors(run->snapshot(), "weights/");

            CHECK(run.finish(steps) == State::diverged);

            CHECK(run.scale().is_exhausted());
            CHECK(run.scale().skipped >= 31);
            CHECK((steps > 1 || run.scale().skipped == 31));  // detected before the end of the epoch
            CHECK(tensors(run->snapshot(), "weights/") == start);
        }
    }
}

TEST_CASE("float16: a training that begins with given weights starts with the initial scale") {
    const comm::Group group = alone();
    const auto datasets = bright_rows(60);
    auto recipe = float16_recipe();
    Float16Run parent(group, datasets, recipe, {1, 2});
    (void)parent.finish();
    CHECK(parent.scale().scale == 16384);
    recipe.individual = 78;
    Float16Run child(group, datasets, recipe);

    child->begin_with(parent->best_weights());

    CHECK(child.scale() == LossScale::initial());
}

TEST_CASE("float16: a snapshot without a scale, or with an invalid one, is rejected; restore() changes nothing") {
    const comm::Group group = alone();
    const auto datasets = bright_rows(60);
    const auto recipe = float16_recipe();
    Float16Run run(group, datasets, recipe);
    (void)run->advance(3);
    const NamedArrays before = run->snapshot();

    CHECK_THROWS_WITH_AS(run->restore(without(before, "loss_scale")), doctest::Contains("loss_scale/scale"), FileError);
    for (const double scale : {0.0, -1.0, 1e30, std::numeric_limits<double>::quiet_NaN()}) {
        CHECK_THROWS_WITH_AS(run->restore(with(before, "loss_scale/scale", scale)),
                             doctest::Contains("scale of the loss"), FileError);
    }
    for (const char* name : {"loss_scale/good_steps", "loss_scale/skipped", "loss_scale/average_waits"}) {
        for (const std::int64_t count : {-1, 2000}) {
            CHECK_THROWS_WITH_AS(run->restore(with(before, name, count)), doctest::Contains("scale of the loss"),
                                 FileError);
        }
    }

    CHECK(equal_but_for_seconds(run->snapshot(), before));
}
