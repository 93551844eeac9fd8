#pragma once

#include "finch/base/bytes.hpp"

#include <memory>
#include <span>
#include <vector>

namespace finch::comm {

/// The bytes of a message, which several sends can share.
using Message = std::shared_ptr<const Bytes>;

struct Envelope {
    int from = 0;  ///< worker index
    Bytes bytes;
};

/// Messages between the leaders. No function blocks. A leader is identified by the index of its worker.
class Mailbox {
public:
    virtual ~Mailbox() = default;

    [[nodiscard]] virtual int self() const = 0;
    [[nodiscard]] virtual int leaders() const = 0;

    /// Sends `message` to the leader `to`, which may be the sender itself. Does not block. `counted`: true if the
    /// closing waits for this message (messages about leases are not counted).
    virtual void send(int to, Message message, bool counted) = 0;
    /// Returns the messages that have arrived. The messages of one sender are in the order in which they were sent.
    /// Does not block. Frees the buffers of finished sends.
    [[nodiscard]] virtual std::vector<Envelope> take() = 0;

    /// Declares that this leader sends no more counted messages: a counted send() then throws Error. Does not block.
    /// Called once per run.
    virtual void begin_closing() = 0;
    /// True if every leader has begun closing and all counted messages sent to this leader have been taken. Does not
    /// block. Call closed() again, with take() in between, until closed() returns true.
    [[nodiscard]] virtual bool closed() = 0;
};

}  // namespace finch::comm
