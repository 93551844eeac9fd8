#pragma once

#include "model_results.hpp"
#include "objective_models.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace finch::search {

/// A Gaussian process of the losses of the best results (with several objectives, one for each), in coordinates that
/// are whitened by the covariance of these results.
class LocalModel {
public:
    /// `workers`: the number of workers of the island. If there are more workers, results arrive later, so the model
    /// uses more of them.
    LocalModel(const Space& space, std::int32_t workers);

    /// Selects the genes that are active in `results[0]` as variables, and fits the scales to `fitted`. `results` and
    /// `fitted` must be sorted, best first.
    void fit(const std::vector<const Seen*>& results, const std::vector<const Seen*>& fitted);
    /// Returns whether fit() with the best result `best` would select the same genes.
    [[nodiscard]] bool varies_as_for(const Seen& best) const;
    /// Requires fit(). `scalarisation`: of the objectives' values. Returns nothing if there are too few results, or if
    /// no unknown genome is found.
    [[nodiscard]] std::optional<Proposal> propose(const std::vector<const Seen*>& results,
                                                  const Scalarisation& scalarisation,
                                                  const std::vector<UnitGenome>& in_training, const Allowed& allowed,
                                                  RandomStream& random) const;

private:
    /// The genes that are active in the best result: numeric genes, then choices that no condition uses, then choices
    /// that conditions use. Choices that conditions use are an input of the kernel, but never change.
    struct Rows {
        std::vector<std::size_t> genes;
        Eigen::Index numbers = 0;
        Eigen::Index varied = 0;  ///< number of numeric genes and choices that may change
        bool operator==(const Rows&) const = default;
    };
    struct Window;

    [[nodiscard]] Rows rows_of(const Seen& best) const;
    [[nodiscard]] std::optional<Window> window(const std::vector<const Seen*>& results) const;

    Space space_;
    double workers_;
    std::vector<bool> decides_;  ///< by gene: whether a condition asks for it
    Rows rows_;
    std::optional<ObjectiveModels> models_;
};

}  // namespace finch::search
