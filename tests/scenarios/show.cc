#include "tests/scenarios/show.h"

#include "log/ring.h"

#include <limits>

namespace lockstep::scenarios {

namespace {

constexpr Position kNoLimit{std::numeric_limits<std::uint64_t>::max()};

std::string command_of(const log::VerifiedEntry& entry) {
    switch (entry.header.kind) {
        case log::EntryKind::no_op:
            return "no-op";
        case log::EntryKind::pad:
            return "pad";
        case log::EntryKind::command:
            break;
        case log::EntryKind::config: {
            const core::Config config = core::config_in(entry.payload, {}).config;
            std::string text = "config";
            for (const core::Voter& voter : config.voters.all())
                text += "," + to_string(voter.id);
            return text;
        }
        case log::EntryKind::session:
            return "other";
    }
    const std::string text(reinterpret_cast<const char*>(entry.payload.data()), entry.payload.size());
    return text.substr(0, text.find(' '));
}

// The log's start, if the ring still holds it, else the commit.
log::Point first_shown(const core::Core& core) {
    const log::Point start{{}, {}, core.genesis(), {}, 0};
    log::Point at = start;
    while (at.index < core.commit().index) {
        const auto entry = log::next_entry(core.ring(), at, kNoLimit);
        if (!entry) return core.commit();
        at = entry->end;
    }
    return at == core.commit() ? start : core.commit();
}

std::string log_of(const core::Core& core) {
    std::string text;
    log::Point at = first_shown(core);
    if (at.index != Index{}) text += " ...";
    const auto mark = [&] {
        if (at.index == core.commit().index) text += " |";
        if (at.index == core.end().index) text += " ~";
    };
    mark();
    while (const auto entry = log::next_entry(core.ring(), at, kNoLimit)) {
        at = entry->end;
        text += " " + to_string(at.index) + ":" + to_string(at.ballot) + ":" + command_of(*entry);
        mark();
    }
    // Marks at the very end say nothing.
    while (text.ends_with(" |") || text.ends_with(" ~")) text.resize(text.size() - 2);
    return text;
}

const char* state_of(core::Lane::State state, bool streaming) {
    switch (state) {
        case core::Lane::State::none:
            return "none";
        case core::Lane::State::opening:
            return "opening";
        case core::Lane::State::open:
            return streaming ? "streaming" : "repairing";
        case core::Lane::State::detached:
            return "detached";
    }
    return "?";
}

}  // namespace

std::string show(const sim::Cluster& cluster, ReplicaId id) {
    if (!cluster.alive(id)) return to_string(id) + " crashed";
    const core::Core& core = cluster.core(id);
    std::string text = to_string(id) + (cluster.paused(id) ? " paused " : " ") + lockstep::to_string(core.role());
    if (core.forming()) return text;
    text += " " + to_string(core.promised()) + ", commit " + to_string(core.commit().index) + ", applied " +
            to_string(core.applied().index) + ":";
    return text + log_of(core);
}

std::string show_lanes(sim::Cluster& cluster, ReplicaId id, std::size_t replicas) {
    if (!cluster.alive(id)) return to_string(id) + " crashed";
    const core::Core& core = cluster.core(id);
    if (core.role() != Role::leader) {
        const ReplicaId holder = cluster.fabric(id).incoming_holder();
        if (!holder) return to_string(id) + " has no incoming lane";
        return to_string(id) + " follows " + to_string(holder);
    }
    std::string text = to_string(id) + " leads";
    for (std::size_t i = 1; i <= replicas; ++i) {
        const ReplicaId peer{static_cast<std::uint8_t>(i)};
        if (peer == id) continue;
        const core::Lane& lane = core.lane_to(peer);
        text += std::string(text.ends_with("leads") ? ": " : ", ") + to_string(peer) + " " +
                state_of(lane.state, core.streaming(lane));
        if (lane.state == core::Lane::State::open)
            text += " (open " + std::to_string(lane.open_number) + ", landed " + to_string(lane.landed.index) + ")";
    }
    return text;
}

}  // namespace lockstep::scenarios
