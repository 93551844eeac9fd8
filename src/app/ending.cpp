#include "finch/app/ending.hpp"

#include "finch/base/format.hpp"
#include "finch/base/log.hpp"
#include "finch/comm/group.hpp"
#include "finch/train/training.hpp"

#include <new>

namespace finch::app {
namespace {

/// Loss and accuracy of the best model on the test set, on this rank alone; in small batches where large ones find no
/// memory, for the test set may be measured on a device that trainings have filled.
train::Measured measure_on_test_set(backend::Device& device, const train::Recipe& recipe, const NamedArrays& weights,
                                    const data::Dataset& test) {
    const comm::Group alone(MPI_COMM_SELF, 0, 0);
    for (std::int64_t batch = 256; batch > 1; batch /= 8) {
        try {
            return train::measure(device, alone, recipe.model, weights, recipe.data, test, batch);
        } catch (const std::bad_alloc&) {
            continue;
        }
    }
    return train::measure(device, alone, recipe.model, weights, recipe.data, test, 1);
}

/// The weights of `best`, from the file of whichever worker trained it, in whichever start.
std::optional<store::ModelFile> kept_weights(const store::RunDirectory& directory, const search::Individual& best) {
    std::error_code none;
    for (const auto& folder : directory.state_folders()) {
        for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
            if (!entry.path().filename().string().ends_with("-best.h5")) {
                continue;
            }
            std::vector<std::string> problems;
            auto file = store::read_model(entry.path(), problems);
            if (file && file->individual.id == best.id) {
                return file;
            }
        }
    }
    return std::nullopt;
}

}  // namespace

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
    const train::Measured test = measure_on_test_set(device, recipe, file->arrays, datasets.test);
    auto curve = std::move(file->individual.curve);
    file->individual = *best;
    if (file->individual.curve.empty()) {
        file->individual.curve = std::move(curve);  // the archivist keeps it on the disk alone
    }
    file->arrays.push_back({"test/loss", {}, std::vector<double>{test.loss}});
    file->arrays.push_back({"test/accuracy", {}, std::vector<double>{test.accuracy}});
    file->arrays.push_back({"test/predictions",
                            {datasets.test.samples()},
                            std::vector<std::int64_t>(test.predictions.begin(), test.predictions.end())});
    store::write_model(directory.best_model(), *file);
    return fmt::format("best individual {}: test loss {:.5g}, test accuracy {:.2f} % ({} images) -> {}",
                       to_text(best->id), test.loss, 100 * test.accuracy, datasets.test.samples(),
                       directory.best_model().string());
}

}  // namespace finch::app
