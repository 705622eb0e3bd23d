// Any bytes as a log entry of the counter: every replica does the same, whether it replies or not; and any bytes as
// frames between counters.
#include "log/check.h"
#include "tools/counter/frame.h"
#include "tools/counter/machine.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t count);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t count) {
    namespace counter = lockstep::counter;
    const std::string_view group(reinterpret_cast<const char*>(bytes), count);
    counter::Store leader;
    counter::Store follower;
    std::string replies;
    const std::size_t executed = counter::execute(leader, group, &replies, 4096);
    LOCKSTEP_CHECK_OP(executed, ==, counter::execute(follower, group, nullptr, 4096));
    LOCKSTEP_CHECK_OP(leader.keys(), ==, follower.keys());
    LOCKSTEP_CHECK_OP(leader.bytes(), ==, follower.bytes());
    const counter::GroupSummary summary = counter::summarize(group);
    LOCKSTEP_CHECK_OP(summary.commands, ==, executed);
    // One reply for each command, and an error for what was malformed.
    std::size_t count_of_replies = 0;
    for (std::string_view left = replies; !left.empty(); ++count_of_replies) {
        const auto size = counter::reply_bytes(left);
        LOCKSTEP_CHECK(size.has_value());
        LOCKSTEP_CHECK_OP(*size, >, 0);
        left.remove_prefix(*size);
    }
    LOCKSTEP_CHECK_OP(count_of_replies, ==, executed + (summary.whole ? 0 : 1));
    bool oversized = false;
    const std::string_view frame = counter::first_frame(group, counter::kAnswerHeaderBytes, 4096, oversized);
    if (!frame.empty()) LOCKSTEP_CHECK_OP(frame.size(), >=, counter::kAnswerHeaderBytes);
    return 0;
}
