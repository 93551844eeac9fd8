#pragma once

#include "finch/base/error.hpp"
#include "finch/config/config.hpp"
#include "finch/config/tree.hpp"

namespace finch::config {

/// Data, model and training, complete but for their genes.
class Config::Sections {
public:
    Tree data;
    Tree model;
    Tree training;
    std::vector<std::string> gene_words;  ///< by gene: "gene search.space.lr (configs/mnist.yaml:30)"
};

/// The three sections with every gene replaced by its value in `genome`.
[[nodiscard]] Config::Sections substitute(const Config::Sections& sections, const search::Space& space,
                                          const search::Genome& genome);

/// From sections in which no gene is left. Throw ConfigError where a value is out of its key's bounds.
[[nodiscard]] data::Options read_data(const Tree& data);
[[nodiscard]] nn::ModelSpec read_model(const Tree& model);
[[nodiscard]] train::Options read_training(const Tree& training);

/// From the complete `search`. Throw ConfigError.
[[nodiscard]] Objective read_objective(const Tree& objective);
[[nodiscard]] search::Space read_space(const Tree& space);
[[nodiscard]] search::PropagatorOptions read_propagator(const Tree& propagator);
[[nodiscard]] search::ExchangeOptions read_exchange(const Tree& exchange);
[[nodiscard]] island::Budget read_budget(const Tree& budget);
[[nodiscard]] Workers read_workers(const Tree& workers);
[[nodiscard]] Checkpoint read_checkpoint(const Tree& checkpoint);
[[nodiscard]] LogOptions read_log(const Tree& log);

/// Throws ConfigError unless every `$name` in the sections names a gene and every gene of `space` stands somewhere.
/// `spaces` is the space as it was written, for the places.
void check_uses(const Config::Sections& sections, const search::Space& space, const Tree& written);
/// Tries the extremes of every gene: throws ConfigError that names gene and key where a value that the gene can take
/// is out of the key's bounds.
void check_extremes(const Config::Sections& sections, const search::Space& space);
/// Values of a gene that its keys must accept: the bounds and a value between them, or every option.
[[nodiscard]] std::vector<double> trial_values(const search::Gene& gene);

/// The value of a completed scalar.
[[nodiscard]] inline std::int64_t whole_of(const Tree& tree) {
    return whole_number(tree).value();
}
[[nodiscard]] inline int int_of(const Tree& tree) {
    return static_cast<int>(whole_of(tree));
}
[[nodiscard]] inline double real_of(const Tree& tree) {
    return real_number(tree).value();
}
[[nodiscard]] inline bool flag_of(const Tree& tree) {
    return flag(tree).value();
}
[[nodiscard]] inline std::optional<std::int64_t> optional_whole_of(const Tree& tree) {
    return whole_number(tree);
}

/// The enumerator whose word stands here; `words` are in the enumeration's order.
template <class Enumeration>
[[nodiscard]] Enumeration word_of(const Tree& tree, const std::vector<std::string>& words) {
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (words[i] == tree.text) {
            return static_cast<Enumeration>(i);
        }
    }
    throw Error("the word " + tree.text + " is in a table and not in its enumeration");
}

}  // namespace finch::config
