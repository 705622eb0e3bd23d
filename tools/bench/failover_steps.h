// When a replica took the steps of an election, by what the library's log says of them.
#pragma once

#include <spdlog/sinks/base_sink.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

namespace lockstep::bench {

// In the order in which the next leader takes them.
enum class Step : std::uint8_t {
    noticed,     // that the old leader is gone
    fences,      // its own ring, after a majority would welcome the campaign
    stopped,     // over RDMA: the queue pair that the old leader wrote through
    pushed_out,  // over RDMA: what that had written is in memory
    fenced,
    promised,    // by another replica
    leads,       // with the log that it has adopted
};
inline constexpr std::size_t kSteps = 7;
using StepTimes = std::array<std::uint64_t, kSteps>;  // each 0 if the step was not taken

// A sink for the library's log. Any thread.
class FailoverSteps final : public spdlog::sinks::base_sink<std::mutex> {
 public:
    // Makes it the library's log's, beside the one that there is. Before the first replica of this process is opened.
    static std::shared_ptr<FailoverSteps> watch_library();

    // Forgets what it has seen.
    void restart();
    // Of the campaign that made this replica the leader; when it noticed that it needs one, the first time.
    StepTimes times();

 protected:
    void sink_it_(const spdlog::details::log_msg& line) override;
    void flush_() override {}

 private:
    StepTimes times_{};  // under the base's mutex
};

}  // namespace lockstep::bench
