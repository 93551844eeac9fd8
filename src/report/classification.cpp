#include "finch/report/classification.hpp"

#include "finch/base/class_counts.hpp"
#include "finch/base/format.hpp"

#include "grid.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>

namespace finch::report {
namespace {

constexpr std::int64_t top = 5;

std::int64_t at(const Classification& found, std::int64_t truth, std::int64_t guess) {
    return found.confusion[static_cast<std::size_t>(truth * found.classes + guess)];
}

double share(std::int64_t part, std::int64_t all) {
    return static_cast<double>(part) / static_cast<double>(all);
}

ClassCounts counts_of(const Classification& found, std::int64_t one) {
    ClassCounts counts{.hits = at(found, one, one)};
    for (std::int64_t other = 0; other < found.classes; ++other) {
        counts.samples += at(found, one, other);
        counts.guesses += at(found, other, one);
    }
    return counts;
}

/// Returns the expected calibration error. Bin m of M holds the scores in ((m − 1)/M, m/M].
std::optional<double> calibration_error(const Guesses& guesses) {
    struct Bin {
        double samples = 0;
        double hits = 0;
        double scores = 0;
    };
    if (guesses.scores.empty()) {
        return std::nullopt;
    }
    std::array<Bin, calibration_bins> bins{};
    for (std::size_t i = 0; i < guesses.guesses.size(); ++i) {
        const std::size_t row = i * static_cast<std::size_t>(guesses.classes);
        const double score = guesses.scores[row + static_cast<std::size_t>(guesses.guesses[i])];
        const double place = std::ceil(score * double{calibration_bins}) - 1;
        Bin& bin = bins[place > 0 ? std::min(static_cast<std::size_t>(place), bins.size() - 1) : 0];
        bin.samples += 1;
        bin.hits += guesses.guesses[i] == guesses.truths[i] ? 1 : 0;
        bin.scores += score;
    }
    double sum = 0;
    for (const Bin& bin : bins) {
        sum += std::abs(bin.hits - bin.scores);  // samples · |accuracy − mean score|
    }
    return sum / static_cast<double>(guesses.guesses.size());
}

/// Returns a class as text: "3 dog", or "3" if the class has no name.
std::string numbered_name(const Classification& found, std::int64_t one) {
    const std::string name = name_of(found, one);
    return fmt::format("{}{}{}", one, name.empty() ? "" : " ", name);
}

/// Returns the number of images of a class and its recall: "1000" and "0.9810".
std::vector<std::string> recall_cells(const Classification& found, std::int64_t one) {
    const auto place = static_cast<std::size_t>(one);
    const std::int64_t samples = found.class_samples[place];
    return {std::to_string(samples), samples == 0 ? "-" : fmt::format("{:.4f}", found.recall[place])};
}

std::string matrix_text(const Classification& found) {
    std::vector<std::string> head{"truth"};
    for (std::int64_t guess = 0; guess < found.classes; ++guess) {
        head.push_back(std::to_string(guess));
    }
    head.insert(head.end(), {"images", "recall"});
    Grid grid(head);
    for (std::int64_t truth = 0; truth < found.classes; ++truth) {
        std::vector<std::string> line{numbered_name(found, truth)};
        for (std::int64_t guess = 0; guess < found.classes; ++guess) {
            line.push_back(std::to_string(at(found, truth, guess)));
        }
        const std::vector<std::string> end = recall_cells(found, truth);
        line.insert(line.end(), end.begin(), end.end());
        grid.add(std::move(line));
    }
    return "confusion matrix: a row for each true class, a column for each guess\n" + grid.text();
}

std::string lowest_recall_text(const Classification& found, std::int64_t most) {
    std::vector<std::int64_t> order(found.recall.size());
    std::iota(order.begin(), order.end(), 0);
    std::erase_if(order, [&](std::int64_t one) { return found.class_samples[static_cast<std::size_t>(one)] == 0; });
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t one, std::int64_t other) {
        return found.recall[static_cast<std::size_t>(one)] < found.recall[static_cast<std::size_t>(other)];
    });
    Grid grid({"class", "images", "recall"});
    for (const std::int64_t one : std::span(order).first(std::min(order.size(), static_cast<std::size_t>(most)))) {
        std::vector<std::string> line = recall_cells(found, one);
        line.insert(line.begin(), numbered_name(found, one));
        grid.add(std::move(line));
    }
    return fmt::format("the lowest recall of {} classes\n{}", found.classes, grid.text());
}

