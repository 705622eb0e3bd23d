// What one end of a queue pair must know of the other. Fixed bytes, little endian; a part of calls and lane addresses.
#pragma once

#include "transport/rdma/choice.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace lockstep::transport::rdma {

struct PairAddress {
    std::uint32_t number = 0;     // of the queue pair, 24 bits
    std::uint32_t first_psn = 0;  // the packet sequence number that it starts with, 24 bits
    std::uint16_t lid = 0;        // InfiniBand; 0 on Ethernet
    std::uint8_t mtu = 0;         // ibv_mtu, the most that its port takes
    std::uint8_t reads = 0;       // reads that it can answer at once
    Gid gid{};                    // Ethernet
};

inline constexpr std::uint32_t kMax24 = 0xffffff;

// Whether the fields can be what they are to be: a card is not given garbage.
bool sound(const PairAddress& address);

}  // namespace lockstep::transport::rdma
