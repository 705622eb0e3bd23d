// The checker of clients' histories: on histories made by hand, and against trying all orders.
#include "sim/linearizability.h"

#include "consensus/core/random.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace lockstep::sim {
namespace {

using Kind = Operation::Kind;
constexpr std::uint64_t never = Operation::kNever;

Verdict check(std::vector<Operation> operations) { return linearizable(std::move(operations)); }

TEST(Linearizable, one_after_the_other) {
    EXPECT_EQ(check({{Kind::put, 5, 1, 2, 0}, {Kind::get, 0, 3, 4, 5}}), Verdict::linearizable);
    EXPECT_EQ(check({{Kind::put, 5, 1, 2, 0}, {Kind::get, 0, 3, 4, 0}}), Verdict::not_linearizable);
    EXPECT_EQ(check({{Kind::add, 5, 1, 2, 5}, {Kind::add, 3, 3, 4, 8}}), Verdict::linearizable);
    EXPECT_EQ(check({{Kind::add, 5, 1, 2, 5}, {Kind::add, 3, 3, 4, 3}}), Verdict::not_linearizable);
}

TEST(Linearizable, at_the_same_time_in_any_order) {
    EXPECT_EQ(check({{Kind::put, 5, 1, 4, 0}, {Kind::get, 0, 2, 3, 0}}), Verdict::linearizable);
    EXPECT_EQ(check({{Kind::put, 5, 1, 4, 0}, {Kind::get, 0, 2, 3, 5}}), Verdict::linearizable);
    EXPECT_EQ(check({{Kind::add, 5, 1, 4, 8}, {Kind::add, 3, 2, 3, 3}}), Verdict::linearizable);
    EXPECT_EQ(check({{Kind::add, 5, 1, 4, 5}, {Kind::add, 3, 2, 3, 3}}), Verdict::not_linearizable);
}

TEST(Linearizable, reads_do_not_go_back) {
    EXPECT_EQ(check({{Kind::put, 5, 1, 6, 0}, {Kind::get, 0, 2, 3, 5}, {Kind::get, 0, 4, 5, 0}}),
              Verdict::not_linearizable);
}

TEST(Linearizable, an_unknown_outcome_is_decided_by_what_was_seen) {
    const Operation unknown{Kind::put, 5, 1, never, 0};
    EXPECT_EQ(check({unknown, {Kind::get, 0, 2, 3, 0}, {Kind::get, 0, 4, 5, 5}}), Verdict::linearizable);
    EXPECT_EQ(check({unknown, {Kind::get, 0, 2, 3, 5}, {Kind::get, 0, 4, 5, 0}}), Verdict::not_linearizable);
    EXPECT_EQ(check({{Kind::get, 0, 1, 2, 5}, {Kind::put, 5, 3, never, 0}}), Verdict::not_linearizable);
    const Operation added{Kind::add, 5, 1, never, 0};
    EXPECT_EQ(check({added, {Kind::add, 3, 2, 3, 3}, {Kind::add, 2, 4, 5, 10}}), Verdict::linearizable);
    EXPECT_EQ(check({added, {Kind::add, 3, 2, 3, 8}, {Kind::add, 2, 4, 5, 5}}), Verdict::not_linearizable);
}

TEST(Linearizable, says_so_when_it_takes_too_long) {
    std::vector<Operation> operations;
    for (std::uint64_t i = 0; i < 30; ++i) operations.push_back({Kind::add, std::uint64_t{1} << i, i + 1, never, 0});
    operations.push_back({Kind::get, 0, 100, 101, 12345678901});
    EXPECT_EQ(linearizable(operations, 1000), Verdict::undecided);
}

// By trying every order of every set that holds all that returned.
bool explained(std::vector<Operation> left, std::uint64_t value) {
    if (std::ranges::all_of(left, [](const Operation& o) { return o.returned == never; })) return true;
    for (std::size_t at = 0; at < left.size(); ++at) {
        const Operation operation = left[at];
        if (std::ranges::any_of(left, [&](const Operation& o) { return o.returned < operation.called; })) continue;
        const std::uint64_t after = operation.kind == Kind::add   ? value + operation.argument
                                    : operation.kind == Kind::put ? operation.argument
                                                                  : value;
        if (operation.returned != never && operation.kind != Kind::put && operation.result != after) continue;
        std::vector<Operation> rest = left;
        rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(at));
        if (explained(std::move(rest), after)) return true;
    }
    return false;
}

TEST(Linearizable, agrees_with_trying_all_orders) {
    core::Random random(42);
    int yes = 0;
    constexpr int kHistories = 20'000;
    for (int i = 0; i < kHistories; ++i) {
        std::vector<std::uint64_t> moments(14);
        for (std::size_t at = 0; at < moments.size(); ++at) moments[at] = at + 1;
        for (std::size_t at = moments.size(); at > 1; --at) std::swap(moments[at - 1], moments[random.below(at)]);
        std::vector<Operation> operations;
        for (std::size_t at = 0; at + 1 < 2 * (3 + random.below(4)); at += 2) {
            const auto [called, returned] = std::minmax(moments[at], moments[at + 1]);
            operations.push_back({static_cast<Kind>(random.below(3)), 1 + random.below(3), called,
                                  random.below(4) == 0 ? never : returned, random.below(5)});
        }
        const bool expected = explained(operations, 0);
        yes += expected ? 1 : 0;
        ASSERT_EQ(linearizable(operations), expected ? Verdict::linearizable : Verdict::not_linearizable) << i;
    }
    EXPECT_GT(yes, kHistories / 20);
    EXPECT_LT(yes, kHistories * 19 / 20);
}

}  // namespace
}  // namespace lockstep::sim
