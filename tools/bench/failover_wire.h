// What the client of a fail-over round and its replicas say to one another: whole structs over a socket that keeps
// their bounds, between processes of one program.
#pragma once

#include "tools/bench/failover_steps.h"

#include <lockstep/replica.h>

#include <cstdint>

namespace lockstep::bench {

struct Request {
    enum class Kind : std::uint8_t {
        propose,
        status,
        watch,  // from now on note the steps of an election
        steps,  // when were they taken
    };
    std::uint64_t number = 0;  // returned in the answer
    Kind kind = Kind::propose;
};

struct Answer {
    std::uint64_t number = 0;
    Fate fate = Fate::unknown;
    Reason reason = Reason::none;
    std::uint8_t leader = 0;     // who leads, as far as this replica knows; 0: unknown
    std::uint8_t streaming = 0;  // of a status: how many lanes are up to date
    bool leads = false;          // of a status
    StepTimes steps_ns{};        // of steps
};

}  // namespace lockstep::bench
