// Tests of the norms that a training records with `watch`. Run with 4 ranks.
#include "finch/base/error.hpp"
#include "finch/base/files.hpp"

#include "world.hpp"

using namespace finch;
using namespace finch::test;
using train::State;

namespace {

/// The layers of small_recipe() with their tensors.
const std::vector<std::pair<std::string, std::vector<std::string>>> watched_layers{{"0", {"0.weight", "0.bias"}},
                                                                                   {"4", {"4.weight", "4.bias"}}};

/// Returns the Euclidean norm of `a` − `b` over the tensors `names`; an empty `b` is zero.
double norm_of(const std::vector<std::string>& names, const NamedArrays& a, const NamedArrays& b = {}) {
    double sum = 0;
    for (const std::string& name : names) {
        const std::vector<float> left = tensors(a, "weights/" + name);
        std::vector<float> right = tensors(b, "weights/" + name);
        right.resize(left.size());
        for (std::size_t i = 0; i < left.size(); ++i) {
            const double apart = static_cast<double>(left[i]) - static_cast<double>(right[i]);
            sum += apart * apart;
        }
    }
    return std::sqrt(sum);
}

double metric(const std::vector<Metric>& metrics, const std::string& name, std::int32_t epoch) {
    const auto found = std::find_if(metrics.begin(), metrics.end(),
                                    [&](const Metric& one) { return one.name == name && one.epoch == epoch; });
    REQUIRE(found != metrics.end());
    return found->value;
}

bool equal_metrics(const std::vector<Metric>& a, const std::vector<Metric>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Metric& one, const Metric& other) {
        return one.epoch == other.epoch && one.name == other.name && one.value == other.value;
    });
}

}  // namespace

TEST_CASE("watch: the norms are those of the weights and of the step's gradient, on 1 to 4 ranks") {
    const auto datasets = bright_rows(60);
    auto recipe = gradient_recipe(40);  // one step of SGD per epoch: gradient = change / rate
    recipe.training.epochs = 1;
    recipe.training.watch = true;
    for (const std::int64_t parts : {1, 2}) {
        recipe.training.micro_batches = parts;
        const NamedArrays start = on_one_rank(datasets, recipe, 0);
        for (int ranks = 1; ranks <= 4; ++ranks) {
            CAPTURE(ranks);
            const comm::Group group = first_ranks(ranks);
            Run run(group, datasets, recipe);

            CHECK(run.finish() == State::finished);

            const NamedArrays end = run->snapshot();
            const std::vector<Metric> metrics = run->watched();
            CHECK(metrics.size() == 4);
            for (const auto& [layer, names] : watched_layers) {
                CAPTURE(layer);
                CHECK(metric(metrics, "weight_norm." + layer, 1) == doctest::Approx(norm_of(names, end)).epsilon(1e-9));
                CHECK(metric(metrics, "grad_norm." + layer, 1) ==
                      doctest::Approx(norm_of(names, end, start) / 1000).epsilon(1e-4));
            }
        }
    }
}

TEST_CASE("watch: changes no bit of the training") {
    const comm::Group group = first_ranks(2);
    const auto datasets = bright_rows(60);
    auto recipe = small_recipe(20);
    recipe.model = residual_model();
    Run plain(group, datasets, recipe);
    recipe.training.watch = true;
    Run watching(group, datasets, recipe);

    CHECK(plain.finish() == State::finished);
    CHECK(watching.finish() == State::finished);

    NamedArrays with = watching->snapshot();
    CHECK(std::erase_if(with, [](const NamedArray& array) { return array.name.starts_with("watch/"); }) == 2);
    CHECK(equal_but_for_seconds(with, plain->snapshot()));
    CHECK(plain->watched().empty());
}

TEST_CASE("watch: a training that is resumed in training or validation records the same norms") {
    const comm::Group group = first_ranks(2);
    const auto datasets = bright_rows(60);
    auto recipe = small_recipe(20);  // an epoch has 5 steps of training and 2 of validation
    recipe.training.watch = true;
    Run whole(group, datasets, recipe);
    CHECK(whole.finish() == State::finished);
    CHECK(whole->watched().size() == 3 * 4);
    for (const std::int64_t steps : {8, 7 + 6}) {
        CAPTURE(steps);
        Run first(group, datasets, recipe);
        (void)first->advance(steps);
        Run second(group, datasets, recipe);

        second->restore(first->snapshot());
        CHECK(second.finish() == State::finished);

        CHECK(equal_metrics(second->watched(), whole->watched()));
    }
}

TEST_CASE("watch: begins with the next epoch if the snapshot has no norms, and refuses those of another model") {
    const comm::Group group = alone();
    const auto datasets = bright_rows(60);
    auto recipe = small_recipe(20);
    Run first(group, datasets, recipe);
    (void)first->advance(8 + 1);  // an epoch has 5 steps of training and 3 of validation
    NamedArrays snapshot = first->snapshot();
    recipe.training.watch = true;
    Run second(group, datasets, recipe);

    second->restore(snapshot);
    CHECK(second.finish() == State::finished);

    CHECK(second->watched().size() == 2 * 4);
    CHECK(second->watched().front().epoch == 2);
    snapshot.push_back({.name = "watch/grad_norms", .shape = {3}, .values = std::vector<double>{1, 2, 3}});
    Run third(group, datasets, recipe);
    CHECK_THROWS_AS(third->restore(snapshot), FileError);
}
