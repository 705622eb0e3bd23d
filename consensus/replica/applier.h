// Applies what is committed, batch by batch, and answers those who proposed it.
#pragma once

#include "consensus/core/core.h"

#include <lockstep/replica.h>
#include <lockstep/state_machine.h>

#include <boost/circular_buffer.hpp>

#include <cstdint>
#include <vector>

namespace lockstep::replica {

// Not thread-safe; everything runs on the protocol thread. Callbacks may push new requests, but not call back here.
class Applier {
 public:
    explicit Applier(StateMachine& state_machine);

    // The command at `index` was appended by this leader; `done` waits for its end. Rising indices.
    void expect(Index index, Replica::Done done);
    // Applies the next batch of what `core` has committed, at most kMaxEntries entries and about kMaxBytes bytes, and
    // answers its proposers. Returns how far the log is applied now.
    log::Point apply_some(const core::Core& core);
    // Ends all that was expected, as unknown (S17).
    void lose_all();

    static constexpr std::size_t kMaxEntries = 1024;
    static constexpr std::size_t kMaxBytes = std::size_t{1} << 20;

 private:
    struct Expected {
        Index index;
        Replica::Done done;
    };
    void answer();

    StateMachine& state_machine_;
    boost::circular_buffer<Expected> expected_;
    std::vector<Entry> batch_;
    Replies replies_;
};

}  // namespace lockstep::replica
