#pragma once

#include "finch/search/gene.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace finch::search {

/// A condition that every genome must satisfy, given as text: "width * layers <= 512 or activation == relu". The text
/// may contain numbers, names of genes, + - * /, parentheses, < <= > >= == !=, `and`, `or`. A choice gene counts as a
/// number if all its options are numbers. A choice gene with other options can only be compared with one of its
/// options, by == or !=.
class Constraint {
public:
    /// Throws ConfigError if `text` is invalid: "column 9: …; accepted: …".
    Constraint(std::string text, const Space& space);

    /// Returns whether `genome` obeys the constraint, up to rounding errors. `active`: the active genes of `genome`. A
    /// constraint that names an inactive gene always holds. A comparison with NaN (0 / 0) is false.
    [[nodiscard]] bool holds(const Genome& genome, const std::vector<bool>& active) const;
    [[nodiscard]] const std::string& text() const noexcept { return text_; }

private:
    class Parser;
    enum class Operation {
        number,
        gene,
        add,
        subtract,
        multiply,
        divide,
        negate,
        less,
        less_or_equal,
        greater,
        greater_or_equal,
        equal,
        not_equal,
        both,
        either
    };
    /// One step of a postfix program that works on a stack of numbers. Comparisons push 1 for true and 0 for false.
    struct Step {
        Operation operation = Operation::number;
        double number = 0;
        std::size_t gene = 0;
        std::vector<double> numbers{};  ///< if the gene is a choice: its options as numbers
    };
    static double apply(Operation operation, double a, double b) noexcept;

    std::string text_;
    std::vector<Step> steps_;
};

/// Returns whether `genome` satisfies all `constraints`.
[[nodiscard]] bool all_hold(std::span<const Constraint> constraints, const Space& space, const Genome& genome);

}  // namespace finch::search
