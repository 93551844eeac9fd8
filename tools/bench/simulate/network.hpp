#pragma once

#include "finch/comm/mailbox.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace finch::simulate {

/// The mailboxes of leaders that live in one process. A message is taken `delay_seconds` after it was sent, one to
/// oneself at once; mailboxes are closed so long after the last leader began to close.
class Network {
public:
    /// `clock`: seconds that never go back. `wake`, which may be empty, hears when a leader's mailbox next has
    /// something new.
    Network(int leaders, double delay_seconds, std::function<double()> clock,
            std::function<void(int leader, double time)> wake = {});
    ~Network();
    Network(const Network&) = delete;
    Network& operator=(const Network&) = delete;

    [[nodiscard]] comm::Mailbox& mailbox(int leader);
    /// When the first message that `leader` has not taken arrives, or its mailbox is closed; infinity if neither is
    /// to come.
    [[nodiscard]] double next_arrival(int leader) const;
    /// Sent so far, from one leader to another.
    [[nodiscard]] std::int64_t messages() const noexcept { return messages_; }

private:
    class Box;

    double delay_seconds_;
    std::function<double()> clock_;
    std::function<void(int, double)> wake_;
    std::vector<std::unique_ptr<Box>> boxes_;
    std::int64_t messages_ = 0;
    int closing_ = 0;        ///< leaders that have begun
    double closed_at_ = -1;  ///< once all have
};

}  // namespace finch::simulate
