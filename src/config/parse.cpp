#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/base/words.hpp"
#include "finch/config/tables.hpp"

#include "sections.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace finch::config {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t largest_file = 1 << 20;  // bytes
constexpr std::size_t most_settings = 1000;

/// `from`'s keys alone, in that order, where they are there.
Tree only(const Tree& from, const std::vector<std::string>& keys) {
    Tree result{.kind = Tree::Kind::map, .place = from.place};
    for (const std::string& key : keys) {
        if (const Tree* const value = from.find(key)) {
            result.keys.push_back(key);
            result.items.push_back(*value);
        }
    }
    return result;
}

/// What decides an individual's outcome. The path of the data does not: their fingerprint is checked.
Tree fixed_part(const Tree& all) {
    Tree fixed = only(all, {"seed", "data", "model", "training", "search"});
    Tree& search = *fixed.find("search");
    search = only(search, {"space", "objective"});
    if (Tree* const data = fixed.find("data")) {
        *data = only(*data, {"kind", "normalize", "training_samples", "validation_samples", "samples", "size"});
    }
    return fixed;
}

/// batch_size has a default only where batch_size_per_rank is not given.
void settle_batch_size(const Tree& given, Tree& all) {
    const Tree* const training = given.find("training");
    Tree& completed = *all.find("training");
    const bool per_rank = completed["batch_size_per_rank"].kind != Tree::Kind::null;
    if (per_rank && (training == nullptr || training->find("batch_size") == nullptr)) {
        Tree& batch_size = *completed.find("batch_size");
        batch_size = {.place = batch_size.place};
    }
}

/// A benchmark function needs no data, model or training: what was not given is not written either.
void leave_out_unused(const Tree& given, Tree& all) {
    std::vector<std::string> keys;
    for (const std::string& key : all.keys) {
        const bool trains = key == "data" || key == "model" || key == "training";
        if (!trains || given.find(key) != nullptr) {
            keys.push_back(key);
        }
    }
    all = only(all, keys);
}

std::vector<std::string> words_of_genes(const Tree& space) {
    std::vector<std::string> words;
    for (std::size_t i = 0; i < space.keys.size(); ++i) {
        words.push_back(fmt::format("gene search.space.{} ({})", space.keys[i], space.items[i].place));
    }
    return words;
}

void read_plain_sections(const Tree& all, Config& config) {
    const Tree& search = all["search"];
    config.name = all["name"].text;
    config.seed = static_cast<std::uint64_t>(whole_of(all["seed"]));
    config.objective = read_objective(search["objective"]);
    config.propagator = read_propagator(search["propagator"]);
    config.exchange = read_exchange(search["exchange"]);
    config.budget = read_budget(search["budget"]);
    config.workers = read_workers(all["workers"]);
    config.checkpoint = read_checkpoint(all["checkpoint"]);
    config.log = read_log(all["log"]);
}

search::Space space_of(const FunctionObjective& objective, const Tree& written) {
    if (!written.items.empty()) {
        fail(written, "search.space",
             fmt::format("stands beside the function {}, which brings its own genes x0 to x{}; remove one of the two",
                         objective.function, objective.dimensions - 1));
    }
    return search::function_space(search::find_function(objective.function), objective.dimensions);
}

}  // namespace

Config parse(const std::string& yaml, const std::string& source, const std::vector<std::string>& settings) {
    Tree given = parse_yaml(yaml, source);
    if (given.kind == Tree::Kind::null) {
        throw ConfigError(fmt::format("{}: is empty; `finch config` prints every key with its default", source));
    }
    if (settings.size() > most_settings) {
        throw ConfigError(fmt::format("{} settings by --set; accepted: up to {}", settings.size(), most_settings));
    }
    for (const std::string& setting : settings) {
        apply_setting(given, setting);
    }
    Tree all = complete(configuration(), given, "");
    settle_batch_size(given, all);
    Config config;
    read_plain_sections(all, config);
    const Tree& written = all["search"]["space"];
    Config::Sections sections{all["data"], all["model"], all["training"], words_of_genes(written)};
    if (const auto* const function = std::get_if<FunctionObjective>(&config.objective)) {
        config.space = space_of(*function, written);
        check_uses(sections, {}, written);
        leave_out_unused(given, all);
    } else {
        config.space = read_space(written);
        check_uses(sections, config.space, written);
        check_extremes(sections, config.space);
    }
    config.sections_ = std::make_shared<const Config::Sections>(std::move(sections));
    config.fixed_text_ = emit(fixed_part(all));
    config.text_ = emit(all);
    return config;
}

Config load(const fs::path& path, const std::vector<std::string>& settings) {
    if (!fs::is_regular_file(path)) {
        std::vector<std::string> beside;
        std::error_code ignored;
        const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
        for (const auto& entry : fs::directory_iterator(folder, ignored)) {
            if (entry.path().extension() == ".yaml" || entry.path().extension() == ".yml") {
                beside.push_back(entry.path().filename().string());
            }
        }
        std::sort(beside.begin(), beside.end());
        const auto nearest = nearest_word(path.filename().string(), beside);
        throw ConfigError(fmt::format("{}: {}{}{}", path.string(),
                                      fs::exists(path) ? "is no file" : "there is no such file",
                                      nearest ? fmt::format("; did you mean {}?", (folder / *nearest).string()) : "",
                                      beside.empty() ? "" : fmt::format("; beside it: {}", join(beside))));
    }
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    if (fs::file_size(path) > largest_file || !file || (fs::file_size(path) > 0 && !(text << file.rdbuf()))) {
        throw ConfigError(fmt::format("{}: cannot be read, or is larger than 1 MiB", path.string()));
    }
    return parse(text.str(), path.string(), settings);
}

}  // namespace finch::config
