#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/search/propagator.hpp"

#include "unit_genome.hpp"
#include "variation.hpp"

#include <algorithm>
#include <cmath>
#include <concepts>
#include <optional>
#include <utility>

namespace finch::search {
namespace {

class Genetic final : public Propagator {
public:
    Genetic(const GeneticOptions& options, Space space);
    Offspring breed(const Population& population, int island, const Stage& stage, RandomStream& random) override;
    std::size_t population() const noexcept override { return static_cast<std::size_t>(options_.population); }

private:
    /// Of `count` that stand best first.
    [[nodiscard]] std::size_t select(std::size_t count, RandomStream& random) const;
    /// Each gene of `first` with probability `crossover`, else of `second`; from the other, or anew, where the one does
    /// not use it.
    [[nodiscard]] Genome cross(const Genome& first, const Genome& second, RandomStream& random) const;
    /// What the crossover operator makes of two values of `gene`, near the first.
    [[nodiscard]] double cross(const Gene& gene, double near, double far, RandomStream& random) const;
    /// Gives `gene` another value; those that come to be active with it are drawn.
    void replace(Genome& genome, std::size_t gene, double value, RandomStream& random) const;
    void mutate(Genome& genome, RandomStream& random) const;
    /// Each active gene with the operator's rate.
    template <class Operation>
    void mutate_each(Genome& genome, const Operation& operation, RandomStream& random) const;
    /// With probability `mutation` one gene anew.
    void mutate_one(Genome& genome, RandomStream& random) const;
    /// One real gene moved a little.
    void move(Genome& genome, RandomStream& random) const;

