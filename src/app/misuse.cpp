#include "finch/app/misuse.hpp"

#include "finch/base/format.hpp"
#include "finch/base/words.hpp"
#include "finch/config/keys.hpp"
#include "finch/run/commands.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <vector>

namespace finch::app {
namespace {

/// Options of other programs that Finch does not have, and the text that a message shows instead.
struct Instead {
    std::string_view typed;  ///< separated by blanks
    std::string_view text;
};

constexpr std::array<Instead, 2> instead_of_options{
    Instead{"--resume --continue --restart --load-if-exists",
            "a run resumes by itself: leave this out; --fresh begins a new run"},
    Instead{"-n -np --np --ntasks --nproc --nproc-per-node --num-processes --workers --n-jobs -j",
            "the launcher starts the ranks: mpirun -n 4 finch ..., or srun"},
};

bool is_in(const std::string& word, std::string_view words) {
    return fmt::format(" {} ", words).find(fmt::format(" {} ", word)) != std::string::npos;
}

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

/// Returns what was probably meant by the option `word`, which `verb` does not have: "; did you mean --run?".
std::string meant_option(const CLI::App& verb, const std::string& word) {
    const std::size_t begin = std::min(word.find_first_not_of('-'), word.size());
    const std::string name = word.substr(begin, word.find('=') - begin);
    const std::vector<std::string> options = options_of(verb);
    auto meant = own_word(name, options);
    std::vector<std::string> paths = config::paths_of_key(name);
    std::erase_if(paths, [](const std::string& path) { return path.find("[]") != std::string::npos; });
    if (!meant && has_option(verb, "set") && !paths.empty()) {
        return fmt::format("; did you mean --set {}=...?", paths.front());
    }
    meant = meant ? meant : nearest_word(name, options);
    return meant ? fmt::format("; did you mean --{}?", *meant) : "";
}

/// Returns the message about `word`, which `verb` does not accept.
std::string unexpected_text(const CLI::App& verb, const std::string& word) {
    const std::vector<std::string> verbs = verbs_of(verb);
    for (const Instead& instead : instead_of_options) {
        if (is_in(word, instead.typed) && has_option(verb, "set")) {
            return fmt::format("there is no option {}; {}", word, instead.text);
        }
    }
    if (word.starts_with('-')) {
        return fmt::format("there is no option {}{}; accepted: --{}", word, meant_option(verb, word),
                           join(options_of(verb), ", --"));
    }
    if (!verbs.empty()) {
        return fmt::format("'{}' is no verb{}; accepted: {}", word, did_you_mean(word, verbs), join(verbs));
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
    if (is_in(word, "report plot dashboard")) {
        meant = fmt::format(" ({} RUN writes the report)", run::commands().report);
    } else if (extension == ".yaml" || extension == ".yml") {
        meant = fmt::format(" (did you mean 'evolve {}'?)", word);
    } else if (is_same_word(word, "version") || is_same_word(word, "help")) {
        meant = fmt::format(" (did you mean --{}?)", word);
    } else {
        meant = did_you_mean(word, verbs);
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
