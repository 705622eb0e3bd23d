// Which device, port and address an RDMA fabric uses. `survey` looks at the machine; `choose` is a pure function of
// what it found.
#pragma once

#include <lockstep/result.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::transport::rdma {

using Gid = std::array<std::uint8_t, 16>;

enum class GidKind : std::uint8_t { infiniband, roce_v1, roce_v2 };

struct GidEntry {
    int index = 0;
    GidKind kind = GidKind::infiniband;
    Gid gid{};
    std::string interface;       // the network interface that it belongs to; empty if the system does not say
};

struct PortInfo {
    int number = 1;
    bool active = false;
    std::string state;           // "active", "down", ...
    bool ethernet = true;        // else InfiniBand
    std::uint16_t lid = 0;       // InfiniBand
    unsigned mtu_bytes = 0;
    std::vector<GidEntry> gids;  // those that are set
};

struct DeviceInfo {
    std::string name;
    bool hardware = true;        // a card, and not a driver over a network interface
    std::string problem;         // why it could not be looked at; else empty
    std::vector<PortInfo> ports;
};

// All RDMA devices of this machine. Blocks for as long as they take to answer.
std::vector<DeviceInfo> survey();

struct Wish {
    std::string address;         // the replica's own, as text: the RoCE entry is chosen by it
    std::string device;          // empty: any
    int port = 0;                // 0: any
    int gid_index = -1;          // -1: chosen by the address
};

struct Choice {
    std::string device;
    bool hardware = true;
    int port = 1;
    bool ethernet = true;
    int gid_index = 0;
    Gid gid{};
    // "rxe1, GID 1 10.9.0.1"
    std::string text() const;
};

// The first device and port that fit; on Ethernet with the RoCE v2 entry of the address (or, where a device is named
// and the address is a loopback one, its first RoCE v2 entry); an InfiniBand port goes by its LID. The error says what
// there is, line by line, and why each was refused.
Result<Choice> choose(const std::vector<DeviceInfo>& devices, const Wish& wish);

// "10.9.0.1" for an entry that holds an IPv4 address, else IPv6 notation.
std::string to_string(const Gid& gid);

}  // namespace lockstep::transport::rdma
