#include "finch/app/comparison.hpp"

#include "finch/base/enum_words.hpp"
#include "finch/base/format.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <string>

namespace finch::app {
namespace {

/// Whether all that a replay repeats has the same bits.
bool same_epoch(const Epoch& again, const Epoch& recorded) {
    bool same = true;
    for_each_field<Epoch>([&](const auto& field) {
        const auto now = again.*field.member;
        same = same && (!field.repeats || std::memcmp(&now, &(recorded.*field.member), sizeof now) == 0);
    });
    return same;
}

std::string finding(const Comparison& comparison, std::size_t comparable, std::size_t recorded, double apart) {
    const std::string bits = comparison.equal ? "equal to the last bit" : "not equal";
    if (comparable == recorded) {
        return bits;
    }
    const std::string rest = fmt::format("validation losses are at most {:.2g} apart, as a share", apart);
    if (comparable == 0) {
        return "nothing can be equal to the last bit, as another number of ranks trained it: " + rest;
    }
    return fmt::format("epochs 1 to {}: {}; other numbers of ranks trained the later ones, whose {}", comparable, bits,
                       rest);
}

/// As a share of the larger; infinite where only one is a number.
double distance(double a, double b) {
    if (std::isnan(a) || std::isnan(b)) {
        return std::isnan(a) && std::isnan(b) ? 0 : std::numeric_limits<double>::infinity();
    }
    return a == b ? 0 : std::abs(a - b) / std::max(std::abs(a), std::abs(b));
}

/// How far apart all is that a program reported for an epoch.
double distance(const Epoch& a, const Epoch& b, const std::vector<Metric>& of_a, const std::vector<Metric>& of_b) {
    double most = 0;
    for_each_field<Epoch>([&](const auto& field) {
        if (field.repeats) {
            most = std::max(most, distance(static_cast<double>(a.*field.member), static_cast<double>(b.*field.member)));
        }
    });
    const auto values = [](const std::vector<Metric>& metrics, std::int32_t epoch) {
        std::map<std::string, double> named;
        for (const Metric& one : metrics) {
            if (one.epoch == epoch) {
                named.emplace(one.name, one.value);
            }
        }
        return named;
    };
    const auto values_of_b = values(of_b, b.epoch);
    for (const auto& [name, value] : values(of_a, a.epoch)) {
        const auto other = values_of_b.find(name);
        most = std::max(most, other != values_of_b.end() ? distance(value, other->second)
                                                         : std::numeric_limits<double>::infinity());
    }
    return most;
}

}  // namespace

std::size_t comparable_epochs(const search::Individual& recorded, int ranks) {
    const auto& curve = recorded.curve;
    if (std::all_of(curve.begin(), curve.end(), [](const Epoch& one) { return one.ranks == 0; })) {
        return recorded.ranks == ranks ? curve.size() : 0;
    }
    const auto other =
        std::find_if(curve.begin(), curve.end(), [ranks](const Epoch& one) { return one.ranks != ranks; });
    return static_cast<std::size_t>(other - curve.begin());
}

Comparison compare(std::span<const Epoch> again, const search::Individual& recorded, int ranks) {
    const auto& curve = recorded.curve;
    const std::size_t comparable = comparable_epochs(recorded, ranks);
    const std::size_t both = std::min(again.size(), curve.size());
    Comparison comparison;
    comparison.equal = comparable == curve.size()
                           ? (!curve.empty() || recorded.ranks == ranks) && again.size() == curve.size()
                           : comparable > 0 && again.size() >= comparable;
    double apart = 0;
    comparison.text = fmt::format("{:>6} {:>20} {:>20}\n", "epoch", "recorded loss", "loss now");
    for (std::size_t i = 0; i < std::max(again.size(), curve.size()); ++i) {
        std::string word = "differs";
        if (i < both && same_epoch(again[i], curve[i])) {
            word = "equal";
        } else if (i < comparable) {
            comparison.equal = false;
        } else if (i < both) {
            const double difference = std::abs(again[i].validation_loss / curve[i].validation_loss - 1);
            apart = std::max(apart, difference);
            word = fmt::format("{:.2g} apart", difference);
        }
        comparison.text += fmt::format("{:>6} {:>20} {:>20} {}\n", i + 1,
                                       i < curve.size() ? fmt::format("{:.17g}", curve[i].validation_loss) : "-",
                                       i < again.size() ? fmt::format("{:.17g}", again[i].validation_loss) : "-", word);
    }
    comparison.text += finding(comparison, comparable, curve.size(), apart) + "\n";
    return comparison;
}

Comparison compare_reports(const search::Individual& again, const search::Individual& recorded, double tolerance) {
    const std::size_t both = std::min(again.curve.size(), recorded.curve.size());
    const bool may_go_on = recorded.outcome == search::Outcome::pruned;
    Comparison comparison;
    comparison.equal = again.curve.size() == recorded.curve.size() || (may_go_on && both == recorded.curve.size());
    comparison.equal = comparison.equal && (may_go_on || again.outcome == recorded.outcome);
    comparison.text = fmt::format("{:>6} {:>20} {:>20}\n", "epoch", "recorded loss", "loss now");
    double most = 0;
    for (std::size_t i = 0; i < std::max(both, recorded.curve.size()); ++i) {
        const Epoch& old = recorded.curve[i];
        const double apart = i < both ? distance(old, again.curve[i], recorded.metrics, again.metrics)
                                      : std::numeric_limits<double>::infinity();
        most = std::max(most, apart);
        comparison.text +=
            fmt::format("{:>6} {:>20} {:>20} {}\n", old.epoch, fmt::format("{:.17g}", old.validation_loss),
                        i < both ? fmt::format("{:.17g}", again.curve[i].validation_loss) : "-",
                        apart == 0 ? "equal" : fmt::format("{:.2g} apart", apart));
    }
    comparison.equal = comparison.equal && most <= tolerance;
    comparison.text += fmt::format(
        "recorded: {}, {} epochs; now: {}, {} epochs{}; at most {:.2g} apart, as a share; {}\n", word(recorded.outcome),
        recorded.curve.size(), word(again.outcome), again.curve.size(),
        again.problem.empty() ? "" : " (" + again.problem + ")", most,
        comparison.equal ? fmt::format("within {:.2g}", tolerance) : fmt::format("not within {:.2g}", tolerance));
    return comparison;
}

}  // namespace finch::app
