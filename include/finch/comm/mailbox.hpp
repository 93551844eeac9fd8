#pragma once

#include "finch/base/bytes.hpp"

#include <memory>
#include <span>
#include <vector>

namespace finch::comm {

/// Bytes that several sends share.
using Message = std::shared_ptr<const Bytes>;

struct Envelope {
    int from = 0;  ///< worker
    Bytes bytes;
};

/// Messages between the leaders. Nothing here waits; a leader is named by its worker's index.
class Mailbox {
public:
    virtual ~Mailbox() = default;

    [[nodiscard]] virtual int self() const = 0;
    [[nodiscard]] virtual int leaders() const = 0;

    /// Hands `message` to the leader `to`; to oneself too. Does not block. `counted`: whether the closing waits for it
    /// (messages of leases are not counted).
    virtual void send(int to, Message message, bool counted) = 0;
    /// The messages that have arrived, each sender's in the order in which they were sent. Does not block; reaps
    /// finished sends.
    [[nodiscard]] virtual std::vector<Envelope> take() = 0;

    /// Says that this leader sends nothing counted any more: a counted send() then throws Error. Does not block. Once
    /// per run.
    virtual void begin_closing() = 0;
    /// Whether every leader has begun closing and everything counted that was sent to this one has been taken. Does not
    /// block; to be asked again, with take() between, until true.
    [[nodiscard]] virtual bool closed() = 0;
};

}  // namespace finch::comm
