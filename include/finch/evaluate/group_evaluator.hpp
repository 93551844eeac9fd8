#pragma once

#include "finch/comm/group.hpp"
#include "finch/config/config.hpp"
#include "finch/evaluate/order.hpp"
#include "finch/island/evaluator.hpp"

#include <cstdint>
#include <vector>

namespace finch::evaluate {

/// A base class of evaluators, with the leader's view of a worker's evaluations. A GroupEvaluator keeps individuals in
/// slots and sends Orders that all ranks obey. The followers run follow().
class GroupEvaluator : public island::Evaluator {
public:
    /// Both arguments must outlive the evaluator.
    GroupEvaluator(const config::Config& config, const comm::Group& group) : config_(config), group_(group) {}

    [[nodiscard]] bool has_free_slot() const override { return free_slot() < slots(); }
    [[nodiscard]] bool idle() const override;
    [[nodiscard]] bool can_exist(const search::Genome&) const override { return true; }
    [[nodiscard]] bool wants_soon() const override { return has_free_slot(); }
    [[nodiscard]] std::vector<search::Individual> take_progress() override;
    [[nodiscard]] std::vector<const search::Individual*> in_progress() const override;
    void keep_alive(double seconds) override;
    void dismiss() override { command(Order{}); }

protected:
    /// Seconds that the followers wait for a leader that reads or writes a training's files.
    static constexpr double seconds_of_files = 600;

    /// The content of a slot.
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
    /// Collective over the worker. Carries out an Order on the leader; the followers do the same.
    virtual void obey(const Order& order) = 0;
    /// True if take_progress() must report the slot's new epochs now, although the evaluation reached no rung and there
    /// is no budget of epochs.
    [[nodiscard]] virtual bool is_to_be_told(std::uint32_t) const { return false; }
    /// Updates the individual's progress before take_progress() reports the individual.
    virtual void describe_progress(std::uint32_t) {}

    /// Computes what the costs and limits of the configuration need of a finished individual. An evaluated individual
    /// that lacks a metric has failed.
    void judge(search::Individual& individual) const;
    /// Collective over the worker. Sends `order` to the followers; all ranks obey it.
    void command(const Order& order);
    /// Returns the first free slot; slots() if all are in use.
    [[nodiscard]] std::uint32_t free_slot() const;

    const config::Config& config_;
    const comm::Group& group_;

private:
    double last_order_ = 0;  ///< steady seconds
};

}  // namespace finch::evaluate
