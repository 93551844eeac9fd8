#pragma once

#include "finch/base/random.hpp"
#include "finch/search/initial_design.hpp"
#include "finch/search/population.hpp"
#include "finch/search/pruning.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace finch::search {

/// Population-based training (Jaderberg et al., arXiv:1711.09846) without generations. An heir replaces a training that
/// pruning ended at a rung:
/// - Exploit: the heir continues the snapshot of a training of the island's best quarter at this rung, of the best
///   `parents` at most, with weights, optimizer and learning curve. A program continues a copy of its checkpoint.
/// - Explore: the heir moves the parent's genes. A gene keeps its value if the weights would not fit the new value, or,
///   for a program, if the gene is not in `move`.
/// An heir is an individual with an id and a seed of its own, and uses one evaluation. The epochs before the rung count
/// for its parent only: a budget of epochs is charged with own_epochs(). Everything here is a function of the
/// population, the id and the seed. No heir is bred before `population` individuals of the island have ended.
struct InheritOptions {
    std::int64_t population = 40;
    std::int64_t parents = 4;  ///< of each rung; at most this many snapshots per rung and island are kept
    double perturb = 0.1;  ///< standard deviation of a number's change, as a share of its range; rate of new choices
    Rungs rungs = {};      ///< those of the pruning
    std::vector<std::string> move = {};  ///< genes that an heir of a program may change; empty for networks
};

/// Returns the trainings that were born on `island` and continued after `rung`, best first: by the loss at the rung,
/// then by id.
[[nodiscard]] std::vector<const Individual*> continued_after(const Population& population, int island,
                                                             std::int32_t rung);

/// Returns whether the genomes are equal in all genes that are not in `names`, also in whether these genes are active.
[[nodiscard]] bool differ_only_in(const std::vector<std::string>& names, const Space& space, const Genome& a,
                                  const Genome& b);

/// Makes `newborn`, which has an id and an island but no genome, an heir if one is due. Rungs with more pruned
/// trainings than heirs are tried from the highest on. `can_continue` returns whether an heir's parent has a snapshot
/// that fits the heir's genome. Returns false, and leaves `newborn` unchanged, if no heir is due or no parent has a
/// snapshot.
[[nodiscard]] bool make_heir(Individual& newborn, const InheritOptions& options, const InitialDesign& design,
                             const Population& population, RandomStream& random,
                             const std::function<bool(const Individual& heir)>& can_continue);

/// Makes `heir` an individual that continues `parent` after `rung`.
void begin_at_rung(Individual& heir, Id parent, std::int32_t rung, const Rungs& rungs);
/// Makes an individual without a usable snapshot, of its own or of its parent, one that trains from the first epoch.
void begin_anew(Individual& individual);

}  // namespace finch::search
