#include "finch/app/comparison.hpp"

#include "finch/base/enum_words.hpp"
#include "finch/base/format.hpp"
#include "finch/base/words.hpp"

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

/// As a share of the larger; infinite where only one is a number, or one is infinite.
double distance(double a, double b) {
    if (a == b || (std::isnan(a) && std::isnan(b))) {
        return 0;
    }
    return std::isfinite(a) && std::isfinite(b) ? std::abs(a - b) / std::max(std::abs(a), std::abs(b))
                                                : std::numeric_limits<double>::infinity();
}

/// What is farthest apart.
struct Farthest {
    double apart = 0;
    std::string name;

    void take(const std::string& of, double distance) {
        if (distance > apart) {
            *this = {distance, of};
        }
    }
};

/// Of all that a program reported for an epoch.
Farthest farthest(const Epoch& a, const Epoch& b, const MetricsByEpoch& of_a, const MetricsByEpoch& of_b) {
    Farthest found;
    for_each_field<Epoch>([&](const auto& field) {
        if (field.repeats) {
            found.take(std::string(field.name),
                       distance(static_cast<double>(a.*field.member), static_cast<double>(b.*field.member)));
        }
    });
    static const std::map<std::string, double> none;
    const auto metrics = [](const MetricsByEpoch& all, std::int32_t epoch) -> const std::map<std::string, double>& {
        const auto known = all.find(epoch);
        return known != all.end() ? known->second : none;
    };
    const auto& in_a = metrics(of_a, a.epoch);
    const auto& in_b = metrics(of_b, b.epoch);
    for (const auto& [name, value] : in_a) {
        const auto other = in_b.find(name);
        found.take(name,
                   other != in_b.end() ? distance(value, other->second) : std::numeric_limits<double>::infinity());
    }
    for (const auto& [name, value] : in_b) {
        found.take(name, in_a.contains(name) ? 0 : std::numeric_limits<double>::infinity());
    }
    return found;
}

}  // namespace

std::size_t comparable_epochs(const search::Individual& recorded, int ranks) {
    const auto& curve = recorded.curve;
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
    const MetricsByEpoch metrics = by_epoch(recorded.metrics);
    const MetricsByEpoch metrics_now = by_epoch(again.metrics);
    double most = 0;
    for (std::size_t i = 0; i < recorded.curve.size(); ++i) {
        const Epoch& old = recorded.curve[i];
        const Farthest found = i < both ? farthest(old, again.curve[i], metrics, metrics_now)
                                        : Farthest{std::numeric_limits<double>::infinity(), "epoch"};
        most = std::max(most, found.apart);
        comparison.text +=
            fmt::format("{:>6} {:>20} {:>20} {}\n", old.epoch, fmt::format("{:.17g}", old.validation_loss),
                        i < both ? fmt::format("{:.17g}", again.curve[i].validation_loss) : "-",
                        found.apart == 0 ? "equal" : fmt::format("{:.2g} apart: {}", found.apart, found.name));
    }
    comparison.equal = comparison.equal && most <= tolerance;
    comparison.text += fmt::format(
        "recorded: {}, {}; now: {}, {}{}; at most {:.2g} apart, as a share; {}\n", word(recorded.outcome),
        counted(std::ssize(recorded.curve), "epoch"), word(again.outcome), counted(std::ssize(again.curve), "epoch"),
        again.problem.empty() ? "" : " (" + again.problem + ")", most,
        comparison.equal ? fmt::format("within {:.2g}", tolerance) : fmt::format("not within {:.2g}", tolerance));
    return comparison;
}

}  // namespace finch::app
