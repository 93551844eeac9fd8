#include "simulate/network.hpp"

#include "finch/base/error.hpp"

#include <doctest/doctest.h>
#include <limits>

using namespace finch;
using namespace finch::simulate;

namespace {

comm::Message message(int number) {
    return std::make_shared<const Bytes>(1, static_cast<std::byte>(number));
}

std::vector<int> numbers(const std::vector<comm::Envelope>& envelopes) {
    std::vector<int> found;
    for (const comm::Envelope& envelope : envelopes) {
        found.push_back(static_cast<int>(envelope.bytes.at(0)));
    }
    return found;
}

struct Wake {
    int leader = 0;
    double time = 0;
    bool operator==(const Wake&) const = default;
};

}  // namespace

TEST_CASE("Network: a message arrives once, in order, after the delay; a message to the sender has no delay") {
    double now = 10;
    Network network(3, 0.5, [&now] { return now; });
    network.mailbox(0).send(1, message(1), true);
    now = 10.25;
    network.mailbox(2).send(1, message(2), false);
    network.mailbox(0).send(1, message(3), true);
    network.mailbox(1).send(1, message(4), true);

    CHECK(network.next_arrival(1) == 10.25);
    CHECK(numbers(network.mailbox(1).take()) == std::vector{4});
    CHECK(network.next_arrival(1) == 10.5);
    now = 10.5;
    const auto first = network.mailbox(1).take();
    CHECK(numbers(first) == std::vector{1});
    CHECK(first[0].from == 0);
    CHECK(network.mailbox(1).take().empty());
    now = 10.75;
    CHECK(numbers(network.mailbox(1).take()) == std::vector{2, 3});
    CHECK(network.next_arrival(1) == std::numeric_limits<double>::infinity());
    CHECK(network.mailbox(0).take().empty());
    CHECK(network.messages() == 3);
}

TEST_CASE("Network: a mailbox closes only after all leaders began to close and it has taken all counted messages") {
    double now = 0;
    Network network(2, 1, [&now] { return now; });
    network.mailbox(0).send(1, message(1), true);
    network.mailbox(0).begin_closing();
    now = 0.5;
    network.mailbox(1).send(0, message(2), false);
    network.mailbox(1).begin_closing();

    CHECK_FALSE(network.mailbox(0).closed());
    CHECK(network.next_arrival(0) == 1.5);
    now = 1.5;
    CHECK(network.mailbox(0).closed());
    CHECK_FALSE(network.mailbox(1).closed());
    CHECK(numbers(network.mailbox(1).take()) == std::vector{1});
    CHECK(network.mailbox(1).closed());
    CHECK_THROWS_AS(network.mailbox(0).send(1, message(3), true), Error);
    network.mailbox(0).send(1, message(3), false);
}

TEST_CASE("Network: wakes a leader for every message and for the closing") {
    double now = 2;
    std::vector<Wake> wakes;
    Network network(
        2, 0.5, [&now] { return now; },
        [&wakes](int leader, double time) {
            wakes.push_back({leader, time});
        });

    network.mailbox(0).send(1, message(1), true);
    network.mailbox(1).send(1, message(1), true);
    network.mailbox(0).begin_closing();
    network.mailbox(1).begin_closing();

    CHECK(wakes == std::vector<Wake>{{1, 2.5}, {1, 2}, {0, 2.5}, {1, 2.5}});
}
