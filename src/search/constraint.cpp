#include "finch/search/constraint.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/base/parsed.hpp"
#include "finch/base/words.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

namespace finch::search {
namespace {

constexpr int most_nested = 50;

struct Token {
    enum class Kind { number, word, quoted, sign, end };
    Kind kind = Kind::end;
    std::string text;
    double number = 0;
    std::size_t column = 1;
};

[[noreturn]] void refuse(std::size_t column, const std::string& what) {
    throw ConfigError(fmt::format("column {}: {}", column, what));
}

bool begins_word(char letter) {
    return std::isalpha(static_cast<unsigned char>(letter)) != 0 || letter == '_';
}
bool goes_on_word(char letter) {
    return begins_word(letter) || std::isdigit(static_cast<unsigned char>(letter)) != 0;
}

/// Reads the token at position `at`, and moves `at` behind the token.
Token read_token(const std::string& text, std::size_t& at) {
    Token token;
    token.column = at + 1;
    const std::size_t begin = at;
    const char first = text[at];
    if (std::isdigit(static_cast<unsigned char>(first)) != 0 || first == '.') {
        const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), token.number);
        if (error != std::errc{}) {
            refuse(token.column, "invalid number; accepted: decimals such as 12, 0.5 or 1e-3");
        }
        token.kind = Token::Kind::number;
        at = static_cast<std::size_t>(end - text.data());
    } else if (begins_word(first)) {
        token.kind = Token::Kind::word;
        while (at < text.size() && goes_on_word(text[at])) {
            ++at;
        }
    } else if (first == '\'' || first == '"') {
        const std::size_t end = text.find(first, at + 1);
        if (end == std::string::npos) {
            refuse(token.column, "the quotes that begin here do not end");
        }
        at = end + 1;
        return {Token::Kind::quoted, text.substr(begin + 1, end - begin - 1), 0, token.column};
    } else {
        static const std::vector<std::string> signs{"<=", ">=", "==", "!=", "<", ">", "+", "-", "*", "/", "(", ")"};
        const auto found = std::find_if(signs.begin(), signs.end(), [&](const std::string& sign) {
            return text.compare(begin, sign.size(), sign) == 0;
        });
        if (found == signs.end()) {
            refuse(token.column, fmt::format("'{}' means nothing here; accepted: numbers, genes, and, or, {}", first,
                                             join(signs, " ")));
        }
        token.kind = Token::Kind::sign;
        at += found->size();
    }
    token.text = text.substr(begin, at - begin);
    return token;
}

std::vector<Token> tokens_of(const std::string& text) {
    std::vector<Token> tokens;
    for (std::size_t at = text.find_first_not_of(' '); at < text.size(); at = text.find_first_not_of(' ', at)) {
        tokens.push_back(read_token(text, at));
    }
    tokens.push_back({Token::Kind::end, "the end", 0, text.size() + 1});
    return tokens;
}

/// Returns the options as numbers, or nothing if an option is not a number.
std::optional<std::vector<double>> numbers_of(const ChoiceGene& gene) {
    std::vector<double> numbers;
    for (const std::string& option : gene.options) {
        const auto number = parsed<double>(option);
        if (!number) {
            return std::nullopt;
        }
        numbers.push_back(*number);
    }
    return numbers;
}

/// Returns a + b, or 0 if the sum is only a rounding error: 0.1 + 0.2 - 0.3.
double rounded_sum(double a, double b) {
    constexpr double rounding = 1e-13;
    return std::abs(a + b) < rounding * (std::abs(a) + std::abs(b)) ? 0 : a + b;
}

}  // namespace

/// A recursive descent parser for constraints, from `or` down to numbers. The parser appends steps to the postfix
/// program as it reads the text.
class Constraint::Parser {
public:
    Parser(const std::string& text, const Space& space, std::vector<Step>& steps)
        : tokens_(tokens_of(text)), space_(space), steps_(steps) {}

    void parse() {
        if (here().kind == Token::Kind::end) {
            refuse(1, "is empty; accepted: a comparison, such as a <= b");
        }
        require(either(), Type::truth);
        if (here().kind != Token::Kind::end) {
            refuse(here().column, fmt::format("'{}' is not expected here; accepted: +, -, *, /, a comparison, and, or, "
                                              "the end",
                                              here().text));
        }
    }

private:
    enum class Type { number, truth, word };
    /// A parsed part of a constraint's text. A word adds no steps to the program until it is compared with another
    /// word.
    struct Value {
        Type type = Type::number;
        std::size_t column = 1;
        std::string word{};
        std::optional<std::size_t> gene{};  ///< if the word is the name of a choice gene
    };

