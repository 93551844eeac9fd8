#include "finch/search/initial_design.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/base/random.hpp"

#include <algorithm>
#include <utility>

namespace finch::search {
namespace {

constexpr std::size_t most_points = 100000;

Genome guessed(const Space& space, const Guess& guess, RandomStream& random) {
    Genome genome(space.size());
    std::vector<bool> chosen(space.size());
    for (std::size_t i = 0; i < space.size(); ++i) {
        genome[i] = guess.at(i).value_or(first_value(space.genes[i]));
        chosen[i] = guess[i].has_value();
    }
    return draw_missing(space, std::move(genome), std::move(chosen), random);
}

Genome genome_at(const InitialDesign& initial_design, std::uint32_t number) {
    const Space& space = initial_design.space;
    const auto is_free = [](const Gene& gene) { return !is_fixed(gene); };
    const auto dimensions = static_cast<std::size_t>(std::count_if(space.genes.begin(), space.genes.end(), is_free));
    const auto point =
        start_point(initial_design.start, initial_design.seed, number, initial_design.points, dimensions);
    Genome genome;
    std::size_t dimension = 0;
    for (const Gene& gene : space.genes) {
        genome.push_back(is_free(gene) ? from_unit(gene, point[dimension++]) : first_value(gene));
    }
    return canonical(space, std::move(genome));
}

}  // namespace

Offspring InitialDesign::open(std::uint32_t initial_point, std::uint32_t attempt, RandomStream& random) const {
    if (initial_point < guesses.size()) {
        return {guessed(space, guesses[initial_point], random), {}, Operator::given};
    }
    const std::uint32_t number = initial_point - static_cast<std::uint32_t>(guesses.size());
    return {attempt == 0 ? genome_at(*this, number) : random_genome(space, random), {}, Operator::random};
}

std::uint32_t points_of(Start start, std::size_t population, std::size_t guesses) noexcept {
    if (start == Start::random) {
        return 0;
    }
    return static_cast<std::uint32_t>(std::min(population - std::min(population, guesses), most_points));
}

namespace {

constexpr std::size_t bits = 32;
using Directions = std::array<std::uint32_t, bits>;

/// A primitive polynomial over GF(2), x^degree + … + 1, and the first direction numbers m. The bits of `coefficients`
/// are the polynomial's inner coefficients.
struct Polynomial {
    std::size_t degree;
    std::uint32_t coefficients;
    std::array<std::uint32_t, 7> m;
};
/// Polynomials for the second dimension and all later ones.
constexpr std::array<Polynomial, most_sobol_genes - 1> polynomials{{
    {1, 0, {1}},
    {2, 1, {1, 3}},
    {3, 1, {1, 3, 1}},
    {3, 2, {1, 1, 1}},
    {4, 1, {1, 1, 3, 3}},
    {4, 4, {1, 3, 5, 13}},
    {5, 2, {1, 1, 5, 5, 17}},
    {5, 4, {1, 1, 5, 5, 5}},
    {5, 7, {1, 1, 7, 11, 19}},
    {5, 11, {1, 1, 5, 1, 1}},
    {5, 13, {1, 1, 1, 3, 11}},
    {5, 14, {1, 3, 5, 5, 31}},
    {6, 1, {1, 3, 3, 9, 7, 49}},
    {6, 13, {1, 1, 1, 15, 21, 21}},
    {6, 16, {1, 3, 1, 13, 27, 49}},
    {6, 19, {1, 1, 1, 15, 7, 5}},
    {6, 22, {1, 3, 1, 15, 13, 25}},
    {6, 25, {1, 1, 5, 5, 19, 61}},
    {7, 1, {1, 3, 7, 11, 23, 15, 103}},
    {7, 4, {1, 3, 7, 13, 13, 15, 69}},
}};

/// Returns the direction numbers v(i) = m(i) / 2^i as binary fractions, by the recurrence of Bratley and Fox (1988).
Directions directions_of(std::size_t dimension) {
    Directions v{};
    if (dimension == 0) {
        for (std::size_t i = 0; i < bits; ++i) {
            v[i] = std::uint32_t{1} << (bits - 1 - i);
        }
        return v;
    }
    const Polynomial& polynomial = polynomials.at(dimension - 1);
    const std::size_t degree = polynomial.degree;
    for (std::size_t i = 0; i < bits; ++i) {
        if (i < degree) {
            v[i] = polynomial.m.at(i) << (bits - 1 - i);
            continue;
        }
        v[i] = v[i - degree] ^ (v[i - degree] >> degree);
        for (std::size_t k = 1; k < degree; ++k) {
            if (((polynomial.coefficients >> (degree - 1 - k)) & 1) != 0) {
                v[i] ^= v[i - k];
            }
        }
    }
    return v;
}

double sobol(std::uint64_t seed, std::uint32_t number, std::size_t gene) {
    const Directions v = directions_of(gene);
    std::uint32_t point = RandomStream(seed, Purpose::start, gene).bits();
    for (std::size_t bit = 0; bit < bits; ++bit) {
        point ^= ((number >> bit) & 1) != 0 ? v[bit] : 0;
    }
    return (point + 0.5) * 0x1.0p-32;
}

double latin(std::uint64_t seed, std::uint32_t number, std::uint32_t count, std::size_t gene) {
    RandomStream shares(seed, Purpose::start, gene);
    const std::uint32_t share = shares.permutation(count).at(number);
    return (share + RandomStream(seed, Purpose::start, gene, number + 1).uniform()) / count;
}

double coordinate(Start start, std::uint64_t seed, std::uint32_t number, std::uint32_t count, std::size_t gene) {
    switch (start) {
        case Start::random:
            break;
        case Start::sobol:
            return sobol(seed, number, gene);
        case Start::latin:
            return latin(seed, number, count, gene);
    }
    throw Error("a random start has no points");
}

}  // namespace

std::vector<double> start_point(Start start, std::uint64_t seed, std::uint32_t number, std::uint32_t count,
                                std::size_t genes) {
    if (start == Start::random || number >= count || (start == Start::sobol && genes > most_sobol_genes)) {
        throw Error(fmt::format("no point {} of {} in {} genes of a start that is {}", number, count, genes,
                                words_of(start).at(static_cast<std::size_t>(start))));
    }
    std::vector<double> point;
    for (std::size_t gene = 0; gene < genes; ++gene) {
        point.push_back(coordinate(start, seed, number, count, gene));
    }
    return point;
}

}  // namespace finch::search
