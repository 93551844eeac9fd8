#include "finch/data/labels.hpp"

#include "finch/base/format.hpp"
#include "finch/base/words.hpp"

#include "readers.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <span>
#include <vector>

namespace finch::data {
namespace {

constexpr std::int64_t most_shown = 10;

/// The sets in which a label occurs, as bits.
enum Occurrence : unsigned { trains = 1, validates = 2, tests = 4, left_out = 8 };
constexpr std::array<const char*, 3> other_places{"the validation set", "the test set",
                                                  "images that data.training_samples leaves out"};

std::vector<unsigned> occurrences(const Dataset& training, const Dataset& test, const Split& split) {
    std::vector<unsigned> sample_bits(training.labels.size(), left_out);
    for (const std::int64_t sample : split.training) {
        sample_bits[static_cast<std::size_t>(sample)] = trains;
    }
    for (const std::int64_t sample : split.validation) {
        sample_bits[static_cast<std::size_t>(sample)] = validates;
    }
    std::vector<unsigned> found(static_cast<std::size_t>(training.classes));
    for (std::size_t sample = 0; sample < sample_bits.size(); ++sample) {
        found[static_cast<std::size_t>(training.labels[sample])] |= sample_bits[sample];
    }
    for (const std::int32_t label : test.labels) {
        found[static_cast<std::size_t>(label)] |= tests;
    }
    return found;
}

/// Lists labels as text: "label 3 (dog)", "labels 0 to 4, 7 and 12 more".
std::string labels_text(const Dataset& set, const std::vector<std::int64_t>& labels) {
    std::vector<std::string> parts;
    std::size_t shown = 0;
    while (shown < labels.size() && std::ssize(parts) < most_shown) {
        std::size_t end = shown + 1;
        while (set.class_names.empty() && end < labels.size() && labels[end] == labels[end - 1] + 1) {
            ++end;
        }
        const bool is_range = end > shown + 1;
        parts.push_back(label_text(set, labels[shown]) + (is_range ? fmt::format(" to {}", labels[end - 1]) : ""));
        shown = end;
    }
    const std::string more = shown < labels.size() ? fmt::format(" and {} more", labels.size() - shown) : "";
    return fmt::format("label{} {}{}", labels.size() == 1 ? "" : "s", fmt::join(parts, ", "), more);
}

/// Reports labels without images: "no image has label 0 (labels 1 to 26: does counting start at 1?)".
std::string absent_text(const Dataset& set, const std::vector<std::int64_t>& labels) {
    const auto first = static_cast<std::int64_t>(labels.size());
    const bool starts_later = labels.back() == first - 1;
    return fmt::format("no image has {}{}; networks get {} classes", labels_text(set, labels),
                       starts_later ? fmt::format(" (labels {} to {}: does counting start at {}? It must start at 0)",
                                                  first, set.classes - 1, first)
                                    : "",
                       set.classes);
}

std::string places_of(unsigned found) {
    std::vector<std::string> places;
    for (std::size_t i = 0; i < other_places.size(); ++i) {
        if ((found & (unsigned{validates} << i)) != 0) {
            places.emplace_back(other_places[i]);
        }
    }
    return fmt::format("{}", fmt::join(places, " and "));
}

std::string names_text(const std::vector<std::string>& names) {
    const auto some = std::span(names).first(std::min(names.size(), static_cast<std::size_t>(most_shown)));
    return fmt::format("{}{}", fmt::join(some, ", "), some.size() < names.size() ? ", …" : "");
}

}  // namespace

std::string label_text(const Dataset& set, std::int64_t label) {
    const auto place = static_cast<std::size_t>(label);
    return place < set.class_names.size() ? fmt::format("{} ({})", label, set.class_names[place])
                                          : std::to_string(label);
}

std::string class_names_text(const Dataset& set) {
    std::vector<std::string> numbered;
    for (const std::string& name : set.class_names) {
        numbered.push_back(fmt::format("{} {}", numbered.size(), name));
    }
    return names_text(numbered);
}

void check_trained_names(const std::vector<std::string>& trained, const std::vector<std::string>& names) {
    for (std::size_t i = 0; i < std::min(trained.size(), names.size()); ++i) {
        if (trained[i] != names[i]) {
            throw ConfigError(fmt::format(
                "class {} of the data is '{}', but the network was trained with '{}'; accepted: data with the classes "
                "of the training set in its order",
                i, names[i], trained[i]));
        }
    }
}

void use_trained_classes(const std::vector<std::string>& trained, Dataset& set) {
    if (trained.empty() || set.class_names.empty()) {
        return;
    }
    std::vector<std::int32_t> labels(set.labels.begin(), set.labels.end());
    for (std::int32_t& label : labels) {
        const std::string& name = set.class_names[static_cast<std::size_t>(label)];
        label = static_cast<std::int32_t>(std::find(trained.begin(), trained.end(), name) - trained.begin());
        if (label == std::ssize(trained)) {
            throw ConfigError(
                fmt::format("the data have images of '{}'; accepted: classes that the network was trained with ({})",
                            name, names_text(trained)));
        }
    }
    set.labels = std::move(labels);
    set.class_names = trained;
}

std::string untrained_labels_text(const Dataset& training, const Dataset& test, const Split& split) {
    if (!training.targets.empty()) {
        return "";
    }
    const std::vector<unsigned> found = occurrences(training, test, split);
    std::vector<std::string> sentences;
    for (unsigned places = 0; places < 2 * left_out; places += 2) {  // all combinations without training
        std::vector<std::int64_t> labels;
        for (std::size_t label = 0; label < found.size(); ++label) {
            if (found[label] == places) {
                labels.push_back(static_cast<std::int64_t>(label));
            }
        }
        if (!labels.empty()) {
            sentences.push_back(places == 0 ? absent_text(training, labels)
                                            : fmt::format("no training image has {}, only {}",
                                                          labels_text(training, labels), places_of(places)));
        }
    }
    return fmt::format("{}", fmt::join(sentences, "; "));
}

std::vector<std::string> class_names(std::vector<std::string> names) {
    for (std::string& name : names) {
        name = printable(name);
        std::replace_if(
            name.begin(), name.end(), [](char c) { return c == '\n' || c == '\t'; }, ' ');
    }
    return names;
}

void join_class_names(Dataset& to, const std::string& to_path, const Dataset& from, const std::string& path) {
    if (to.class_names.empty()) {
        to.class_names = from.class_names;
    } else if (!from.class_names.empty() && to.class_names != from.class_names) {
        refuse(path, fmt::format("its classes are {}; those of {} are {}; expected the same names in the same order",
                                 class_names_text(from), to_path, class_names_text(to)));
    }
}

void check_class_names(const Options& options, Sets& sets) {
    const bool has_training = sets.training.samples() > 0;
    const Dataset& labelled = has_training ? sets.training : sets.test;
    const auto classes = static_cast<std::size_t>(labelled.classes);
    std::vector<std::string> names = labelled.class_names;
    if (options.kind == Kind::cifar && has_training && names.size() > classes) {
        names.resize(classes);  // its files name all classes, even those without an image in these data
    }
    if (!names.empty() && (has_training ? names.size() != classes : names.size() < classes)) {
        const std::int32_t first = *std::min_element(labelled.labels.begin(), labelled.labels.end());
        refuse(places_text(options),
               fmt::format("has {} names of classes ({}), but its labels are {} to {}; expected labels from 0 and a "
                           "name for each",
                           names.size(), names_text(names), first, classes - 1));
    }
    sets.training.class_names = names;
    sets.test.class_names = std::move(names);
}

}  // namespace finch::data
