#include "finch/app/comparison.hpp"

#include "finch/base/format.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

namespace finch::app {
namespace {

/// True if all fields that a replay can reproduce have the same bits in both epochs. A number that is NaN in the record
/// is not compared if earlier formats lacked it.
bool same_epoch(const Epoch& again, const Epoch& recorded) {
    bool same = true;
    for_each_field<Epoch>([&](const auto& field) {
        const auto now = again.*field.member;
        const auto before = recorded.*field.member;
        const bool is_unknown = field.first_version > 1 && std::isnan(static_cast<double>(before));
        same = same && (!field.repeats || is_unknown || std::memcmp(&now, &before, sizeof now) == 0);
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

}  // namespace finch::app
