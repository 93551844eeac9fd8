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

/// The best weights of trainings, on disk, for their children. A leader keeps those of the best that it trained in this
/// start; every leader reads them.
class ParentWeights {
public:
    static constexpr std::size_t most = 8;  ///< that one leader keeps

    ParentWeights(store::RunDirectory directory, std::uint64_t run) : directory_(std::move(directory)), run_(run) {}

    /// Writes the weights of a complete training, unless `most` better ones are kept, and removes those of the worst
    /// beyond. Throws ApiError.
    void keep(const store::ModelFile& file);
    /// The weights of `parent`, if they are kept.
    [[nodiscard]] std::optional<NamedArrays> find(search::Id parent) const;

private:
    store::RunDirectory directory_;
    std::uint64_t run_;
    std::vector<search::Standing> kept_;  ///< best first
};

/// The individual whose weights `individual` may begin with: its first parent, or the individual whose result that
/// parent reuses, unless it is of another run. None for a repeat, which begins afresh. `population` knows the parent,
/// or is null.
[[nodiscard]] search::Id trained_parent(const search::Individual& individual, const search::Population* population);

/// World rank 0, before anybody trains: removes what earlier starts kept, but for the best ParentWeights::most of each
/// island.
void remove_unused_weights(const store::RunDirectory& directory, const search::Population& population);

}  // namespace finch::evaluate
