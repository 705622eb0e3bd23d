// What a follower in a process of its own (follower.cc) says on its standard output, once it can be written to.
#pragma once

#include "transport/types.h"

#include <cstdint>
#include <type_traits>

#include <sys/types.h>

namespace lockstep::transport::contract {

struct FollowerHello {
    std::uint16_t port = 0;
    LaneAddress address;     // of a lane for r1
    pid_t child = 0;         // asleep, with --with-child; else 0
};
static_assert(std::is_trivially_copyable_v<FollowerHello>);

}  // namespace lockstep::transport::contract
