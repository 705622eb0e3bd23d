// The write-ahead log and the hard state, as a state machine: the protocol's thread says what is to be kept, and asks
// what is durable; whoever performs disk operations asks for the next job, performs it, and says how it ended.
//
// One job at a time, so one fdatasync covers everything that gathered while the one before it ran (group commit), and
// an older write to a place has always ended when a newer one to it is issued (S8). Jobs come in the order in which
// safety needs them: a promise first, then a truncation, then what was released, then the stream.
#pragma once

#include "log/disk/disk.h"
#include "log/ring.h"
#include "log/wal/recovery.h"

#include <lockstep/result.h>
#include <lockstep/types.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace lockstep::log {

// Operations to be performed in order, up to the first that fails. They and their data belong to the WAL, and stand
// until the job is finished.
class DiskJob {
 public:
    static constexpr std::size_t kMaxOperations = 8;

    std::span<const DiskOperation> operations() const { return {operations_.data(), count_}; }

 private:
    friend class Wal;
    void push(const DiskOperation& operation) {
        LOCKSTEP_CHECK_OP(count_, <, kMaxOperations);
        operations_[count_++] = operation;
    }

    std::array<DiskOperation, kMaxOperations> operations_;
    std::size_t count_ = 0;
};

enum class Taken : std::uint8_t {
    all,
    full,    // as much as there was room for; there is more after a job has finished
    broken,  // the bytes do not verify, and S8 or S11 says that they should: a broken invariant of who handed them in
};

// For one thread: none of its calls blocks, and none but `start_anew`, `release` and a new segment allocates. A job's
// operations may be performed by another thread meanwhile.
class Wal {
 public:
    // Goes on behind what was recovered: everything behind `recovered.end` is cut by the first jobs. What was lost
    // with it stays on disk as owed() until it is made up for (S14). Where the log is corrupt, what is behind the break
    // stays too, untouched, until there is something to take its place: it may be all that is left of it.
    // `copy` is memory of its own, as large as the ring: what goes to disk was verified there, after it was copied.
    Wal(const Recovered& recovered, const Ring& copy);

    // -- What is to be kept -----------------------------------------------------------------------------------------

    // Copies the stream from appended() to `end`, where an entry ends, out of `ring`, and verifies the copy.
    Taken append(const Ring& ring, Position end);
    // From now on a batch begins where so many bytes are not durable; 0, as at first: with any.
    void gather(std::uint64_t bytes) { gather_ = bytes; }
    // A ballot that is not below the promised one. It is on disk when kept().promised says so, and not before (S1).
    void promise(Ballot ballot, Incarnation candidate);
    // That the entries up to there, of those in this log, are committed: on disk with the next batch, or by itself if
    // `now`. What is said of entries that are cut afterwards, or not yet durable, is held back.
    void commit(Index upto, bool now);
    // Cuts everything behind `at`, a point of this log at which a believed entry first differs (S8). durable() falls at
    // once, the floor on disk falls before anything is cut (S10).
    void truncate(const Point& at);
    // What lies below is covered by a durable snapshot, and may go, by whole segments. False, and nothing done, while
    // something is being cut.
    bool release(Position below);
    // The log starts anew behind a durable snapshot; nothing of the old one is kept.
    void start_anew(const Point& base);
    // The protocol has found that what is owed() need not be made up for (S14).
    void forgive();

    // -- The disk's side --------------------------------------------------------------------------------------------

    // The next job, or null: one is not finished yet, there is nothing to do, or the WAL has stopped. The job stands
    // until `finish`.
    const DiskJob* next();
    // How the job ended. A failure stops the WAL for good (S13): durable() and kept() never change again.
    void finish(const Result<void>& outcome);

    // -- How things are ---------------------------------------------------------------------------------------------

    const Point& durable() const { return durable_; }
    const Point& appended() const { return appended_; }
    const Point& base() const { return wanted_.base; }
    // Whether the log on disk is the one that was started last.
    bool settled() const { return kept_.era == wanted_.era; }
    // The hard state on disk.
    const HardState& kept() const { return kept_; }
    const Owed& owed() const { return wanted_.owed; }
    // What a restart would know to be committed, as far as it was told by `commit`.
    Index committed() const { return std::max(committed_kept_, kept_.base.index); }
    // Why it has stopped.
    const std::optional<Error>& stopped() const { return stopped_; }
    bool busy() const { return doing_ != Doing::nothing; }
    std::uint64_t batches() const { return batches_; }

 private:
    enum class Doing : std::uint8_t {
        nothing, hard_state, lower_floor, remove_segment, blank, clean, spare, batch, floor
    };

    bool plan_hard_state();
    bool plan_cut();
    bool plan_clean();
    bool plan_spare();
    bool plan_batch();
    bool plan_floor();
    void finish_cut_step();
    void finish_batch();

    void open_segment(Position first);
    void write_floor(Position begin, const Point& end, Position first);
    // The lap of the last byte below `end`, or of the base.
    Position lap_of_end(Position end) const;
    void drop_behind(const Point& at);
    void let_rest_go();
    bool segment_needed() const;

    const Ring copy_;
    DiskJob job_;
    Doing doing_ = Doing::nothing;
    std::optional<Error> stopped_;

    HardState kept_;    // on disk
    HardState wanted_;  // to be there
    HardState writing_;
    std::uint64_t hard_sequence_;
    bool hard_open_ = false;
    bool hard_dirty_ = false;
    bool mirror_owed_ = false;  // the other slot says something older

    Point durable_;
    Point appended_;
    bool holds_rest_;           // what is behind a break stays as it is until something is appended
    std::optional<Point> lap_end_;  // between durable and appended, if a lap ends there; no batch goes past it
    Position lap_data_end_;         // where its bytes end: a pad's body is not written
    std::uint64_t gather_ = 0;
    bool owed_reached_ = false;     // what was appended has the owed point in it

    std::vector<Segment> segments_;
    std::optional<Position> open_segment_;
    std::vector<Leftover> leftovers_;
    bool spare_ = false;
    std::uint64_t generation_;  // of the newest floor, written or being written

    std::optional<Point> cut_;   // to be carried out, before any batch
    std::optional<Point> step_of_;  // the cut that the job in flight is a step of
    enum class CutStep : std::uint8_t { lower_floor, remove, blank } cut_step_ = CutStep::lower_floor;

    Index committed_;       // told
    Index committed_writing_;
    Index committed_kept_;  // in a floor on disk
    bool floor_wanted_ = false;

    Point batch_end_;           // of the batch in flight
    bool fresh_batch_ = false;  // it began a segment
    bool overtaken_ = false;    // that batch was cut while it was written
    bool batch_of_old_era_ = false;
    std::uint64_t batches_ = 0;

    // What jobs in flight write.
    HardStateBlock hard_block_{};
    SegmentBlock segment_block_{};
    std::array<FloorBlock, 2> floor_blocks_{};
};

}  // namespace lockstep::log
