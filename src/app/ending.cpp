#include "finch/app/ending.hpp"

#include "finch/base/format.hpp"
#include "finch/base/log.hpp"
#include "finch/nn/model.hpp"

#include <algorithm>
#include <numeric>

namespace finch::app {
namespace {

constexpr std::int64_t test_batch = 256;

/// The weights of `best`, from the file of whichever worker trained it, in whichever start.
std::optional<store::ModelFile> kept_weights(const store::RunDirectory& directory, const search::Individual& best) {
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(directory.state(), none)) {
        if (!entry.path().filename().string().ends_with("-best.h5")) {
            continue;
        }
        std::vector<std::string> problems;
        auto file = store::read_model(entry.path(), problems);
        if (file && file->individual.id == best.id) {
            return file;
        }
    }
    return std::nullopt;
}

std::vector<float> channels(const std::vector<double>& values, std::int64_t count) {
    std::vector<float> each(static_cast<std::size_t>(count), static_cast<float>(values.front()));
    if (values.size() == each.size()) {
        std::transform(values.begin(), values.end(), each.begin(),
                       [](double value) { return static_cast<float>(value); });
    }
    return each;
}

}  // namespace

TestScore score(backend::Device& device, const train::Recipe& recipe, const NamedArrays& weights,
                const data::Dataset& dataset) {
    const nn::SampleShape sample{dataset.height, dataset.width, dataset.channels};
    nn::Model model(device, nn::plan_model(recipe.model, sample, dataset.classes, test_batch));
    model.set_tensors(weights);
    model.pack();
    const std::vector<float> mean = channels(recipe.data.mean, dataset.channels);
    const std::vector<float> deviation = channels(recipe.data.deviation, dataset.channels);
    std::vector<float> logits(static_cast<std::size_t>(test_batch * dataset.classes));
    TestScore result;
    backend::LossSums sums;
    for (std::int64_t begin = 0; begin < dataset.samples(); begin += test_batch) {
        std::vector<std::int64_t> indices(static_cast<std::size_t>(test_batch), -1);
        std::vector<std::int32_t> labels(indices.size(), 0);
        std::vector<float> counts(indices.size(), 0.0F);
        const auto here = static_cast<std::size_t>(std::min(test_batch, dataset.samples() - begin));
        std::iota(indices.begin(), indices.begin() + static_cast<std::ptrdiff_t>(here), begin);
        std::copy_n(dataset.labels.begin() + begin, here, labels.begin());
        std::fill_n(counts.begin(), here, 1.0F);
        device.gather_normalised(dataset.pixels, dataset.pixels_per_image(), indices, mean, deviation, model.input());
        model.forward();
        device.softmax_cross_entropy(model.logits(), labels, counts, dataset.classes, 0, nullptr, sums);
        device.download(model.logits(), logits);
        for (std::size_t i = 0; i < here; ++i) {
            const auto row = logits.begin() + static_cast<std::ptrdiff_t>(i) * dataset.classes;
            result.predictions.push_back(std::max_element(row, row + dataset.classes) - row);
        }
    }
    result.loss = sums.loss / static_cast<double>(std::max<std::int64_t>(1, sums.samples));
    result.accuracy = static_cast<double>(sums.correct) / static_cast<double>(std::max<std::int64_t>(1, sums.samples));
    return result;
}

std::optional<std::string> publish_best(const store::RunDirectory& directory, const config::Config& config,
                                        const data::Datasets& datasets, backend::Device& device,
                                        const search::Population& population) {
    const search::Individual* best = population.best();
    if (best == nullptr) {
        return std::nullopt;
    }
    std::vector<std::string> problems;
    if (const auto published = store::read_model(directory.best_model(), problems);
        published && published->individual.id == best->id) {
        return std::nullopt;
    }
    auto file = kept_weights(directory, *best);
    if (!file) {
        return fmt::format("the weights of the best individual {} are in no file of {}", to_text(best->id),
                           directory.state().string());
    }
    const train::Recipe recipe = config.recipe(best->genome, best->id.value);
    const TestScore test = score(device, recipe, file->arrays, datasets.test);
    file->individual = *best;
    file->arrays.push_back({"test/loss", {}, std::vector<double>{test.loss}});
    file->arrays.push_back({"test/accuracy", {}, std::vector<double>{test.accuracy}});
    file->arrays.push_back({"test/predictions", {datasets.test.samples()}, test.predictions});
    store::write_model(directory.best_model(), *file);
    return fmt::format("best individual {}: test loss {:.5g}, test accuracy {:.2f} % ({} images) -> {}",
                       to_text(best->id), test.loss, 100 * test.accuracy, datasets.test.samples(),
                       directory.best_model().string());
}

}  // namespace finch::app
