#pragma once

#include "finch/comm/group.hpp"
#include "finch/config/config.hpp"
#include "finch/evaluate/order.hpp"
#include "finch/island/evaluator.hpp"

#include <cstdint>
#include <vector>

namespace finch::evaluate {

/// A worker's evaluations, as its leader sees them: individuals in slots, and Orders that all its ranks obey. The
/// followers run follow().
class GroupEvaluator : public island::Evaluator {
public:
    /// Both must outlive it.
    GroupEvaluator(const config::Config& config, const comm::Group& group) : config_(config), group_(group) {}

    [[nodiscard]] bool has_free_slot() const override { return free_slot() < slots(); }
    [[nodiscard]] bool idle() const override;
    [[nodiscard]] bool can_exist(const search::Genome&) const override { return true; }
    [[nodiscard]] bool wants_soon() const override { return has_free_slot(); }
    [[nodiscard]] std::vector<search::Individual> take_progress() override;
    void keep_alive(double seconds) override;
    void dismiss() override { command(Order{}); }

protected:
    /// Content of a slot.
    struct Evaluation {
        bool used = false;
        search::Individual individual{};
        std::int32_t rung = 0;    ///< last reported by take_progress()
        std::int32_t epochs = 0;  ///< last reported by take_progress()
    };

    [[nodiscard]] virtual std::uint32_t slots() const = 0;
    [[nodiscard]] virtual const Evaluation& evaluation(std::uint32_t slot) const = 0;
    [[nodiscard]] Evaluation& evaluation(std::uint32_t slot) {
        return const_cast<Evaluation&>(std::as_const(*this).evaluation(slot));
    }
    /// Collective over the worker. What the leader itself does with an Order; the followers do the same.
    virtual void obey(const Order& order) = 0;
    /// Whether an evaluation that came further since it was told of is told of now, although neither a rung nor a
    /// budget of epochs asks for it.
    [[nodiscard]] virtual bool is_to_be_told(std::uint32_t) const { return false; }
    /// It is told of now.
    virtual void describe_progress(std::uint32_t) {}

    /// Collective over the worker: all ranks obey `order`.
    void command(const Order& order);
    /// slots(): there is none.
    [[nodiscard]] std::uint32_t free_slot() const;

    const config::Config& config_;
    const comm::Group& group_;

private:
    double last_order_ = 0;  ///< steady seconds
};

}  // namespace finch::evaluate
