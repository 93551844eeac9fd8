#pragma once

#include "finch/comm/mailbox.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace finch::simulate {

/// The mailboxes of leaders that are simulated in one process. A message to another leader arrives `delay_seconds`
/// after it was sent. A message to the sender itself arrives immediately. The mailboxes are closed `delay_seconds`
/// after the last leader began to close.
class Network {
public:
    /// `clock` returns seconds that never decrease. The network calls `wake`, which may be empty, with the time at
    /// which a message arrives at a leader or its mailbox closes.
    Network(int leaders, double delay_seconds, std::function<double()> clock,
            std::function<void(int leader, double time)> wake = {});
    ~Network();
    Network(const Network&) = delete;
    Network& operator=(const Network&) = delete;

    [[nodiscard]] comm::Mailbox& mailbox(int leader);
    /// Returns the time at which the next message arrives that `leader` has not taken, or at which its mailbox closes.
    /// Returns infinity if no message and no closing is pending.
    [[nodiscard]] double next_arrival(int leader) const;
    /// Returns the number of messages that were sent so far from one leader to another.
    [[nodiscard]] std::int64_t messages() const noexcept { return messages_; }

private:
    class Box;

    double delay_seconds_;
    std::function<double()> clock_;
    std::function<void(int, double)> wake_;
    std::vector<std::unique_ptr<Box>> boxes_;
    std::int64_t messages_ = 0;
    int closing_ = 0;        ///< the number of leaders that have begun to close
    double closed_at_ = -1;  ///< the time of the closing; -1 until all leaders have begun to close
};

}  // namespace finch::simulate
