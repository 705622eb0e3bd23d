// What clients saw and what replicas did, held against each other. Stands outside the code under test.
#pragma once

#include "consensus/core/config.h"

#include <lockstep/replica.h>
#include <lockstep/types.h>

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::sim {

// A safety rule is broken: the message says which, where and when.
struct Violation : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// The cluster does not get on though nothing hinders it.
struct NoProgress : Violation {
    using Violation::Violation;
};

// The checkers. Every call throws Violation where what it is told cannot be.
class History {
 public:
    // -- Replicas --
    // `id` leads in `ballot`: nobody else ever does.
    void leads(ReplicaId id, Ballot ballot);
    // Life `incarnation` of `id` knows the entry at `index` to be committed, with this checksum: the same everywhere,
    // for ever, and never less than before.
    void committed(ReplicaId id, Incarnation incarnation, Index index, std::uint64_t checksum);
    // Who votes as of that commit is the same for every replica, whoever says it (S16).
    void configured(ReplicaId id, Index commit, const core::Config& config);
    // A leader counts by the newest config of its log (S5, S16).
    void counts_by(ReplicaId id, const core::Config& config, const core::ConfigAt& newest);
    // Life `incarnation` of `id` applies `command`: in order, none left out or twice, the same everywhere.
    void applied(ReplicaId id, Incarnation incarnation, Index index, std::string_view command);
    // Life `incarnation` of `id` takes a snapshot of every command up to the one at `index`, and goes on from there.
    void restored(ReplicaId id, Incarnation incarnation, Index index);
    // The entry at `index` bears this ballot and time: times never go back, and within a ballot they do not run ahead
    // of the time that goes by, `now_ns`, whatever the leader's wall clock does.
    void stamped(Index index, Ballot ballot, std::uint64_t timestamp_ns, std::uint64_t now_ns);
    // After the entry at `index`, `id` has a state of this digest: the same on all.
    void state(ReplicaId id, Index index, std::uint64_t digest);
    // Life `incarnation` of `id`, which has promised `ballot`, got bytes into its ring from `writer`: that ballot's
    // leader, and one life of it.
    void wrote(ReplicaId id, Incarnation incarnation, Ballot ballot, ReplicaId writer, Incarnation writer_life);
    // Life `incarnation` of `id` asks `of` for a lane by this open number.
    void asked(ReplicaId id, Incarnation incarnation, ReplicaId of, std::uint64_t open_number);
    // Life `incarnation` of `id` answers a prepare of `ballot` with the right to `lane`: a lane for each open, opens in
    // rising order, and to a repeat the same answer again (S1).
    void answered(ReplicaId id, Incarnation incarnation, Ballot ballot, std::uint64_t open_number,
                  const std::string& lane);
    // Life `incarnation` of `id` takes `to`'s answer that gave it `lane`: the one to its newest open (S1).
    void connected(ReplicaId id, Incarnation incarnation, ReplicaId to, const std::string& lane);
    // While it leads, `id` has given up its ring below `low_mark`; `commits` has how far each voter has committed. A
    // majority must still be within reach of a repair (S6).
    void gave_up(ReplicaId id, Position low_mark, std::span<const Position> commits);
    // Memory stays bounded: `id` has `count` of what is named, of `most` that it may have.
    void holds(ReplicaId id, const char* what, std::size_t count, std::size_t most);
    // `id` sends a control message at this time: no more of them than there is reason for.
    void sent(ReplicaId id, std::uint64_t now_ns);

    // -- Clients --
    // A new proposal, by number; its command must contain the number alone.
    void proposed(std::uint64_t number) { open_.insert(number); }
    void ended(std::uint64_t number, const Outcome& outcome);
    // A read begins: what it must see at least. Give the result to `read_ended`.
    Index read_began() {
        ++open_reads_;
        return seen_;
    }
    void read_ended(Index must_see, const Outcome& outcome);
    // Proposals and reads that have not ended.
    std::size_t open() const { return open_.size() + open_reads_; }

    // At the end of a run, when `id` has applied everything: acknowledged proposals are there once, rejected ones not
    // at all, unknown ones once at most, and nothing else.
    void check_complete() const;

    std::size_t acknowledged() const { return acknowledged_.size(); }
    std::size_t rejected() const { return rejected_.size(); }
    std::size_t unknown() const { return unknown_.size(); }
    std::size_t reads() const { return reads_; }
    // Hash of all that was committed and of how every proposal ended: equal for equal runs.
    std::uint64_t hash() const;

 private:
    using Life = std::pair<ReplicaId, Incarnation>;
    std::map<Ballot, ReplicaId> leaders_;
    std::map<Index, std::uint64_t> checksums_;
    std::map<Index, core::Config> configs_;  // as of a commit
    std::map<Life, Index> commit_of_;
    std::vector<std::pair<Index, std::string>> commands_;  // as first applied by any replica
    std::map<Life, std::size_t> applied_count_;
    struct Stamp {
        Index index;
        Ballot ballot;
        std::uint64_t timestamp_ns = 0;
        std::uint64_t ballot_began_ns = 0;      // by the stamps
        std::uint64_t ballot_began_at_ns = 0;   // by the network's time
    };
    Stamp newest_stamp_;
    std::map<Index, std::uint64_t> digests_;
    std::map<std::pair<Life, Ballot>, Incarnation> writers_;
    std::map<std::pair<Life, ReplicaId>, std::uint64_t> newest_open_;  // by who asked, of whom
    struct Answer {
        std::uint64_t open_number = 0;
        std::string lane;
    };
    std::map<std::pair<Life, Ballot>, Answer> answers_;  // the newest of each
    std::map<std::pair<ReplicaId, std::string>, std::uint64_t> opened_by_;  // by whose lane
    struct Window {
        std::uint64_t began_ns = 0;
        std::size_t sent = 0;
    };
    std::map<ReplicaId, Window> windows_;

    std::set<std::uint64_t> open_;
    std::map<std::uint64_t, Index> acknowledged_;
    std::set<std::uint64_t> rejected_;
    std::set<std::uint64_t> unknown_;
    Index seen_;  // the highest index that any client has been told of
    std::size_t reads_ = 0;
    std::size_t open_reads_ = 0;
};

}  // namespace lockstep::sim
