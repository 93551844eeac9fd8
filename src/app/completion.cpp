#include "finch/app/completion.hpp"

#include "finch/base/format.hpp"

#include <CLI/CLI.hpp>
#include <functional>
#include <vector>

namespace finch::app {
namespace {

/// Returns the type that the help prints, without its check: "INT" of "INT:POSITIVE".
std::string type_of(const CLI::Option& option) {
    const std::string type = option.get_type_name();
    return type.substr(0, type.find(':'));
}

bool is_flag(const CLI::Option& option) {
    return option.get_items_expected_max() == 0;
}

/// Calls `visit` for each verb of `app` that has no subcommands, with the verb's full name: "data generate".
void for_each_verb(const CLI::App& app, const std::string& prefix,
                   const std::function<void(const std::string&, const CLI::App&)>& visit) {
    for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
        const std::string name = prefix + verb->get_name();
        if (verb->get_subcommands([](const CLI::App*) { return true; }).empty()) {
            visit(name, *verb);
        } else {
            for_each_verb(*verb, name + " ", visit);
        }
    }
}

/// Returns the options that the help prints: all options with a group name.
std::vector<const CLI::Option*> shown_options(const CLI::App& verb, bool positional) {
    return verb.get_options([positional](const CLI::Option* option) {
        return option->get_positional() == positional && !option->get_group().empty();
    });
}

}  // namespace

std::string completion_table(const CLI::App& app) {
    std::string lines;
    const auto add = [&lines](const std::string& name, const CLI::App& verb) {
        for (const CLI::Option* argument : shown_options(verb, true)) {
            lines += fmt::format("{}||{}\n", name, type_of(*argument));
        }
        for (const CLI::Option* option : shown_options(verb, false)) {
            const std::string type = is_flag(*option) ? "" : type_of(*option);
            for (const std::string& one : option->get_snames()) {
                lines += fmt::format("{}|-{}|{}\n", name, one, type);
            }
            for (const std::string& one : option->get_lnames()) {
                lines += fmt::format("{}|--{}|{}\n", name, one, type);
            }
        }
    };
    add("", app);
    for_each_verb(app, "", add);
    return fmt::format("_finch_command_line='{}'\n", lines);
}

}  // namespace finch::app