struct Confusion {
    std::int64_t truth = 0;
    std::int64_t guess = 0;
    std::int64_t samples = 0;
};

std::string commonest_text(const Classification& found, std::int64_t most) {
    std::vector<Confusion> all;
    for (std::int64_t truth = 0; truth < found.classes; ++truth) {
        for (std::int64_t guess = 0; guess < found.classes; ++guess) {
            if (const std::int64_t samples = at(found, truth, guess); guess != truth && samples > 0) {
                all.push_back({truth, guess, samples});
            }
        }
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const Confusion& one, const Confusion& other) { return one.samples > other.samples; });
    Grid grid({"truth", "guess", "samples", "share of the class"});
    for (const Confusion& one : std::span(all).first(std::min(all.size(), static_cast<std::size_t>(most)))) {
        grid.add({numbered_name(found, one.truth), numbered_name(found, one.guess), std::to_string(one.samples),
                  fmt::format("{:.4f}", share(one.samples, counts_of(found, one.truth).samples))});
    }
    return fmt::format("the commonest confusions of {} classes\n{}", found.classes, grid.text());
}

}  // namespace

Classification classify(const Guesses& guesses) {
    Classification found{.classes = guesses.classes,
                         .names = {guesses.names.begin(), guesses.names.end()},
                         .samples = static_cast<std::int64_t>(guesses.truths.size())};
    found.confusion.resize(static_cast<std::size_t>(found.classes * found.classes));
    for (std::size_t i = 0; i < guesses.truths.size(); ++i) {
        ++found.confusion[static_cast<std::size_t>(guesses.truths[i] * found.classes + guesses.guesses[i])];
    }
    std::int64_t hits = 0;
    std::vector<ClassCounts> all;
    for (std::int64_t one = 0; one < found.classes; ++one) {
        const ClassCounts& counts = all.emplace_back(counts_of(found, one));
        hits += counts.hits;
        found.class_samples.push_back(counts.samples);
        found.recall.push_back(counts.samples == 0 ? std::numeric_limits<double>::quiet_NaN()
                                                   : share(counts.hits, counts.samples));
    }
    found.accuracy = share(hits, found.samples);
    if (found.classes > top) {
        const auto among =
            std::count_if(guesses.places.begin(), guesses.places.end(), [](std::int32_t place) { return place < top; });
        found.top_5 = share(among, found.samples);
    }
    found.macro_f1 = macro_f1(all);
    found.calibration_error = calibration_error(guesses);
    return found;
}

std::string figures_text(const Classification& found) {
    return fmt::format("accuracy {:.2f} %{}, macro F1 {:.4f}", 100 * found.accuracy,
                       found.top_5 ? fmt::format(", top 5 {:.2f} %", 100 * *found.top_5) : "", found.macro_f1);
}

std::string name_of(const Classification& found, std::int64_t one) {
    const auto place = static_cast<std::size_t>(one);
    return place < found.names.size() ? found.names[place] : "";
}

std::string calibration_text(const Classification& found) {
    return found.calibration_error
               ? fmt::format("expected calibration error {:.4f} ({} bins of equal width, Guo et al. 2017)\n",
                             *found.calibration_error, calibration_bins)
               : "";
}

std::string confusion_text(const Classification& found, std::int64_t most) {
    return found.classes <= most ? matrix_text(found) : lowest_recall_text(found, most) + commonest_text(found, most);
}

}  // namespace finch::report
