#include "finch/run/results.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/base/words.hpp"
#include "finch/report/csv.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <new>
#include <numeric>
#include <utility>

namespace finch::run {
namespace {

constexpr std::int64_t largest_batch = 256;

train::Measured measure_in_memory(backend::Device& device, const comm::Group& group, const train::Recipe& recipe,
                                  const NamedArrays& weights, const data::Dataset& set,
                                  const std::vector<std::int64_t>& samples) {
    for (std::int64_t batch = largest_batch; batch > 1; batch /= 8) {
        try {
            return train::measure(device, group, recipe, weights, set, batch, samples);
        } catch (const std::bad_alloc&) {
            continue;
        }
    }
    return train::measure(device, group, recipe, weights, set, 1, samples);
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

/// Returns row `row` of the array `values` (rows, columns) as further columns of a line.
std::string cells(const std::vector<float>& values, std::size_t row, std::int64_t columns) {
    std::string text;
    const auto width = static_cast<std::size_t>(values.empty() ? 0 : columns);
    for (std::size_t i = 0; i < width; ++i) {
        text += fmt::format(",{:.9g}", values[row * width + i]);
    }
    return text;
}

std::string names(const char* name, std::int64_t columns) {
    std::string text;
    for (std::int64_t i = 0; i < columns; ++i) {
        text += fmt::format(",{}_{}", name, i);
    }
    return text;
}

std::string head_of(const Results& results) {
    const bool has_scores = !results.measured.scores.empty();
    if (results.classification) {
        return "index,truth,guess" + names("score", has_scores ? results.classification->classes : 0) +
               (results.classification->names.empty() ? "" : ",truth_name,guess_name");
    }
    return "index" + names("truth", results.target_size) + names("guess", has_scores ? results.target_size : 0);
}

/// Returns the class names of a line's truth and guess as further columns.
std::string name_cells(const report::Classification& found, std::int32_t truth, std::int32_t guess) {
    return found.names.empty() ? ""
                               : fmt::format(",{},{}", report::csv_cell(report::name_of(found, truth)),
                                             report::csv_cell(report::name_of(found, guess)));
}

std::string line_of(const Results& results, std::size_t row) {
    const std::vector<float>& scores = results.measured.scores;
    if (results.classification) {
        const std::int32_t truth = results.labels[row];
        const std::int32_t guess = results.measured.predictions[row];
        return fmt::format("{},{},{}{}{}", results.samples[row], truth, guess,
                           cells(scores, row, results.classification->classes),
                           name_cells(*results.classification, truth, guess));
    }
    return fmt::format("{}{}{}", results.samples[row], cells(results.targets, row, results.target_size),
                       cells(scores, row, results.target_size));
}

void set_classes(NamedArrays& arrays, const std::string& set, const Results& results) {
    const report::Classification& found = *results.classification;
    arrays.push_back(number(set + "/accuracy", found.accuracy));
    if (found.top_5) {
        arrays.push_back(number(set + "/top_5", *found.top_5));
    }
    arrays.push_back(number(set + "/macro_f1", found.macro_f1));
    arrays.push_back({set + "/recall", {found.classes}, found.recall});
    if (found.calibration_error) {
        arrays.push_back(number(set + "/calibration_error", *found.calibration_error));
    }
    arrays.push_back({set + "/confusion", {found.classes, found.classes}, found.confusion});
    arrays.push_back(column(set + "/truth", results.labels));
    arrays.push_back(column(set + "/predictions", results.measured.predictions));
    if (!results.measured.scores.empty()) {
        arrays.push_back({set + "/scores", {found.samples, found.classes}, results.measured.scores});
    }
}

void set_targets(NamedArrays& arrays, const std::string& set, const Results& results) {
    const std::vector<std::int64_t> shape{static_cast<std::int64_t>(results.samples.size()), results.target_size};
    arrays.push_back({set + "/truth", shape, results.targets});
    if (!results.measured.scores.empty()) {
        arrays.push_back({set + "/predictions", shape, results.measured.scores});
    }
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
                    .target_size = set.target_size};
    for (const std::int64_t index : results.samples) {
        const auto sample = static_cast<std::size_t>(index);
        if (set.targets.empty()) {
            results.labels.push_back(set.labels[sample]);
        }
        const auto first = set.targets.begin() + index * set.target_size;
        results.targets.insert(results.targets.end(), first, first + set.target_size);
    }
    if (set.targets.empty()) {
        results.classification = report::classify({set.classes, results.labels, results.measured.predictions,
                                                   results.measured.places, set.class_names, results.measured.scores});
    }
    return results;
}

bool has_results(const NamedArrays& arrays, const std::string& set) {
    return std::any_of(arrays.begin(), arrays.end(),
                       [&set](const NamedArray& array) { return array.name == set + "/index"; });
}

void set_results(NamedArrays& arrays, const std::string& set, const Results& results) {
    std::erase_if(arrays, [&set](const NamedArray& array) { return array.name.starts_with(set + "/"); });
    arrays.push_back(number(set + "/loss", results.measured.loss));
    arrays.push_back(column(set + "/index", results.samples));
    if (results.classification) {
        set_classes(arrays, set, results);
    } else {
        set_targets(arrays, set, results);
    }
}

std::string results_text(const std::string& set, const Results& results) {
    return fmt::format(
        "{} loss {:.5g}{} ({})", set, results.measured.loss,
        results.classification ? fmt::format(", {} {}", set, report::figures_text(*results.classification)) : "",
        counted(std::ssize(results.samples), "image"));
}

void write_predictions(const std::filesystem::path& path, const Results& results) {
    std::ofstream file(path);
    file << head_of(results) << '\n';
    for (std::size_t row = 0; row < results.samples.size(); ++row) {
        file << line_of(results, row) << '\n';
    }
    if (!file.flush()) {
        throw ConfigError(fmt::format("--csv: {} cannot be written: {}", path.string(), std::strerror(errno)));
    }
}

}  // namespace finch::run
