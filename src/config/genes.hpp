#pragma once

#include "finch/config/schema.hpp"
#include "finch/search/constraint.hpp"
#include "finch/search/gene.hpp"
#include "finch/train/recipe.hpp"

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace finch::config {

/// One step on the way from the recipe to an object within it. The step is valid for every copy of the recipe.
struct Step {
    void* (*part)(void* object, std::size_t number);  ///< returns a part of an object
    std::size_t number = 0;                           ///< the member's offset in bytes, or the element's index
};
using Steps = std::vector<Step>;

struct ValueType;

/// True if the YAML value is a gene, `$name`.
[[nodiscard]] bool is_gene(const Tree& tree);

/// The places of genes in a recipe. The places are found once, when the configuration is read. After that, a genome
/// becomes a recipe without reading the configuration again.
class Genes {
public:
    /// `written` is the section search.space; messages take file and line from it.
    Genes(const search::Space& space, const Tree& written);

    /// Binds `use`, a `$name`, to a value of `domain` at `target`. The target keeps its default while the gene is
    /// inactive. Throws ConfigError if the gene does not exist, if it can have a value that the domain refuses, or if
    /// it may be inactive and the key has no default. `listed`, if not null, has the settings for each alternative that
    /// the gene may choose, by the alternative's name.
    void bind(const Tree& use, const Domain& domain, const Target& target, const ValueType& type,
              const Tree* listed = nullptr);
    /// Until leave() is called, all bound values and checks apply only if the gene `use` has the value `option`. Throws
    /// ConfigError at the place of `at` if the gene cannot have that value.
    void enter(const Tree& use, const std::string& option, const Tree& at, const std::string& path);
    void leave() { within_.pop_back(); }
    /// Until leave_repeat() is called, all bound values have an effect only if the gene `use` is not 0.
    void enter_repeat(const Tree& use, const std::string& path);
    void leave_repeat() { repeats_.pop_back(); }
    /// Returns the search space with the uses of each gene: the conditions under which a bound value depends on the
    /// gene. A gene that another gene's `when` names counts as used in every genome.
    [[nodiscard]] search::Space space_with_uses() const;
    /// True if the gene `use`, a `$name`, has a `when` condition.
    [[nodiscard]] bool may_be_inactive(const Tree& use) const;
    /// Adds a check that apply() runs on every recipe.
    void add_check(std::function<void(const void*, const Tree&)> check, const Tree& written, Steps steps);
    /// Throws ConfigError if a gene is not used, or if a check refuses a recipe. Tries the extremes of one gene at a
    /// time, in genomes that obey the constraints.
    void check(const train::Recipe& base, std::span<const search::Constraint> constraints) const;

    /// Sets every value in `recipe` that is bound to an active gene. Throws ConfigError if a check refuses the recipe.
    void apply(const search::Genome& genome, train::Recipe& recipe) const;

private:
    using Conditions = std::vector<search::Condition>;
    struct Bound {
        Conditions within;
        Conditions repeats;
        std::size_t gene;
        Steps steps;
        std::function<void(void* object, double value)> set;
    };
    struct Check {
        Conditions within;
        std::function<void(const void*, const Tree&)> check;
        Tree written;
        Steps steps;
    };

    void check_used() const;
    /// Sets the genes in the conditions of `gene` to values that make `gene` active.
    void activate(std::size_t gene, search::Genome& genome) const;
    [[nodiscard]] std::size_t find(const Tree& use, const std::string& path) const;

    search::Space space_;
    Tree written_;
    Conditions within_;   ///< conditions of the alternatives that are being bound
    Conditions repeats_;  ///< repeat genes that must not be 0 for an effect
    std::vector<Bound> bound_;
    std::vector<Check> checks_;
};

/// Returns test values of a gene that its keys must accept: the bounds and a value between them, or every option.
[[nodiscard]] std::vector<double> trial_values(const search::Gene& gene);

}  // namespace finch::config
