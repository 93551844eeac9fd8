#include "evaluation.hpp"

#include "finch/base/format.hpp"
#include "finch/config/keys.hpp"

#include "bind.hpp"
#include "domains.hpp"

namespace finch::config {

void resolve_learning_rate(Tree& training) {
    Tree& rate = *training.find("learning_rate");
    const Tree& optimizer = training["optimizer"];
    const std::string name = optimizer.kind == Tree::Kind::map ? optimizer.keys.front() : optimizer.text;
    for (const auto& [rule, usual] : usual_rates()) {
        if (rate.text == "auto" && name == rule) {
            rate.text = fmt::format("{}", usual);
        }
    }
}

Tree evaluation_part(const Tree& all) {
    const Tree fixed = fixed_part(configuration(), all);
    Tree part{.kind = Tree::Kind::map};
    for (const char* const name : {"data", "model", "training"}) {
        if (const Tree* const section = fixed.find(name)) {
            part.keys.emplace_back(name);
            part.items.push_back(*section);
        }
    }
    part.keys.emplace_back("objective");
    part.items.push_back(fixed["search"]["objective"]);
    return part;
}

}  // namespace finch::config
