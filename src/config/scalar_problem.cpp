#include "scalar_problem.hpp"

#include "finch/base/format.hpp"
#include "finch/base/words.hpp"
#include "finch/config/synonyms.hpp"

#include "hints.hpp"

#include <algorithm>
#include <cmath>

namespace finch::config {
namespace {

bool looks_numeric(const Tree& scalar) {
    return !scalar.quoted && scalar.text.find_first_of("0123456789") != std::string::npos &&
           scalar.text.find_first_not_of("0123456789+-.eE") == std::string::npos;
}

/// True if the scalar is written as a number, including NaN and infinity.
bool means_number(const Tree& scalar) {
    const std::string letters = scalar.text.substr(scalar.text.find_first_not_of("+-.") % (scalar.text.size() + 1));
    const bool special = letters == "nan" || letters == "NaN" || letters == "NAN" || letters == "inf" ||
                         letters == "Inf" || letters == "INF";
    return looks_numeric(scalar) || (!scalar.quoted && special);
}

/// The visitor of problem_of().
struct Problem {
    const Tree& tree;
    using Result = std::optional<std::string>;

    Result operator()(const Null&) const { return "is not null"; }
    Result operator()(const Whole& whole) const {
        const auto value = whole_number(tree);
        if (!value) {
            const bool digits = looks_numeric(tree) && tree.text.find_first_of(".eE+") == std::string::npos;
            const double number = real_number(tree).value_or(0.5);
            const bool is_whole = number == std::floor(number) && std::abs(number) <= 1e15;
            return digits && tree.text.size() > 18 ? "is out of range"
                   : is_whole                      ? fmt::format("is no whole number (did you mean {:.0f}?)", number)
                                                   : "is no whole number";
        }
        return whole.low <= *value && *value <= whole.high ? Result{} : "is out of range";
    }
    Result operator()(const Real& real) const {
        const auto value = real_number(tree);
        if (!value) {
            return means_number(tree) ? "is not a finite number" : "is no number";
        }
        const bool inside = real.above ? real.low < *value : real.low <= *value;
        return inside && *value <= real.high ? Result{} : "is out of range";
    }
    Result operator()(const Flag&) const { return flag(tree) ? Result{} : "is neither true nor false"; }
    Result operator()(const Word& word) const {
        const bool known = std::find(word.words.begin(), word.words.end(), tree.text) != word.words.end();
        return known ? Result{} : "is unknown" + did_you_mean(tree.text, word.words);
    }
    Result operator()(const Text& text) const { return text.fits(tree.text) ? Result{} : "does not fit"; }
    Result operator()(const Section&) const { return "is no section"; }
    Result operator()(const Named&) const { return "is no section"; }
    Result operator()(const List&) const { return "is no list"; }
    Result operator()(const Variants&) const { return "is unknown"; }
    Result operator()(const Either& either) const {
        Result worst;
        for (const Domain& domain : either.domains) {
            const Result problem = std::visit(*this, domain.is);
            if (!problem) {
                return {};
            }
            const bool is_number = std::holds_alternative<Whole>(domain.is) || std::holds_alternative<Real>(domain.is);
            const bool is_word = std::holds_alternative<Word>(domain.is);
            if ((is_number && means_number(tree)) || (is_word && !means_number(tree))) {
                worst = problem;
            }
        }
        return worst ? worst : "does not fit";
    }
};

}  // namespace

std::optional<std::string> problem_of(const Tree& tree, const Domain& domain) {
    return std::visit(Problem{tree}, domain.is);
}

}  // namespace finch::config
