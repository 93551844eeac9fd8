#include "finch/app/manual.hpp"

#include "finch/base/format.hpp"
#include "finch/base/version.hpp"

#include <CLI/CLI.hpp>
#include <functional>
#include <string_view>
#include <vector>

namespace finch::app {
namespace {

/// Text in which roff sees no requests of its own.
std::string escaped(std::string_view text) {
    std::string out = text.starts_with('.') || text.starts_with('\'') ? "\\&" : "";
    for (const char letter : text) {
        switch (letter) {
            case '\\':
                out += "\\e";
                break;
            case '-':
                out += "\\-";
                break;
            case '\n':
                out += "\n.br\n";
                break;
            default:
                out += letter;
        }
    }
    return out;
}

/// The type as the help has it, without the check that follows it: INT:POSITIVE.
std::string type_of(const CLI::Option& option) {
    const std::string type = option.get_type_name();
    return type.substr(0, type.find(':'));
}

bool is_flag(const CLI::Option& option) {
    return option.get_items_expected_max() == 0;
}

/// Calls `visit` for `app`'s verbs that have none below them, with their whole names: "data generate".
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

/// What the help shows: no option without a group.
std::vector<const CLI::Option*> shown_options(const CLI::App& verb, bool positional) {
    return verb.get_options([positional](const CLI::Option* option) {
        return option->get_positional() == positional && !option->get_group().empty();
    });
}

/// "-o, --output"
std::string names_of(const CLI::Option& option) {
    std::vector<std::string> names;
    for (const std::string& name : option.get_snames()) {
        names.push_back("-" + name);
    }
    for (const std::string& name : option.get_lnames()) {
        names.push_back("--" + name);
    }
    return fmt::format("{}", fmt::join(names, ", "));
}

std::string details_of(const CLI::Option& option) {
    std::string text = option.get_description();
    const std::string value = option.get_default_str();
    if (!is_flag(option) && !value.empty() && value != "[]") {
        text += fmt::format(" (default: {})", value);
    }
    std::vector<std::string> others;
    for (const CLI::Option* other : option.get_excludes()) {
        others.push_back(other->get_name());
    }
    if (!others.empty()) {
        text += fmt::format(" (not with {})", fmt::join(others, ", "));
    }
    return text;
}

std::string option_entry(const CLI::Option& option) {
    std::string head = fmt::format("\\fB{}\\fR", escaped(names_of(option)));
    if (!is_flag(option)) {
        head += fmt::format(" \\fI{}\\fR", escaped(type_of(option)));
    }
    return fmt::format(".TP\n{}\n{}\n", head, escaped(details_of(option)));
}

/// Required options are part of how a verb is called.
std::string call_of(const std::string& name, const CLI::App& verb) {
    std::string call = fmt::format("\\fBfinch {}\\fR", escaped(name));
    for (const CLI::Option* argument : shown_options(verb, true)) {
        const std::string type = escaped(type_of(*argument));
        call += argument->get_required() ? fmt::format(" \\fI{}\\fR", type) : fmt::format(" [\\fI{}\\fR]", type);
    }
    for (const CLI::Option* option : shown_options(verb, false)) {
        if (option->get_required()) {
            call += fmt::format(" \\fB{}\\fR \\fI{}\\fR", escaped(option->get_name()), escaped(type_of(*option)));
        }
    }
    return call + " [options]";
}

std::string verb_section(const std::string& name, const CLI::App& verb) {
    std::string text = fmt::format(".SS {}\n{}\n", call_of(name, verb), escaped(verb.get_description()));
    for (const CLI::Option* argument : shown_options(verb, true)) {
        text += fmt::format(".TP\n\\fI{}\\fR\n{}\n", escaped(type_of(*argument)), escaped(details_of(*argument)));
    }
    for (const CLI::Option* option : shown_options(verb, false)) {
        if (option != verb.get_help_ptr()) {  // the program's own section has it
            text += option_entry(*option);
        }
    }
    return text;
}

}  // namespace

std::string man_page(const CLI::App& app) {
    std::string verbs;
    for_each_verb(app, "", [&](const std::string& name, const CLI::App& verb) { verbs += verb_section(name, verb); });
    std::string options;
    for (const CLI::Option* option : shown_options(app, false)) {
        options += option_entry(*option);
    }
    std::string description = app.get_description();
    std::string title = description.substr(description.find(' ') + 1);
    title.pop_back();
    return fmt::format(
        ".TH FINCH 1 \"\" \"Finch {}\" \"User Commands\"\n"
        ".SH NAME\nfinch \\- {}\n"
        ".SH SYNOPSIS\n\\fBfinch\\fR \\fIVERB\\fR [\\fIarguments\\fR] [\\fIoptions\\fR]\n"
        ".SH DESCRIPTION\n{}\n"
        ".SH OPTIONS\n{}"
        ".SH VERBS\n{}"
        ".SH EXIT STATUS\n{}\n"
        ".SH FILES\n"
        ".TP\n\\fIshare/finch/jobs/evolve.sbatch\\fR\nthe job script, for sbatch(1)\n"
        ".TP\n\\fIshare/finch/configs\\fR\nconfigurations to start from\n"
        ".TP\n\\fIshare/doc/finch\\fR\nthe documentation\n"
        ".PP\nThey are in the folder that the program is installed in.\n"
        ".SH SEE ALSO\n\\fBsbatch\\fR(1), \\fBsrun\\fR(1), \\fBmpirun\\fR(1), \\fBh5dump\\fR(1)\n",
        escaped(program_version()), escaped(title), escaped(description), options, verbs, escaped(app.get_footer()));
}

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
