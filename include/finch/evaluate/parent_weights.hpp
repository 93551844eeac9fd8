#pragma once

#include "finch/search/population.hpp"
#include "finch/store/model_file.hpp"
#include "finch/store/run_directory.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace finch::evaluate {

/// The weights of the best trainings, kept on disk for their children. A leader keeps weights that it trained in this
/// start. Every leader reads the weights of all leaders.
class ParentWeights {
public:
    static constexpr std::size_t most = 8;  ///< sets of weights that one leader keeps

    ParentWeights(store::RunDirectory directory, std::uint64_t run) : directory_(std::move(directory)), run_(run) {}

    /// Writes the weights of a complete training, unless `most` better ones are kept. If there are more than `most`
    /// sets of weights afterwards, removes the worst set. Throws ApiError.
    void keep(const store::ModelFile& file);
    /// Returns the weights of `parent` if they are kept.
    [[nodiscard]] std::optional<NamedArrays> find(search::Id parent) const;

private:
    store::RunDirectory directory_;
    std::uint64_t run_;
    std::vector<search::Standing> kept_;  ///< best first
};

/// Returns the individual that provides the initial weights of `individual`: its first parent. If the first parent
/// reuses a result of this run, returns the individual that was trained for it. If the first parent reuses a result of
/// another run, returns id 0. Returns id 0 for a repeat, which begins with random weights. `population` contains the
/// parent, or is null.
[[nodiscard]] search::Id trained_parent(const search::Individual& individual, const search::Population* population);

/// World rank 0 only, before any training. Removes weights that earlier starts kept, except for the best
/// ParentWeights::most individuals of each island.
void remove_unused_weights(const store::RunDirectory& directory, const search::Population& population);

}  // namespace finch::evaluate
