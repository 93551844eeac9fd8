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

/// The way from the recipe to an object within it, which is the same in each copy of the recipe.
struct Step {
    void* (*part)(void* object, std::size_t number);  ///< of an object
    std::size_t number = 0;                           ///< the member's offset in bytes, or the element's index
};
using Steps = std::vector<Step>;

struct ValueType;

/// Whether `$name` stands here.
[[nodiscard]] bool is_gene(const Tree& tree);

/// Where genes stand in a recipe: found once, so that a genome becomes a recipe without a look at the configuration.
class Genes {
public:
    /// `written` is search.space, for the places.
    Genes(const search::Space& space, const Tree& written);

    /// `use` is a `$name` that stands for a value of `domain` at `target`, which keeps its default while the gene is
    /// not active. Throws ConfigError if there is no such gene, where it can take a value that the domain does not,
    /// or where it may be inactive and there is no default. `listed`, if any: the settings that the
    /// configuration gives for each alternative that `use` may choose, by the alternative's name.
    void bind(const Tree& use, const Domain& domain, const Target& target, const ValueType& type,
              const Tree* listed = nullptr);
    /// Until leave(), what is bound or checked counts only if the gene `use` has the value `option`. Throws ConfigError
    /// at the place of `at` if it cannot have that value.
    void enter(const Tree& use, const std::string& option, const Tree& at, const std::string& path);
    void leave() { within_.pop_back(); }
    /// Until leave_repeat(), what is bound has an effect only where `use`, a `$name`, is not 0.
    void enter_repeat(const Tree& use, const std::string& path);
    void leave_repeat() { repeats_.pop_back(); }
    /// The space, in which each gene knows its uses among what was bound; a gene that the `when` of another names is
    /// used everywhere.
    [[nodiscard]] search::Space space_with_uses() const;
    /// Whether `use`, a `$name`, names a gene that has conditions.
    [[nodiscard]] bool may_be_inactive(const Tree& use) const;
    /// Has every recipe checked.
    void add_check(std::function<void(const void*, const Tree&)> check, const Tree& written, Steps steps);
    /// Throws ConfigError if a gene stands nowhere, or where its extremes, one gene at a time, obey the constraints
    /// and give what a check refuses.
    void check(const train::Recipe& base, std::span<const search::Constraint> constraints) const;

    /// Sets every value in `recipe` that an active gene stands for. Throws ConfigError if a check refuses it.
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
    /// Gives the genes that `gene` hangs on values with which it is active.
    void activate(std::size_t gene, search::Genome& genome) const;
    [[nodiscard]] std::size_t find(const Tree& use, const std::string& path) const;

    search::Space space_;
    Tree written_;
    Conditions within_;   ///< under which what is bound now is there
    Conditions repeats_;  ///< under which it has an effect, besides
    std::vector<Bound> bound_;
    std::vector<Check> checks_;
};

/// Values of a gene that its keys must accept: the bounds and a value between them, or every option.
[[nodiscard]] std::vector<double> trial_values(const search::Gene& gene);

}  // namespace finch::config
