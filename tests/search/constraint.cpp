#include "finch/search/constraint.hpp"

#include "finch/base/error.hpp"

#include <doctest/doctest.h>

using namespace finch;
using namespace finch::search;

namespace {

const Space constrained{{{"a", RealGene{0, 10}},
                         {"b", RealGene{0, 10}},
                         {"width", ChoiceGene{{"16", "32", "64"}}},
                         {"act", ChoiceGene{{"relu", "tanh", "leaky relu"}}},
                         {"rate", RealGene{0, 1}, {{3, {0}}}}}};

bool holds(const std::string& text, const Genome& genome) {
    return Constraint(text, constrained).holds(genome, active_genes(constrained, genome));
}

/// Evaluates `text` with a = 2, b = 3, width = 32, act = tanh. `rate` is therefore not active.
bool holds(const std::string& text) {
    return holds(text, {2, 3, 1, 1, 0});
}

std::string problem_of(const std::string& text) {
    try {
        (void)Constraint(text, constrained);
    } catch (const ConfigError& error) {
        return error.what();
    }
    return "";
}

}  // namespace

TEST_CASE("constraint: comparisons of numbers and genes; every comparison with NaN is false") {
    for (const char* text : {"a < b", "a <= b", "a <= 2", "b > a", "b >= 3", "a == 2", "a != b", "2 < 3",
                             "a * 0.1 + 0.4 <= 0.6", "a * 0.1 + 0.4 == 0.6", "a * 0.1 + 0.4 - 0.6 >= 0"}) {
        CHECK_MESSAGE(holds(text), text);
    }
    for (const char* text : {"b < a", "b <= a", "a > 2", "a >= b", "a == b", "a != 2", "0 / 0 != 1", "0/0 == 0/0",
                             "a * 0.1 + 0.4 > 0.6", "a * 0.1 + 0.4 != 0.6", "a * 0.1 + 0.4 <= 0.5999999999"}) {
        CHECK_MESSAGE(!holds(text), text);
    }
}

TEST_CASE("constraint: operator precedence, associativity, signs and parentheses") {
    for (const char* text :
         {"a + b * 2 == 8", "(a + b) * 2 == 10", "10 - a - b == 5", "12 / a / b == 2", "12 / (a / b) == 18",
          "-a * b == -6", "- (a - b) == 1", "--a == 2", "1e1 == 10", ".5 * a == 1", "2 * -a == -4", "((a)) == 2"}) {
        CHECK_MESSAGE(holds(text), text);
    }
}

TEST_CASE("constraint: `and` binds more tightly than `or`, and parentheses may contain a comparison") {
    CHECK(holds("a == 2 or a == 3 and b == 0"));
    CHECK_FALSE(holds("(a == 2 or a == 3) and b == 0"));
    CHECK(holds("a == 0 or b == 3"));
    CHECK_FALSE(holds("a == 0 or b == 0"));
    CHECK(holds("a == 2 and (b == 0 or b == 3) and a < b"));
    CHECK_FALSE(holds("a == 2 and b == 0"));
}

TEST_CASE("constraint: a choice of numbers can be used as a number, and any choice can be compared with a word") {
    CHECK(holds("width * a == 64"));
    CHECK(holds("act == tanh"));
    CHECK(holds("act != relu"));
    CHECK(holds("tanh == act"));
    CHECK_FALSE(holds("act == 'leaky relu'"));
    CHECK(holds("act == \"leaky relu\"", {2, 3, 1, 2, 0}));
}

TEST_CASE("constraint: a constraint holds if it names a gene that is not active") {
    CHECK(holds("rate > 5"));
    CHECK(holds("a > 5 and rate > 5"));
    CHECK_FALSE(holds("rate > 5", {2, 3, 1, 0, 0.5}));
    CHECK(holds("rate < 0.6", {2, 3, 1, 0, 0.5}));
}

TEST_CASE("all_hold: true only if every constraint holds") {
    const std::vector<Constraint> both{{"a < b", constrained}, {"a < 1", constrained}};

    CHECK(all_hold(both, constrained, {0.5, 1, 0, 0, 0}));
    CHECK_FALSE(all_hold(both, constrained, {2, 3, 0, 0, 0}));
    CHECK_FALSE(all_hold(both, constrained, {0.5, 0.1, 0, 0, 0}));
    CHECK(all_hold({}, constrained, {2, 3, 0, 0, 0}));
}

TEST_CASE("constraint: a syntax error is reported with its column and the accepted input") {
    CHECK(problem_of("") == "column 1: is empty; accepted: a comparison, such as a <= b");
    CHECK(problem_of("   ") == "column 1: is empty; accepted: a comparison, such as a <= b");
    CHECK(problem_of("a + b") == "column 1: a number stands here; accepted: a comparison, such as a <= b");
    CHECK(problem_of("a <= ") == "column 6: 'the end' is not expected here; accepted: a number, a gene, - or (");
    CHECK(problem_of("a <= b c") ==
          "column 8: 'c' is not expected here; accepted: +, -, *, /, a comparison, and, or, the end");
    CHECK(problem_of("a = b") ==
          "column 3: '=' means nothing here; accepted: numbers, genes, and, or, <= >= == != < > + - * / ( )");
    CHECK(problem_of("widht * a <= 512") ==
          "column 1: 'widht' is no gene (did you mean 'width'?); accepted: a, b, width, act, rate");
    CHECK(problem_of("a < b < 3") == "column 7: a second comparison; accepted: two of them with `and` between");
    CHECK(problem_of("(a < b") ==
          "column 7: 'the end' stands where the parenthesis of column 1 is to be closed; accepted: )");
    CHECK(problem_of("a + (a < b) < 3") == "column 5: a comparison stands here; accepted: a number or a gene");
    CHECK(problem_of("a and b < 3") == "column 1: a number stands here; accepted: a comparison, such as a <= b");
    CHECK(problem_of("act <= 3") ==
          "column 1: the gene 'act' is no number; accepted: == or != one of relu, tanh, leaky relu");
    CHECK(problem_of("act == rel") ==
          "column 8: 'rel' is no option of act (did you mean 'relu'?); accepted: relu, tanh, leaky relu");
    CHECK(problem_of("act == 'relu") == "column 8: the quotes that begin here do not end");
    CHECK(problem_of("a < .") == "column 5: invalid number; accepted: decimals such as 12, 0.5 or 1e-3");
    CHECK(problem_of("a < or") == "column 5: 'or' is not expected here; accepted: a number, a gene, - or (");
    CHECK(problem_of(std::string(60, '(')) == "column 51: more than 50 parentheses or signs within one another");
    CHECK(problem_of(std::string(60, '-') + "a < 1") ==
          "column 51: more than 50 parentheses or signs within one another");
}
