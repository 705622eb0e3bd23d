#include "consensus/replica/supplier.h"

#include "transport/logger.h"

#include <algorithm>

namespace lockstep::replica {

void Supplier::receive(std::uint64_t now_ns, ReplicaId from, const Transfer& ask, const core::Core& core) {
    if (ask.kind != Transfer::Kind::ask || ask.genesis != core.genesis()) return;
    const auto found = std::ranges::find(askers_, from, &Asker::id);
    Asker& asker = found != askers_.end() ? *found : askers_.emplace_back(Asker{from, 0, ask.commit.position});
    asker.until_ns = now_ns + hold_ns_;
    const auto serve_snapshot = [&](const log::SnapshotName& name, std::uint64_t offset) {
        asker.needs = name.at.position;
        store_.read_piece(from, name, offset, Transfer::kMaxPieceBytes);
    };
    // The one under way, as long as it leads to where the log goes on from.
    const auto leads_on = [&](const log::SnapshotName& name) {
        return name.at.index > ask.commit.index && name != bad_ &&
               std::min(source_.begin(), core.low_mark()) <= name.at.position;
    };
    if (ask.snapshot.at.index != Index{} && ask.offset == ask.snapshot.bytes && !store_.held().empty() &&
        store_.held().front().name == ask.snapshot)
        take_anew(ask.snapshot, "who received it says so");
    for (const SnapshotStore::Held& held : store_.held())
        if (held.name == ask.snapshot && ask.offset < held.name.bytes && leads_on(held.name))
            return serve_snapshot(held.name, ask.offset);
    if (ask.most > 0 && source_.begin() <= ask.commit.position && ask.commit.position <= ask.at) {
        asker.needs = ask.commit.position;
        // Committed, and on disk where it is read from there.
        const Position end = core.durable_commit();
        if (ask.at >= end) {
            // It has all that there is: its leader opens a lane. Until then the log does not run away from it.
            if (core.role() != Role::leader) asker.until_ns = now_ns;
            return;
        }
        const std::uint64_t bytes = std::min({ask.most, end - ask.at, core.ring().bytes_to_lap_end(ask.at),
                                              Transfer::kMaxPieceBytes});
        return source_.read(from, ask.at, bytes);
    }
    for (const SnapshotStore::Held& held : store_.held())
        if (leads_on(held.name)) return serve_snapshot(held.name, 0);
    wants_snapshot_ |= core.applied().index > ask.commit.index;
}

// Of one that is there every piece that is asked for has bytes, or else its file is not what was written.
void Supplier::take(const SnapshotOutcome& piece, const core::Core& core) {
    if (piece.bytes.empty()) {
        if (!store_.held().empty() && store_.held().front().name == piece.name)
            take_anew(piece.name, piece.why.empty() ? "its file ends too soon" : piece.why);
        return;
    }
    send_(piece.peer, Transfer{.kind = Transfer::Kind::snapshot,
                               .genesis = core.genesis(),
                               .snapshot = piece.name,
                               .offset = piece.offset,
                               .bytes = piece.bytes});
}

void Supplier::take_anew(const log::SnapshotName& name, const std::string& why) {
    if (bad_ != name)
        logger().error("the snapshot of index {} is not what was written ({}): it is taken anew; is the disk sound?",
                       to_string(name.at.index), why);
    bad_ = name;
    wants_snapshot_ = true;
}

void Supplier::take_log(const core::Core& core) {
    read_.clear();
    source_.take(read_);
    for (const LogBytes& read : read_)
        send_(read.peer, Transfer{.kind = Transfer::Kind::log,
                                  .genesis = core.genesis(),
                                  .at = read.at,
                                  .bytes = read.bytes});
}

void Supplier::forget_served(std::uint64_t now_ns, const core::Core& core) {
    std::erase_if(askers_, [&](const Asker& asker) {
        return asker.until_ns <= now_ns ||
               (core.role() == Role::leader && core.lane_to(asker.id).state == core::Lane::State::open);
    });
}

Position Supplier::needed() const { return std::ranges::min(askers_, {}, &Asker::needs).needs; }

}  // namespace lockstep::replica
