#include "finch/comm/mpi_mailbox.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <utility>

namespace finch::comm {
namespace {

constexpr int counted_tag = 1;
constexpr int uncounted_tag = 2;
/// The maximum number of messages per take(): without it, a flood of messages could keep take() from returning.
constexpr int most_arrivals_per_take = 1024;

bool is_done(MPI_Request& request) {
    int done = 0;
    FINCH_MPI(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
    return done != 0;
}

/// Messages to other leaders that may still be in transit. The buffers exist as long as MPI reads them.
class Outbox {
public:
    void send(MPI_Comm leaders, int to, Message message, bool counted) {
        if (message->size() > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
            throw Error(fmt::format("a message of {} bytes is too large for MPI", message->size()));
        }
        MPI_Request request = MPI_REQUEST_NULL;
        FINCH_MPI(MPI_Isend(message->data(), static_cast<int>(message->size()), MPI_BYTE, to,
                            counted ? counted_tag : uncounted_tag, leaders, &request));
        requests_.push_back(request);
        messages_.push_back(std::move(message));
    }

    /// Frees the buffers of completed transfers.
    void reap() {
        if (requests_.empty()) {
            return;
        }
        int count = 0;
        finished_.resize(requests_.size());
        FINCH_MPI(MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count, finished_.data(),
                               MPI_STATUSES_IGNORE));
        if (count == MPI_UNDEFINED || count == 0) {
            return;
        }
        // Removes entries from the last to the first, so that an entry that moves into a gap is never a completed one.
        std::sort(finished_.begin(), finished_.begin() + count, std::greater<>());
        for (int at = 0; at < count; ++at) {
            const auto gap = static_cast<std::size_t>(finished_[static_cast<std::size_t>(at)]);
            std::swap(requests_[gap], requests_.back());
            std::swap(messages_[gap], messages_.back());
            requests_.pop_back();
            messages_.pop_back();
        }
    }

    [[nodiscard]] bool empty() const noexcept { return requests_.empty(); }

private:
    std::vector<MPI_Request> requests_;
    std::vector<Message> messages_;  ///< by request
    std::vector<int> finished_;
};

struct Arrival {
    Envelope envelope;
    bool counted = false;
    MPI_Request request = MPI_REQUEST_NULL;
};

/// Messages that were matched but not yet returned, in the order in which they were matched.
class Inbox {
public:
    explicit Inbox(int leaders) : blocked_(static_cast<std::size_t>(leaders), 0) {}

    /// Adds a message from this leader to itself.
    void put(int self, const Message& message, bool counted) {
        arrivals_.push_back({{self, *message}, counted, MPI_REQUEST_NULL});
    }

    /// Starts to receive the messages that have arrived.
    void match(MPI_Comm leaders) {
        for (int count = 0; count < most_arrivals_per_take; ++count) {
            int there = 0;
            MPI_Message handle = MPI_MESSAGE_NULL;
            MPI_Status status;
            FINCH_MPI(MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, leaders, &there, &handle, &status));
            if (there == 0 && count == 0) {
                // Open MPI's probe first searches its queue and then adds messages that arrived since the last call. A
                // second probe finds messages that the first one missed.
                FINCH_MPI(MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, leaders, &there, &handle, &status));
            }
            if (there == 0) {
                return;
            }
            int size = 0;
            FINCH_MPI(MPI_Get_count(&status, MPI_BYTE, &size));
            Arrival& arrival = arrivals_.emplace_back();
            arrival.envelope.from = status.MPI_SOURCE;
            arrival.envelope.bytes.resize(static_cast<std::size_t>(size));
            arrival.counted = status.MPI_TAG == counted_tag;
            FINCH_MPI(MPI_Imrecv(arrival.envelope.bytes.data(), size, MPI_BYTE, &handle, &arrival.request));
        }
    }

    /// Returns and removes complete messages. Keeps the messages of a sender that follow its first incomplete message.
    /// Adds the number of counted messages to `counted`.
    [[nodiscard]] std::vector<Envelope> collect(std::int64_t& counted) {
        std::vector<Envelope> complete;
        std::fill(blocked_.begin(), blocked_.end(), char{0});
        std::size_t kept = 0;
        for (Arrival& arrival : arrivals_) {
            char& blocked = blocked_[static_cast<std::size_t>(arrival.envelope.from)];
            if (blocked != 0 || !is_done(arrival.request)) {
                blocked = 1;
                if (&arrivals_[kept] != &arrival) {
                    arrivals_[kept] = std::move(arrival);
                }
                ++kept;
                continue;
            }
            counted += arrival.counted ? 1 : 0;
            complete.push_back(std::move(arrival.envelope));
        }
        arrivals_.resize(kept);
        return complete;
    }

    [[nodiscard]] bool empty() const noexcept { return arrivals_.empty(); }

private:
    std::deque<Arrival> arrivals_;
    std::vector<char> blocked_;  ///< by sender
};

