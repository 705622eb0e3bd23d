#include "consensus/replica/codec.h"

#include "log/check.h"
#include "proto/control.pb.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

namespace lockstep::replica {

namespace {

using proto::Control;
using std::to_string;

// -- To Protobuf -----------------------------------------------------------------------------------------------------

void put(const core::VoterSet& set, google::protobuf::RepeatedPtrField<Control::Voter>& out) {
    for (const core::Voter& voter : set.all()) {
        Control::Voter& to = *out.Add();
        to.set_id(voter.id.value);
        to.set_incarnation(voter.incarnation.value);
    }
}

void put(const log::Point& point, Control::Point& out) {
    out.set_index(point.index.value);
    out.set_position(point.position.value);
    out.set_checksum(point.checksum);
    out.set_ballot(point.ballot.value);
    out.set_timestamp_ns(point.timestamp_ns);
}

// Form and Join say the same, to one who forms and to one who comes later.
template <class Message, class To>
void put_founders(const Message& message, To& to) {
    to.set_genesis(message.genesis);
    put(message.voters.voters, *to.mutable_voters());
    put(message.voters.next, *to.mutable_next());
}

void put(const core::Form& message, Control& out) { put_founders(message, *out.mutable_form()); }

void put(const core::FormAck& message, Control& out) { out.mutable_form_ack()->set_genesis(message.genesis); }

void put(const core::Formed& message, Control& out) { out.mutable_formed()->set_genesis(message.genesis); }

void put(const core::Join& message, Control& out) { put_founders(message, *out.mutable_join()); }

void put(const core::PreVote& message, Control& out) {
    Control::PreVote& to = *out.mutable_pre_vote();
    to.set_genesis(message.genesis);
    to.set_ballot(message.ballot.value);
    to.set_commit(message.commit.value);
    to.set_handed_over(message.handed_over.value);
}

void put(const core::PreVoteReply& message, Control& out) {
    Control::PreVoteReply& to = *out.mutable_pre_vote_reply();
    to.set_ballot(message.ballot.value);
    to.set_granted(message.granted);
    to.set_better(message.better);
    to.set_promised(message.promised.value);
}

void put(const core::Prepare& message, Control& out) {
    Control::Prepare& to = *out.mutable_prepare();
    to.set_genesis(message.genesis);
    to.set_ballot(message.ballot.value);
    to.set_open_number(message.open_number);
}

void put(const core::Promise& message, Control& out) {
    LOCKSTEP_CHECK_OP(message.lane.size, <=, transport::LaneAddress::kMaxBytes);
    Control::Promise& to = *out.mutable_promise();
    to.set_ballot(message.ballot.value);
    to.set_candidate(message.candidate.value);
    to.set_open_number(message.open_number);
    put(message.last, *to.mutable_last());
    put(message.commit, *to.mutable_commit());
    to.set_config(message.config.value);
    to.set_low_mark(message.low_mark.value);
    to.set_consumed(message.consumed.value);
    to.set_loss(static_cast<std::uint32_t>(message.loss));
    to.set_lane(message.lane.bytes.data(), message.lane.size);
}

void put(const core::Refusal& message, Control& out) {
    Control::Refusal& to = *out.mutable_refusal();
    to.set_ballot(message.ballot.value);
    to.set_open_number(message.open_number);
    to.set_promised(message.promised.value);
    to.set_hears_leader(message.hears_leader);
}

void put(const core::Campaign& message, Control& out) { out.mutable_campaign()->set_ballot(message.ballot.value); }

void put(const core::Behind& message, Control& out) {
    Control::Behind& to = *out.mutable_behind();
    to.set_genesis(message.genesis);
    to.set_ballot(message.ballot.value);
    to.set_open_number(message.open_number);
    to.set_low_mark(message.low_mark.value);
}

// -- From Protobuf ---------------------------------------------------------------------------------------------------

// Takes fields one by one and keeps the first error.
class Taker {
 public:
    const std::optional<Error>& error() const { return error_; }

