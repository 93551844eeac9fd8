#include "finch/search/initial_design.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/base/random.hpp"
#include "finch/base/words.hpp"
#include "finch/config/synonyms.hpp"

#include "search_section.hpp"

#include <algorithm>

namespace finch::config {
namespace {

constexpr int trials = 10000;

/// Throws ConfigError if none of `trials` random genomes obeys all constraints.
void check_constraints(const Config& config, const Tree& written) {
    const auto& constraints = config.constraints;
    std::vector<bool> ever(constraints.size());
    RandomStream random(config.seed, Purpose::breeding);
    for (int trial = 0; trial < trials; ++trial) {
        const search::Genome genome = search::random_genome(config.space, random);
        const std::vector<bool> active = search::active_genes(config.space, genome);
        bool all = true;
        for (std::size_t i = 0; i < constraints.size(); ++i) {
            const bool holds = constraints[i].holds(genome, active);
            ever[i] = ever[i] || holds;
            all = all && holds;
        }
        if (all) {
            return;
        }
    }
    const auto never = static_cast<std::size_t>(std::find(ever.begin(), ever.end(), false) - ever.begin());
    if (never < ever.size()) {
        fail(written.items[never], path_of("search.constraints", never),
             fmt::format("'{}' is violated by each of {} random genomes; accepted: what some genomes obey",
                         constraints[never].text(), trials));
    }
    fail(
        written, "search.constraints",
        fmt::format("each of {} random genomes violates one of them; accepted: what some genomes obey all of", trials));
}

void read_constraints(const Tree& written, Config& config) {
    for (std::size_t i = 0; i < written.items.size(); ++i) {
        try {
            config.constraints.emplace_back(written.items[i].text, config.space);
        } catch (const ConfigError& error) {
            fail(written.items[i], path_of("search.constraints", i),
                 fmt::format("'{}', {}", written.items[i].text, error.what()));
        }
    }
    if (!config.constraints.empty()) {
        check_constraints(config, written);
    }
}

search::Guess read_guess(const Tree& written, const Config& config, const std::string& path) {
    search::Guess guess(config.space.size());
    for (std::size_t i = 0; i < written.items.size(); ++i) {
        const std::string& name = written.keys[i];
        const Tree& value = written.items[i];
        const int index = config.space.index_of(name);
        if (index < 0) {
            std::vector<std::string> known;
            for (const search::Gene& gene : config.space.genes) {
                known.push_back(gene.name);
            }
            fail(value, path_of(path, name),
                 fmt::format("is no gene{}; accepted: {}", did_you_mean(name, known),
                             known.empty() ? "nothing, since there is no gene" : join(known)));
        }
        const search::Gene& gene = config.space.genes[static_cast<std::size_t>(index)];
        guess[static_cast<std::size_t>(index)] = search::value_in(gene, value.text);
        if (!guess[static_cast<std::size_t>(index)]) {
            fail(value, path_of(path, name),
                 fmt::format("'{}' is no value of this gene; accepted: {}", value.text, search::accepted_values(gene)));
        }
    }
    return guess;
}

/// Throws ConfigError if none of `trials` random completions of a guessed genome obeys the constraints.
void check_guess(const search::InitialDesign& initial_design, std::uint32_t number, const Tree& written,
                 const std::string& path) {
    RandomStream random(initial_design.seed, Purpose::breeding);
    for (int trial = 0; trial < trials; ++trial) {
        if (initial_design.allows(initial_design.open(number, 0, random).genome)) {
            return;
        }
    }
    fail(written, path,
         fmt::format("violates the constraints, whatever the genes are that it leaves open ({} were tried)", trials));
}

void read_first(const Tree& written, Config& config) {
    const bool is_of_run = written.kind == Tree::Kind::map;
    const Tree& list = is_of_run ? written["guesses"] : written;
    const std::string path = is_of_run ? "search.first.guesses" : "search.first";
    if (is_of_run) {
        config.first.run = written["run"].text;
        config.first.best = static_cast<int>(whole_number(written["best"]).value());
    }
    for (std::size_t i = 0; i < list.items.size(); ++i) {
        config.first.guesses.push_back(read_guess(list.items[i], config, path_of(path, i)));
    }
    if (!config.constraints.empty()) {
        const search::InitialDesign initial_design = config.initial_design(0);
        for (std::size_t i = 0; i < list.items.size(); ++i) {
            check_guess(initial_design, static_cast<std::uint32_t>(i), list.items[i], path_of(path, i));
        }
    }
}

void check_islands(const Tree& search, const Config& config) {
    if (!config.islands.empty() && config.workers.islands == 0) {
        fail(search["islands"], "search.islands",
             "says how each island breeds, and workers.islands is auto; accepted: a number of islands there");
    }
    if (std::ssize(config.islands) > config.workers.islands) {
        fail(search["islands"], "search.islands",
             fmt::format("{} entries for {}; accepted: as many as workers.islands says, or fewer",
                         config.islands.size(), counted(config.workers.islands, "island")));
    }
    for (int island = 0; island < std::max<int>(1, static_cast<int>(config.islands.size())); ++island) {
        const std::string key = config.islands.empty() ? "propagator" : "islands";
        try {
            static_cast<void>(search::make_propagator(config.propagator_of(island), config.space, config.seed));
        } catch (const ConfigError& error) {
            fail(search[key], "search." + key, error.what());
        }
    }
}

void check_start(const Tree& written, const Config& config) {
    if (config.start == search::Start::random) {
        return;
    }
    if (config.first_points() == 0) {
        fail(written, "search.start",
             fmt::format(
                 "'{}' is for as many individuals as the propagator breeds from, and this propagator breeds from "
                 "none; accepted: random, or another search.propagator",
                 written.text));
    }
    const auto free = std::count_if(config.space.genes.begin(), config.space.genes.end(),
                                    [](const search::Gene& gene) { return !search::is_fixed(gene); });
    if (config.start == search::Start::sobol && static_cast<std::size_t>(free) > search::most_sobol_genes) {
        fail(written, "search.start",
             fmt::format("sobol has points for up to {} genes, and {} are free here; accepted: "
                         "random or latin",
                         search::most_sobol_genes, free));
    }
}

}  // namespace

void read_initial_design(const Tree& search, Config& config) {
    check_islands(search, config);
    read_constraints(search["constraints"], config);
    read_first(search["first"], config);
    check_start(search["start"], config);
}

const search::PropagatorOptions& Config::propagator_of(int island) const {
    return islands.empty() ? propagator : islands[static_cast<std::size_t>(island) % islands.size()].propagator;
}

void Config::resolve_populations(std::span<const int> workers_of_island) {
    std::vector<IslandOptions> all;
    bool has_multiple = false;
    for (std::size_t island = 0; island < workers_of_island.size(); ++island) {
        all.push_back({.propagator = propagator_of(static_cast<int>(island))});
        auto* const genetic = std::get_if<search::GeneticOptions>(&all.back().propagator);
        if (genetic != nullptr && genetic->population_per_worker > 0) {
            has_multiple = true;
            genetic->population = std::max<std::int64_t>(2, genetic->population_per_worker * workers_of_island[island]);
        }
    }
    if (has_multiple) {
        islands = std::move(all);
    }
}

std::string Config::populations_text() const {
    std::vector<std::string> parts;
    for (std::size_t island = 0; island < islands.size(); ++island) {
        const auto* const genetic = std::get_if<search::GeneticOptions>(&islands[island].propagator);
        if (genetic != nullptr && genetic->population_per_worker > 0) {
            parts.push_back(fmt::format("island {}: {} ({}x workers)", island, genetic->population,
                                        genetic->population_per_worker));
        }
    }
    return parts.empty() ? "" : fmt::format("population: {}", fmt::join(parts, ", "));
}

std::size_t Config::first_points() const {
    std::size_t most = 0;
    for (int island = 0; island < std::max<int>(1, static_cast<int>(islands.size())); ++island) {
        const auto one = search::make_propagator(propagator_of(island), space, seed);
        most = std::max(most, one->first_points(budget.evaluations.value_or(0)));
    }
    return most;
}

search::InitialDesign Config::initial_design(std::size_t first_points) const {
    const auto points = search::points_of(start, first_points, first.guesses.size());
    return {space, first.guesses, start, points, constraints, seed};
}

}  // namespace finch::config
