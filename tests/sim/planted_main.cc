// cases_planted BUG [gtest's words]: tests that pass, with that bug planted.
#include "sim/planted/bugs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    const lockstep::sim::Bug* const bug = argc != 2 ? nullptr : lockstep::sim::bug_named(argv[1]);
    if (bug == nullptr) {
        std::fprintf(stderr, "usage: %s BUG [--gtest_filter=...]: BUG is one that can be planted\n", argv[0]);
        return 2;
    }
    lockstep::planted_bug = bug->bug;
    return RUN_ALL_TESTS();
}
