#pragma once

#include "gaussian_process.hpp"
#include "model_results.hpp"

#include <optional>
#include <vector>

namespace finch::search {

/// The best results by their losses, in coordinates in which they lie alike in all directions.
class LocalModel {
public:
    explicit LocalModel(const Space& space);

    /// Takes the branch of the best of all `results` to vary, and fits its scales to those of `fitted` that lie in it.
    /// Both the best first.
    void fit(const std::vector<const Seen*>& results, const std::vector<const Seen*>& fitted);
    /// Whether fit() with this best result would vary the same genes.
    [[nodiscard]] bool varies_as_for(const Seen& best) const;
    /// After fit(). Nothing where there are too few results, or nothing unknown is found.
    [[nodiscard]] std::optional<Proposal> propose(const std::vector<const Seen*>& results,
                                                  const std::vector<UnitGenome>& in_training, const Allowed& allowed,
                                                  RandomStream& random) const;

private:
    /// Which genes it varies: numbers first, then choices. All others stay as they are in the best result.
    struct Rows {
        std::vector<std::size_t> numbers;
        std::vector<std::size_t> choices;
        bool operator==(const Rows&) const = default;
    };
    class Frame;

    [[nodiscard]] Rows rows_of(const Seen& best) const;
    [[nodiscard]] bool are_of_one_branch(const UnitGenome& a, const UnitGenome& b) const;
    [[nodiscard]] std::vector<const Seen*> branch_of(const Seen& best, const std::vector<const Seen*>& results) const;
    bool exchange_choices(const GaussianProcess& process, double kappa, Eigen::VectorXd& z, double& bound) const;

    Space space_;
    std::vector<bool> is_asked_for_;  ///< by gene: by a condition
    Rows rows_;
    UnitGenome branch_;  ///< a point of it
    std::optional<GaussianProcess> process_;
};

}  // namespace finch::search
