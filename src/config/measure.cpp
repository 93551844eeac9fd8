#include "finch/base/enum_words.hpp"
#include "finch/config/config.hpp"
#include "finch/config/tree.hpp"

#include <algorithm>

namespace finch::config {
namespace {

const Tree* member_of(const Tree* tree, std::string_view key) {
    return tree == nullptr ? nullptr : tree->find(key);
}

search::Measure measure_of(LossObjective objective, const Tree* loss) {
    switch (objective) {
        case LossObjective::validation_loss: {
            std::string unit = loss == nullptr ? "" : " (" + loss->text + ")";
            std::replace(unit.begin(), unit.end(), '_', ' ');
            return {.name = "loss", .title = "validation loss" + unit};
        }
        case LossObjective::validation_error:
            return {.name = "error",
                    .title = "validation error (share of images)",
                    .is_rate = true,
                    .of_epoch = [](const Epoch& epoch) { return 1 - epoch.validation_accuracy; }};
    }
    return {};
}

}  // namespace

search::Measure measure_of(const std::string& text) {
    const Tree all = parse_yaml(text, "config.yaml");
    const Tree* objective = member_of(member_of(&all, "search"), "objective");
    if (objective != nullptr && objective->kind == Tree::Kind::list && !objective->items.empty()) {
        objective = &objective->items.front();
    }
    if (const Tree* const function = member_of(objective, "function")) {
        return {.name = "value", .title = "value of " + function->text};
    }
    if (member_of(objective, "command") != nullptr) {
        return {.name = "loss", .title = "loss (as the program reports it)"};
    }
    const auto word = objective == nullptr ? std::nullopt : enumerator<LossObjective>(objective->text);
    return word ? measure_of(*word, member_of(member_of(&all, "training"), "loss")) : search::Measure();
}

}  // namespace finch::config
