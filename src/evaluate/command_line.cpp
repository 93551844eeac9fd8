#include "finch/evaluate/command_line.hpp"

#include "finch/base/bytes.hpp"
#include "finch/base/error.hpp"
#include "finch/base/files.hpp"
#include "finch/base/format.hpp"
#include "finch/base/parsed.hpp"
#include "finch/base/words.hpp"
#include "finch/process/program_file.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>
#include <regex>
#include <string_view>
#include <unistd.h>
#include <utility>

namespace finch::evaluate {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t largest_template = 16 << 20;  // bytes

std::vector<std::string> names_of(const search::Space& space) {
    std::vector<std::string> names(config::names_of_evaluation.begin(), config::names_of_evaluation.end());
    names.insert(names.end(), config::names_of_worker.begin(), config::names_of_worker.end());
    for (const search::Gene& gene : space.genes) {
        names.push_back(gene.name);
    }
    return names;
}

/// True if `argument` names a file in `here` that an evaluation's own folder does not contain.
bool is_file_here(const std::string& argument, const config::CommandObjective& objective, const fs::path& here,
                  bool is_program) {
    const bool is_searched = is_program && argument.find('/') == std::string::npos;  // in PATH
    std::error_code none;
    return !is_searched && !argument.empty() && argument.front() != '-' && !objective.files.contains(argument) &&
           !fs::path(argument).is_absolute() && fs::is_regular_file(here / argument, none);
}

bool may_be_written(const fs::path& file) {
    static constexpr std::array<std::string_view, 16> only_read{".py",   ".sh",  ".R",   ".r",    ".jl",  ".pl",
                                                                ".lua",  ".m",   ".js",  ".yaml", ".yml", ".json",
                                                                ".toml", ".ini", ".cfg", ".xml"};
    const bool is_read = std::find(only_read.begin(), only_read.end(), file.extension().string()) != only_read.end();
    return !is_read && !process::is_executable(file) && ::access(file.c_str(), W_OK) == 0;
}

/// Returns what other languages replace by the value of `gene` in `text`, where "\v" is its value; empty if there is
/// nothing, or if its value is there without "$" before it.
std::string foreign_placeholder(const std::string& text, const std::string& gene) {
    if (const std::size_t at = text.find('\v'); at != std::string::npos) {
        return at > 0 && text[at - 1] == '$' ? fmt::format("${{{}}}", gene) : "";
    }
    if (text.find(gene) == std::string::npos) {
        return "";
    }
    const std::regex others(fmt::format(R"(\{{ ?{0} ?[}}|]|\{{{0}:\.|%\({0}\)|@{0}@|<{0}>|\${0}\b)", gene));
    std::smatch found;
    return std::regex_search(text, found, others) ? found.str() : "";
}

std::string json_text(const std::string& text) {
    rapidjson::StringBuffer buffer;
    rapidjson::Writer(buffer).String(text.data(), static_cast<rapidjson::SizeType>(text.size()));
    return {buffer.GetString(), buffer.GetSize()};
}

/// Returns a gene's value as programs get it: a constant with an exponent (1e-5) like a number of the search (0.00001).
std::string text_of(const search::Gene& gene, double value) {
    const std::string text = search::value_text(gene, value);
    const auto* const choice = std::get_if<search::ChoiceGene>(&gene.kind);
    const bool has_exponent = choice != nullptr && choice->is_number && text.find_first_of("eE") != std::string::npos;
    return has_exponent ? number_text(parsed<double>(text).value()) : text;
}

std::string json_value(const search::Gene& gene, double value) {
    const std::string text = text_of(gene, value);
    const auto* const choice = std::get_if<search::ChoiceGene>(&gene.kind);
    return choice != nullptr && !choice->is_number ? json_text(text) : text;
}

}  // namespace

TemplateTexts read_templates(const config::CommandObjective& objective) {
    TemplateTexts texts;
    for (const auto& [name, path] : objective.files) {
        auto text = read_text(path, largest_template);
        if (!text) {
            check_storage_of(path);
            throw ConfigError(
                fmt::format("search.objective.files.{}: {} cannot be read, or is no file of up to 16 MiB{}", name, path,
                            path_hint(path)));
        }
        texts.emplace(name, std::move(*text));
    }
    return texts;
}

std::string fingerprint(const TemplateTexts& texts) {
    std::string found;
    for (const auto& [name, text] : texts) {
        found += fmt::format("{}{} {:08x}", found.empty() ? "" : ", ", name,
                             crc32c(std::as_bytes(std::span(text.data(), text.size()))));
    }
    return found;
}

