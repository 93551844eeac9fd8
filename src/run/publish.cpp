#include "finch/run/publish.hpp"

#include "finch/base/format.hpp"
#include "finch/base/log.hpp"
#include "finch/comm/group.hpp"
#include "finch/data/recorded_pixels.hpp"
#include "finch/hdf5/file.hpp"
#include "finch/run/results.hpp"
#include "finch/store/model_file.hpp"
#include "finch/train/training.hpp"

#include <algorithm>
#include <exception>
#include <map>
#include <new>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

namespace finch::run {
namespace {

/// Returns the weights of `best` from the file of one leader or from the previous version of this file. The previous
/// version contains `best` if a newer result replaced the weights, but the process was killed before it recorded that
/// result.
std::optional<store::ModelFile> kept_in(const std::filesystem::path& path, const search::Individual& best,
                                        std::uint64_t run) {
    for (const std::filesystem::path& name : {path, std::filesystem::path(path.string() + previous_suffix)}) {
        std::vector<std::string> problems;
        auto file = store::read_model(name, problems, OnDamage::leave);
        if (file && store::why_foreign(*file, run, best).empty()) {
            return file;
        }
    }
    return std::nullopt;
}

using Paths = std::vector<std::filesystem::path>;

/// Returns the files of two workers: the worker that trained `best` last, and the worker that bred it.
Paths likely_files(const store::RunDirectory& directory, const search::Individual& best) {
    if (best.is_repeat()) {
        return {directory.repeat(best.id)};
    }
    Paths files{directory.worker_best(static_cast<int>(best.id.worker()))};
    if (best.attempt.worker >= 0) {
        files.insert(files.begin(), directory.worker_best(best.attempt.worker));
    }
    return files;
}

/// Returns the files with the weights of all workers of all starts.
Paths all_files(const store::RunDirectory& directory) {
    std::set<std::filesystem::path> found;
    std::error_code none;
    std::filesystem::recursive_directory_iterator entry(directory.state(), none);
    for (; entry != std::filesystem::recursive_directory_iterator(); entry.increment(none)) {
        std::string name = entry->path().string();
        if (name.ends_with(previous_suffix)) {
            name.erase(name.size() - std::string_view(previous_suffix).size());
        }
        if (name.ends_with("-best.h5")) {
            found.insert(name);
        }
    }
    return {found.begin(), found.end()};
}

std::optional<store::ModelFile> kept_weights(const Paths& paths, const search::Individual& best, std::uint64_t run) {
    for (const std::filesystem::path& path : paths) {
        if (auto file = kept_in(path, best, run)) {
            return file;
        }
    }
    return std::nullopt;
}

/// Returns the content of models/best.h5 if it contains `best`.
std::optional<store::ModelFile> published(const store::RunDirectory& directory, const search::Individual& best,
                                          std::uint64_t run) {
    std::vector<std::string> problems;
    auto file = store::read_model(directory.best_model(), problems, OnDamage::set_aside);
    return file && store::why_foreign(*file, run, best).empty() ? std::move(file) : std::nullopt;
}

bool is_measured(const store::ModelFile& file, const data::Datasets& datasets) {
    return (datasets.test.samples() == 0 || has_results(file.arrays, "test")) && has_results(file.arrays, "validation");
}

void write(const store::RunDirectory& directory, std::uint64_t run, const search::Individual& best,
           store::ModelFile& file) {
    auto curve = std::move(file.individual.curve);
    file.individual = best;
    if (file.individual.curve.empty()) {
        file.individual.curve = std::move(curve);  // the population does not keep old curves in memory
    }
    file.run = run;
    store::write_model(directory.best_model(), file);
}

}  // namespace

bool is_published(const store::RunDirectory& directory, std::uint64_t run, const search::Individual& best) {
    return published(directory, best, run).has_value();
}

bool publish_weights(const store::RunDirectory& directory, std::uint64_t run, const search::Individual* best) {
    if (best == nullptr) {
        return true;
    }
    auto file = kept_weights(likely_files(directory, *best), *best, run);
    if (file) {
        write(directory, run, *best, *file);
    }
    return file.has_value();
}

std::optional<std::string> publish_best(const store::RunDirectory& directory, std::uint64_t run,
                                        const config::Config& config, const data::Datasets& datasets,
                                        backend::Device& device, const search::Individual* best) {
    if (best == nullptr) {
        return std::nullopt;
    }
    auto file = published(directory, *best, run);
    if (!file) {
        file = kept_weights(likely_files(directory, *best), *best, run);
        file = file ? std::move(file) : kept_weights(all_files(directory), *best, run);
        if (!file) {
            throw FileError(fmt::format("the weights of the best individual {} are in no file of {}", to_text(best->id),
                                        directory.state().string()));
        }
        write(directory, run, *best, *file);  // first: measuring the test set may exceed the time left
    }
    if (is_measured(*file, datasets)) {
        return std::nullopt;
    }
    const train::Recipe recipe = config.recipe(best->genome, best->id.value);
    const data::Dataset& training = datasets.training;
    const comm::Group alone(MPI_COMM_SELF, 0, 0);
    std::string said;  // about the test set; the tables and the summary have the results of the validation set
    const auto measure = [&](const std::string& name, const data::Dataset& set, std::vector<std::int64_t> samples) {
        const Results results = measure_results(device, alone, recipe, file->arrays, set, std::move(samples));
        set_results(file->arrays, name, results);
        set_mistakes(file->arrays, name, results, set);
        set_image_sample(file->arrays, name, results, set, config.seed);
        said = said.empty() ? results_text(name, results) : said;
    };
    if (datasets.test.samples() > 0) {
        measure("test", datasets.test, {});
    }
    data::record_pixels(file->arrays, training, recipe.data);  // older files lack this record
    file->classes = training.class_names;
    measure("validation", training, data::split(recipe.data, training, recipe.seed).validation);
    write(directory, run, *best, *file);
    const std::string whose = best->is_repeat() ? fmt::format(", a repeat of {}", to_text(best->parents[0])) : "";
    return fmt::format("best individual {}{}: {}", to_text(best->id), whose, said);
}

bool publish_or_warn(const store::RunDirectory& directory, std::uint64_t run, const config::Config& config,
                     const data::Datasets& datasets, backend::Device& device, const search::Individual* best) {
    try {
        if (const auto said = publish_best(directory, run, config, datasets, device, best)) {
            spdlog::info("{}", *said);
        }
        return true;
    } catch (const std::bad_alloc&) {
        spdlog::warn(
            "models/best.h5 could not be written: no memory to measure the best model on the test and the validation "
            "set");
    } catch (const std::exception& error) {  // of Finch or of a device's library
        spdlog::warn("models/best.h5 could not be written: {}", error.what());
    }
    return false;
}

void remove_spare_weights(const store::RunDirectory& directory, const search::Population& population) {
    std::map<search::Id, const search::Individual*> best;  // by repeated individual
    std::vector<const search::Individual*> repeats;
    for (const auto& [id, individual] : population.individuals()) {
        if (individual.is_repeat() && individual.finished_training()) {
            repeats.push_back(&individual);
            const search::Individual*& kept = best.try_emplace(individual.parents[0], &individual).first->second;
            kept = search::better(individual, *kept) ? &individual : kept;
        }
    }
    for (const search::Individual* repeat : repeats) {
        if (repeat != best.at(repeat->parents[0])) {
            store::remove_model(directory.repeat(repeat->id));
        }
    }
}

void remove_finished_trainings(const store::RunDirectory& directory, const search::Population& population) {
    for (const std::filesystem::path& path : directory.state_files()) {
        const std::optional<search::Id> id = store::RunDirectory::id_of_training(path);
        const search::Individual* individual = id ? population.find(*id) : nullptr;
        if (individual != nullptr && individual->finished_training()) {
            store::remove_model(path);
        }
    }
}

}  // namespace finch::run
