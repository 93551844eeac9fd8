#pragma once

#include "finch/search/propagator.hpp"

/// The propagators whose state is a fold over an island's results.
namespace finch::search {

[[nodiscard]] std::unique_ptr<Propagator> make(const EvolutionOptions& options, const Space& space, std::uint64_t seed);
[[nodiscard]] std::unique_ptr<Propagator> make(const ScreenedOptions& options, const Space& space, std::uint64_t seed);
[[nodiscard]] std::unique_ptr<Propagator> make(const AutomaticOptions& options, const Space& space, std::uint64_t seed);
[[nodiscard]] std::unique_ptr<Propagator> make(const CmaEsOptions& options, const Space& space, std::uint64_t seed);
[[nodiscard]] std::unique_ptr<Propagator> make(const SwarmOptions& options, const Space& space, std::uint64_t seed);
[[nodiscard]] std::unique_ptr<Propagator> make(const NelderMeadOptions& options, const Space& space,
                                               std::uint64_t seed);
[[nodiscard]] std::unique_ptr<Propagator> make(const TpeOptions& options, const Space& space, std::uint64_t seed);

/// What is in training on `island`, as far as `population` knows.
[[nodiscard]] std::vector<const Individual*> in_training_on(const Population& population, int island);

}  // namespace finch::search
