#include "finch/app/misuse.hpp"

#include "finch/base/format.hpp"
#include "finch/base/words.hpp"
#include "finch/config/keys.hpp"
#include "finch/config/synonyms.hpp"
#include "finch/run/commands.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <vector>

namespace finch::app {
namespace {

std::vector<std::string> verbs_of(const CLI::App& app) {
    std::vector<std::string> verbs;
    for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
        verbs.push_back(verb->get_name());
    }
    return verbs;
}

/// Returns the long names of the options of `verb`, without "--".
std::vector<std::string> options_of(const CLI::App& verb) {
    std::vector<std::string> names;
    for (const CLI::Option* option : verb.get_options()) {
        if (!option->get_lnames().empty() && !option->get_group().empty()) {
            names.push_back(option->get_lnames().front());
        }
    }
    return names;
}

/// Returns the parsed verb. Sets `name` to its full name: "data generate ".
const CLI::App& innermost(const CLI::App& app, std::string& name) {
    const CLI::App* verb = &app;
    while (!verb->get_subcommands().empty()) {
        verb = verb->get_subcommands().front();
        name += verb->get_name() + " ";
    }
    return *verb;
}

bool has_option(const CLI::App& verb, const std::string& name) {
    const std::vector<std::string> options = options_of(verb);
    return std::find(options.begin(), options.end(), name) != options.end();
}

/// Returns a hint for the option `word`, which `verb` does not have, and the options that it has.
std::string no_option_text(const CLI::App& verb, const std::string& word) {
    const std::size_t begin = std::min(word.find_first_not_of('-'), word.size());
    const std::string name = word.substr(begin, word.find('=') - begin);
    const std::vector<std::string> options = options_of(verb);
    const std::string accepted = "; accepted: --" + join(options, ", --");
    const config::Synonym* const synonym = config::synonym_of(name, options);
    if (synonym != nullptr && !synonym->shown.empty()) {
        return "; " + std::string(synonym->shown);
    }
    if (const auto own = config::own_word(name, options)) {
        return fmt::format("; did you mean --{}?{}", *own, accepted);
    }
    std::vector<std::string> paths = config::paths_of_key(name);
    std::erase_if(paths, [](const std::string& path) { return path.find("[]") != std::string::npos; });
    if (has_option(verb, "set") && !paths.empty()) {
        return fmt::format("; did you mean --set {}=...?{}", paths.front(), accepted);
    }
    const auto nearest = nearest_word(name, options);
    return (nearest ? fmt::format("; did you mean --{}?", *nearest) : "") + accepted;
}

/// Returns the message about `word`, which `verb` does not accept.
std::string unexpected_text(const CLI::App& verb, const std::string& word) {
    const std::vector<std::string> verbs = verbs_of(verb);
    if (word.starts_with('-')) {
        return fmt::format("there is no option {}{}", word, no_option_text(verb, word));
    }
    if (!verbs.empty()) {
        return fmt::format("'{}' is no verb{}; accepted: {}", word, config::did_you_mean(word, verbs), join(verbs));
    }
    const bool is_setting = word.find('=') != std::string::npos && has_option(verb, "set");
    return fmt::format("'{}' is one argument too many{}", word,
                       is_setting ? fmt::format("; did you mean --set {}?", shell_argument(word)) : "");
}

/// Returns the arguments that no verb took.
std::vector<std::string> unexpected(const CLI::App& app) {
    std::vector<std::string> words = app.remaining(true);
    std::erase(words, "--");
    return words;
}

}  // namespace

std::string verb_problem(const CLI::App& app, const std::string& word) {
    const std::vector<std::string> verbs = verbs_of(app);
    if (word.starts_with('-') || std::find(verbs.begin(), verbs.end(), word) != verbs.end()) {
        return "";
    }
    const std::string extension = std::filesystem::path(word).extension().string();
    std::string meant;
    if (word == "report" || word == "plot" || word == "dashboard") {
        meant = fmt::format(" ({} RUN writes the report)", run::commands().report);
    } else if (extension == ".yaml" || extension == ".yml") {
        meant = fmt::format(" (did you mean 'evolve {}'?)", word);
    } else if (config::is_same_word(word, "version") || config::is_same_word(word, "help")) {
        meant = fmt::format(" (did you mean --{}?)", word);
    } else {
        meant = config::did_you_mean(word, verbs);
    }
    return fmt::format("{}: there is no such verb{}; accepted: {}", word, meant, join(verbs));
}

std::string misuse_text(const CLI::App& app, const CLI::ParseError& error) {
    std::string name;
    const CLI::App& verb = innermost(app, name);
    const std::string place = name.empty() ? "" : name.substr(0, name.size() - 1) + ": ";
    const std::vector<std::string> words = unexpected(app);
    if (!words.empty()) {
        const auto option =
            std::find_if(words.begin(), words.end(), [](const std::string& word) { return word.starts_with('-'); });
        return place + unexpected_text(verb, option == words.end() ? words.front() : *option);
    }
    if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr && !verbs_of(verb).empty()) {
        return fmt::format("{}a verb is missing; accepted: {}", place, join(verbs_of(verb)));
    }
    return fmt::format("{}{}; finch {}--help prints the options", place, error.what(), name);
}

}  // namespace finch::app
