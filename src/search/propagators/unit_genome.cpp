#include "unit_genome.hpp"

#include <algorithm>
#include <cmath>

namespace finch::search {
namespace {

double middle_of(double level, double levels) {
    return (level + 0.5) / levels;
}

double level_of(double unit, double levels) {
    return std::clamp(std::floor(unit * levels), 0.0, levels - 1);
}

}  // namespace

bool is_choice(const Gene& gene) {
    return std::holds_alternative<ChoiceGene>(gene.kind);
}

std::int64_t levels(const Gene& gene) {
    if (const auto* choice = std::get_if<ChoiceGene>(&gene.kind)) {
        return std::ssize(choice->options);
    }
    const auto* whole = std::get_if<IntGene>(&gene.kind);
    return whole != nullptr ? whole->high - whole->low + 1 : 0;
}

double to_unit(const Gene& gene, double value) {
    if (const auto* real = std::get_if<RealGene>(&gene.kind)) {
        if (real->high == real->low) {
            return 0.5;
        }
        return real->scale == Scale::log ? std::log(value / real->low) / std::log(real->high / real->low)
                                         : (value - real->low) / (real->high - real->low);
    }
    const auto* whole = std::get_if<IntGene>(&gene.kind);
    return middle_of(whole != nullptr ? value - static_cast<double>(whole->low) : value,
                     static_cast<double>(levels(gene)));
}

double from_unit(const Gene& gene, double unit) {
    if (const auto* real = std::get_if<RealGene>(&gene.kind)) {
        const double value = real->scale == Scale::log ? real->low * std::pow(real->high / real->low, unit)
                                                       : real->low + unit * (real->high - real->low);
        return std::clamp(value, real->low, real->high);
    }
    const double level = level_of(unit, static_cast<double>(levels(gene)));
    const auto* whole = std::get_if<IntGene>(&gene.kind);
    return whole != nullptr ? static_cast<double>(whole->low) + level : level;
}

UnitGenome to_unit(const Space& space, const Genome& genome) {
    UnitGenome point(genome.size());
    for (std::size_t i = 0; i < genome.size(); ++i) {
        point[i] = to_unit(space.genes[i], genome[i]);
    }
    return point;
}

Genome from_unit(const Space& space, const UnitGenome& point) {
    Genome genome(point.size());
    for (std::size_t i = 0; i < point.size(); ++i) {
        genome[i] = from_unit(space.genes[i], point[i]);
    }
    return genome;
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
    const auto count = static_cast<double>(levels(gene));
    if (count == 0) {
        if (random.uniform() < anew) {
            return random.uniform();
        }
        const double step = 0.5 * std::exp2(-precision * random.uniform());
        return reflect(unit + (random.uniform() < 0.5 ? step : -step));
    }
    if (count == 1) {
        return unit;
    }
    const double level = level_of(unit, count);
    if (is_choice(gene)) {
        const auto other = static_cast<double>(random.below(static_cast<std::uint64_t>(count - 1)));
        return middle_of(other >= level ? other + 1 : other, count);
    }
    double steps = 1;
    while (steps < count && random.uniform() < 0.4) {
        ++steps;
    }
    const double moved = level + (random.uniform() < 0.5 ? steps : -steps);
    const double mirrored = moved < 0 ? -moved : moved > count - 1 ? 2 * (count - 1) - moved : moved;
    return middle_of(std::clamp(mirrored, 0.0, count - 1), count);
}

}  // namespace finch::search
