#include "finch/app/results.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <new>
#include <numeric>
#include <utility>

namespace finch::app {
namespace {

constexpr std::int64_t largest_batch = 256;

train::Measured measure_in_memory(backend::Device& device, const comm::Group& group, const train::Recipe& recipe,
                                  const NamedArrays& weights, const data::Dataset& set,
                                  const std::vector<std::int64_t>& samples) {
    for (std::int64_t batch = largest_batch; batch > 1; batch /= 8) {
        try {
            return train::measure(device, group, recipe.model, weights, recipe.data, set, batch, samples);
        } catch (const std::bad_alloc&) {
            continue;
        }
    }
    return train::measure(device, group, recipe.model, weights, recipe.data, set, 1, samples);
}

NamedArray number(std::string name, double value) {
    return {std::move(name), {}, std::vector<double>{value}};
}

template <class T>
NamedArray column(std::string name, const std::vector<T>& values) {
    return {std::move(name),
            {static_cast<std::int64_t>(values.size())},
            std::vector<std::int64_t>(values.begin(), values.end())};
}

std::string line_of(const Results& results, std::size_t row) {
    std::string line =
        fmt::format("{},{},{}", results.samples[row], results.truths[row], results.measured.predictions[row]);
    const auto classes = static_cast<std::size_t>(results.classification.classes);
    for (std::size_t c = 0; c < classes && !results.measured.scores.empty(); ++c) {
        line += fmt::format(",{:.9g}", results.measured.scores[row * classes + c]);
    }
    return line + "\n";
}

}  // namespace

Results measure_results(backend::Device& device, const comm::Group& group, const train::Recipe& recipe,
                        const NamedArrays& weights, const data::Dataset& set, std::vector<std::int64_t> samples) {
    if (samples.empty()) {
        samples.resize(static_cast<std::size_t>(set.samples()));
        std::iota(samples.begin(), samples.end(), 0);
    }
    Results results{.measured = measure_in_memory(device, group, recipe, weights, set, samples),
                    .samples = std::move(samples),
                    .truths = {},
                    .classification = {}};
    for (const std::int64_t sample : results.samples) {
        results.truths.push_back(set.labels[static_cast<std::size_t>(sample)]);
    }
    results.classification =
        report::classify({set.classes, results.truths, results.measured.predictions, results.measured.places});
    return results;
}

bool has_results(const NamedArrays& arrays, const std::string& set) {
    return std::any_of(arrays.begin(), arrays.end(),
                       [&set](const NamedArray& array) { return array.name == set + "/macro_f1"; });
}

void set_results(NamedArrays& arrays, const std::string& set, const Results& results) {
    std::erase_if(arrays, [&set](const NamedArray& array) { return array.name.starts_with(set + "/"); });
    const report::Classification& found = results.classification;
    arrays.push_back(number(set + "/loss", results.measured.loss));
    arrays.push_back(number(set + "/accuracy", found.accuracy));
    if (found.top_5) {
        arrays.push_back(number(set + "/top_5", *found.top_5));
    }
    arrays.push_back(number(set + "/macro_f1", found.macro_f1));
    arrays.push_back({set + "/confusion", {found.classes, found.classes}, found.confusion});
    arrays.push_back(column(set + "/index", results.samples));
    arrays.push_back(column(set + "/truth", results.truths));
    arrays.push_back(column(set + "/predictions", results.measured.predictions));
    if (!results.measured.scores.empty()) {
        arrays.push_back({set + "/scores", {found.samples, found.classes}, results.measured.scores});
    }
}

void write_predictions(const std::filesystem::path& path, const Results& results) {
    std::ofstream file(path);
    file << "index,truth,guess";
    for (std::int64_t c = 0; c < results.classification.classes && !results.measured.scores.empty(); ++c) {
        file << ",score_" << c;
    }
    file << '\n';
    for (std::size_t row = 0; row < results.samples.size(); ++row) {
        file << line_of(results, row);
    }
    if (!file.flush()) {
        throw ConfigError(fmt::format("--csv: {} cannot be written", path.string()));
    }
}

}  // namespace finch::app
