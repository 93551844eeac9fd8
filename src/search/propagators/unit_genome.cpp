#include "unit_genome.hpp"

#include <algorithm>
#include <cmath>

namespace finch::search {
namespace {

Genome values_at(const Space& space, const UnitGenome& point) {
    Genome genome(point.size());
    for (std::size_t i = 0; i < point.size(); ++i) {
        genome[i] = from_unit(space.genes[i], point[i]);
    }
    return genome;
}

/// Moves `value` of a discrete gene by `steps` steps. For an integer gene with Scale::log, a step is at least a fifth
/// of the value.
double moved_by(const Gene& gene, double value, double steps) {
    if (const auto* whole = std::get_if<IntGene>(&gene.kind)) {
        const double step = std::max(static_cast<double>(whole->step), whole->scale == Scale::log ? 0.2 * value : 0);
        return snap(gene, value + steps * step);
    }
    const auto* real = std::get_if<RealGene>(&gene.kind);
    return snap(gene, value + steps * (real != nullptr ? real->step : 1));
}

}  // namespace

bool is_choice(const Gene& gene) {
    const auto* choice = std::get_if<ChoiceGene>(&gene.kind);
    return choice != nullptr && !choice->ordered;
}

std::vector<std::size_t> free_genes(const Space& space) {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < space.size(); ++i) {
        if (!is_fixed(space.genes[i])) {
            found.push_back(i);
        }
    }
    return found;
}

UnitGenome to_unit(const Space& space, const Genome& genome) {
    UnitGenome point(genome.size());
    for (std::size_t i = 0; i < genome.size(); ++i) {
        point[i] = to_unit(space.genes[i], genome[i]);
    }
    return point;
}

Genome child_genome(const Space& space, const UnitGenome& point, const UnitGenome& parent, RandomStream& random) {
    Genome genome = values_at(space, point);
    if (!space.has_conditions()) {
        return genome;
    }
    return draw_missing(space, std::move(genome), active_genes(space, values_at(space, parent)), random);
}

Genome from_unit(const Space& space, const UnitGenome& point) {
    Genome genome = values_at(space, point);
    return space.has_conditions() ? canonical(space, std::move(genome)) : genome;
}

UnitGenome random_point(std::size_t genes, RandomStream& random) {
    UnitGenome point(genes);
    std::generate(point.begin(), point.end(), [&random] { return random.uniform(); });
    return point;
}

double squared_distance(const Space& space, const UnitGenome& a, const UnitGenome& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        sum += is_choice(space.genes[i]) ? (a[i] == b[i] ? 0 : 1) : (a[i] - b[i]) * (a[i] - b[i]);
    }
    return sum;
}

double reflect(double x) {
    const double folded = std::fmod(std::abs(x), 2.0);
    return folded > 1 ? 2 - folded : folded;
}

double mutate_unit(const Gene& gene, double unit, double precision, double anew, RandomStream& random) {
    if (is_fixed(gene)) {
        return unit;
    }
    const auto count = value_count(gene);
    if (!count) {
        if (random.uniform() < anew) {
            return random.uniform();
        }
        const double step = 0.5 * std::exp2(-precision * random.uniform());
        return reflect(unit + (random.uniform() < 0.5 ? step : -step));
    }
    const double value = from_unit(gene, unit);
    if (is_choice(gene)) {
        const auto other = static_cast<double>(random.below(*count - 1));
        return to_unit(gene, other >= value ? other + 1 : other);
    }
    double steps = 1;
    while (steps < static_cast<double>(*count) && random.uniform() < 0.4) {
        ++steps;
    }
    steps = random.uniform() < 0.5 ? steps : -steps;
    const double moved = moved_by(gene, value, steps);
    return to_unit(gene, moved != value ? moved : moved_by(gene, value, -steps));
}

}  // namespace finch::search
