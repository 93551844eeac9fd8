#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace finch::cluster {

/// An IPv4 address and the mask of its network, as numbers.
struct NetworkPlace {
    std::uint32_t address = 0;
    std::uint32_t mask = 0;
    bool operator==(const NetworkPlace&) const = default;
};

/// Returns the addresses of this node's interfaces that are up, except the loopback interface.
[[nodiscard]] std::vector<NetworkPlace> network_places();
/// Converts addresses to text without spaces at its ends, and back. network_places_in() stops at the first unreadable
/// word.
[[nodiscard]] std::string to_text(const std::vector<NetworkPlace>& places);
[[nodiscard]] std::vector<NetworkPlace> network_places_in(const std::string& text);

/// True if this node can resolve the host name `host`. May ask a name server.
[[nodiscard]] bool resolves(const std::string& host);
/// Returns the address by which this node reaches another node, as "10.0.0.1"; empty if `theirs` is empty. Prefers the
/// first address in `theirs` that belongs to a network of `mine`; otherwise takes the first address. Takes an address
/// that both nodes have (for example of a container bridge) only if there is no other, because this address does not
/// lead to the other node.
[[nodiscard]] std::string address_towards(const std::vector<NetworkPlace>& theirs,
                                          const std::vector<NetworkPlace>& mine);

}  // namespace finch::cluster