CommandLine::CommandLine(const config::CommandObjective& objective, const search::Space& space, std::uint64_t seed,
                         const TemplateTexts& texts, fs::path here)
    : objective_(objective), space_(space), seed_(seed), here_(std::move(here)) {
    using Braces = config::Template::Braces;
    const std::vector<std::string> names = names_of(space);
    try {
        if (objective.shell) {
            arguments_.emplace_back(objective.command, names, Braces::doubled);
        } else {
            for (const std::string& argument : config::split_command(objective.command)) {
                const config::Template written(argument, names, Braces::doubled);
                const bool is_program = arguments_.empty();
                const std::string word = written.is_constant() ? written.render({}) : "";
                if (is_file_here(word, objective, here_, is_program)) {
                    const fs::path file = (here_ / word).lexically_normal();
                    shared_files_.push_back({word, file, !is_program && may_be_written(file)});
                    arguments_.push_back(config::Template::plain(file.string()));
                } else {
                    arguments_.push_back(written);
                }
            }
        }
    } catch (const ConfigError& error) {
        throw ConfigError(fmt::format("search.objective.command: {}", error.what()));
    }
    for (const auto& [name, text] : texts) {
        try {
            files_.emplace(name, config::Template(text, names, Braces::literal));
        } catch (const ConfigError& error) {
            throw ConfigError(fmt::format("{}: {}", objective.files.at(name), error.what()));
        }
    }
}

std::map<std::string, std::string> CommandLine::values(const search::Individual& individual, const Paths& paths) const {
    std::map<std::string, std::string> values{{"id", to_text(individual.id)},
                                              {"seed", std::to_string(program_seed(seed_, individual.id))},
                                              {"run", paths.run.string()},
                                              {"folder", paths.folder.string()},
                                              {"here", here_.string()},
                                              {"hosts", paths.hosts},
                                              {"hostfile", paths.hostfile.string()}};
    for (std::size_t i = 0; i < space_.size(); ++i) {
        values[space_.genes[i].name] = text_of(space_.genes[i], individual.genome[i]);
    }
    return values;
}

fs::path CommandLine::Paths::parent_checkpoint() const {
    return fs::path(fmt::format("{}.{}", folder.string(), config::parent_suffix)) / config::parent_checkpoint;
}

std::vector<std::string> CommandLine::arguments(const search::Individual& individual, const Paths& paths) const {
    std::map<std::string, std::string> values = this->values(individual, paths);
    if (objective_.shell) {
        for (auto& [name, value] : values) {
            value = quoted_for_shell(value);
        }
        return {"/bin/sh", "-c", arguments_.front().render(values)};
    }
    std::vector<std::string> rendered;
    for (const config::Template& argument : arguments_) {
        rendered.push_back(argument.render(values));
    }
    return rendered;
}

std::map<std::string, std::string> CommandLine::variables(const search::Individual& individual,
                                                          const Paths& paths) const {
    std::map<std::string, std::string> variables{
        {"FINCH_ID", to_text(individual.id)}, {"FINCH_SEED", std::to_string(program_seed(seed_, individual.id))},
        {"FINCH_RUN", paths.run.string()},    {"FINCH_FOLDER", paths.folder.string()},
        {"FINCH_HOSTS", paths.hosts},         {"FINCH_CHECKPOINT_DIR", paths.checkpoints().string()}};
    if (paths.resumes) {
        variables["FINCH_RESUME"] = "1";
    }
    if (individual.is_heir()) {
        variables["FINCH_PARENT_CHECKPOINT_DIR"] = paths.parent_checkpoint().string();
        variables["FINCH_PARENT_EPOCH"] = std::to_string(individual.inherited_epochs);
    }
    const std::vector<bool> active = search::active_genes(space_, individual.genome);
    for (std::size_t i = 0; i < space_.size(); ++i) {
        if (active[i]) {
            variables["FINCH_GENE_" + space_.genes[i].name] = text_of(space_.genes[i], individual.genome[i]);
        }
    }
    return variables;
}

std::string CommandLine::json(const search::Individual& individual, const Paths& paths) const {
    const std::vector<bool> active = search::active_genes(space_, individual.genome);
    std::string genes;
    for (std::size_t i = 0; i < space_.size(); ++i) {
        if (active[i]) {
            genes += fmt::format("{}{}: {}", genes.empty() ? "" : ", ", json_text(space_.genes[i].name),
                                 json_value(space_.genes[i], individual.genome[i]));
        }
    }
    return fmt::format(
        "{{\"id\": \"{}\", \"seed\": {}, \"folder\": {}, \"checkpoint_dir\": {}, \"resume\": {}, \"genes\": {{{}}}}}\n",
        to_text(individual.id), program_seed(seed_, individual.id), json_text(paths.folder.string()),
        json_text(paths.checkpoints().string()), paths.resumes, genes);
}

std::map<std::string, std::string> CommandLine::files(const search::Individual& individual, const Paths& paths) const {
    const std::map<std::string, std::string> values = this->values(individual, paths);
    std::map<std::string, std::string> rendered;
    for (const auto& [name, text] : files_) {
        rendered.emplace(name, text.render(values));
    }
    return rendered;
}

