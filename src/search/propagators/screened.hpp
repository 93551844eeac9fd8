#pragma once

#include "finch/search/propagator.hpp"

#include "fold_plan.hpp"
#include "gaussian_process.hpp"
#include "unit_genome.hpp"

#include <array>
#include <cstdint>
#include <set>
#include <vector>

namespace finch::search {

using ScreenedPlan = FoldPlan<ScreenedOptions>;

/// All that ScreenedOptions keeps: the results and the model's scales, a fold over an island's results.
class ScreenedState {
public:
    explicit ScreenedState(ScreenedPlan plan);

    void take(const Individual& individual, bool born_here);
    /// `in_training`: on the island, so that nothing like it is bred.
    [[nodiscard]] Offspring breed(const Stage& stage, const std::vector<const Individual*>& in_training,
                                  RandomStream& random) const;
    /// The `number`th point of a latin hypercube.
    [[nodiscard]] UnitGenome first_point(std::uint64_t number) const;
    [[nodiscard]] std::size_t first_points() const noexcept { return first_points_; }

    /// What the model is shown, but for lower rungs where enough came higher: points in columns and their losses'
    /// places as quantiles of a normal distribution. All that is known, or where that is too much the best half and the
    /// newest; without a loss all are equally bad.
    struct Data {
        Eigen::MatrixXd points;
        Eigen::VectorXd values;
    };
    [[nodiscard]] Data data() const;

private:
    struct Seen {
        UnitGenome point;
        double loss = 0;  ///< as comparable_loss() gives it: +inf: none
        std::int32_t rung = top_rung;
        Id id;
    };
    struct Candidate {
        Genome genome;
        std::array<Id, 2> parents{};  ///< none: uniform
    };

    /// The model of all that is known, with those in training where it expects them to end.
    [[nodiscard]] GaussianProcess model(const std::vector<const Individual*>& in_training) const;
    /// Of what the island draws: `which` below 2³².
    [[nodiscard]] RandomStream stream(std::uint64_t which, std::uint32_t purpose) const;
    [[nodiscard]] std::vector<Candidate> candidates(RandomStream& random) const;
    /// Best first, those without a loss last; of trainings that were pruned only so far down the rungs as it takes to
    /// have enough.
    [[nodiscard]] std::vector<std::size_t> by_loss() const;

    ScreenedPlan plan_;
    std::vector<std::size_t> free_;  ///< genes that have more than one value
    std::size_t first_points_;
    std::vector<std::vector<std::uint32_t>> strata_;  ///< by gene, of the latin hypercube
    std::vector<Seen> seen_;
    std::set<Genome> known_;
    GaussianProcess process_;
    std::size_t next_fit_ = 4;
};

}  // namespace finch::search
