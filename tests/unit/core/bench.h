// One core on a bench: events in, effects out, with a cluster around it that exists only as messages.
#pragma once

#include "consensus/core/core.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::core {

inline constexpr std::uint64_t kMs = 1'000'000;
inline constexpr ReplicaId kR1{1};
inline constexpr ReplicaId kR2{2};
inline constexpr ReplicaId kR3{3};

// Of a lane that was opened.
inline constexpr LaneAddress kAddress{.bytes = {std::byte{1}}, .size = 1};
// The life of a replica that the cluster was formed with.
constexpr Incarnation life(ReplicaId id) { return Incarnation{100u + id.value}; }

// Memory aligned as a ring's is.
class RingMemory {
 public:
    explicit RingMemory(std::size_t bytes)
        : bytes_(bytes), memory_(static_cast<std::byte*>(std::aligned_alloc(4096, bytes))) {
        std::fill_n(memory_.get(), bytes, std::byte{0});
    }
    std::span<std::byte> span() { return {memory_.get(), bytes_}; }

 private:
    struct Free {
        void operator()(std::byte* memory) const { std::free(memory); }
    };
    std::size_t bytes_;
    std::unique_ptr<std::byte[], Free> memory_;
};

class Bench {
 public:
    static constexpr std::size_t kRingBytes = 16 * 1024;

    // The core of `id` among r1, r2 and r3, up and formed. Formed as r1, it has asked for pre-votes.
    explicit Bench(ReplicaId id, Durability durability = Durability::memory)
        : id_(id),
          ring_memory_(kRingBytes),
          scratch_memory_(kRingBytes),
          core_(options(id, durability), log::Ring(ring_memory_.span()), log::Ring(scratch_memory_.span())) {
        step(event::Tick{});
        for (const ReplicaId peer : peers()) {
            step(event::PeerUp{peer, life(peer)});
            receive(peer, FormAck{0});
        }
        if (id == kR1) {
            step(event::FormationKept{core_.genesis()});
            for (const ReplicaId peer : peers()) receive(peer, FormAck{core_.genesis()});
            tick(1);
        } else {
            Config config;
            for (const ReplicaId voter : {kR1, kR2, kR3}) config.voters.add({voter, life(voter)});
            receive(kR1, Form{kGenesis, config});
            step(event::FormationKept{kGenesis});
            receive(kR1, Formed{kGenesis});
        }
        ring_ = std::make_unique<log::Ring>(ring_memory_.span(), core_.genesis());
        start_ = log::Point{{}, {}, core_.genesis(), {}, 0};
    }

    Core& core() { return core_; }
    // The ring's memory, as the holder of a lane sees it.
    const log::Ring& ring() const { return *ring_; }
    const log::Point& start() const { return start_; }
    std::vector<ReplicaId> peers() const {
        std::vector<ReplicaId> others;
        for (const ReplicaId id : {kR1, kR2, kR3})
            if (id != id_) others.push_back(id);
        return others;
    }

    // What the last event had for effects is in `effects()`.
    void step(const Event& event) {
        effects_.clear();
        core_.step(now_, event, effects_);
    }
    void receive(ReplicaId from, const Message& message) { receive(from, life(from), message); }
    void receive(ReplicaId from, Incarnation incarnation, const Message& message) {
        step(event::Received{from, incarnation, message});
    }
    void tick(std::uint64_t ms) {
        now_.monotonic_ns += ms * kMs;
        now_.wall_ns += ms * kMs;
        step(event::Tick{});
    }
    void flush() {
        effects_.clear();
        core_.flush(now_, effects_);
    }
    Proposed propose(const std::string& command) {
        effects_.clear();
        return core_.propose(now_, std::as_bytes(std::span(command)), effects_);
    }
    std::optional<std::uint64_t> read() { return core_.read(now_); }

    // The effects of a kind, in order.
    template <class Kind>
    std::vector<Kind> effects() const {
        std::vector<Kind> found;
        for (const Effect& effect : effects_.all())
            if (const auto* kind = std::get_if<Kind>(&effect)) found.push_back(*kind);
        return found;
    }
    // The messages of a kind that were sent to `to`, in order.
    template <class Kind>
    std::vector<Kind> sent(ReplicaId to) const {
        std::vector<Kind> found;
        for (const effect::Send& send : effects<effect::Send>())
            if (const auto* kind = std::get_if<Kind>(&send.message); kind != nullptr && send.peer == to)
                found.push_back(*kind);
        return found;
    }
    std::span<const Effect> all_effects() const { return effects_.all(); }
    std::uint64_t fence_serial() const { return effects<effect::Fence>().at(0).serial; }

    // The rest of a promise, once its fence is the last effect: it is carried out, and the lane is opened.
    void finish_promise() {
        const std::uint64_t serial = fence_serial();
        step(event::Fenced{serial});
        if (!effects<effect::OpenIncoming>().empty()) step(event::IncomingOpened{serial, kAddress});
    }

    // -- As r1, on the way to leading -------------------------------------------------------------------------------

    // What a follower with an empty log answers to the prepare that was sent to it.
    Promise promise(std::uint64_t open_number = 1) const {
        Promise answer;
        answer.ballot = core_.promised();
        answer.candidate = life(id_);
        answer.open_number = open_number;
        answer.last = answer.commit = start_;
        return answer;
    }
    // Campaigns: prepares are out, the own fence is the one of `fence_serial()`.
    void campaign() {
        for (const ReplicaId peer : peers())
            if (core_.role() != Role::candidate) receive(peer, PreVoteReply{next_ballot(), true, false, {}});
        ASSERT_EQ(core_.role(), Role::candidate);
    }
    // Leads, with an empty log, lane 1 to r2 and lane 2 to r3.
    void lead() {
        campaign();
        step(event::Fenced{fence_serial()});
        receive(kR2, promise());
        ASSERT_EQ(core_.role(), Role::leader);
        receive(kR3, promise());
    }
    Ballot next_ballot() const { return Ballot::of(core_.promised().round() + 1, id_); }

    static constexpr std::uint64_t kGenesis = 4711;

 private:
    static CoreOptions options(ReplicaId id, Durability durability) {
        CoreOptions options;
        options.id = id;
        options.incarnation = life(id);
        options.members = {kR1, kR2, kR3};
        options.member_count = 3;
        options.form = true;
        options.election_timeout_ns = 100 * kMs;
        options.heartbeat_ns = 10 * kMs;
        options.random_seed = 7;
        options.durability = durability;
        return options;
    }

    const ReplicaId id_;
    RingMemory ring_memory_;
    RingMemory scratch_memory_;
    Core core_;
    std::unique_ptr<log::Ring> ring_;
    log::Point start_;
    Effects effects_;
    Now now_{1'000 * kMs, 1'600'000'000'000 * kMs};
};

// Appends a command of `ballot` behind `tail` in the bench's ring, as the holder of its lane would.
inline void write_entry(Bench& bench, log::Point& tail, Ballot ballot, const std::string& command, Index commit = {}) {
    log::append(bench.ring(), tail, log::EntryKind::command, log::Stamp{ballot, commit, 1},
                std::as_bytes(std::span(command)));
}

}  // namespace lockstep::core
