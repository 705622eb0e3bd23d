#include "consensus/replica/fetcher.h"

#include "transport/logger.h"

#include <algorithm>
#include <cstring>

namespace lockstep::replica {

namespace {

constexpr std::uint64_t kPauseAfterTrouble = 16;  // times retry_ns

}  // namespace

void Fetcher::fetch(const core::effect::Fetch& fetch, std::uint64_t genesis) {
    const bool anew = !active_ || fetch.serial != fetch_.serial;
    // As much has come as the largest entry takes, and it was none: it is not this log's.
    const bool stuck = !anew && have_.value >= fetch.from.position.value + scratch_.geometry().max_entry_bytes;
    if (anew) ask_again_ns_ = 0;
    if (anew || fetch.from.index > fetch_.from.index) log_is_bad_ = false;
    if (stuck) {
        logger().warn("the log that {} sends behind {} does not verify", to_string(fetch.peer), to_string(have_));
        log_is_bad_ = true;
    }
    if (anew || stuck || have_ < fetch.from.position) have_ = fetch.from.position;
    active_ = true;
    genesis_ = genesis;
    fetch_ = fetch;
}

void Fetcher::receive(std::uint64_t now_ns, ReplicaId from, const Transfer& piece, std::vector<core::Event>& events) {
    if (!active_ || from != fetch_.peer || piece.genesis != genesis_ || piece.bytes.empty()) return;
    if (piece.kind == Transfer::Kind::log) {
        const std::uint64_t size = piece.bytes.size();
        if (piece.at != have_ || have_ + size > fetch_.until || size > scratch_.bytes_to_lap_end(have_)) return;
        std::memcpy(scratch_.at(have_), piece.bytes.data(), size);
        have_ = have_ + size;
        ask_again_ns_ = now_ns;
        events.push_back(core::event::LogFetched{fetch_.serial, have_});
        return;
    }
    if (piece.kind != Transfer::Kind::snapshot || piece.snapshot.at.index <= fetch_.from.index || writing_) return;
    if (store_.receiving() != piece.snapshot) {
        if (piece.offset != 0) return;
        logger().info("receives a snapshot of {} MiB up to index {} from {}", piece.snapshot.bytes >> 20,
                      to_string(piece.snapshot.at.index), to_string(from));
        store_.receive(piece.snapshot);
    }
    if (piece.offset != store_.received()) return;
    store_.write_piece(piece.bytes);
    writing_ = true;
    last_piece_ = store_.received() == piece.snapshot.bytes;
    ask_again_ns_ = now_ns + retry_ns_;
}

void Fetcher::take(std::uint64_t now_ns, const SnapshotOutcome& outcome, std::vector<core::Event>& events) {
    switch (outcome.kind) {
        case SnapshotOutcome::Kind::piece_written:
            writing_ = false;
            ask_again_ns_ = now_ns;
            break;
        case SnapshotOutcome::Kind::receive_failed:
            writing_ = false;
            trouble_ = outcome.why;
            if (last_piece_) bad_ = outcome.name;
            ask_again_ns_ = now_ns + (bad_ ? retry_ns_ : kPauseAfterTrouble * retry_ns_);
            logger().error("cannot take a snapshot from {}: {}", to_string(fetch_.peer), outcome.why);
            break;
        case SnapshotOutcome::Kind::received:
            writing_ = false;
            trouble_.clear();
            ask_again_ns_ = now_ns;
            if (active_) say_fetched(outcome.name, outcome.meta, events);
            break;
        default:
            break;
    }
}

void Fetcher::say_fetched(const log::SnapshotName& name, const log::SnapshotMeta& meta,
                          std::vector<core::Event>& events) {
    auto config = core::config_of(meta.config);
    if (meta.genesis != genesis_ || meta.ring_bytes != scratch_.bytes() || meta.at != name.at || !config) {
        trouble_ = "it is of another cluster";
        logger().error("a snapshot from {} is of another cluster, or says of no config", to_string(fetch_.peer));
        return;
    }
    events.push_back(core::event::SnapshotFetched{fetch_.serial, name.at, config.value()});
}

std::optional<Transfer> Fetcher::ask(std::uint64_t now_ns, std::vector<core::Event>& events) {
    if (!active_ || writing_ || now_ns < ask_again_ns_) return std::nullopt;
    const bool room = fetch_.until > have_;
    const auto& under_way = store_.receiving();
    const bool receives = under_way && under_way->at.index > fetch_.from.index;
    if (!room && !log_is_bad_ && !receives && !bad_) return std::nullopt;  // it comes with what is applied and kept
    ask_again_ns_ = now_ns + retry_ns_;
    // One that was complete when a fetch before this one ended.
    for (const SnapshotStore::Held& held : store_.held()) {
        if (held.name.at.index <= fetch_.from.index) continue;
        say_fetched(held.name, held.meta, events);
        return std::nullopt;
    }
    Transfer ask{.kind = Transfer::Kind::ask, .genesis = genesis_, .commit = fetch_.from, .at = have_};
    if (!log_is_bad_ && room)
        ask.most = std::min({Transfer::kMaxPieceBytes, fetch_.until - have_, scratch_.bytes_to_lap_end(have_)});
    if (bad_) {
        ask.snapshot = *bad_;
        ask.offset = bad_->bytes;
        bad_.reset();
    } else if (receives) {
        ask.snapshot = *under_way;
        ask.offset = store_.received();
    }
    return ask;
}

std::string Fetcher::text() const {
    if (!active_) return {};
    std::string text = "catching up from " + to_string(fetch_.peer);
    if (const auto& snapshot = store_.receiving())
        text += ": snapshot up to index " + to_string(snapshot->at.index) + ", " +
                std::to_string(store_.received() >> 20) + " of " + std::to_string(snapshot->bytes >> 20) + " MiB";
    if (!trouble_.empty()) text += "; the last snapshot did not get here: " + trouble_;
    return text;
}

}  // namespace lockstep::replica
