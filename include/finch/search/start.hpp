#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace finch::search {

/// Positions of a run's first individuals: random; Sobol's points; a latin hypercube.
enum class Start { random, sobol, latin };
constexpr std::array<std::string_view, 3> words_of(Start) {
    return {"random", "sobol", "latin"};
}

/// Genes for which there are Sobol points.
inline constexpr std::size_t most_sobol_genes = 21;

/// Point `number` of a start that has `count`, in [0, 1) for each of `genes`: a function of its arguments. `sobol`:
/// Sobol's sequence with the direction numbers of Joe and Kuo (Constructing Sobol sequences with better two-dimensional
/// projections, 2008; new-joe-kuo-6.21201), each dimension shifted by random bits (Owen 1998's digital shift); any 2^k
/// points from a multiple of 2^k on have one in each of 2^k shares of every gene. `latin`: a point in each of `count`
/// shares of every gene (McKay, Beckman and Conover 1979). Throws Error if there are more genes than
/// most_sobol_genes, or `number` is no point; not for `random`.
[[nodiscard]] std::vector<double> start_point(Start start, std::uint64_t seed, std::uint32_t number,
                                              std::uint32_t count, std::size_t genes);

}  // namespace finch::search