/// The protocol of closing, from "this leader sends no more counted messages" to "all leaders have received
/// everything". No step blocks.
class Closing {
public:
    explicit Closing(int leaders) : sent_(static_cast<std::size_t>(leaders), 0) {}

    void count_sent(int to) { ++sent_[static_cast<std::size_t>(to)]; }
    [[nodiscard]] bool has_begun() const noexcept { return step_ != Step::open; }
    [[nodiscard]] bool under_way() const noexcept { return step_ == Step::counting || step_ == Step::leaving; }

    void begin(MPI_Comm leaders) {
        FINCH_MPI(MPI_Ireduce_scatter_block(sent_.data(), &expected_, 1, MPI_INT64_T, MPI_SUM, leaders, &request_));
        step_ = Step::counting;
    }

    /// Continues the closing as far as possible. `taken`: the number of counted messages that take() has returned. True
    /// once closing is complete.
    [[nodiscard]] bool is_over(MPI_Comm leaders, std::int64_t taken) {
        if (step_ == Step::counting && is_done(request_)) {
            step_ = Step::draining;
        }
        if (step_ == Step::draining && taken > expected_) {
            throw Error(fmt::format("{} counted messages were taken where {} were sent", taken, expected_));
        }
        if (step_ == Step::draining && taken == expected_) {
            FINCH_MPI(MPI_Ibarrier(leaders, &request_));
            step_ = Step::leaving;
        }
        if (step_ == Step::leaving && is_done(request_)) {
            step_ = Step::over;
        }
        return step_ == Step::over;
    }

private:
    enum class Step { open, counting, draining, leaving, over };
    Step step_ = Step::open;
    std::vector<std::int64_t> sent_;  ///< counted messages, by receiver
    std::int64_t expected_ = 0;       ///< counted messages sent to this leader, known after counting
    MPI_Request request_ = MPI_REQUEST_NULL;
};

class MpiMailbox : public Mailbox {
public:
    explicit MpiMailbox(MPI_Comm leaders) : traffic_(std::make_unique<Traffic>(leaders)) {
        self_ = rank_of(traffic_->leaders.get());
        count_ = size_of(traffic_->leaders.get());
    }
    MpiMailbox(const MpiMailbox&) = delete;
    MpiMailbox& operator=(const MpiMailbox&) = delete;
    ~MpiMailbox() override {
        if (!traffic_->outbox.empty() || !traffic_->inbox.empty() || traffic_->closing.under_way()) {
            (void)traffic_.release();  // MPI still uses the buffers, until the process ends
        }
    }

    [[nodiscard]] int self() const override { return self_; }
    [[nodiscard]] int leaders() const override { return count_; }

    void send(int to, Message message, bool counted) override {
        if (to < 0 || to >= count_) {
            throw Error(fmt::format("a message to leader {}, where there are {}", to, count_));
        }
        if (counted && traffic_->closing.has_begun()) {
            throw Error("a counted message after the closing has begun");
        }
        if (counted) {
            traffic_->closing.count_sent(to);
        }
        if (to == self_) {
            traffic_->inbox.put(self_, message, counted);
        } else {
            traffic_->outbox.send(traffic_->leaders.get(), to, std::move(message), counted);
        }
    }

    [[nodiscard]] std::vector<Envelope> take() override {
        traffic_->outbox.reap();
        traffic_->inbox.match(traffic_->leaders.get());
        return traffic_->inbox.collect(taken_);
    }

    void begin_closing() override {
        if (traffic_->closing.has_begun()) {
            throw Error("the closing has begun already");
        }
        traffic_->closing.begin(traffic_->leaders.get());
    }

    [[nodiscard]] bool closed() override { return traffic_->closing.is_over(traffic_->leaders.get(), taken_); }

private:
    /// The buffers that MPI may still use after this object is destroyed. The buffers are in one object, which can
    /// outlive the mailbox.
    struct Traffic {
        explicit Traffic(MPI_Comm of) : leaders(duplicate(of)), inbox(size_of(of)), closing(size_of(of)) {}
        Communicator leaders;
        Outbox outbox;
        Inbox inbox;
        Closing closing;
    };

    std::unique_ptr<Traffic> traffic_;
    int self_ = 0;
    int count_ = 1;
    std::int64_t taken_ = 0;  ///< counted messages that take() has returned
};

}  // namespace

std::unique_ptr<Mailbox> make_mpi_mailbox(MPI_Comm leaders) {
    return std::make_unique<MpiMailbox>(leaders);
}

Communicator make_leaders(MPI_Comm world, bool is_leader, int worker) {
    MPI_Comm leaders = MPI_COMM_NULL;
    FINCH_MPI(MPI_Comm_split(world, is_leader ? 0 : MPI_UNDEFINED, worker, &leaders));
    return own(leaders);
}

}  // namespace finch::comm
