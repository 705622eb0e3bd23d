// The protocol of one replica, pure: events in, effects out, no I/O, clock, thread or random source of its own.
//
// Paxos over a log stream: landing in a follower's memory under an unrevoked lane is the accept, a fenced scan is the
// promise's answer, adoption with the no-op is the proposal of the highest accepted value (Lamport, "Paxos Made
// Simple", 2001). The one-sided write with a permission to fence it is that of Mu (Aguilera et al., OSDI 2020) and
// DARE (Poke and Hoefler, HPDC 2015); the pre-vote and the reads by a round of contact are those of Raft (Ongaro,
// dissertation, 2014, sections 9.6 and 6.4). Safety rules are cited by number (S1 ...); docs/protocol.md has them all.
//
// The files beside this one hold one part each: formation, membership, election, promise, adoption, lanes, replication,
// follow, keeping, catch_up, reads, heartbeat. Not thread-safe: one thread steps a core.
#pragma once

#include "consensus/core/config.h"
#include "consensus/core/lap_ends.h"
#include "consensus/core/message.h"
#include "consensus/core/lane.h"
#include "consensus/core/random.h"
#include "consensus/core/step.h"
#include "log/ring.h"

#include <lockstep/options.h>
#include <lockstep/replica.h>
#include <lockstep/types.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>

namespace lockstep::core {

struct CoreOptions {
    ReplicaId id;
    Incarnation incarnation;
    std::array<ReplicaId, kMaxReplicas> members{};  // all, this one among them, in the order in which they campaign
    std::size_t member_count = 0;
    bool form = false;                              // take part in forming a new cluster
    // Of the cluster that a life of this replica was part of whose memory is lost (S12): it comes into no other one. 0:
    // none. A replica that has formed none and knows of none comes into the one that there is.
    std::uint64_t rejoins = 0;
    std::uint64_t election_timeout_ns = 250'000'000;
    std::uint64_t heartbeat_ns = 25'000'000;
    std::uint64_t random_seed = 0;  // for the genesis and for spreading retries; unpredictable in production
    Durability durability = Durability::memory;
};

// What a replica of durable mode finds on its disk when it starts again.
struct Recovered {
    std::uint64_t genesis = 0;
    Config first_config;  // what the cluster began with, where it is known
    Config config;        // as of the commit
    bool formed = false;
    Ballot promised;
    Incarnation promised_to;
    // The highest commit that the log names; the state machine has it applied. The ring holds the log around it, from
    // the low mark on, and behind it what was accepted and is perhaps not committed.
    log::Point commit;
    Position low_mark;
    // What the disk has lost, up to where, and what was promised when that was found: made up for when the commit is
    // there, or in a higher ballot (S14).
    Loss loss = Loss::none;
    Position lost_until;
    Ballot lost_in;
};

enum class Proposed : std::uint8_t {
    appended,    // its index is end().index
    not_leader,
    not_yet,     // leading, but not yet able to take it: the own no-op is not appended, or the window is full
    too_large,
};

class Core {
 public:
    // `ring` is this replica's ring, zeroed; `scratch` is memory of the same size for adoption, touched only then.
    Core(const CoreOptions& options, log::Ring ring, log::Ring scratch);
    // For one that comes back with its disk, the same voter as before (S12): `ring` holds what `recovered` says.
    Core(const CoreOptions& options, log::Ring ring, log::Ring scratch, const Recovered& recovered);

    // Takes one event. Effects are added to `effects`, in the order in which they are to be carried out.
    void step(Now now, const Event& event, Effects& effects);
    // Appends a command to the own ring if this replica leads and there is room (S11). Allocates nothing. Where it adds
    // effects and says not_yet, carry them out and try again.
    Proposed propose(Now now, BytesView command, Effects& effects);
    // Asks for a linearizable read; its ticket comes back in ReadsReady or is answered by ReadsLost. None if this
    // replica does not lead.
    std::optional<std::uint64_t> read(Now now);
    // Posts what has gathered: at most one gathered range per follower (two at the ring's end), and due probes. True
    // if more could be posted at once.
    bool flush(Now now, Effects& effects);
    // The monotonic time at which the next Tick is due.
    std::uint64_t deadline() const { return deadline_ns_; }