    std::uint64_t genesis(std::uint64_t value) {
        if (value == 0) refuse("genesis is 0", "it never is");
        return value;
    }
    // 0 is "none".
    Ballot ballot_or_none(const char* field, std::uint64_t value) {
        const Ballot ballot{value};
        if (ballot && !ballot.leader()) refuse(field + (" is " + to_string(value)), "its low 8 bits name no replica");
        return ballot;
    }
    Ballot ballot(const char* field, std::uint64_t value) {
        if (value == 0) refuse(std::string(field) + " is 0", "one has to be named");
        return ballot_or_none(field, value);
    }
    Position position(const std::string& field, std::uint64_t value) {
        if (value % log::kEntryAlignment != 0)
            refuse(field + " is " + to_string(value), "positions between entries are multiples of 64");
        return {value};
    }
    log::Point point(const std::string& field, const Control::Point& from) {
        return {.index = {from.index()},
                .position = position(field + ".position", from.position()),
                .checksum = from.checksum(),
                .ballot = ballot_or_none((field + ".ballot").c_str(), from.ballot()),
                .timestamp_ns = from.timestamp_ns()};
    }
    core::VoterSet voters(const std::string& field, const google::protobuf::RepeatedPtrField<Control::Voter>& from) {
        core::VoterSet set;
        if (static_cast<std::size_t>(from.size()) > kMaxReplicas)
            refuse(field + " has " + to_string(from.size()) + " voters", "at most " + to_string(kMaxReplicas));
        for (const Control::Voter& voter : from) {
            if (error_) break;
            const std::string id = to_string(voter.id());
            if (voter.id() < 1 || voter.id() > 255) refuse(field + " names replica " + id, "ids are 1 to 255");
            const ReplicaId replica{static_cast<std::uint8_t>(voter.id())};
            if (voter.incarnation() == 0)
                refuse(field + " has no incarnation for replica " + id, "a voter is an id and an incarnation");
            if (!set.add({replica, {voter.incarnation()}}))
                refuse(field + " names replica " + id + " twice", "a set has an id at most once");
        }
        return set;
    }
    transport::LaneAddress lane(const std::string& from) {
        transport::LaneAddress address;
        if (from.size() > address.bytes.size()) {
            refuse("lane has " + to_string(from.size()) + " bytes", "at most " + to_string(address.bytes.size()));
            return address;
        }
        std::memcpy(address.bytes.data(), from.data(), from.size());
        address.size = static_cast<std::uint8_t>(from.size());
        return address;
    }
    // That `low` is at most `high`.
    void in_order(const char* low_field, std::uint64_t low, const char* high_field, std::uint64_t high) {
        if (low > high)
            refuse(low_field + (" is " + to_string(low)), "at most " + (high_field + (", " + to_string(high))));
    }
    void refuse(std::string found, const std::string& allowed) {
        if (!error_) error_ = Error(std::move(found) + ": " + allowed);
    }

