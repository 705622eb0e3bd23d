// What the tests of the contract suite share: three members, their events, and waiting with a bound.
#pragma once

#include "tests/contract/world.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::transport::contract {

using namespace std::chrono_literals;

// An event, with its own copy of the bytes.
struct Seen {
    Event event;
    std::string bytes;
};

inline constexpr ReplicaId r1{1}, r2{2}, r3{3};

class Contract : public testing::TestWithParam<Kind> {
 protected:
    // Long enough for a loaded machine under a sanitizer; nothing waits for as long when it works.
    static constexpr auto kDeadline = 20s;

    void SetUp() override {
        const std::string why_not = GetParam().why_not ? GetParam().why_not() : "";
        if (!why_not.empty()) GTEST_SKIP() << why_not;
        world_ = GetParam().make();
    }

    // Starts all members and waits until each reaches each.
    void start_all(std::uint64_t ring_bytes = std::uint64_t{1} << 20);
    Fabric& start(const MemberOptions& options);
    void kill(ReplicaId member);
    Fabric& fabric(ReplicaId member) { return *fabrics_.at(member); }

    // Polls `who`, whose events gather in `seen`, until `done`; false if it is not within the deadline.
    bool until(std::initializer_list<ReplicaId> who, const std::function<bool()>& done);
    // Polls `who` for this long.
    void run_for(std::initializer_list<ReplicaId> who, std::chrono::milliseconds time);
    void poll(ReplicaId who, std::chrono::nanoseconds wait);

    std::vector<Seen>& seen(ReplicaId member) { return seen_[member]; }
    std::size_t count(ReplicaId member, EventKind kind, ReplicaId peer) const;
    const Seen* last(ReplicaId member, EventKind kind, ReplicaId peer) const;
    // What the holder has been told of a lane.
    std::uint64_t landed(ReplicaId holder, LaneId lane) const;
    bool broken(ReplicaId holder, LaneId lane) const;

    // Opens a lane from `holder` to `follower`; writes can be posted.
    LaneId open_lane(ReplicaId holder, ReplicaId follower, Position base = {});
    LaneId fresh_lane() { return {++last_lane_}; }
    ReadId fresh_read() { return {++last_read_}; }

    // A pattern that differs by place and by `seed`, never zero.
    static std::byte pattern(std::uint64_t at, std::uint64_t seed);
    // Puts the pattern into the member's own ring at [at, at + bytes), which does not cross its end.
    void fill(ReplicaId member, Position at, std::uint64_t bytes, std::uint64_t seed);
    // Where the member's ring first differs from the pattern in that range; none if nowhere.
    std::optional<std::uint64_t> difference(ReplicaId member, Position at, std::uint64_t bytes, std::uint64_t seed);
    // A hash of the member's ring and probe line.
    std::uint64_t hash(ReplicaId member);
    std::uint64_t probe_line(ReplicaId member);

    // Fills, posts and sends one write, and waits until it has landed.
    testing::AssertionResult write_lands(ReplicaId holder, LaneId lane, Position at, std::uint64_t bytes,
                                         std::uint64_t seed, std::uint64_t count);

    std::unique_ptr<World> world_;

 private:
    std::map<ReplicaId, Fabric*> fabrics_;
    std::map<ReplicaId, std::vector<Seen>> seen_;
    std::map<ReplicaId, std::uint64_t> ring_bytes_;
    std::uint64_t last_lane_ = 0;
    std::uint64_t last_read_ = 0;
    std::vector<Event> events_;
};

inline std::string kind_name(const testing::TestParamInfo<Kind>& info) { return info.param.name; }

}  // namespace lockstep::transport::contract