    Role role() const;
    Ballot promised() const { return promised_; }
    bool catching_up() const { return incoming_.state == Incoming::State::catching_up; }
    // Who leads, as far as this replica knows: the one it last heard; none once that one is known to have failed.
    ReplicaId leader() const;
    const log::Point& commit() const { return commit_; }
    const log::Point& applied() const { return applied_; }
    // Leader: the tail. Else: how far the ring is believed (S8).
    const log::Point& end() const { return end_; }
    Position low_mark() const { return low_mark_; }
    // How far the believed log is on disk; nowhere in memory mode.
    const log::Point& kept() const { return kept_; }
    // How far the log is committed, and on disk where it is kept there.
    Position durable_commit() const {
        return keeps_log() ? std::min(commit_.position, kept_.position) : commit_.position;
    }
    Loss loss() const { return loss_; }
    bool forming() const { return !formed_; }
    std::uint64_t genesis() const { return genesis_; }
    // The newest in the log as far as it is believed (S16), and the newest of what is committed.
    const Config& config() const { return config_; }
    const ConfigAt& committed_config() const { return committed_config_; }
    // Of all that stands in the ring. Reads on from the commit: not for every turn.
    ConfigAt newest_config() const;
    // Whether this life is counted. One that is not is a learner.
    bool votes() const { return config_.names(self()); }
    bool votes(ReplicaId peer) const { return config_.names({peer, peer_of(peer)->incarnation}); }
    bool log_full() const { return log_full_; }
    // Reads wait for the state machine: the driver applies up to commit(), and says so with event::Applied.
    const log::Ring& ring() const { return ring_; }
    std::uint64_t elections_started() const { return elections_started_; }
    std::uint64_t writes_posted() const { return writes_posted_; }
    const Lane& lane_to(ReplicaId peer) const { return peer_of(peer)->lane; }
    // Whether an open lane has been repaired: its follower holds all that was adopted.
    bool streaming(const Lane& lane) const { return lane.landed.position >= adopted_end_.position; }
    bool connected(ReplicaId peer) const { return peer_of(peer)->up; }

 private:
    // What this replica is doing. Forming is apart: a replica that has not formed stays `follower`.
    enum class State : std::uint8_t {
        follower,
        pre_voting,   // asks whether a campaign would be welcome (S3)
        preparing,    // has promised itself a ballot and collects promises
        adopting,     // has a majority; makes its own ring equal to the best log (S4)
        leader,
    };

    struct Peer {
        ReplicaId id;
        std::size_t rank = 0;       // in campaign order
        bool up = false;
        Incarnation incarnation;    // of the life last connected; 0 before
        bool form_acked = false;
        bool blank = false;         // it has said that it holds no genesis
        // Candidate's view.
        enum class PreVoted : std::uint8_t { unanswered, granted, refused };
        PreVoted pre_vote = PreVoted::unanswered;
        std::optional<Promise> promise;      // for campaign_ballot_
        Incarnation promise_incarnation;     // of the life that gave it
        // Rises with every lane asked of this peer, never reset (S1).
        std::uint64_t open_number = 0;
        std::uint64_t prepare_again_ns = 0;  // when to repeat or renew the prepare; 0: not due
        Lane lane;
        // Last board seen, of this life.
        std::uint64_t heartbeats = 0;
        Position applied;
    };

    // The lane into the own ring, and the answer that opened it.
    struct Incoming {
        enum class State : std::uint8_t {
            none,
            fencing,
            opening,
            open,
            catching_up,  // there is no lane: the holder's ring does not reach back to here, and the log is fetched
        };
        State state = State::none;
        bool behind = false;            // what is fenced now is to be followed by catching up
        std::uint64_t serial = 0;       // of the fence and open under way
        ReplicaId holder;               // the own id while campaigning
        Incarnation holder_incarnation;
        std::uint64_t open_number = 0;
        Promise answer;                 // complete in State::open: a repeated prepare gets it again
        std::uint64_t report_sequence = 0;
        Position reported_consumed;
    };

