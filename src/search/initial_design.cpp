#include "finch/search/initial_design.hpp"

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

}  // namespace finch::search