    GeneticOptions options_;
    Space space_;
    std::vector<std::size_t> free_genes_;  ///< that have more than one value
    std::vector<std::size_t> real_genes_;  ///< of them
};

void require(bool is_fine, const std::string& what) {
    if (!is_fine) {
        throw ConfigError("the genetic propagator needs " + what);
    }
}

/// One of `genes` that `genome` uses, each as often; nothing where it uses none.
std::optional<std::size_t> one_of(std::vector<std::size_t> genes, const Space& space, const Genome& genome,
                                  RandomStream& random) {
    const std::vector<bool> active = active_genes(space, genome);
    std::erase_if(genes, [&](std::size_t i) { return !active[i]; });
    return genes.empty() ? std::nullopt : std::optional(genes[static_cast<std::size_t>(random.below(genes.size()))]);
}

bool is_probability(double value) {
    return 0 <= value && value <= 1;
}

template <class... Cases>
struct Overload : Cases... {
    using Cases::operator()...;
};

void check(const GeneticOptions& options) {
    const auto is_rate = [](const std::optional<double>& rate) { return !rate || is_probability(*rate); };
    const auto is_exponent = [](double eta) { return eta >= 0 && std::isfinite(eta); };
    const std::string rates = "rates in [0, 1] and an eta or deviation from 0 on";
    require(options.population >= 2, fmt::format("a population of at least 2, not {}", options.population));
    require(is_probability(options.crossover), fmt::format("a crossover in [0, 1], not {}", options.crossover));
    require(is_probability(options.mutation), fmt::format("a mutation in [0, 1], not {}", options.mutation));
    require(is_probability(options.random), fmt::format("a random in [0, 1], not {}", options.random));
    require(options.sigma >= 0 && std::isfinite(options.sigma),
            fmt::format("a sigma from 0 on, not {}", options.sigma));
    std::visit(Overload{[](const UniformBest&) {},
                        [](const Tournament& one) { require(one.size >= 1, "a tournament of at least one"); },
                        [](const Truncation& one) {
                            require(0 < one.share && one.share <= 1, "a share in (0, 1] for its truncation");
                        }},
               options.selection);
    std::visit(Overload{[](const UniformCrossover&) {},
                        [&](const SimulatedBinaryCrossover& one) {
                            require(is_probability(one.rate) && is_exponent(one.eta), rates);
                        },
                        [&](const BlendCrossover& one) { require(is_exponent(one.alpha), "an alpha from 0 on"); }},
               options.crossover_operator);
    std::visit(
        Overload{[](const ChainMutation&) {}, [&](const PointMutation& one) { require(is_rate(one.rate), rates); },
                 [&](const GaussianMutation& one) {
                     require(is_rate(one.rate) && one.deviation > 0 && is_exponent(one.deviation), rates);
                 },
                 [&](const PolynomialMutation& one) { require(is_rate(one.rate) && is_exponent(one.eta), rates); }},
        options.mutation_operator);
}

// The value at which each operator puts a gene that it changes.

double mutated(const PointMutation&, const Gene& gene, double value, RandomStream& random) {
    return mutate_value(gene, value, random);
}
template <class Operation>
double mutated(const Operation& operation, const Gene& gene, double value, RandomStream& random) {
    if (is_choice(gene)) {
        return other_option(gene, value, random);
    }
    const double centre = to_unit(gene, value);
    if constexpr (std::same_as<Operation, GaussianMutation>) {
        return changed_value(gene, value, normal_in_unit(centre, operation.deviation, random));
    } else {
        return changed_value(gene, value, polynomial(centre, operation.eta, random));
    }
}

Genetic::Genetic(const GeneticOptions& options, Space space) : options_(options), space_(std::move(space)) {
    check(options);
    for (std::size_t i = 0; i < space_.size(); ++i) {
        if (is_fixed(space_.genes[i])) {
            continue;
        }
        free_genes_.push_back(i);
        if (std::holds_alternative<RealGene>(space_.genes[i].kind)) {
            real_genes_.push_back(i);
        }
    }
}

Offspring Genetic::breed(const Population& population, int island, const Stage& /*stage*/, RandomStream& random) {
    auto count = static_cast<std::size_t>(options_.population);
    // A genome that the last step replaces anyway is not bred first: the distribution is the same.
    if (space_.size() == 0 || population.active(island) < count || random.uniform() < options_.random) {
        return {random_genome(space_, random), {}, Operator::random};
    }
    if (const auto* truncation = std::get_if<Truncation>(&options_.selection)) {
        count = std::max<std::size_t>(2, static_cast<std::size_t>(truncation->share * static_cast<double>(count)));
    }
    const auto parents = population.best(island, count);
    const std::size_t first = select(count, random);
    const std::size_t other = select(count - 1, random);
    const auto second = other + (other >= first ? 1 : 0);

    Genome genome = cross(parents[first]->genome, parents[second]->genome, random);
    mutate(genome, random);
    return {std::move(genome), {parents[first]->id, parents[second]->id}, Operator::crossover};
}

std::size_t Genetic::select(std::size_t count, RandomStream& random) const {
    auto best = static_cast<std::size_t>(random.below(count));
    if (const auto* tournament = std::get_if<Tournament>(&options_.selection)) {
        for (std::int64_t drawn = 1; drawn < tournament->size; ++drawn) {
            best = std::min(best, static_cast<std::size_t>(random.below(count)));
        }
    }
    return best;
}

double Genetic::cross(const Gene& gene, double near, double far, RandomStream& random) const {
    const double from = to_unit(gene, near);
    const double to = to_unit(gene, far);
    if (const auto* binary = std::get_if<SimulatedBinaryCrossover>(&options_.crossover_operator)) {
        return random.uniform() < binary->rate ? from_unit(gene, simulated_binary(from, to, binary->eta, random))
                                               : near;
    }
    const auto* blended = std::get_if<BlendCrossover>(&options_.crossover_operator);
    return blended != nullptr ? from_unit(gene, blend(from, to, blended->alpha, random)) : near;
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
        if (in_first[i] && in_second[i] && first[i] != second[i] && !is_choice(space_.genes[i])) {
            genome[i] = cross(space_.genes[i], genome[i], is_of_first ? second[i] : first[i], random);
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
    const auto chain = [&](const ChainMutation&) {
        mutate_one(genome, random);
        move(genome, random);
    };
    std::visit(Overload{chain, [&](const auto& operation) { mutate_each(genome, operation, random); }},
               options_.mutation_operator);
}

template <class Operation>
void Genetic::mutate_each(Genome& genome, const Operation& operation, RandomStream& random) const {
    const std::vector<bool> before = active_genes(space_, genome);
    const auto active = std::count_if(free_genes_.begin(), free_genes_.end(), [&](std::size_t i) { return before[i]; });
    const double rate = operation.rate.value_or(1 / static_cast<double>(std::max<std::ptrdiff_t>(1, active)));
    for (const std::size_t i : free_genes_) {
        if (before[i] && random.uniform() < rate) {
            genome[i] = mutated(operation, space_.genes[i], genome[i], random);
        }
    }
    genome = draw_missing(space_, std::move(genome), before, random);
}

void Genetic::mutate_one(Genome& genome, RandomStream& random) const {
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
