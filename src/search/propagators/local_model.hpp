#pragma once

#include "gaussian_process.hpp"
#include "model_results.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace finch::search {

/// The best results by their losses, in coordinates in which they lie alike in all directions.
class LocalModel {
public:
    /// `workers`: results come as late as there are individuals in training.
    LocalModel(const Space& space, std::int32_t workers);

    /// Varies what the best of `results` has, and fits its scales to those of `fitted` that are of its branch. Both the
    /// best first.
    void fit(const std::vector<const Seen*>& results, const std::vector<const Seen*>& fitted);
    /// Whether fit() with this best result would vary the same genes.
    [[nodiscard]] bool varies_as_for(const Seen& best) const;
    /// After fit(). Nothing where there are too few results, or nothing unknown is found.
    [[nodiscard]] std::optional<Proposal> propose(const std::vector<const Seen*>& results,
                                                  const std::vector<UnitGenome>& in_training, const Allowed& allowed,
                                                  RandomStream& random) const;

private:
    /// The genes that it varies, numbers first. All others stay as they are in the best result.
    struct Rows {
        std::vector<std::size_t> genes;
        Eigen::Index numbers = 0;
        bool operator==(const Rows&) const = default;
    };
    struct Window;

    [[nodiscard]] Rows rows_of(const Seen& best) const;
    [[nodiscard]] bool are_of_one_branch(const UnitGenome& a, const UnitGenome& b) const;
    [[nodiscard]] std::optional<Window> window(const Rows& rows, const UnitGenome& best,
                                               const std::vector<const Seen*>& results) const;

    Space space_;
    double workers_;
    std::vector<std::size_t> deciding_;  ///< choices that conditions ask for
    Rows rows_;
    UnitGenome branch_;  ///< a point of it
    std::optional<GaussianProcess> process_;
};

}  // namespace finch::search