    // formation.cc
    void form(Now now, Effects& effects);
    void on(Now now, const event::FormationKept& kept, Effects& effects);
    void receive(Now now, const Peer& from, const Form& message, Effects& effects);
    void receive(Now now, Peer& from, const FormAck& message, Effects& effects);
    void receive(Now now, const Peer& from, const Formed& message, Effects& effects);
    void learn_formed(Now now, Effects& effects);

    // membership.cc
    void receive(Now now, const Peer& from, const Join& message, Effects& effects);
    std::optional<ConfigAt> config_in_ring(const log::Point& before, const log::VerifiedEntry& entry) const;
    void take_config(const ConfigAt& config);
    void replace_lost_voters(Now now, Effects& effects);
    bool caught_up(const Peer& peer) const;
    bool keeps_going(const Config& config, ReplicaId newcomer) const;

    // election.cc
    void consider_campaign(Now now, Effects& effects);
    std::uint64_t campaign_delay_ns() const;
    void start_pre_vote(Now now, Ballot handed_over, Effects& effects);
    void end_campaign(Now now, std::uint64_t pause_ns);
    void start_campaign(Now now, Effects& effects);
    void send_prepare(Now now, Peer& peer, Effects& effects);
    void receive(Now now, const Peer& from, const PreVote& message, Effects& effects);
    void receive(Now now, Peer& from, const PreVoteReply& message, Effects& effects);
    void receive(Now now, Peer& from, const Promise& message, Effects& effects);
    void receive(Now now, Peer& from, const Refusal& message, Effects& effects);
    void receive(Now now, const Peer& from, const Campaign& message, Effects& effects);
    bool suspects() const;
    void decide(Now now, const Config& config, Effects& effects);
    void count_promises(Now now, Effects& effects);

    // promise.cc
    void receive(Now now, const Peer& from, const Prepare& message, Effects& effects);
    void make_promise(Now now, Ballot ballot, ReplicaId candidate, Incarnation incarnation, std::uint64_t open_number,
                      Effects& effects);
    void take_promise(Now now, Ballot ballot, ReplicaId candidate, Incarnation incarnation, std::uint64_t open_number,
                      Effects& effects);
    void on(Now now, const event::PromiseKept& kept, Effects& effects);
    void on(Now now, const event::Fenced& fenced, Effects& effects);
    void on(Now now, const event::IncomingOpened& opened, Effects& effects);
    log::Point scan_to_true_end();
    void stop_leading(Now now, Effects& effects);

    // adoption.cc
    void adopt(Now now, Peer* best, Effects& effects);
    void read_more(Effects& effects);
    void on(Now now, const event::RingRead& read, Effects& effects);
    bool verify_adopted();
    void install_adopted(Now now, Effects& effects);
    void give_way(Now now, const Peer& to, Effects& effects);

    // lanes.cc
    void become_leader(Now now, Effects& effects);
    void open_lane(Now now, Peer& peer, const Promise& promise, Effects& effects);
    void drop_lane(Peer& peer, Lane::State state, Effects& effects);
    void on(Now now, const event::LaneBroken& broken, Effects& effects);
    void reopen_lanes(Now now, Effects& effects);

    // replication.cc
    void append_entry(Now now, log::EntryKind kind, BytesView payload);
    void append_config(Now now, const Config& config, Effects& effects);
    void append_no_op_when_ready(Now now, Effects& effects);
    Position kept_for_majority() const;
    void post_notices(Effects& effects);
    void post_notice(const Peer& peer, Effects& effects);
    void notice_blocked(Effects& effects);
    void land_in_part(Lane& lane, Position upto);
    bool make_room(Now now, Position new_end, bool may_use_reserve, Effects& effects);
    log::Stamp stamp(Now now) const;
    bool flush_lane(Now now, Peer& peer, Effects& effects);
    bool post_next(Now now, Peer& peer, Effects& effects);
    void on(Now now, const event::Landed& landed, Effects& effects);
    void advance_commit(Now now);
    log::Point point_at(Position position) const;
    void set_commit(const log::Point& to);

