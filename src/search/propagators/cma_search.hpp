#pragma once

#include "finch/search/propagator.hpp"

#include "cma_es.hpp"
#include "fold_plan.hpp"

#include <cstdint>
#include <limits>
#include <vector>

namespace finch::search {

using CmaPlan = FoldPlan<CmaEsOptions>;

/// How often each option of a choice is drawn (Hamano et al., "CatCMA", 2024, arXiv:2405.09962, with a fixed rate of
/// learning): none less than a margin.
class ChoiceShares {
public:
    /// `choices`: of the search. `genes`: that are searched in all.
    ChoiceShares(std::size_t options, std::size_t choices);

    [[nodiscard]] std::size_t draw(RandomStream& random) const;
    /// Moves towards `option` by `rate`; normalize() after the last of a generation.
    void learn(std::size_t option, double rate);
    void normalize();
    [[nodiscard]] const std::vector<double>& shares() const noexcept { return shares_; }

private:
    std::vector<double> shares_;
    double least_;
};

/// Of BIPOP (Hansen 2009), where a large start has usual · 2^doublings: by a uniform number in [0, 1].
[[nodiscard]] int samples_of_small_start(int usual, int doublings, double uniform);

/// All that CmaEsOptions keeps: a fold over an island's results. One start of CMA-ES after the other; genes that are
/// unordered choices have shares of their own beside it.
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
        std::vector<int> options;  ///< by choice; −1: it is not active
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
    std::vector<ChoiceShares> shares_;  ///< by choice
    std::vector<Chosen> generation_;    ///< of the present one
    std::int32_t number_ = 0;           ///< of the start
    std::int64_t taken_ = 0;            ///< results of this start
    bool is_small_ = false;             ///< this start is one of the small ones
    int doublings_ = 0;
    std::int64_t large_taken_ = 0;       ///< by all large starts but the first
    std::int64_t small_taken_ = 0;       ///< by all small ones
    std::int64_t last_large_taken_ = 0;  ///< by the last large one
};

}  // namespace finch::search