    [[nodiscard]] const Token& here() const { return tokens_[at_]; }
    /// If the current token is in `texts`, consumes the token and returns its index in `texts`.
    std::optional<std::size_t> take(std::initializer_list<std::string_view> texts) {
        const bool fits = here().kind == Token::Kind::sign || here().kind == Token::Kind::word;
        const auto* const found = std::find(texts.begin(), texts.end(), std::string_view(here().text));
        if (!fits || found == texts.end()) {
            return std::nullopt;
        }
        ++at_;
        return static_cast<std::size_t>(found - texts.begin());
    }
    void emit(Operation operation) { steps_.push_back({operation}); }

    void require(const Value& value, Type type) const {
        if (value.type == type) {
            return;
        }
        if (value.type == Type::word) {
            refuse_word(value);
        }
        refuse(value.column, type == Type::truth ? "a number stands here; accepted: a comparison, such as a <= b"
                                                 : "a comparison stands here; accepted: a number or a gene");
    }
    [[noreturn]] void refuse_word(const Value& value) const {
        if (value.gene) {
            refuse(value.column, fmt::format("the gene '{}' is no number; accepted: == or != {}", value.word,
                                             accepted_values(space_.genes[*value.gene])));
        }
        std::vector<std::string> known;
        for (const Gene& gene : space_.genes) {
            known.push_back(gene.name);
        }
        refuse(value.column, fmt::format("'{}' is no gene{}; accepted: {}", value.word, did_you_mean(value.word, known),
                                         known.empty() ? "numbers, since there is no gene" : join(known)));
    }

    Value either() {
        Value left = both();
        while (take({"or"})) {
            left = joined(left, &Parser::both, Operation::either);
        }
        return left;
    }
    Value both() {
        Value left = comparison();
        while (take({"and"})) {
            left = joined(left, &Parser::comparison, Operation::both);
        }
        return left;
    }
    Value joined(const Value& left, Value (Parser::*next)(), Operation operation) {
        require(left, Type::truth);
        require((this->*next)(), Type::truth);
        emit(operation);
        return {Type::truth, left.column};
    }
    Value comparison() {
        Value left = sum();
        const auto operation = take({"<", "<=", ">", ">=", "==", "!="});
        if (!operation) {
            return left;
        }
        const Value right = sum();
        const auto compared = static_cast<Operation>(static_cast<std::size_t>(Operation::less) + *operation);
        const bool is_equality = compared == Operation::equal || compared == Operation::not_equal;
        if (is_equality && left.type == Type::word && right.type == Type::word && (left.gene || right.gene)) {
            left.gene ? compare_words(left, right) : compare_words(right, left);
        } else {
            require(left, Type::number);
            require(right, Type::number);
        }
        emit(compared);
        if (take({"<", "<=", ">", ">=", "==", "!="})) {
            refuse(tokens_[at_ - 1].column, "a second comparison; accepted: two of them with `and` between");
        }
        return {Type::truth, left.column};
    }
    void compare_words(const Value& gene, const Value& word) {
        const auto option = word.gene ? std::nullopt : value_in(space_.genes[*gene.gene], word.word);
        if (!option) {
            const auto& options = std::get<ChoiceGene>(space_.genes[*gene.gene].kind).options;
            refuse(word.column, fmt::format("'{}' is no option of {}{}; accepted: {}", word.word, gene.word,
                                            did_you_mean(word.word, options), join(options)));
        }
        steps_.push_back({Operation::gene, 0, *gene.gene});
        steps_.push_back({Operation::number, *option});
    }
    Value sum() { return chain(&Parser::product, {"+", "-"}, Operation::add); }
    Value product() { return chain(&Parser::factor, {"*", "/"}, Operation::multiply); }
    /// Parses operands, each with the member function `next`, that are joined by the operators in `signs`. The first
    /// sign stands for the operation `first`, the second sign for the operation after `first`.
    Value chain(Value (Parser::*next)(), std::initializer_list<std::string_view> signs, Operation first) {
        Value left = (this->*next)();
        while (const auto sign = take(signs)) {
            require(left, Type::number);
            require((this->*next)(), Type::number);
            emit(static_cast<Operation>(static_cast<std::size_t>(first) + *sign));
        }
        return left;
    }
    Value factor() {
        const std::size_t column = here().column;
        if (++nested_ > most_nested) {
            refuse(column, fmt::format("more than {} parentheses or signs within one another", most_nested));
        }
        Value value;
        if (take({"-"})) {
            require(factor(), Type::number);
            emit(Operation::negate);
        } else if (take({"("})) {
            value = either();
            if (!take({")"})) {
                refuse(here().column,
                       fmt::format("'{}' stands where the parenthesis of column {} is to be closed; accepted: )",
                                   here().text, column));
            }
        } else {
            value = operand();
        }
        --nested_;
        value.column = column;
        return value;
    }
    Value operand() {
        const Token token = here();
        if (token.kind == Token::Kind::number) {
            ++at_;
            steps_.push_back({Operation::number, token.number});
            return {};
        }
        const bool is_name = token.kind == Token::Kind::word && token.text != "and" && token.text != "or";
        if (!is_name && token.kind != Token::Kind::quoted) {
            refuse(token.column,
                   fmt::format("'{}' is not expected here; accepted: a number, a gene, - or (", token.text));
        }
        ++at_;
        const int index = is_name ? space_.index_of(token.text) : -1;
        if (index < 0) {
            return {Type::word, token.column, token.text};
        }
        const auto gene = static_cast<std::size_t>(index);
        const auto* const choice = std::get_if<ChoiceGene>(&space_.genes[gene].kind);
        const auto numbers = choice != nullptr ? numbers_of(*choice) : std::optional(std::vector<double>());
        if (!numbers) {
            return {Type::word, token.column, token.text, gene};
        }
        steps_.push_back({Operation::gene, 0, gene, *numbers});
        return {};
    }

