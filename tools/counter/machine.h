// The state machine: what a group of commands does to the data, and what it answers.
#pragma once

#include "tools/counter/group.h"
#include "tools/counter/limits.h"
#include "tools/counter/store.h"

#include <lockstep/state_machine.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace lockstep::counter {

// What `execute` appends for an entry that is no group this program can read. Equal on every replica, like the
// state: commands before the malformed byte take effect, none after it does.
inline constexpr std::string_view kMalformedGroup =
    "ERR the log entry is malformed or of a newer version: what follows in it was not executed";

// Carries a group out on `store`. The replies, in RESP, are appended to `out`, which may be null. Once `out` has
// grown by `reply_limit` bytes, values in replies are left out and an error stands in their place; what a command does
// to the data depends on the group alone. Returns how many commands were carried out.
std::size_t execute(Store& store, std::string_view group, std::string* out, std::size_t reply_limit);

// Threads: `apply`, `read`, `snapshot` and `restore` belong to the replica's protocol thread; the gauges may be read by
// any.
class Machine final : public StateMachine {
 public:
    explicit Machine(const Limits& limits) : reply_limit_(limits.reply_bytes) {}
    void apply(std::span<const Entry> batch, Replies& replies) override;
    std::unique_ptr<SnapshotView> snapshot() override { return store_.snapshot(); }
    Result<void> restore(SnapshotSource& source) override;
    // Answers a group that only reads; inside a read's callback.
    void read(std::string_view group, std::string& out);

    std::uint64_t keys() const { return keys_.load(std::memory_order_relaxed); }
    std::uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
    std::uint64_t commands() const { return commands_.load(std::memory_order_relaxed); }

 private:
    void show_size();

    const std::size_t reply_limit_;
    Store store_;
    std::string scratch_;
    std::atomic<std::uint64_t> keys_{0};
    std::atomic<std::uint64_t> bytes_{0};
    std::atomic<std::uint64_t> commands_{0};   // carried out from the log
};

}  // namespace lockstep::counter
