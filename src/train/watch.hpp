#pragma once

#include "finch/base/metric.hpp"
#include "finch/base/named_array.hpp"
#include "finch/nn/plan.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace finch::train {

/// The Euclidean norms of weights and gradients of each layer and epoch (Options::watch). The norms are identical on
/// every rank, because weights and all-reduced gradients are.
class Watch {
public:
    explicit Watch(const nn::ModelPlan& plan);

    /// `grads`: the arena of gradients after the last step of an epoch.
    void end_steps(std::span<const float> grads);
    /// `parameters`: the arena of parameters at the end of `epoch`.
    void end_epoch(std::int32_t epoch, std::span<const float> parameters);

    /// Returns the norms of the ended epochs as metrics. Metrics contain only the epochs that were watched.
    [[nodiscard]] std::vector<Metric> metrics() const;

    /// state() returns the arrays "watch/…" of a snapshot; set_state() restores them. Without such arrays, the watch
    /// begins anew. set_state() throws FileError if the arrays do not fit the model.
    [[nodiscard]] NamedArrays state() const;
    void set_state(const NamedArrays& arrays);

private:
    struct Range {
        std::size_t offset = 0;
        std::size_t size = 0;
    };
    struct Layer {
        std::string name;  ///< PyTorch's name of the module: "3.body.0"
        std::vector<Range> tensors;
    };

    [[nodiscard]] std::vector<double> norms(std::span<const float> arena) const;
    [[nodiscard]] std::size_t columns() const noexcept { return 1 + 2 * layers_.size(); }

    std::vector<Layer> layers_;
    std::vector<double> grad_norms_;  ///< of the present epoch's last step; NaN: not known
    std::vector<double> rows_;        ///< (watched epochs, columns()): epoch, weight norms, gradient norms
};

}  // namespace finch::train
