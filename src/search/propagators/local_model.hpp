#pragma once

#include "gaussian_process.hpp"
#include "model_results.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace finch::search {

/// A Gaussian process of the best results' losses, in coordinates whitened by their covariance.
class LocalModel {
public:
    /// `workers` of the island: the more there are, the more results the model knows, as these come later.
    LocalModel(const Space& space, std::int32_t workers);

    /// Varies the genes that are active in `results[0]` and fits the scales to `fitted`. Both sorted, best first.
    void fit(const std::vector<const Seen*>& results, const std::vector<const Seen*>& fitted);
    /// Whether fit() with this best result would vary the same genes.
    [[nodiscard]] bool varies_as_for(const Seen& best) const;
    /// After fit(). Nothing if there are too few results, or nothing unknown is found.
    [[nodiscard]] std::optional<Proposal> propose(const std::vector<const Seen*>& results,
                                                  const std::vector<UnitGenome>& in_training, const Allowed& allowed,
                                                  RandomStream& random) const;

private:
    /// The genes that are active in the best result: numbers, then free choices, then choices that conditions use,
    /// which are inputs of the kernel and never change.
    struct Rows {
        std::vector<std::size_t> genes;
        Eigen::Index numbers = 0;
        Eigen::Index varied = 0;  ///< numbers and choices that may change
        bool operator==(const Rows&) const = default;
    };
    struct Window;

    [[nodiscard]] Rows rows_of(const Seen& best) const;
    [[nodiscard]] std::optional<Window> window(const std::vector<const Seen*>& results) const;

    Space space_;
    double workers_;
    std::vector<bool> decides_;  ///< by gene: conditions ask for it
    Rows rows_;
    std::optional<GaussianProcess> process_;
};

}  // namespace finch::search
