#pragma once

#include "finch/search/propagator.hpp"

#include "cma_es.hpp"
#include "fold_plan.hpp"

#include <cstdint>
#include <limits>
#include <vector>

namespace finch::search {

using CmaPlan = FoldPlan<CmaEsOptions>;

/// The probabilities of the options of a choice gene, as in CatCMA (Hamano et al., "CatCMA", 2024, arXiv:2405.09962),
/// but with a fixed learning rate. No probability is smaller than a fixed minimum.
class ChoiceShares {
public:
    /// `options`: the number of options of this choice gene. `choices`: the number of choice genes in the search.
    ChoiceShares(std::size_t options, std::size_t choices);

    [[nodiscard]] std::size_t draw(RandomStream& random) const;
    /// Increases the probability of `option` with the learning rate `rate`. Call normalize() after the last learn() of
    /// a generation.
    void learn(std::size_t option, double rate);
    void normalize();
    [[nodiscard]] const std::vector<double>& shares() const noexcept { return shares_; }

private:
    std::vector<double> shares_;
    double least_;
};

/// Returns the number of samples of a small start of BIPOP (Hansen 2009). A large start has usual · 2^doublings
/// samples. `uniform`: a uniformly random number in [0, 1].
[[nodiscard]] int samples_of_small_start(int usual, int doublings, double uniform);

/// The state of the propagator for CmaEsOptions, computed from an island's results one by one. The propagator runs one
/// start of CMA-ES after the other. CMA-ES does not move genes that are unordered choices; each of them has its own
/// ChoiceShares.
class CmaState {
public:
    explicit CmaState(CmaPlan plan);

    void take(const Individual& individual, bool born_here);
    [[nodiscard]] Offspring breed(const Stage& stage, RandomStream& random) const;

    [[nodiscard]] const CmaEs& distribution() const noexcept { return cma_; }
    [[nodiscard]] std::int32_t starts() const noexcept { return number_ + 1; }
    [[nodiscard]] const std::vector<ChoiceShares>& shares() const noexcept { return shares_; }

private:
    struct Chosen {
        std::vector<int> options;  ///< one per choice gene; −1: the gene is inactive
        double loss = 0;
    };

    void add(const Individual& individual, double loss);
    void learn_choices();
    void restart();
    void begin(UnitGenome mean, double sigma, int samples);
    [[nodiscard]] int usual_samples() const;
    [[nodiscard]] UnitGenome moved_part(const UnitGenome& point) const;

    CmaPlan plan_;
    std::vector<std::size_t> moved_;    ///< genes that CMA-ES moves
    std::vector<std::size_t> choices_;  ///< genes that are unordered choices
    CmaEs cma_;
    std::vector<ChoiceShares> shares_;  ///< one per choice gene
    std::vector<Chosen> generation_;    ///< results of the present generation
    std::int32_t number_ = 0;           ///< number of the present start
    std::int64_t taken_ = 0;            ///< results of this start
    bool is_small_ = false;             ///< this start is one of the small ones
    int doublings_ = 0;
    std::int64_t large_taken_ = 0;       ///< results of all large starts except the first
    std::int64_t small_taken_ = 0;       ///< results of all small starts
    std::int64_t last_large_taken_ = 0;  ///< results of the last large start
};

}  // namespace finch::search
