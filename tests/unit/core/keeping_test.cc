// What counts as on disk (S6, S10).
#include "tests/unit/core/bench.h"

namespace lockstep::core {
namespace {

constexpr event::Look kLook{{UINT64_MAX}};

// Follows the leader of `ballot`, once the promise is on disk.
void follow(Bench& bench, Ballot ballot) {
    bench.receive(ballot.leader(), Prepare{Bench::kGenesis, ballot, 1});
    ASSERT_EQ(bench.effects<effect::KeepPromise>().size(), 1u);
    EXPECT_LT(bench.core().promised(), ballot) << "nothing of it is visible yet (S1)";
    bench.step(event::PromiseKept{bench.effects<effect::KeepPromise>()[0].serial});
    EXPECT_EQ(bench.core().promised(), ballot);
    bench.finish_promise();
}

// Two entries of `ballot` come, and are asked to be kept.
effect::KeepLog two_entries(Bench& bench, Ballot ballot) {
    log::Point tail = bench.start();
    write_entry(bench, tail, ballot, "a");
    write_entry(bench, tail, ballot, "b");
    bench.step(kLook);
    bench.flush();
    EXPECT_EQ(bench.effects<effect::KeepLog>().size(), 1u);
    return bench.effects<effect::KeepLog>().at(0);
}

// The log's "ABA": the same place, the same index, another entry. (etcd raft's "append ABA", openraft issue 1960)
TEST(Keeping, what_is_on_disk_of_an_older_log_does_not_count_for_the_present_one) {
    Bench bench(kR2, Durability::durable);
    const Ballot older = Ballot::of(5, kR1);
    const Ballot newer = Ballot::of(6, kR3);
    follow(bench, older);
    const effect::KeepLog before = two_entries(bench, older);
    follow(bench, newer);
    bench.step(event::LogKept{before.generation, before.upto, {}});
    EXPECT_EQ(bench.core().kept(), bench.start());

    const effect::KeepLog now = two_entries(bench, newer);
    EXPECT_GT(now.generation, before.generation);
    ASSERT_EQ(now.upto.index, before.upto.index);
    // Late, twice, and for a part only.
    for (const log::Point& upto : {before.upto, before.upto, bench.start()}) {
        bench.step(event::LogKept{before.generation, upto, {}});
        EXPECT_EQ(bench.core().kept(), bench.start()) << "another log's entries count as on disk";
    }
    bench.step(event::LogKept{now.generation, now.upto, {}});
    EXPECT_EQ(bench.core().kept(), now.upto);
}

// Where no commit waits for the disk it may gather what it is given, but not for longer than a heartbeat.
TEST(Keeping, what_no_commit_waits_for_may_gather_until_a_heartbeat) {
    Bench bench(kR2, Durability::persist_async);
    const Ballot ballot = Ballot::of(5, kR1);
    bench.receive(ballot.leader(), Prepare{Bench::kGenesis, ballot, 1});
    bench.finish_promise();
    bench.flush();
    log::Point tail = bench.start();
    const auto land = [&] {
        write_entry(bench, tail, ballot, "a");
        bench.step(kLook);
        bench.flush();
    };
    land();
    EXPECT_TRUE(bench.effects<effect::KeepLog>().empty()) << "an entry is no reason to wake the disk's thread";
    for (int more = 0; more < 3; ++more) land();
    ASSERT_EQ(bench.effects<effect::KeepLog>().size(), 1u);
    EXPECT_EQ(bench.effects<effect::KeepLog>()[0].upto, tail);
    EXPECT_TRUE(bench.effects<effect::KeepLog>()[0].gather);

    std::vector<effect::KeepLog> at_once;
    for (int ms = 0; ms < 1000; ms += 10) {
        bench.tick(10);
        for (const auto& asked : bench.effects<effect::KeepLog>()) at_once.push_back(asked);
    }
    ASSERT_EQ(at_once.size(), 1u) << "asked for once more, and not with every heartbeat";
    EXPECT_FALSE(at_once[0].gather);
    EXPECT_EQ(at_once[0].upto, tail);
}

// Behind the commit the ring may be written anew from then on: a storage that lags must not read there any more for the
// log of before, however little there is of the new one.
TEST(Keeping, a_new_generation_is_told_at_once) {
    Bench bench(kR2, Durability::persist_async);
    std::uint64_t generation = 0;
    for (const Ballot ballot : {Ballot::of(5, kR1), Ballot::of(6, kR3), Ballot::of(7, kR1)}) {
        SCOPED_TRACE(to_string(ballot));
        bench.receive(ballot.leader(), Prepare{Bench::kGenesis, ballot, 1});
        bench.finish_promise();
        bench.flush();
        ASSERT_EQ(bench.effects<effect::KeepLog>().size(), 1u);
        EXPECT_GT(bench.effects<effect::KeepLog>()[0].generation, generation);
        EXPECT_EQ(bench.effects<effect::KeepLog>()[0].upto, bench.start());
        generation = bench.effects<effect::KeepLog>()[0].generation;
        log::Point tail = bench.start();
        for (int entries = 0; entries < 4; ++entries) write_entry(bench, tail, ballot, "a");
        bench.step(kLook);
        bench.flush();
        ASSERT_EQ(bench.effects<effect::KeepLog>().size(), 1u);
    }
}

}  // namespace
}  // namespace lockstep::core