    std::vector<Token> tokens_;
    const Space& space_;
    std::vector<Step>& steps_;
    std::size_t at_ = 0;
    int nested_ = 0;
};

Constraint::Constraint(std::string text, const Space& space) : text_(std::move(text)) {
    Parser(text_, space, steps_).parse();
}

double Constraint::apply(Operation operation, double a, double b) noexcept {
    switch (operation) {
        case Operation::add:
            return rounded_sum(a, b);
        case Operation::subtract:
            return rounded_sum(a, -b);
        case Operation::multiply:
            return a * b;
        case Operation::divide:
            return a / b;
        case Operation::less:
            return rounded_sum(a, -b) < 0 ? 1 : 0;
        case Operation::less_or_equal:
            return rounded_sum(a, -b) <= 0 ? 1 : 0;
        case Operation::greater:
            return rounded_sum(a, -b) > 0 ? 1 : 0;
        case Operation::greater_or_equal:
            return rounded_sum(a, -b) >= 0 ? 1 : 0;
        case Operation::equal:
            return rounded_sum(a, -b) == 0 ? 1 : 0;
        case Operation::not_equal:
            return rounded_sum(a, -b) < 0 || rounded_sum(a, -b) > 0 ? 1 : 0;
        case Operation::both:
            return a * b;
        case Operation::either:
            return std::max(a, b);
        case Operation::number:
        case Operation::gene:
        case Operation::negate:
            break;
    }
    return 0;
}

bool Constraint::holds(const Genome& genome, const std::vector<bool>& active) const {
    std::vector<double> stack;
    for (const Step& step : steps_) {
        if (step.operation == Operation::number) {
            stack.push_back(step.number);
        } else if (step.operation == Operation::gene) {
            if (!active[step.gene]) {
                return true;
            }
            const double value = genome.at(step.gene);
            stack.push_back(step.numbers.empty() ? value : step.numbers.at(static_cast<std::size_t>(value)));
        } else if (step.operation == Operation::negate) {
            stack.back() = -stack.back();
        } else {
            const double right = stack.back();
            stack.pop_back();
            stack.back() = apply(step.operation, stack.back(), right);
        }
    }
    return stack.back() != 0;
}

bool all_hold(std::span<const Constraint> constraints, const Space& space, const Genome& genome) {
    if (constraints.empty()) {
        return true;
    }
    const std::vector<bool> active = active_genes(space, genome);
    return std::all_of(constraints.begin(), constraints.end(),
                       [&](const Constraint& constraint) { return constraint.holds(genome, active); });
}

}  // namespace finch::search
