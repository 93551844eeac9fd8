#include "finch/report/classification.hpp"

#include "finch/base/format.hpp"

#include "grid.hpp"

#include <algorithm>
#include <cstddef>

namespace finch::report {
namespace {

constexpr std::int64_t top = 5;

std::int64_t at(const Classification& found, std::int64_t truth, std::int64_t guess) {
    return found.confusion[static_cast<std::size_t>(truth * found.classes + guess)];
}

double share(std::int64_t part, std::int64_t all) {
    return static_cast<double>(part) / static_cast<double>(all);
}

struct ClassCounts {
    std::int64_t hits = 0;
    std::int64_t samples = 0;
    std::int64_t guesses = 0;
};

ClassCounts counts_of(const Classification& found, std::int64_t one) {
    ClassCounts counts{.hits = at(found, one, one)};
    for (std::int64_t other = 0; other < found.classes; ++other) {
        counts.samples += at(found, one, other);
        counts.guesses += at(found, other, one);
    }
    return counts;
}

double macro_f1(const Classification& found) {
    double sum = 0;
    std::int64_t classes = 0;
    for (std::int64_t one = 0; one < found.classes; ++one) {
        const ClassCounts counts = counts_of(found, one);
        if (counts.samples + counts.guesses > 0) {
            sum += share(2 * counts.hits, counts.samples + counts.guesses);
            ++classes;
        }
    }
    return sum / static_cast<double>(classes);
}

/// Returns a class as text: "3 dog", or "3" if the class has no name.
std::string numbered_name(const Classification& found, std::int64_t one) {
    const std::string name = name_of(found, one);
    return fmt::format("{}{}{}", one, name.empty() ? "" : " ", name);
}

std::string matrix_text(const Classification& found) {
    std::vector<std::string> head{"truth"};
    for (std::int64_t guess = 0; guess < found.classes; ++guess) {
        head.push_back(std::to_string(guess));
    }
    Grid grid(head);
    for (std::int64_t truth = 0; truth < found.classes; ++truth) {
        std::vector<std::string> line{numbered_name(found, truth)};
        for (std::int64_t guess = 0; guess < found.classes; ++guess) {
            line.push_back(std::to_string(at(found, truth, guess)));
        }
        grid.add(std::move(line));
    }
    return "confusion matrix: a row for each true class, a column for each guess\n" + grid.text();
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
    for (std::int64_t one = 0; one < found.classes; ++one) {
        hits += at(found, one, one);
    }
    found.accuracy = share(hits, found.samples);
    if (found.classes > top) {
        const auto among =
            std::count_if(guesses.places.begin(), guesses.places.end(), [](std::int32_t place) { return place < top; });
        found.top_5 = share(among, found.samples);
    }
    found.macro_f1 = macro_f1(found);
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

std::string confusion_text(const Classification& found, std::int64_t most) {
    return found.classes <= most ? matrix_text(found) : commonest_text(found, most);
}

}  // namespace finch::report
