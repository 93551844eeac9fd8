#include "finch/cluster/network.hpp"

#include <doctest/doctest.h>

using namespace finch::cluster;

namespace {

constexpr std::uint32_t address(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d) {
    return a << 24 | b << 16 | c << 8 | d;
}
constexpr std::uint32_t mask_24 = address(255, 255, 255, 0);
constexpr std::uint32_t mask_16 = address(255, 255, 0, 0);

}  // namespace

TEST_CASE("address_towards: returns a node's address in a network that both nodes share") {
    const std::vector<NetworkPlace> theirs{{address(192, 168, 1, 7), mask_24}, {address(10, 77, 3, 1), mask_16}};

    CHECK(address_towards(theirs, {{address(10, 77, 200, 2), mask_16}}) == "10.77.3.1");
    CHECK(address_towards(theirs, {{address(192, 168, 1, 200), mask_24}}) == "192.168.1.7");
    CHECK(address_towards(theirs, {{address(172, 16, 0, 1), mask_24}}) == "192.168.1.7");
    CHECK(address_towards(theirs, {}) == "192.168.1.7");
    const NetworkPlace bridge{address(172, 17, 0, 1), mask_16};
    const NetworkPlace one{address(10, 77, 3, 1), mask_16};
    const NetworkPlace other{address(10, 77, 3, 2), mask_16};
    CHECK(address_towards({bridge, one}, {bridge, other}) == "10.77.3.1");
    CHECK(address_towards({bridge, one}, {bridge, one}) == "172.17.0.1");  // both arguments describe the same node
    CHECK(address_towards({}, {{address(10, 0, 0, 1), mask_24}}).empty());
}

TEST_CASE("network_places_in: parses the text of to_text(), and ignores invalid text") {
    const std::vector<NetworkPlace> places{{1, 2}, {address(255, 255, 255, 255), 0}};
    CHECK(network_places_in(to_text(places)) == places);
    CHECK(network_places_in("").empty());
    CHECK(network_places_in("7 x").empty());
    for (const NetworkPlace& place : network_places()) {
        CHECK((place.address >> 24) != 127);
    }
}

TEST_CASE("resolves: false for an unknown host name, true for an address") {
    CHECK(resolves("127.0.0.1"));
    CHECK_FALSE(resolves("no-such-node.invalid"));
}
