#include "finch/cluster/network.hpp"

#include "finch/base/format.hpp"

#include <algorithm>
#include <ifaddrs.h>
#include <iterator>
#include <memory>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sstream>
#include <sys/socket.h>

namespace finch::cluster {
namespace {

std::uint32_t number_of(const sockaddr* address) {
    return address == nullptr ? 0 : ntohl(reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr);
}

bool is_in(const NetworkPlace& place, const NetworkPlace& network) {
    return (place.address & network.mask) == (network.address & network.mask);
}

}  // namespace

std::vector<NetworkPlace> network_places() {
    std::vector<NetworkPlace> places;
    ifaddrs* first = nullptr;
    if (::getifaddrs(&first) != 0) {
        return places;
    }
    const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> all(first, ::freeifaddrs);
    for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
        const bool is_used = (one->ifa_flags & IFF_UP) != 0 && (one->ifa_flags & IFF_LOOPBACK) == 0;
        if (is_used && one->ifa_addr != nullptr && one->ifa_addr->sa_family == AF_INET) {
            places.push_back({number_of(one->ifa_addr), number_of(one->ifa_netmask)});
        }
    }
    return places;
}

std::string to_text(const std::vector<NetworkPlace>& places) {
    std::vector<std::string> words;
    for (const NetworkPlace& place : places) {
        words.push_back(fmt::format("{} {}", place.address, place.mask));
    }
    return fmt::format("{}", fmt::join(words, " "));
}

std::vector<NetworkPlace> network_places_in(const std::string& text) {
    std::vector<NetworkPlace> places;
    std::istringstream words(text);
    for (NetworkPlace place; words >> place.address >> place.mask;) {
        places.push_back(place);
    }
    return places;
}

bool resolves(const std::string& host) {
    addrinfo wanted{};
    wanted.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const bool has_address = ::getaddrinfo(host.c_str(), nullptr, &wanted, &found) == 0;
    if (has_address) {
        ::freeaddrinfo(found);
    }
    return has_address;
}

std::string address_towards(const std::vector<NetworkPlace>& theirs, const std::vector<NetworkPlace>& mine) {
    const auto is_near = [&mine](const NetworkPlace& place) {
        return std::any_of(mine.begin(), mine.end(),
                           [&place](const NetworkPlace& network) { return is_in(place, network); });
    };
    const auto is_mine = [&mine](const NetworkPlace& place) {
        return std::find(mine.begin(), mine.end(), place) != mine.end();
    };
    std::vector<NetworkPlace> candidates;
    std::remove_copy_if(theirs.begin(), theirs.end(), std::back_inserter(candidates), is_mine);
    candidates = candidates.empty() ? theirs : candidates;  // all addresses are equal: it is this node
    if (candidates.empty()) {
        return "";
    }
    const auto near = std::find_if(candidates.begin(), candidates.end(), is_near);
    const std::uint32_t address = (near == candidates.end() ? candidates.begin() : near)->address;
    return fmt::format("{}.{}.{}.{}", address >> 24, address >> 16 & 255, address >> 8 & 255, address & 255);
}

}  // namespace finch::cluster