    // follow.cc
    void on(Now now, const event::Look& look, Effects& effects);
    void take_certificate(Index index, std::uint64_t checksum);
    void commit_up_to(Index index);
    void report_consumed(bool heartbeat, Effects& effects);
    void on(Now now, const event::Reported& reported, Effects& effects);
    void on(Now now, const event::Applied& applied, Effects& effects);
    Position consumed() const;

    // keeping.cc
    bool keeps_log() const { return options_.durability != Durability::memory; }
    // Whether an entry counts where it is on disk, not where it has landed.
    bool counts_kept() const { return options_.durability == Durability::durable; }
    Position done_with() const;
    void keep_log(Now now, bool heartbeat, Effects& effects);
    void ask_to_keep(Now now, bool commit_too, bool gather, Effects& effects);
    bool made_up_for() const { return commit_.position >= lost_until_ || commit_.ballot > lost_in_; }
    void keep_anew();
    void on(Now now, const event::LogKept& kept, Effects& effects);
    bool keeping_hangs(Now now) const;

    // catch_up.cc
    void say_behind(Peer& peer, Effects& effects);
    void receive(Now now, const Peer& from, const Behind& message, Effects& effects);
    Position room_end() const;
    void fetch(Effects& effects);
    void end_fetch(Effects& effects);
    void on(Now now, const event::LogFetched& fetched, Effects& effects);
    void on(Now now, const event::SnapshotFetched& fetched, Effects& effects);
    bool own_log_has(Index index, std::uint64_t checksum);
    void install(const log::Point& at, const Config& config, Effects& effects);

    // reads.cc
    void start_read_round(Effects& effects);
    void post_probes(Now now, Effects& effects);
    void finish_reads(Effects& effects);
    void lose_reads(Effects& effects);

    // heartbeat.cc
    void beat(Now now, Effects& effects);
    void on(Now now, const event::BoardRead& read, Effects& effects);
    bool hears_leader(Now now) const;
    bool fit_to_lead(Now now) const;
    std::uint64_t idle_ns(Now now) const;
    void check_leadership(Now now, Effects& effects);
    void publish(Now now, Effects& effects);

    // core.cc
    void on(Now now, const event::Tick& tick, Effects& effects);
    void on(Now now, const event::PeerUp& up, Effects& effects);
    void on(Now now, const event::PeerDown& down, Effects& effects);
    void on(Now now, const event::Received& received, Effects& effects);
    Peer* peer_of(ReplicaId id);
    const Peer* peer_of(ReplicaId id) const;
    std::span<Peer> peers() { return {peers_.data(), peer_count_}; }
    std::span<const Peer> peers() const { return {peers_.data(), peer_count_}; }
    Voter self() const { return {options_.id, options_.incarnation}; }
    std::uint64_t spread(std::uint64_t ns);
    void set_deadline(Now now);

    const CoreOptions options_;
    log::Ring ring_;     // keyed with the genesis once that is known
    log::Ring scratch_;
    const log::Geometry geometry_;
    Random random_;

    std::array<Peer, kMaxReplicas> peers_{};
    std::size_t peer_count_ = 0;
    std::size_t own_rank_ = 0;

    // Forming. `genesis_` is 0 until this replica holds it; then it never changes.
    std::uint64_t genesis_ = 0;
    Config first_config_;                // what the cluster began with; none where that is not known
    bool joins_ = false;                 // comes into a cluster that there is
    bool formation_kept_ = false;
    bool formed_ = false;
    std::uint64_t form_again_ns_ = 0;

    // The log. applied_ <= commit_ <= end_ in position; the first two never fall.
    log::Point commit_;
    log::Point applied_;
    log::Point end_;
    Config config_;                      // the newest up to end_ (S16)
    Index config_at_;
    ConfigAt committed_config_;          // the newest up to commit_
    Position caught_up_at_;              // what a learner has to hold to be taken in: the end, a heartbeat ago
    LapEnds lap_ends_;
    Position low_mark_;
    Index notice_index_;                 // the newest certificate not yet acted upon (S9); 0: none
    std::uint64_t notice_checksum_ = 0;
    Position looked_limit_;              // the limit of the last look, unless there is a reason to look again
    bool look_again_ = false;            // the last look stopped before it had seen everything

