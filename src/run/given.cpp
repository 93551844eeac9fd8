#include "finch/run/given.hpp"

#include "finch/base/bytes.hpp"
#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/base/words.hpp"

#include <span>
#include <utility>

namespace finch::run {
namespace {

class Given : public search::Propagator {
public:
    explicit Given(search::Genome genome) : genome_(std::move(genome)) {}
    search::Offspring breed(const search::Population&, int, const search::Stage&, RandomStream&) override {
        return {genome_, {}, search::Operator::given};
    }

private:
    search::Genome genome_;
};

}  // namespace

search::Genome given_genome(const search::Space& space, const std::vector<std::string>& genes) {
    search::Genome genome;
    std::vector<bool> is_given;
    for (const search::Gene& gene : space.genes) {
        genome.push_back(search::first_value(gene));
        is_given.push_back(search::is_fixed(gene));
    }
    for (const std::string& assignment : genes) {
        const std::size_t equals = assignment.find('=');
        const int index = space.index_of(assignment.substr(0, equals));
        if (equals == std::string::npos || index < 0) {
            std::vector<std::string> known;
            for (const search::Gene& gene : space.genes) {
                known.push_back(gene.name);
            }
            throw ConfigError("--gene " + assignment + ": expected NAME=VALUE with one of the genes " + join(known));
        }
        const auto at = static_cast<std::size_t>(index);
        genome[at] = search::parse_value(space.genes[at], assignment.substr(equals + 1));
        is_given[at] = true;
    }
    const std::vector<bool> active = search::active_genes(space, genome);
    std::vector<std::string> missing;
    for (std::size_t i = 0; i < genome.size(); ++i) {
        if (active[i] && !is_given[i]) {
            missing.push_back(space.genes[i].name);
        }
    }
    if (!missing.empty()) {
        throw ConfigError("--gene is missing for " + join(missing) + ": one individual needs a value for every gene" +
                          (space.has_conditions() ? " that is active" : ""));
    }
    return search::canonical(space, std::move(genome));
}

std::unique_ptr<search::Propagator> fixed_genome_propagator(search::Genome genome) {
    return std::make_unique<Given>(std::move(genome));
}

std::string short_name(const search::Space& space, const search::Genome& genome) {
    const std::string text = search::genome_text(space, genome);
    return fmt::format("{:08x}", crc32c(std::as_bytes(std::span(text))));
}

void check_same_genes(const search::Space& space, const search::Genome& genome, const search::Population& population,
                      const std::string& place) {
    for (const auto& [id, individual] : population.individuals()) {
        std::vector<std::string> changes;
        for (std::size_t i = 0; i < space.size(); ++i) {
            const std::string before = search::value_text(space.genes[i], individual.genome.at(i));
            const std::string now = search::value_text(space.genes[i], genome.at(i));
            if (before != now) {
                changes.push_back(fmt::format("{}: {} → {}", space.genes[i].name, before, now));
            }
        }
        if (!changes.empty()) {
            throw ConfigError(
                fmt::format("{}: this run holds the individual {} with other genes ({}); other genes are another "
                            "training: begin another run with --run DIR, or set the old one aside with --fresh",
                            place, to_text(id), fmt::join(changes, ", ")));
        }
    }
}

}  // namespace finch::run
