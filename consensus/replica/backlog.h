// Memory mode: the log from a snapshot on, kept while another replica takes that snapshot, so that it can go on from
// there however long that took (design section 8).
#pragma once

#include "consensus/replica/log_source.h"
#include "log/ring.h"

#include <cstdint>
#include <deque>
#include <vector>

namespace lockstep::replica {

class Backlog final : public LogSource {
 public:
    // `ring` is the replica's; `max_bytes` bounds what is kept.
    Backlog(const log::Ring& ring, std::uint64_t max_bytes)
        : ring_(ring), max_bytes_(max_bytes), chunk_bytes_(max_bytes / 16) {}

    // Begins at `at`, which is in the ring still, unless it has begun.
    void start(Position at);
    // Copies what has been committed since; before what it names is applied, and may be written over.
    void extend(Position commit);
    // Nobody needs what lies below.
    void forget(Position below);
    void stop() {
        chunks_.clear();
        full_ = false;
    }
    // More has come than was to be kept: nothing may be appended to the log. From then on until it stops, so that who
    // takes it comes to its end, and does not run behind for ever.
    bool full() const { return full_; }

    Position begin() const override;
    void read(ReplicaId peer, Position at, std::uint64_t bytes) override;
    void take(std::vector<LogBytes>& read) override;

 private:
    struct Chunk {
        Position begin;
        std::vector<std::byte> bytes;  // chunk_bytes_ of room
    };

    log::Ring ring_;
    const std::uint64_t max_bytes_;
    const std::uint64_t chunk_bytes_;
    std::deque<Chunk> chunks_;  // none: not begun
    Position end_;
    bool full_ = false;
    std::vector<LogBytes> read_;
};

}  // namespace lockstep::replica
