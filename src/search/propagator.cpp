#include "finch/search/propagator.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"

#include "propagators/folding.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace finch::search {
namespace {

class RandomSearch final : public Propagator {
public:
    explicit RandomSearch(Space space) : space_(std::move(space)) {}

    Offspring breed(const Population&, int, const Stage&, RandomStream& random) override {
        return {random_genome(space_, random), {}, Operator::random};
    }
    std::size_t population() const noexcept override { return 0; }

private:
    Space space_;
};

class Genetic final : public Propagator {
public:
    Genetic(const GeneticOptions& options, Space space);
    Offspring breed(const Population& population, int island, const Stage& stage, RandomStream& random) override;
    std::size_t population() const noexcept override { return static_cast<std::size_t>(options_.population); }

private:
    /// Each gene of `first` with probability `crossover`, else of `second`.
    [[nodiscard]] Genome cross(const Genome& first, const Genome& second, RandomStream& random) const;
    /// With probability `mutation` one gene anew.
    void mutate(Genome& genome, RandomStream& random) const;
    /// One real gene moved a little.
    void move(Genome& genome, RandomStream& random) const;

    GeneticOptions options_;
    Space space_;
    std::vector<std::size_t> real_genes_;
};

void require(bool is_fine, const std::string& what) {
    if (!is_fine) {
        throw ConfigError("the genetic propagator needs " + what);
    }
}

bool is_probability(double value) {
    return 0 <= value && value <= 1;
}

Genetic::Genetic(const GeneticOptions& options, Space space) : options_(options), space_(std::move(space)) {
    require(options.population >= 2, fmt::format("a population of at least 2, not {}", options.population));
    require(is_probability(options.crossover), fmt::format("a crossover in [0, 1], not {}", options.crossover));
    require(is_probability(options.mutation), fmt::format("a mutation in [0, 1], not {}", options.mutation));
    require(is_probability(options.random), fmt::format("a random in [0, 1], not {}", options.random));
    require(options.sigma >= 0 && std::isfinite(options.sigma),
            fmt::format("a sigma from 0 on, not {}", options.sigma));
    for (std::size_t i = 0; i < space_.size(); ++i) {
        if (std::holds_alternative<RealGene>(space_.genes[i].kind)) {
            real_genes_.push_back(i);
        }
    }
}

Offspring Genetic::breed(const Population& population, int island, const Stage& /*stage*/, RandomStream& random) {
    const auto count = static_cast<std::size_t>(options_.population);
    // A genome that the last step replaces anyway is not bred first: the distribution is the same.
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
    for (std::size_t i = 0; i < genome.size(); ++i) {
        if (!(random.uniform() < options_.crossover)) {
            genome[i] = second[i];
        }
    }
    return genome;
}

void Genetic::mutate(Genome& genome, RandomStream& random) const {
    if (random.uniform() < options_.mutation) {
        const auto i = static_cast<std::size_t>(random.below(genome.size()));
        genome[i] = random_value(space_.genes[i], random);
    }
}

void Genetic::move(Genome& genome, RandomStream& random) const {
    if (real_genes_.empty()) {
        return;
    }
    const std::size_t i = real_genes_[static_cast<std::size_t>(random.below(real_genes_.size()))];
    const auto& gene = std::get<RealGene>(space_.genes[i].kind);
    const double steps = options_.sigma * random.normal();  // in ranges
    const double moved = gene.scale == Scale::log
                             ? genome[i] * std::exp(steps * (std::log(gene.high) - std::log(gene.low)))
                             : genome[i] + steps * (gene.high - gene.low);
    genome[i] = std::clamp(moved, gene.low, gene.high);
}

std::unique_ptr<Propagator> make(const GeneticOptions& options, const Space& space, std::uint64_t) {
    return std::make_unique<Genetic>(options, space);
}

std::unique_ptr<Propagator> make(const RandomSearchOptions&, const Space& space, std::uint64_t) {
    return std::make_unique<RandomSearch>(space);
}

}  // namespace

std::unique_ptr<Propagator> make_propagator(const PropagatorOptions& options, const Space& space, std::uint64_t seed) {
    return std::visit([&](const auto& kind) { return make(kind, space, seed); }, options);
}

}  // namespace finch::search