bool CommandLine::uses(const std::string& name) const {
    const auto has = [&name](const config::Template& text) { return text.uses(name); };
    return std::any_of(arguments_.begin(), arguments_.end(), has) ||
           std::any_of(files_.begin(), files_.end(), [&](const auto& file) { return has(file.second); });
}

std::vector<std::string> CommandLine::foreign_placeholders() const {
    std::vector<std::string> warnings;
    std::map<std::string, std::string> values;
    for (const std::string& name : names_of(space_)) {
        values[name] = "";
    }
    const auto look = [&](const std::string& place, const config::Template& text, const std::string& gene) {
        const std::string found = foreign_placeholder(text.render(values), gene);
        // A program that gets the gene in another way may have a variable $lr or a tag <lr>.
        const bool may_be_own = found.starts_with('<') || found == "$" + gene;
        if (!found.empty() && !(may_be_own && uses(gene))) {
            warnings.push_back(
                fmt::format("{}: Finch does not replace '{}' by the gene's value alone; write {{{}}}, in single "
                            "braces and without $",
                            place, found, gene));
        }
    };
    for (const search::Gene& gene : space_.genes) {
        values[gene.name] = "\v";
        for (const config::Template& argument : arguments_) {
            look("search.objective.command", argument, gene.name);
        }
        for (const auto& [name, text] : files_) {
            look(objective_.files.at(name), text, gene.name);
        }
        values[gene.name] = "";
    }
    return warnings;
}

std::string CommandLine::shell_word() const {
    return objective_.shell ? "" : config::shell_word(objective_.command);
}

std::string CommandLine::absent_script() const {
    static constexpr std::array<std::string_view, 8> scripts{".py", ".sh", ".R", ".r", ".jl", ".pl", ".lua", ".js"};
    for (std::size_t i = 1; i < arguments_.size(); ++i) {
        const std::string word = arguments_[i].is_constant() ? arguments_[i].render({}) : "";
        const bool is_script = std::find(scripts.begin(), scripts.end(), fs::path(word).extension()) != scripts.end();
        std::error_code none;
        if ((is_script || word.starts_with("~/")) && !word.starts_with('-') && !objective_.files.contains(word) &&
            !fs::exists(here_ / word, none)) {
            return word;
        }
    }
    return "";
}

std::string CommandLine::program() const {
    return objective_.shell || !arguments_.front().is_constant() ? "" : arguments_.front().render({});
}

namespace {

/// Returns a hint for a name that no program in `path` has: a file here, or a usual program with a similar name.
std::string program_hint(const std::string& name, const std::string& path) {
    std::error_code none;
    if (fs::is_regular_file(name, none)) {
        return fmt::format(" (did you mean ./{}?)", name);
    }
    std::vector<std::string> usual{"python3", "python", "Rscript", "julia", "bash", "mpirun", "srun", "torchrun"};
    std::erase_if(usual, [&](const std::string& one) { return process::program_file(one, path).empty(); });
    return did_you_mean(name, usual);
}

}  // namespace

void check_program(const std::string& program) {
    if (program.empty()) {
        return;
    }
    const auto refuse = [](const std::string& why) { throw ConfigError("search.objective.command: " + why); };
    const char* const variable = std::getenv("PATH");  // NOLINT: one thread
    const std::string path = variable == nullptr ? "/usr/bin:/bin" : variable;
    const fs::path file = process::program_file(program, path);
    if (file.empty() && program.find('/') != std::string::npos) {
        refuse(program + " is no program that can be started" + path_hint(program));
    }
    if (file.empty()) {
        const fs::path found = process::program_file(program, path, fs::current_path());
        refuse(found.empty() ? fmt::format("there is no program '{}' in PATH{}", program, program_hint(program, path))
                             : fmt::format("'{}' is found by a relative entry of PATH alone, and programs start in a "
                                           "folder of their own; accepted: {} in PATH",
                                           program, fs::canonical(found.parent_path()).string()));
    }
    const std::string line = process::script_line(file);
    const std::string interpreter = line.substr(0, line.find_first_of(" \t"));
    if (line.ends_with('\r')) {
        refuse(
            fmt::format("the first line of {} ends in \\r\\n, so that its interpreter is not found; accepted: lines "
                        "that end in \\n (sed -i 's/\\r$//')",
                        file.string()));
    }
    if (!line.empty() && !(fs::path(interpreter).is_absolute() && process::is_executable(interpreter))) {
        refuse(fmt::format("{} cannot be started: its first line names the interpreter '{}', which is no program here",
                           file.string(), interpreter));
    }
}

std::uint32_t program_seed(std::uint64_t seed, search::Id id) {
    return RandomStream(seed, Purpose::program, id.value).bits() >> 1U;
}

}  // namespace finch::evaluate
