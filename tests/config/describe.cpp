#include "config/describe.hpp"

#include "finch/base/format.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace finch::test {
namespace {

using namespace finch::config;

struct Examples {
    std::vector<std::string> accepted;
    std::vector<std::string> refused;
};

/// Returns examples for a domain: accepted values at its bounds, refused values just outside them or of other types.
Examples examples_of(const Domain& domain);

struct MakeExamples {
    Examples operator()(const Null&) const { return {{"null"}, {}}; }
    Examples operator()(const Whole& whole) const {
        Examples result{{fmt::format("{}", whole.low), fmt::format("{}", whole.high)},
                        {fmt::format("{}", whole.low - 1), "1.5", "'1'", "0x10", "1e1", "010", "word", "[[]]", "{a: 1}",
                         "", ".nan", "99999999999999999999"}};
        if (whole.high < std::numeric_limits<std::int64_t>::max()) {
            result.refused.push_back(fmt::format("{}", whole.high + 1));
        }
        return result;
    }
    Examples operator()(const Real& real) const {
        const double infinity = std::numeric_limits<double>::infinity();
        const std::string beyond_low = fmt::format("{}", real.above ? real.low : std::nextafter(real.low, -infinity));
        const std::string low = fmt::format("{}", real.above ? real.low + 1e-9 * real.high : real.low);
        return {{low, fmt::format("{}", real.high)},
                {beyond_low, fmt::format("{}", std::nextafter(real.high, infinity)), ".nan", ".inf", "-.inf", "nan",
                 "1e999", "'1'", "0x10", "word", "[[]]", "{a: 1}", ""}};
    }
    Examples operator()(const Flag&) const {
        return {{"true", "false"}, {"yes", "no", "on", "True", "1", "'true'", "", "[true]"}};
    }
    Examples operator()(const Word& word) const { return {word.words, {"no_such_word", "[]", "{a: 1}", ""}}; }
    Examples operator()(const Text& text) const {
        Examples result{text.accepted, text.refused};
        result.refused.insert(result.refused.end(), {"[a]", "{a: 1}", ""});
        return result;
    }
    Examples operator()(const Section&) const { return {{}, {"5", "word", "[1]", "{no_such_key: 1}"}}; }
    Examples operator()(const Named&) const { return {{}, {"5", "word", "[1]"}}; }
    Examples operator()(const Variants& variants) const {
        Examples result{{}, {"no_such_word", "5", "[]", "{no_such_word: {}}", "{}", ""}};
        for (const Key& key : variants.alternatives) {
            result.accepted.push_back(key.name);
        }
        return result;
    }
    Examples operator()(const List& list) const {
        Examples result{{}, {"[]", "word", "{a: 1}"}};
        const Examples element = examples_of(list.element.front());
        for (const std::string& value : element.accepted) {
            result.accepted.push_back(fmt::format("[{}]", fmt::join(std::vector(list.least, value), ", ")));
        }
        for (const std::string& value : element.refused) {
            result.refused.push_back(fmt::format("[{}]", fmt::join(std::vector(list.least, value), ", ")));
        }
        return result;
    }
    Examples operator()(const Either& either) const {
        Examples result;
        for (const Domain& domain : either.domains) {
            const Examples part = examples_of(domain);
            result.accepted.insert(result.accepted.end(), part.accepted.begin(), part.accepted.end());
            result.refused.insert(result.refused.end(), part.refused.begin(), part.refused.end());
        }
        return result;
    }
};

bool fits(const Domain& domain, const std::string& value) {
    try {
        (void)complete(domain, parse_yaml(value, "example"), "example");
        return true;
    } catch (const std::exception&) {
        return false;
    }
}

/// Removes refused examples that `domain` accepts. One alternative of an Either may accept
/// a value that another alternative refuses.
void keep_refused(const Domain& domain, Examples& examples) {
    std::erase_if(examples.refused, [&](const std::string& value) { return fits(domain, value); });
}

Examples examples_of(const Domain& domain) {
    Examples examples = std::visit(MakeExamples{}, domain.is);
    if (std::holds_alternative<Either>(domain.is)) {
        keep_refused(domain, examples);
    }
    return examples;
}

void append(std::vector<KeyDescription>& out, std::vector<KeyDescription> more) {
    std::move(more.begin(), more.end(), std::back_inserter(out));
}

std::vector<KeyDescription> describe_keys(const std::vector<Key>& keys, const std::string& path, bool genes) {
    std::vector<KeyDescription> all;
    for (const Key& key : keys) {
        const bool here = key.genes == Rule::yes || (genes && key.genes == Rule::as_around);
        const std::string own = path_of(path, key.name);
        Examples examples = examples_of(key.domain);
        all.push_back({own, key.fallback, key.meaning, accepts(key.domain), std::move(examples.accepted),
                       std::move(examples.refused), here});
        append(all, describe(key.domain, own, here));
    }
    return all;
}

}  // namespace

std::vector<KeyDescription> describe(const Domain& domain, const std::string& path, bool genes) {
    std::vector<KeyDescription> all;
    if (const auto* const section = std::get_if<Section>(&domain.is)) {
        all = describe_keys(section->keys, path, genes);
    } else if (const auto* const variants = std::get_if<Variants>(&domain.is)) {
        all = describe_keys(variants->alternatives, path, genes);
    } else if (const auto* const list = std::get_if<List>(&domain.is)) {
        all = describe(list->element.front(), path + "[]", genes);
    } else if (const auto* const named = std::get_if<Named>(&domain.is)) {
        all = describe(named->element.front(), path + ".NAME", genes);
    } else if (const auto* const either = std::get_if<Either>(&domain.is)) {
        for (const Domain& part : either->domains) {
            append(all, describe(part, path, genes));
        }
    }
    return all;
}

}  // namespace finch::test
