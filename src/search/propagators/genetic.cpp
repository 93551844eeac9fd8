#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/search/propagator.hpp"

#include "unit_genome.hpp"

#include <cmath>
#include <optional>
#include <utility>

namespace finch::search {
namespace {

class Genetic final : public Propagator {
public:
    Genetic(const GeneticOptions& options, Space space);
    Offspring breed(const Population& population, int island, const Stage& stage, RandomStream& random) override;
    std::size_t first_points(std::int64_t /*evaluations*/) const noexcept override {
        return static_cast<std::size_t>(options_.population);
    }

private:
    /// Takes each gene from `first` with probability `crossover`, otherwise from `second`. If a gene is inactive in
    /// that parent, takes it from the other parent. A gene that is inactive in both parents is drawn at random.
    [[nodiscard]] Genome cross(const Genome& first, const Genome& second, RandomStream& random) const;
    /// Sets `gene` to `value`. Genes that thereby become active are drawn at random.
    void replace(Genome& genome, std::size_t gene, double value, RandomStream& random) const;
    /// With probability `mutation`, draws a new value for one gene.
    void mutate(Genome& genome, RandomStream& random) const;
    /// Moves one real gene by a small random amount.
    void move(Genome& genome, RandomStream& random) const;

    GeneticOptions options_;
    Space space_;
    std::vector<std::size_t> free_genes_;  ///< genes that have more than one value
    std::vector<std::size_t> real_genes_;  ///< the real genes among free_genes_
};

void require(bool is_fine, const std::string& what) {
    if (!is_fine) {
        throw ConfigError("the genetic propagator needs " + what);
    }
}

/// Draws one of `genes` that are active in `genome`, with equal probability. Returns nothing if none is active.
std::optional<std::size_t> one_of(std::vector<std::size_t> genes, const Space& space, const Genome& genome,
                                  RandomStream& random) {
    const std::vector<bool> active = active_genes(space, genome);
    std::erase_if(genes, [&](std::size_t i) { return !active[i]; });
    return genes.empty() ? std::nullopt : std::optional(genes[static_cast<std::size_t>(random.below(genes.size()))]);
}

bool is_probability(double value) {
    return 0 <= value && value <= 1;
}

void check(const GeneticOptions& options) {
    require(options.population >= 2, fmt::format("a population of at least 2, not {}", options.population));
    require(is_probability(options.crossover), fmt::format("a crossover in [0, 1], not {}", options.crossover));
    require(is_probability(options.mutation), fmt::format("a mutation in [0, 1], not {}", options.mutation));
    require(is_probability(options.random), fmt::format("a random in [0, 1], not {}", options.random));
    require(options.sigma >= 0 && std::isfinite(options.sigma),
            fmt::format("a sigma from 0 on, not {}", options.sigma));
}

Genetic::Genetic(const GeneticOptions& options, Space space)
    : options_(options), space_(std::move(space)), free_genes_(free_genes(space_)), real_genes_(free_genes_) {
    check(options);
    std::erase_if(real_genes_, [&](std::size_t i) { return !std::holds_alternative<RealGene>(space_.genes[i].kind); });
}

Offspring Genetic::breed(const Population& population, int island, const Stage& /*stage*/, RandomStream& random) {
    const auto count = static_cast<std::size_t>(options_.population);
    // The replacement by a random genome, the last step of the chain, is decided first. This order saves breeding a
    // genome that would be replaced, and the distribution of genomes is the same.
    if (space_.size() == 0 || population.active(island) < count || random.uniform() < options_.random) {
        return {random_genome(space_, random), {}, Operator::random};
    }
    const auto parents = population.best(island, count);
    const auto first = static_cast<std::size_t>(random.below(count));
    const auto other = static_cast<std::size_t>(random.below(count - 1));
    const auto second = other + (other >= first ? 1 : 0);

    Genome genome = cross(parents[first]->genome, parents[second]->genome, random);
    mutate(genome, random);
    move(genome, random);
    return {std::move(genome), {parents[first]->id, parents[second]->id}, Operator::crossover};
}

Genome Genetic::cross(const Genome& first, const Genome& second, RandomStream& random) const {
    if (first.size() != space_.size() || second.size() != space_.size()) {
        throw Error(
            fmt::format("parents of {} and {} genes in a space of {}", first.size(), second.size(), space_.size()));
    }
    Genome genome = first;
    const std::vector<bool> in_first = active_genes(space_, first);
    const std::vector<bool> in_second = active_genes(space_, second);
    std::vector<bool> chosen(space_.size());
    for (std::size_t i = 0; i < genome.size(); ++i) {
        const bool is_of_first = random.uniform() < options_.crossover;
        if (is_of_first ? !in_first[i] && in_second[i] : in_second[i] || !in_first[i]) {
            genome[i] = second[i];
        }
        chosen[i] = in_first[i] || in_second[i];
    }
    return draw_missing(space_, std::move(genome), std::move(chosen), random);
}

void Genetic::replace(Genome& genome, std::size_t gene, double value, RandomStream& random) const {
    std::vector<bool> before = active_genes(space_, genome);
    genome[gene] = value;
    genome = draw_missing(space_, std::move(genome), std::move(before), random);
}

void Genetic::mutate(Genome& genome, RandomStream& random) const {
    if (random.uniform() < options_.mutation) {
        if (const auto i = one_of(free_genes_, space_, genome, random)) {
            replace(genome, *i, mutate_value(space_.genes[*i], genome[*i], random), random);
        }
    }
}

void Genetic::move(Genome& genome, RandomStream& random) const {
    if (const auto i = one_of(real_genes_, space_, genome, random)) {
        replace(genome, *i, move_value(space_.genes[*i], genome[*i], options_.sigma * random.normal()), random);
    }
}

}  // namespace

std::unique_ptr<Propagator> make(const GeneticOptions& options, const Space& space, std::uint64_t) {
    return std::make_unique<Genetic>(options, space);
}

}  // namespace finch::search