 private:
    std::optional<Error> error_;
};

core::Message take(const Control::Form& from, Taker& t) {
    core::Form message{t.genesis(from.genesis()), {t.voters("voters", from.voters()), t.voters("next", from.next())}};
    if (from.voters().empty()) t.refuse("voters is empty", "a config has one at least");
    return message;
}

core::Message take(const Control::FormAck& from, Taker&) { return core::FormAck{from.genesis()}; }

core::Message take(const Control::Formed& from, Taker& t) { return core::Formed{t.genesis(from.genesis())}; }

core::Message take(const Control::Join& from, Taker& t) {
    return core::Join{t.genesis(from.genesis()), {t.voters("voters", from.voters()), t.voters("next", from.next())}};
}

core::Message take(const Control::PreVote& from, Taker& t) {
    return core::PreVote{.genesis = t.genesis(from.genesis()),
                         .ballot = t.ballot("ballot", from.ballot()),
                         .commit = t.position("commit", from.commit()),
                         .handed_over = t.ballot_or_none("handed_over", from.handed_over())};
}

core::Message take(const Control::PreVoteReply& from, Taker& t) {
    if (from.granted() && from.better()) t.refuse("granted and better are both set", "one excludes the other");
    return core::PreVoteReply{.ballot = t.ballot("ballot", from.ballot()),
                              .granted = from.granted(),
                              .better = from.better(),
                              .promised = t.ballot_or_none("promised", from.promised())};
}

core::Message take(const Control::Prepare& from, Taker& t) {
    return core::Prepare{.genesis = t.genesis(from.genesis()),
                         .ballot = t.ballot("ballot", from.ballot()),
                         .open_number = from.open_number()};
}

core::Message take(const Control::Promise& from, Taker& t) {
    core::Promise message{.ballot = t.ballot("ballot", from.ballot()),
                          .candidate = {from.candidate()},
                          .open_number = from.open_number(),
                          .last = t.point("last", from.last()),
                          .commit = t.point("commit", from.commit()),
                          .config = {from.config()},
                          .low_mark = t.position("low_mark", from.low_mark()),
                          .consumed = t.position("consumed", from.consumed()),
                          .loss = static_cast<core::Loss>(from.loss()),
                          .lane = t.lane(from.lane())};
    if (from.loss() > static_cast<std::uint32_t>(core::Loss::corrupt))
        t.refuse("loss is " + std::to_string(from.loss()), "0 to 2");
    const log::Point& last = message.last;
    t.in_order("commit.index", message.commit.index.value, "last.index", last.index.value);
    t.in_order("commit.position", message.commit.position.value, "last.position", last.position.value);
    t.in_order("config", message.config.value, "last.index", last.index.value);
    t.in_order("low_mark", message.low_mark.value, "last.position", last.position.value);
    t.in_order("consumed", message.consumed.value, "last.position", last.position.value);
    return message;
}

core::Message take(const Control::Refusal& from, Taker& t) {
    return core::Refusal{.ballot = t.ballot("ballot", from.ballot()),
                         .open_number = from.open_number(),
                         .promised = t.ballot_or_none("promised", from.promised()),
                         .hears_leader = from.hears_leader()};
}

core::Message take(const Control::Campaign& from, Taker& t) {
    return core::Campaign{t.ballot("ballot", from.ballot())};
}

core::Message take(const Control::Behind& from, Taker& t) {
    return core::Behind{.genesis = t.genesis(from.genesis()),
                        .ballot = t.ballot("ballot", from.ballot()),
                        .open_number = from.open_number(),
                        .low_mark = {from.low_mark()}};
}

// What `kind` is if this version knows it.
core::Message take(const Control& control, Taker& t) {
    switch (control.kind_case()) {
        case Control::kForm: return take(control.form(), t);
        case Control::kFormAck: return take(control.form_ack(), t);
        case Control::kFormed: return take(control.formed(), t);
        case Control::kJoin: return take(control.join(), t);
        case Control::kPreVote: return take(control.pre_vote(), t);
        case Control::kPreVoteReply: return take(control.pre_vote_reply(), t);
        case Control::kPrepare: return take(control.prepare(), t);
        case Control::kPromise: return take(control.promise(), t);
        case Control::kRefusal: return take(control.refusal(), t);
        case Control::kCampaign: return take(control.campaign(), t);
        case Control::kBehind: return take(control.behind(), t);
        case Control::KIND_NOT_SET: break;
    }
    const auto& unknown = control.GetReflection()->GetUnknownFields(control);
    if (unknown.field_count() == 0)
        t.refuse("it has no kind", "one has to be set");
    else
        t.refuse("its kind " + to_string(unknown.field(0).number()) + " is unknown here",
                 "the sender runs a newer version, upgrade this replica");
    return {};
}

std::string kind_name(const Control& control) {
    const auto* field = control.GetReflection()->GetOneofFieldDescriptor(
        control, Control::descriptor()->FindOneofByName("kind"));
    return field == nullptr ? "control message" : field->name();
}

}  // namespace

void encode(const core::Message& message, std::vector<std::byte>& out) {
    Control control;
    std::visit([&](const auto& kind) { put(kind, control); }, message);
    const std::size_t size = control.ByteSizeLong();
    LOCKSTEP_CHECK_OP(size, <=, transport::kMaxMessageBytes);
    out.resize(size);
    LOCKSTEP_CHECK(control.SerializeToArray(out.data(), static_cast<int>(size)));
}

Result<core::Message> decode(std::span<const std::byte> bytes) {
    if (bytes.size() > transport::kMaxMessageBytes)
        return Error("control message has " + to_string(bytes.size()) + " bytes: at most " +
                     to_string(transport::kMaxMessageBytes));
    Control control;
    if (!control.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
        return Error("control message of " + to_string(bytes.size()) + " bytes: cut short or damaged");
    Taker taker;
    core::Message message = take(control, taker);
    if (taker.error()) return Error(*taker.error()).within(kind_name(control));
    return message;
}

}  // namespace lockstep::replica
