#include "simulate/network.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace finch::simulate {

class Network::Box : public comm::Mailbox {
public:
    Box(Network& network, int self) : network_(network), self_(self) {}

    [[nodiscard]] int self() const override { return self_; }
    [[nodiscard]] int leaders() const override { return static_cast<int>(network_.boxes_.size()); }

    void send(int to, comm::Message message, bool counted) override {
        if (counted && is_closing_) {
            throw Error(fmt::format("leader {} sends a counted message after it began to close", self_));
        }
        const bool is_for_another = to != self_;
        const double arrival = network_.clock_() + (is_for_another ? network_.delay_seconds_ : 0);
        network_.messages_ += is_for_another ? 1 : 0;
        Box& target = *network_.boxes_.at(static_cast<std::size_t>(to));
        target.counted_ += counted ? 1 : 0;
        target.parcels_.push_back({arrival, self_, counted, std::move(message)});
        if (network_.wake_) {
            network_.wake_(to, arrival);
        }
    }

    [[nodiscard]] std::vector<comm::Envelope> take() override {
        std::vector<comm::Envelope> taken;
        const double now = network_.clock_();
        // A parcel that this leader sent to itself may arrive before older parcels of other leaders.
        std::size_t kept = 0;
        for (std::size_t i = 0; i < parcels_.size(); ++i) {
            Parcel& parcel = parcels_[i];
            if (parcel.arrival <= now) {
                taken.push_back({parcel.from, *parcel.message});
                counted_ -= parcel.counted ? 1 : 0;
            } else {
                std::swap(parcels_[kept++], parcel);
            }
        }
        parcels_.resize(kept);
        return taken;
    }

    void begin_closing() override {
        is_closing_ = true;
        if (++network_.closing_ < leaders()) {
            return;
        }
        network_.closed_at_ = network_.clock_() + network_.delay_seconds_;
        for (int leader = 0; network_.wake_ && leader < leaders(); ++leader) {
            network_.wake_(leader, network_.closed_at_);
        }
    }

    [[nodiscard]] bool closed() override {
        return network_.closing_ == leaders() && network_.clock_() >= network_.closed_at_ && counted_ == 0;
    }

    [[nodiscard]] double next_arrival() const {
        const bool is_to_close = network_.closed_at_ > network_.clock_();
        double next = is_to_close ? network_.closed_at_ : std::numeric_limits<double>::infinity();
        for (const Parcel& parcel : parcels_) {
            next = std::min(next, parcel.arrival);
        }
        return next;
    }

private:
    struct Parcel {
        double arrival = 0;
        int from = 0;
        bool counted = false;
        comm::Message message;
    };
    Network& network_;
    int self_;
    std::vector<Parcel> parcels_;  ///< in the order in which they were sent
    std::int64_t counted_ = 0;     ///< the number of counted messages in parcels_
    bool is_closing_ = false;
};

Network::Network(int leaders, double delay_seconds, std::function<double()> clock,
                 std::function<void(int, double)> wake)
    : delay_seconds_(delay_seconds), clock_(std::move(clock)), wake_(std::move(wake)) {
    for (int leader = 0; leader < leaders; ++leader) {
        boxes_.push_back(std::make_unique<Box>(*this, leader));
    }
}

Network::~Network() = default;

comm::Mailbox& Network::mailbox(int leader) {
    return *boxes_.at(static_cast<std::size_t>(leader));
}

double Network::next_arrival(int leader) const {
    return boxes_.at(static_cast<std::size_t>(leader))->next_arrival();
}

}  // namespace finch::simulate
