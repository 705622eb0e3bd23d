// Whether what clients saw of one counter or one register can be explained by every operation taking effect at one
// moment between its call and its return (Herlihy and Wing, TOPLAS 1990). Decides for operations of unknown outcome
// whether, and when, they took effect. The search is that of Wing and Gong (JPDC 1993), with the memory of Lowe
// (2017): a set of done operations that led to a state before is not tried again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::sim {

struct Operation {
    enum class Kind : std::uint8_t {
        add,  // adds `argument` to the value; its result is the sum
        put,  // makes `argument` the value; has no result
        get,  // its result is the value
    };
    static constexpr std::uint64_t kNever = UINT64_MAX;

    Kind kind = Kind::get;
    std::uint64_t argument = 0;
    std::uint64_t called = 0;          // moments: any numbers that rise with time, none used twice
    std::uint64_t returned = kNever;   // kNever: of unknown outcome, it may take effect at any time, or not at all
    std::uint64_t result = 0;          // of one that returned
};

enum class Verdict : std::uint8_t { linearizable, not_linearizable, undecided };

// `operations` on one value that is 0 at first, in any order. Undecided if it takes more than `most_steps`.
Verdict linearizable(std::vector<Operation> operations, std::size_t most_steps = 1'000'000);

}  // namespace lockstep::sim
