#include "sim/describe.h"

#include <variant>

namespace lockstep::sim {

namespace {

std::string point(const log::Point& point) {
    return "[" + to_string(point.index) + ":" + to_string(point.ballot) + "] at " + to_string(point.position);
}

struct Describe {
    std::string operator()(const core::Form&) const { return "form"; }
    std::string operator()(const core::FormAck&) const { return "form kept"; }
    std::string operator()(const core::Formed&) const { return "formed"; }
    std::string operator()(const core::PreVote& message) const {
        return "pre-vote for " + to_string(message.ballot) + ", commit at " + to_string(message.commit) +
               (message.handed_over ? ", handed over by " + to_string(message.handed_over) : "");
    }
    std::string operator()(const core::PreVoteReply& message) const {
        return std::string("pre-vote ") +
               (message.granted  ? "granted"
                : message.better ? "refused: would be better itself"
                                 : "refused") +
               " for " + to_string(message.ballot) + ", promised " + to_string(message.promised);
    }
    std::string operator()(const core::Prepare& message) const {
        return "prepare " + to_string(message.ballot) + ", open " + std::to_string(message.open_number);
    }
    std::string operator()(const core::Promise& message) const {
        return "promise " + to_string(message.ballot) + ", open " + std::to_string(message.open_number) + ", last " +
               point(message.last) + ", commit " + point(message.commit) + ", low mark " +
               to_string(message.low_mark) + ", consumed " + to_string(message.consumed);
    }
    std::string operator()(const core::Refusal& message) const {
        return "refusal of " + to_string(message.ballot) + ", open " + std::to_string(message.open_number) +
               ", promised " + to_string(message.promised) + (message.hears_leader ? ", hears its leader" : "");
    }
    std::string operator()(const core::Campaign& message) const {
        return "please campaign, from " + to_string(message.ballot);
    }
    std::string operator()(const core::Join& message) const {
        return "join; it began with " + std::to_string(message.voters.voters.size()) + " voters";
    }
    std::string operator()(const core::Behind& message) const {
        return "behind " + to_string(message.ballot) + ", open " + std::to_string(message.open_number) +
               ", low mark " + to_string(message.low_mark);
    }
};

}  // namespace

std::string describe_transfer(const replica::Transfer& transfer) {
    const log::SnapshotName& snapshot = transfer.snapshot;
    const std::string of_snapshot = "snapshot up to " + to_string(snapshot.at.index) + ", " +
                                    std::to_string(transfer.offset) + " of " + std::to_string(snapshot.bytes);
    switch (transfer.kind) {
        case replica::Transfer::Kind::ask:
            return "asks behind " + to_string(transfer.commit.index) + ": log at " + to_string(transfer.at) + ", " +
                   std::to_string(transfer.most) + " bytes; has " + of_snapshot;
        case replica::Transfer::Kind::log:
            return "log at " + to_string(transfer.at) + ", " + std::to_string(transfer.bytes.size()) + " bytes";
        case replica::Transfer::Kind::snapshot:
            return of_snapshot + ", " + std::to_string(transfer.bytes.size()) + " bytes";
    }
    return "?";
}

std::string describe_message(const core::Message& message) { return std::visit(Describe{}, message); }

}  // namespace lockstep::sim
