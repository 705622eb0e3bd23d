// Power that is lost, after a process was killed: what it had not made durable is taken back.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep::faults {

struct Lost {
    std::uint64_t sectors = 0;  // of which an older state came back
    std::uint64_t names = 0;    // created, renamed or removed, and not so any more
};

// By the journal in `side`, of the files in `data` (faulty_disk.cc): each sector of 512 bytes that was written and not
// synced gets one of the states that it had since, and of what was created, renamed and removed in a folder since that
// was synced some of the last is undone, drawn by `seed`; where that is even, all of it. Then the journal is empty.
// Only while no process writes there. Throws std::runtime_error where files are not as the journal says.
Lost lose_power(const std::string& data, const std::string& side, std::uint64_t seed);

}  // namespace lockstep::faults
