// Control messages as bytes: what goes in comes out; what is out of bounds is named.
#include "consensus/replica/codec.h"

#include "proto/control.pb.h"
#include "tests/unit/replica/random_message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>  // needs the two before

namespace lockstep::replica {
namespace {

using proto::Control;
using testing::HasSubstr;

std::vector<std::byte> bytes_of(const core::Message& message) {
    std::vector<std::byte> out;
    encode(message, out);
    return out;
}

std::vector<std::byte> bytes_of(const Control& control) {
    std::vector<std::byte> out(control.ByteSizeLong());
    EXPECT_TRUE(control.SerializeToArray(out.data(), static_cast<int>(out.size())));
    return out;
}

// The error that decoding gives, or "ok".
std::string error_of(const Control& control) {
    const auto decoded = decode(bytes_of(control));
    return decoded ? "ok" : decoded.error().message();
}

Control good_form() {
    Control control;
    auto& form = *control.mutable_form();
    form.set_genesis(5);
    for (std::uint32_t id : {1u, 2u, 255u}) {
        auto& voter = *form.add_voters();
        voter.set_id(id);
        voter.set_incarnation(id * 100);
    }
    return control;
}

Control good_promise() {
    Control control;
    auto& promise = *control.mutable_promise();
    promise.set_ballot(Ballot::of(2, ReplicaId{1}).value);
    promise.mutable_last()->set_index(5);
    promise.mutable_last()->set_position(640);
    promise.mutable_last()->set_ballot(Ballot::of(1, ReplicaId{3}).value);
    promise.mutable_commit()->set_index(5);
    promise.mutable_commit()->set_position(640);
    promise.set_config(5);
    promise.set_low_mark(640);
    promise.set_consumed(640);
    promise.set_lane(std::string(64, 'l'));
    return control;
}

RC_GTEST_PROP(Codec, of_any_message_gives_it_back, ()) {
    core::RandomMessages messages(*rc::gen::arbitrary<std::uint64_t>());
    std::vector<std::byte> bytes(7);  // what `out` holds is replaced
    for (std::size_t kind = 0; kind < std::variant_size_v<core::Message>; ++kind) {
        for (int count = 0; count < 20; ++count) {
            const core::Message message = messages.next(kind);
            RC_ASSERT(message.index() == kind);
            encode(message, bytes);
            RC_ASSERT(bytes.size() <= transport::kMaxMessageBytes);
            const auto decoded = decode(bytes);
            RC_ASSERT(decoded.ok());
            RC_ASSERT(core::same(decoded.value(), message));
        }
    }
}

RC_GTEST_PROP(Codec, of_damaged_bytes_gives_an_error_or_a_message_in_bounds, ()) {
    std::mt19937_64 random(*rc::gen::arbitrary<std::uint64_t>());
    core::RandomMessages messages(random());
    for (std::size_t kind = 0; kind < std::variant_size_v<core::Message>; ++kind) {
        for (int count = 0; count < 50; ++count) {
            auto bytes = bytes_of(messages.next(kind));
            for (std::uint64_t changes = 1 + random() % 4; changes > 0 && !bytes.empty(); --changes) {
                if (random() % 4 == 0)
                    bytes.resize(random() % bytes.size());
                else
                    bytes[random() % bytes.size()] = static_cast<std::byte>(random());
            }
            const auto decoded = decode(bytes);
            if (!decoded) {
                RC_ASSERT(!decoded.error().message().empty());
                continue;
            }
            const auto again = decode(bytes_of(decoded.value()));
            RC_ASSERT(again.ok());
            RC_ASSERT(core::same(again.value(), decoded.value()));
        }
    }
}

TEST(Codec, takes_what_is_just_in_bounds) {
    EXPECT_EQ(error_of(good_form()), "ok");
    EXPECT_EQ(error_of(good_promise()), "ok");
    Control full = good_form();
    for (std::uint32_t id = 3; full.form().voters_size() < static_cast<int>(kMaxReplicas); ++id) {
        auto& voter = *full.mutable_form()->add_voters();
        voter.set_id(id);
        voter.set_incarnation(1);
    }
    *full.mutable_form()->mutable_next() = full.form().voters();
    EXPECT_EQ(error_of(full), "ok");
}

TEST(Codec, of_bytes_that_are_no_message_says_so) {
    EXPECT_EQ(decode({}).error().message(), "control message: it has no kind: one has to be set");
    const std::vector<std::byte> damaged(10, std::byte{0xff});
    EXPECT_EQ(decode(damaged).error().message(), "control message of 10 bytes: cut short or damaged");
    const std::vector<std::byte> long_one(transport::kMaxMessageBytes + 1);
    EXPECT_EQ(decode(long_one).error().message(), "control message has 65537 bytes: at most 65536");
}

TEST(Codec, of_an_unknown_kind_names_it) {
    Control control;
    control.GetReflection()->MutableUnknownFields(&control)->AddVarint(4711, 1);
    EXPECT_EQ(error_of(control), "control message: its kind 4711 is unknown here: the sender runs a newer version, "
                                 "upgrade this replica");
}

TEST(Codec, of_an_unknown_field_in_a_known_kind_ignores_it) {
    Control control = good_form();
    auto& form = *control.mutable_form();
    form.GetReflection()->MutableUnknownFields(&form)->AddVarint(99, 1);
    EXPECT_EQ(error_of(control), "ok");
}

TEST(Codec, of_voters_out_of_bounds_names_them) {
    const auto with = [](auto&& change) {
        Control control = good_form();
        change(*control.mutable_form());
        return error_of(control);
    };
    EXPECT_EQ(with([](auto& form) { form.set_genesis(0); }), "form: genesis is 0: it never is");
    EXPECT_EQ(with([](auto& form) { form.clear_voters(); }), "form: voters is empty: a config has one at least");
    EXPECT_EQ(with([](auto& form) { form.mutable_voters(1)->set_id(0); }),
              "form: voters names replica 0: ids are 1 to 255");
    EXPECT_EQ(with([](auto& form) { form.mutable_voters(1)->set_id(256); }),
              "form: voters names replica 256: ids are 1 to 255");
    EXPECT_EQ(with([](auto& form) { form.mutable_voters(1)->set_id(257); }),
              "form: voters names replica 257: ids are 1 to 255");
    EXPECT_EQ(with([](auto& form) { form.mutable_voters(1)->set_id(1); }),
              "form: voters names replica 1 twice: a set has an id at most once");
    EXPECT_EQ(with([](auto& form) { form.mutable_voters(1)->set_incarnation(0); }),
              "form: voters has no incarnation for replica 2: a voter is an id and an incarnation");
    EXPECT_EQ(with([](auto& form) { *form.add_next() = form.voters(0), *form.add_next() = form.voters(0); }),
              "form: next names replica 1 twice: a set has an id at most once");
    const auto add_voters = [](auto& voters) {
        for (std::uint32_t id = 10; voters.size() <= static_cast<int>(kMaxReplicas); ++id) {
            voters.Add()->set_id(id);
            voters.rbegin()->set_incarnation(1);
        }
    };
    EXPECT_EQ(with([&](auto& form) { add_voters(*form.mutable_voters()); }), "form: voters has 8 voters: at most 7");
    EXPECT_EQ(with([&](auto& form) { add_voters(*form.mutable_next()); }), "form: next has 8 voters: at most 7");
}

TEST(Codec, of_a_promise_out_of_bounds_names_the_field) {
    const auto with = [](auto&& change) {
        Control control = good_promise();
        change(*control.mutable_promise());
        return error_of(control);
    };
    EXPECT_EQ(with([](auto& promise) { promise.set_lane(std::string(65, 'l')); }),
              "promise: lane has 65 bytes: at most 64");
    EXPECT_EQ(with([](auto& promise) { promise.set_ballot(0); }), "promise: ballot is 0: one has to be named");
    EXPECT_EQ(with([](auto& promise) { promise.set_ballot(256); }),
              "promise: ballot is 256: its low 8 bits name no replica");
    EXPECT_EQ(with([](auto& promise) { promise.mutable_last()->set_ballot(256); }),
              "promise: last.ballot is 256: its low 8 bits name no replica");
    EXPECT_EQ(with([](auto& promise) { promise.mutable_last()->set_position(641); }),
              "promise: last.position is 641: positions between entries are multiples of 64");
    EXPECT_THAT(with([](auto& promise) { promise.mutable_commit()->set_position(1); }),
                HasSubstr("commit.position is 1:"));
    EXPECT_THAT(with([](auto& promise) { promise.set_low_mark(1); }), HasSubstr("low_mark is 1:"));
    EXPECT_THAT(with([](auto& promise) { promise.set_consumed(1); }), HasSubstr("consumed is 1:"));
    EXPECT_EQ(with([](auto& promise) { promise.mutable_commit()->set_position(704); }),
              "promise: commit.position is 704: at most last.position, 640");
    EXPECT_EQ(with([](auto& promise) { promise.mutable_commit()->set_index(6); }),
              "promise: commit.index is 6: at most last.index, 5");
    EXPECT_EQ(with([](auto& promise) { promise.set_config(6); }), "promise: config is 6: at most last.index, 5");
    EXPECT_EQ(with([](auto& promise) { promise.set_low_mark(704); }),
              "promise: low_mark is 704: at most last.position, 640");
    EXPECT_EQ(with([](auto& promise) { promise.set_consumed(704); }),
              "promise: consumed is 704: at most last.position, 640");
}

TEST(Codec, of_other_kinds_out_of_bounds_names_the_field) {
    Control control;
    control.mutable_join();
    EXPECT_EQ(error_of(control), "join: genesis is 0: it never is");
    control.mutable_formed();
    EXPECT_EQ(error_of(control), "formed: genesis is 0: it never is");
    control.mutable_pre_vote()->set_ballot(257);
    EXPECT_EQ(error_of(control), "pre_vote: genesis is 0: it never is");
    control.mutable_pre_vote()->set_genesis(1);
    EXPECT_EQ(error_of(control), "ok");
    control.mutable_pre_vote()->set_commit(63);
    EXPECT_THAT(error_of(control), HasSubstr("pre_vote: commit is 63:"));
    control.mutable_pre_vote()->set_commit(64);
    control.mutable_pre_vote()->set_handed_over(512);
    EXPECT_THAT(error_of(control), HasSubstr("pre_vote: handed_over is 512:"));
    control.mutable_pre_vote_reply()->set_granted(true);
    EXPECT_THAT(error_of(control), HasSubstr("pre_vote_reply: ballot is 0:"));
    control.mutable_pre_vote_reply()->set_ballot(257);
    control.mutable_pre_vote_reply()->set_better(true);
    EXPECT_THAT(error_of(control), HasSubstr("pre_vote_reply: granted and better are both set"));
    control.mutable_prepare()->set_ballot(257);
    EXPECT_EQ(error_of(control), "prepare: genesis is 0: it never is");
    control.mutable_prepare()->set_genesis(1);
    control.mutable_prepare()->set_ballot(0);
    EXPECT_THAT(error_of(control), HasSubstr("prepare: ballot is 0:"));
    control.mutable_refusal()->set_promised(257);
    EXPECT_THAT(error_of(control), HasSubstr("refusal: ballot is 0:"));
    control.mutable_campaign();
    EXPECT_THAT(error_of(control), HasSubstr("campaign: ballot is 0:"));
}

}  // namespace
}  // namespace lockstep::replica
