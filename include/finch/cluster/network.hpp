#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace finch::cluster {

/// An address of IPv4 and the mask of its network, as numbers.
struct NetworkPlace {
    std::uint32_t address = 0;
    std::uint32_t mask = 0;
    bool operator==(const NetworkPlace&) const = default;
};

/// Addresses of this node's interfaces that are up, without the loopback.
[[nodiscard]] std::vector<NetworkPlace> network_places();
/// Conversion to text without spaces at its ends, and back; unreadable parts are left out.
[[nodiscard]] std::string to_text(const std::vector<NetworkPlace>& places);
[[nodiscard]] std::vector<NetworkPlace> network_places_in(const std::string& text);

/// Whether `host` has an address here. May ask a name server.
[[nodiscard]] bool resolves(const std::string& host);
/// "10.0.0.1": the first of `theirs` in a network that one of `mine` is in too, else the first; empty if there is
/// none. An address that both nodes have (a bridge of containers) leads nowhere, and is taken last.
[[nodiscard]] std::string address_towards(const std::vector<NetworkPlace>& theirs,
                                          const std::vector<NetworkPlace>& mine);

}  // namespace finch::cluster
