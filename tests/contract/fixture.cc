#include "tests/contract/fixture.h"

#include <algorithm>
#include <cstring>

#include <xxhash.h>

namespace lockstep::transport::contract {

Fabric& Contract::start(const MemberOptions& options) {
    Fabric& made = world_->start(options);
    fabrics_[options.id] = &made;
    ring_bytes_[options.id] = options.ring_bytes;
    return made;
}

void Contract::start_all(std::uint64_t ring_bytes) {
    for (const ReplicaId id : {r1, r2, r3}) start({id, {id.value}, 7, ring_bytes});
    ASSERT_TRUE(until({r1, r2, r3}, [&] {
        for (const ReplicaId from : {r1, r2, r3})
            for (const ReplicaId to : {r1, r2, r3})
                if (from != to && count(from, EventKind::peer_up, to) == 0) return false;
        return true;
    })) << "the members do not reach each other: " << fabric(r1).path(r2);
}

void Contract::kill(ReplicaId member) {
    world_->kill(member);
    fabrics_.erase(member);
}

void Contract::poll(ReplicaId who, std::chrono::nanoseconds wait) {
    events_.clear();
    fabric(who).poll(wait, events_);
    for (Event& event : events_) {
        Seen& one = seen_[who].emplace_back();
        one.bytes.assign(reinterpret_cast<const char*>(event.bytes.data()), event.bytes.size());
        one.event = std::move(event);
        one.event.bytes = {};
    }
}

bool Contract::until(std::initializer_list<ReplicaId> who, const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + kDeadline;
    while (!done()) {
        if (std::chrono::steady_clock::now() > deadline) return false;
        for (const ReplicaId member : who)
            poll(member, std::chrono::nanoseconds(200us) / static_cast<int>(who.size()));
    }
    return true;
}

void Contract::run_for(std::initializer_list<ReplicaId> who, std::chrono::milliseconds time) {
    const auto end = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < end)
        for (const ReplicaId member : who) poll(member, 100us);
}

std::size_t Contract::count(ReplicaId member, EventKind kind, ReplicaId peer) const {
    const auto found = seen_.find(member);
    if (found == seen_.end()) return 0;
    return static_cast<std::size_t>(
        std::count_if(found->second.begin(), found->second.end(),
                      [&](const Seen& one) { return one.event.kind == kind && one.event.peer == peer; }));
}

const Seen* Contract::last(ReplicaId member, EventKind kind, ReplicaId peer) const {
    const auto found = seen_.find(member);
    if (found == seen_.end()) return nullptr;
    for (auto one = found->second.rbegin(); one != found->second.rend(); ++one)
        if (one->event.kind == kind && one->event.peer == peer) return &*one;
    return nullptr;
}

std::uint64_t Contract::landed(ReplicaId holder, LaneId lane) const {
    std::uint64_t most = 0;
    if (const auto found = seen_.find(holder); found != seen_.end())
        for (const Seen& one : found->second)
            if (one.event.kind == EventKind::landed && one.event.lane == lane) most = std::max(most, one.event.count);
    return most;
}

bool Contract::broken(ReplicaId holder, LaneId lane) const {
    const auto found = seen_.find(holder);
    return found != seen_.end() && std::any_of(found->second.begin(), found->second.end(), [&](const Seen& one) {
               return one.event.kind == EventKind::lane_broken && one.event.lane == lane;
           });
}

LaneId Contract::open_lane(ReplicaId holder, ReplicaId follower, Position base) {
    auto address = fabric(follower).open_incoming(holder, {holder.value}, base);
    EXPECT_TRUE(address.ok()) << address.error().message();
    const LaneId lane = fresh_lane();
    if (address) fabric(holder).connect_lane(lane, follower, address.value());
    return lane;
}

std::byte Contract::pattern(std::uint64_t at, std::uint64_t seed) {
    const std::uint64_t mixed = (at + 1) * 0x9e3779b97f4a7c15 + seed * 0xbf58476d1ce4e5b9;
    return static_cast<std::byte>((mixed >> 56) | 1);
}

void Contract::fill(ReplicaId member, Position at, std::uint64_t bytes, std::uint64_t seed) {
    const std::uint64_t from = at.value % ring_bytes_[member];
    const std::span<std::byte> ring = fabric(member).ring();
    for (std::uint64_t i = 0; i < bytes; ++i) ring[from + i] = pattern(at.value + i, seed);
}

std::optional<std::uint64_t> Contract::difference(ReplicaId member, Position at, std::uint64_t bytes,
                                                  std::uint64_t seed) {
    const std::uint64_t from = at.value % ring_bytes_[member];
    const std::span<const std::byte> ring = fabric(member).ring();
    for (std::uint64_t i = 0; i < bytes; ++i)
        if (ring[from + i] != pattern(at.value + i, seed)) return at.value + i;
    return std::nullopt;
}

std::uint64_t Contract::hash(ReplicaId member) {
    return XXH3_64bits(fabric(member).ring().data(), ring_bytes_[member] + kProbeLineBytes);
}

std::uint64_t Contract::probe_line(ReplicaId member) {
    std::uint64_t number = 0;
    std::memcpy(&number, fabric(member).ring().data() + ring_bytes_[member], sizeof number);
    return number;
}

testing::AssertionResult Contract::write_lands(ReplicaId holder, LaneId lane, Position at, std::uint64_t bytes,
                                               std::uint64_t seed, std::uint64_t count) {
    fill(holder, at, bytes, seed);
    if (!fabric(holder).write(lane, at, bytes)) return testing::AssertionFailure() << "not posted";
    fabric(holder).flush();
    if (until({holder}, [&] { return landed(holder, lane) >= count || broken(holder, lane); }) && !broken(holder, lane))
        return testing::AssertionSuccess();
    const auto& events = seen(holder);
    return testing::AssertionFailure() << "not landed: "
                                       << (broken(holder, lane) ? events.back().event.why : "nothing came");
}

}  // namespace lockstep::transport::contract
