#pragma once

#include "finch/search/gene.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace finch::search {

/// What a genome must obey, as text: numbers, names of genes, + - * /, parentheses, < <= > >= == !=, `and`, `or`. A
/// choice counts as its number where all its options are numbers; others can be compared with one of their words by ==
/// and !=: "width * layers <= 512 or activation == relu".
class Constraint {
public:
    /// Throws ConfigError: "column 9: …, accepted: …".
    Constraint(std::string text, const Space& space);

    /// Also where a gene that it names is not active. A comparison with NaN (0 / 0) does not hold. `active`: of
    /// `genome`.
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
    /// A step of a postfix program on a stack of numbers; 1 is true.
    struct Step {
        Operation operation = Operation::number;
        double number = 0;
        std::size_t gene = 0;
        std::vector<double> numbers{};  ///< of the gene's options, where it is a choice
    };
    static double apply(Operation operation, double a, double b) noexcept;

    std::string text_;
    std::vector<Step> steps_;
};

/// Whether `genome` obeys all of `constraints`.
[[nodiscard]] bool all_hold(std::span<const Constraint> constraints, const Space& space, const Genome& genome);

}  // namespace finch::search
