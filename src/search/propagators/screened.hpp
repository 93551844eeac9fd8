#pragma once

#include "finch/search/propagator.hpp"

#include "fold_plan.hpp"
#include "global_model.hpp"
#include "local_model.hpp"
#include "unit_genome.hpp"

#include <array>
#include <cstdint>
#include <set>
#include <vector>

namespace finch::search {

using ScreenedPlan = FoldPlan<ScreenedOptions>;

/// The state of the screened propagator, a fold over an island's results.
class ScreenedState {
public:
    explicit ScreenedState(ScreenedPlan plan);

    void take(const Individual& individual, bool born_here);
    /// `in_training`: on the island, so that nothing like it is bred.
    [[nodiscard]] Offspring breed(const Stage& stage, const std::vector<const Individual*>& in_training,
                                  RandomStream& random) const;
    /// The `number`th point of a latin hypercube.
    [[nodiscard]] UnitGenome first_point(std::uint64_t number) const;
    /// Points of the latin hypercube: two for each gene, at most a quarter of the evaluations (0: not known).
    [[nodiscard]] static std::size_t first_points(const ScreenedOptions& options, const Space& space,
                                                  std::int64_t evaluations);

    /// The global model's training data.
    [[nodiscard]] GlobalModel::Data data() const { return global_.data(by_loss(seen_.size())); }

private:
    /// Of what the island draws: `which` below 2³².
    [[nodiscard]] RandomStream stream(std::uint64_t which, std::uint32_t purpose) const;
    /// Of the first `count` results, best first, those without a loss last. Lower rungs are left out once ten results
    /// are above them.
    [[nodiscard]] std::vector<const Seen*> by_loss(std::size_t count) const;
    void fit_global() const;
    void fit_local(const std::vector<const Seen*>& results) const;

    ScreenedPlan plan_;
    std::vector<std::size_t> free_;  ///< genes that have more than one value
    std::size_t first_points_;
    std::vector<std::vector<std::uint32_t>> strata_;  ///< by gene, of the latin hypercube
    std::vector<Seen> seen_;
    std::set<Genome> known_;
    double failures_ = 0;
    // The models with their last scales, which follow from the results alone: fitted when they are first asked for.
    mutable GlobalModel global_;
    mutable LocalModel local_;
    mutable std::uint64_t global_history_ = 0;  ///< of the results that they are fitted to
    mutable std::uint64_t local_history_ = 0;
};

}  // namespace finch::search