    // The promise (S1).
    Ballot promised_;
    Incarnation promised_to_;
    Incoming incoming_;
    // Asked for, and not yet on disk: nothing of it is visible (S1). Its serial is 0 if there is none.
    struct AskedPromise {
        std::uint64_t serial = 0;
        Ballot ballot;
        ReplicaId candidate;
        Incarnation incarnation;
        std::uint64_t open_number = 0;
    } asked_promise_;
    std::uint64_t last_promise_ = 0;

    // Keeping the log on disk. kept_ <= to_keep_ <= end_, in one log.
    std::uint64_t generation_ = 1;       // rises whenever what is believed may be another log from the commit on
    std::uint64_t asked_generation_ = 0;
    log::Point to_keep_;                 // asked for
    Index asked_at_once_;                // where no commit waits for the disk: what it is not to gather any more
    log::Point kept_;
    log::Point kept_commit_;             // durable mode: what it would know to be committed if it started again
    std::uint64_t kept_rose_ns_ = 0;
    Loss loss_ = Loss::none;
    Position lost_until_;
    Ballot lost_in_;

    // Election.
    State state_ = State::follower;
    Ballot highest_seen_;
    Ballot campaign_ballot_;             // asked for while pre_voting, promised from preparing on, led in as leader
    Ballot handed_over_;
    std::uint64_t campaign_at_ns_ = 0;   // follower without a leader: when to start; 0: not suspecting
    std::uint64_t campaign_ends_ns_ = 0;
    std::uint64_t retry_pause_ns_ = 0;   // between pre-votes; doubles
    std::uint64_t campaign_above_ns_ = 0;  // no campaign above a refusal before this
    std::optional<log::Point> own_last_; // the own promise's answer
    ConfigAt own_config_;                // the newest in all that the last scan found
    Config deciding_;                    // whose majority the campaign needs (S5)
    ReplicaId decided_by_;               // whose log named other voters than were asked until then; none
    std::uint64_t elections_started_ = 0;

    // Adoption.
    struct Adoption {
        ReplicaId source;
        log::Point target;               // exactly what the source promised
        log::Point source_commit;
        Position next_read;
        std::size_t reads_open = 0;
        bool failed = false;
        bool verified = false;
        ConfigAt config;                 // the newest in that log
        log::Point installed;            // the own ring equals the source's up to here
        bool differs = false;            // ... and is to be overwritten from here
    } adoption_;
    std::uint64_t last_read_ = 0;

    // Catching up.
    std::uint64_t fetch_serial_ = 0;
    log::Point installed_;               // the newest snapshot that was installed

    // Leading.
    log::Point adopted_end_;
    log::Point no_op_;                   // the point behind the own no-op; index 0 before it is appended
    Position room_until_;                // commands may be appended up to here without another look (S11)
    bool log_full_ = false;
    bool waits_for_room_ = false;        // a command did not fit since the last flush
    Index noticed_;                      // the last commit that followers were told of on its own
    std::uint64_t notice_sequence_ = 0;
    std::uint64_t base_timestamp_ns_ = 0;
    std::uint64_t base_monotonic_ns_ = 0;
    std::uint64_t commit_rose_ns_ = 0;
    std::uint64_t last_lane_ = 0;
    std::uint64_t writes_posted_ = 0;

    // Reads (S15). Tickets rise for ever; those up to read_round_through_ wait for the round under way.
    std::uint64_t last_ticket_ = 0;
    std::uint64_t answered_through_ = 0;
    std::uint64_t read_round_through_ = 0;
    std::uint64_t read_round_probe_ = 0;  // 0: no round under way
    bool read_round_confirmed_ = false;
    Index read_round_commit_;
    std::uint64_t last_probe_ = 0;
    bool probe_due_ = false;

    // Hearing (a hint only).
    ReplicaId leader_;
    Ballot leader_ballot_;
    std::uint64_t heard_ns_ = 0;         // 0: not heard
    std::uint64_t heartbeats_ = 0;
    std::uint64_t beat_at_ns_ = 0;

    std::uint64_t deadline_ns_ = 0;
};

}  // namespace lockstep::core
