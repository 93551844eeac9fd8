#include "finch/base/enum_words.hpp"
#include "finch/base/format.hpp"
#include "finch/base/words.hpp"
#include "finch/config/synonyms.hpp"
#include "finch/search/individual.hpp"

#include "hints.hpp"
#include "search_section.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

/// Reads the genes of search.space.
namespace finch::config {
namespace {

constexpr std::size_t most_genes = 500;  // a row of population.h5 has no room for more columns

void check_name(const Tree& gene, const std::string& name, const std::string& path) {
    static const std::string letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
    if (name.size() > 64 || name.find_first_not_of(letters) != std::string::npos ||
        (name[0] >= '0' && name[0] <= '9')) {
        fail(gene, path, "is no name for a gene; accepted: at most 64 letters, digits and '_', no digit first");
    }
    const auto& reserved = search::reserved_columns();
    if (std::find(reserved.begin(), reserved.end(), name) != reserved.end()) {
        fail(gene, path,
             fmt::format("is a column of every individual's row, so no gene can have this name; accepted: "
                         "any other, such as {0}_gene (and ${0}_gene where it stands)",
                         name));
    }
}

/// The accepted forms of a gene, for messages. The generated text of accepts() is less clear.
constexpr const char* shapes =
    "{real: [low, high]}, {real: [low, high], scale: log}, {int: [low, high]}, {choice: [a, b, ...]} or {value: a}, "
    "which may stand beside one of the others";

void require_logarithm(const search::Scale scale, bool is_positive, const Tree& bounds, const std::string& path) {
    if (scale == search::Scale::log && !is_positive) {
        fail(bounds, path,
             fmt::format("the low bound {} has no logarithm; accepted with scale log: a low bound above 0",
                         bounds.items[0].text));
    }
}

search::Scale read_scale(const Tree& tree) {
    const Tree* const scale = tree.find("scale");
    return scale != nullptr ? enumerator<search::Scale>(scale->text).value() : search::Scale::linear;
}

double read_real_step(const Tree& step, const search::RealGene& gene, const std::string& path) {
    constexpr double most_steps = 1e9;
    constexpr double least_share = 1e-12;  // of the bounds: 15 digits distinguish values
    const double value = real_number(step).value();
    const double range = gene.high - gene.low;
    const double least = std::max(range / most_steps, least_share * std::max(std::abs(gene.low), std::abs(gene.high)));
    if (gene.scale == search::Scale::log) {
        fail(step, path, "cannot be combined with scale log, whose values differ by factors; accepted: one of the two");
    }
    if (!(least <= value && value <= range)) {
        fail(step, path,
             fmt::format("{} is too {}; accepted: from {:.3g} to high - low, which is {}", step.text,
                         value < least ? "small" : "large", least, range));
    }
    return value;
}

search::RealGene read_real(const Tree& tree, const std::string& path) {
    const Tree& bounds = tree["real"];
    search::RealGene gene{real_number(bounds.items[0]).value(), real_number(bounds.items[1]).value(), read_scale(tree)};
    if (!(gene.low < gene.high)) {
        const bool is_reversed = gene.low > gene.high;
        fail(bounds, path + ".real",
             fmt::format("[{}, {}] is {}; accepted: [low, high] with low < high{}", bounds.items[0].text,
                         bounds.items[1].text, is_reversed ? "reversed" : "empty: there is one value",
                         is_reversed ? "" : fmt::format(", or {{value: {}}}", bounds.items[0].text)));
    }
    require_logarithm(gene.scale, gene.low > 0, bounds, path + ".real");
    if (const Tree* const step = tree.find("step")) {
        gene.step = read_real_step(*step, gene, path + ".step");
    }
    return gene;
}

search::IntGene read_int(const Tree& tree, const std::string& path) {
    const Tree& bounds = tree["int"];
    search::IntGene gene{whole_number(bounds.items[0]).value(), whole_number(bounds.items[1]).value(),
                         read_scale(tree)};
    if (gene.low > gene.high) {
        fail(bounds, path + ".int",
             fmt::format("[{}, {}] is reversed; accepted: [low, high] with low <= high", gene.low, gene.high));
    }
    require_logarithm(gene.scale, gene.low > 0, bounds, path + ".int");
    if (const Tree* const step = tree.find("step")) {
        const std::int64_t most = std::max<std::int64_t>(1, gene.high - gene.low);
        gene.step = whole_number(*step).value_or(0);
        if (!(1 <= gene.step && gene.step <= most)) {
            fail(*step, path + ".step",
                 fmt::format("{} is no step of whole numbers from {} to {}; accepted: a whole number from 1 to {}",
                             step->text, gene.low, gene.high, most));
        }
    }
    return gene;
}

search::ChoiceGene read_choice(const Tree& tree, const std::string& path) {
    search::ChoiceGene gene;
    for (const Tree& option : tree["choice"].items) {
        if (std::find(gene.options.begin(), gene.options.end(), option.text) != gene.options.end()) {
            fail(option, path + ".choice",
                 fmt::format("'{}' stands there twice; accepted: different values", option.text));
        }
        gene.options.push_back(option.text);
    }
    const Tree* const ordered = tree.find("ordered");
    gene.ordered = ordered != nullptr && flag(*ordered).value();
    return gene;
}

constexpr std::int64_t exact = std::int64_t{1} << 53;  // a genome holds whole numbers up to it exactly

bool are_digits(const std::string& text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

/// Returns the significant digits of a decimal number: no sign, point, exponent, leading or trailing zeros.
std::string significant_digits(std::string text) {
    text.resize(std::min(text.size(), text.find_first_of("eE")));
    std::erase_if(text, [](char letter) { return letter < '0' || letter > '9'; });
    text.erase(0, text.find_first_not_of('0'));
    text.erase(text.find_last_not_of('0') + 1);
    return text;
}

/// True if `text` is a JSON number (RFC 8259, section 6) and `number`, the double read from it, keeps its digits. A
/// version such as 3.10 is not a JSON number here.
bool is_json_number(const std::string& text, double number) {
    const std::size_t first = text.starts_with('-') ? 1 : 0;
    const std::string mantissa = text.substr(first, text.find_first_of("eE") - first);
    const std::size_t point = mantissa.find('.');
    const std::string whole = mantissa.substr(0, point);
    const std::string fraction = point == std::string::npos ? "0" : mantissa.substr(point + 1);
    return are_digits(whole) && (whole == "0" || whole.front() != '0') && are_digits(fraction) &&
           (fraction == "0" || fraction.back() != '0') &&
           significant_digits(text) == significant_digits(fmt::format("{}", number));
}

/// Returns a gene that has one value and no range or options. Programs receive the gene's text as written: a number
/// (0.5, 1.0, 12, 1e-5) or a text (3.10, 007).
search::Gene read_value(const std::string& name, const Tree& value, const std::string& path) {
    if (is_beyond_numbers(value)) {
        fail(value, path,
             fmt::format("{} is outside the range of a double; accepted: 0, ±5e-324 to ±1.8e308, or a text in quotes",
                         value.text));
    }
    const auto whole = whole_number(value);
    const auto number = real_number(value);
    const std::string text = number ? fmt::format("{}", *number) : "";
    if (whole && -exact <= *whole && *whole <= exact && std::to_string(*whole) == value.text) {
        return {name, search::IntGene{*whole, *whole}};
    }
    if (number && text == value.text) {
        return {name, search::RealGene{*number, *number}};
    }
    const bool is_number =
        (whole && std::to_string(*whole) == value.text) || (number && is_json_number(value.text, *number));
    return {name, search::ChoiceGene{{value.text}, false, is_number}};
}

/// Returns a gene with a range or options that is fixed at one value. Programs receive the value as if the search had
/// chosen it.
search::Gene read_frozen(const std::string& name, const search::Gene& searched, const Tree& value,
                         const std::string& path) {
    const auto known = search::value_in(searched, value.text);
    const auto require_known = [&] {
        if (!known) {
            fail(value, path,
                 fmt::format("{} is no value of the gene; accepted: {}, or another gene in its place", value.text,
                             search::accepted_values(searched)));
        }
    };
    if (const auto* const choice = std::get_if<search::ChoiceGene>(&searched.kind)) {
        if (!known) {
            fail(value, path,
                 fmt::format("'{}' is no option of the choice{}; accepted: {}", value.text,
                             did_you_mean(value.text, choice->options), search::accepted_values(searched)));
        }
        return {name, search::ChoiceGene{{value.text}}};
    }
    if (std::holds_alternative<search::IntGene>(searched.kind)) {
        const auto whole = whole_number(value);
        if (!(whole && -exact <= *whole && *whole <= exact)) {
            fail(value, path,
                 fmt::format("'{}' is no whole number up to 2^53 = {}; accepted: {}", value.text, exact,
                             search::accepted_values(searched)));
        }
        require_known();
        return {name, search::IntGene{*whole, *whole}};
    }
    if (!real_number(value)) {
        fail(value, path,
             fmt::format("'{}' is no number; accepted: {}", value.text, search::accepted_values(searched)));
    }
    require_known();
    return {name, search::RealGene{*known, *known}};
}

/// Throws ConfigError if a gene has the key `key` but none of the keys `kinds`.
void check_beside(const Tree& tree, const std::string& path, const char* key, std::initializer_list<const char*> kinds,
                  const char* whose) {
    const Tree* const given = tree.find(key);
    const auto stands = [&](const char* kind) { return tree.find(kind) != nullptr; };
    if (given != nullptr && std::none_of(kinds.begin(), kinds.end(), stands)) {
        fail(*given, path_of(path, key), fmt::format("is for {} alone; accepted: {}", whose, shapes));
    }
}

constexpr std::array<const char*, 3> searched_kinds{"real", "int", "choice"};

search::Gene read_gene(const std::string& name, const Tree& tree) {
    const std::string path = path_of("search.space", name);
    check_name(tree, name, path);
    const auto kinds = std::count_if(searched_kinds.begin(), searched_kinds.end(),
                                     [&](const char* kind) { return tree.find(kind) != nullptr; });
    const Tree* const value = tree.find("value");
    if (kinds > 1 || (kinds == 0 && value == nullptr)) {
        fail(tree, path,
             fmt::format("has {} of the keys {}; accepted: {}", kinds,
                         kinds == 0 ? "real, int, choice and value" : "real, int and choice", shapes));
    }
    check_beside(tree, path, "scale", {"real", "int"}, "real and int genes");
    check_beside(tree, path, "step", {"real", "int"}, "real and int genes");
    check_beside(tree, path, "ordered", {"choice"}, "choices");
    if (kinds == 0) {
        return read_value(name, *value, path);
    }
    search::Gene gene{name, search::ChoiceGene{}};
    if (tree.find("choice") != nullptr) {
        gene.kind = read_choice(tree, path);
    } else if (tree.find("int") != nullptr) {
        gene.kind = read_int(tree, path);
    } else {
        gene.kind = read_real(tree, path);
    }
    return value != nullptr ? read_frozen(name, gene, *value, path + ".value") : gene;
}

/// Returns the index of the gene that a condition names.
std::size_t index_of(const search::Space& space, const std::string& name, const Tree& at, const std::string& path) {
    if (const int index = space.index_of(name); index >= 0) {
        return static_cast<std::size_t>(index);
    }
    std::vector<std::string> known;
    for (const search::Gene& gene : space.genes) {
        known.push_back(gene.name);
    }
    fail(at, path, fmt::format("is no gene{}; accepted: {}", did_you_mean(name, known), join(known)));
}

/// Reads one condition `NAME: [values]` of a gene's `when`; `asked` has the values. If the gene NAME is fixed, any
/// values are accepted, so --set can fix any gene.
search::Condition read_condition(const search::Space& space, const std::string& name, const Tree& asked,
                                 const std::string& path) {
    search::Condition condition{index_of(space, name, asked, path)};
    const search::Gene& gene = space.genes[condition.gene];
    const bool is_fixed = search::is_fixed(gene);
    if (!is_fixed && !search::value_count(gene)) {
        fail(asked, path,
             "is a real gene without a step, which hardly ever has one of some values; accepted: int genes, choices, "
             "and "
             "real genes with a step");
    }
    const std::vector<Tree> texts = asked.kind == Tree::Kind::list ? asked.items : std::vector{asked};
    for (const Tree& text : texts) {
        const auto value = search::value_in(gene, text.text);
        if (value) {
            condition.values.push_back(*value);
        } else if (!is_fixed) {
            const auto* const choice = std::get_if<search::ChoiceGene>(&gene.kind);
            fail(text, path,
                 fmt::format("'{}' is no value of {}{}; accepted: {}", text.text, name,
                             choice != nullptr ? did_you_mean(text.text, choice->options) : "",
                             search::accepted_values(gene)));
        }
    }
    return condition;
}

/// Returns the names of a cycle of conditions reachable from `gene`, "a → b → a"; empty if there is none. `trail` lists
/// the genes visited before `gene`.
std::string cycle_from(const search::Space& space, std::size_t gene, std::vector<std::size_t> trail,
                       std::vector<bool>& seen) {
    const auto before = std::find(trail.begin(), trail.end(), gene);
    if (before != trail.end()) {
        std::vector<std::string> names;
        std::for_each(before, trail.end(), [&](std::size_t one) { names.push_back(space.genes[one].name); });
        names.push_back(space.genes[gene].name);
        return join(names, " → ");
    }
    trail.push_back(gene);
    if (seen[gene]) {
        return "";
    }
    seen[gene] = true;
    for (const search::Condition& condition : space.genes[gene].when) {
        std::string cycle = cycle_from(space, condition.gene, trail, seen);
        if (!cycle.empty()) {
            return cycle;
        }
    }
    return "";
}

void read_conditions(search::Space& space, const Tree& written) {
    for (search::Gene& gene : space.genes) {
        const Tree* const when = written[gene.name].find("when");
        for (std::size_t i = 0; when != nullptr && i < when->items.size(); ++i) {
            const std::string path = fmt::format("search.space.{}.when.{}", gene.name, when->keys[i]);
            gene.when.push_back(read_condition(space, when->keys[i], when->items[i], path));
        }
    }
    std::vector<bool> seen(space.size());
    for (std::size_t i = 0; i < space.size(); ++i) {
        if (const std::string cycle = cycle_from(space, i, {}, seen); !cycle.empty()) {
            const std::string& name = space.genes[i].name;
            fail(*written[name].find("when"), fmt::format("search.space.{}.when", name),
                 fmt::format("cyclic condition: {}; accepted: conditions without a cycle", cycle));
        }
    }
}

}  // namespace

void spell_out_fixed_genes(Tree& configuration) {
    Tree* const search = configuration.find("search");
    Tree* const space = search != nullptr ? search->find("space") : nullptr;
    if (space == nullptr || space->kind != Tree::Kind::map) {
        return;
    }
    for (std::size_t i = 0; i < space->items.size(); ++i) {
        Tree& gene = space->items[i];
        if (const std::string meant = gene.kind == Tree::Kind::list ? meant_gene(gene) : meant_call(gene);
            !meant.empty()) {
            fail(gene, path_of("search.space", space->keys[i]),
                 fmt::format("{} is no gene{}; accepted: {}",
                             gene.kind == Tree::Kind::list ? "a list" : "'" + gene.text + "'", meant, shapes));
        }
        if (gene.kind == Tree::Kind::scalar && (gene.quoted || !gene.gene_name())) {
            std::string place = gene.place;
            gene = {.kind = Tree::Kind::map, .keys = {"value"}, .items = {std::move(gene)}, .place = std::move(place)};
        }
    }
}

void leave_frozen_values(Tree& space) {
    for (Tree& gene : space.items) {
        if (const Tree* const value = gene.find("value")) {
            Tree frozen{.kind = Tree::Kind::map, .keys = {"value"}, .items = {*value}, .place = gene.place};
            if (const Tree* const when = gene.find("when")) {
                frozen.keys.emplace_back("when");
                frozen.items.push_back(*when);
            }
            gene = std::move(frozen);
        }
    }
}

search::Space read_space(const Tree& tree) {
    if (tree.items.size() > most_genes) {
        fail(tree, "search.space", fmt::format("has {} genes; accepted: at most {}", tree.items.size(), most_genes));
    }
    search::Space space;
    for (std::size_t i = 0; i < tree.items.size(); ++i) {
        space.genes.push_back(read_gene(tree.keys[i], tree.items[i]));
    }
    read_conditions(space, tree);
    return space;
}

}  // namespace finch::config
