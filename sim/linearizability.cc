#include "sim/linearizability.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <utility>

namespace lockstep::sim {

namespace {

// A get of unknown outcome, or a put of which nobody saw a trace, explains nothing and forbids nothing.
void drop_what_says_nothing(std::vector<Operation>& operations) {
    std::unordered_set<std::uint64_t> seen;
    for (const Operation& operation : operations)
        if (operation.kind == Operation::Kind::get && operation.returned != Operation::kNever)
            seen.insert(operation.result);
    const bool counts = std::ranges::any_of(
        operations, [](const Operation& operation) { return operation.kind == Operation::Kind::add; });
    std::erase_if(operations, [&](const Operation& operation) {
        if (operation.returned != Operation::kNever) return false;
        if (operation.kind == Operation::Kind::get) return true;
        return operation.kind == Operation::Kind::put && !counts && !seen.contains(operation.argument);
    });
}

class Search {
 public:
    Search(std::vector<Operation> operations, std::size_t most_steps)
        : operations_(std::move(operations)), left_(most_steps), done_((operations_.size() + 63) / 64) {
        std::ranges::sort(operations_, {}, &Operation::called);
        for (const Operation& operation : operations_) must_ += operation.returned != Operation::kNever ? 1 : 0;
    }

    Verdict run() {
        // An explicit stack: histories are long.
        enter();
        while (!stack_.empty()) {
            if (must_ == 0) return Verdict::linearizable;
            if (left_ == 0) return Verdict::undecided;
            --left_;
            if (!advance()) leave();
        }
        return Verdict::not_linearizable;
    }

 private:
    struct Frame {
        std::uint64_t value_before = 0;
        std::size_t did = kNone;   // the operation that led here
        std::size_t next = 0;      // the next one to try from here
        std::uint64_t must_be_called_by = 0;
    };
    static constexpr std::size_t kNone = SIZE_MAX;

    bool is_done(std::size_t at) const { return (done_[at / 64] >> (at % 64) & 1) != 0; }
    void flip(std::size_t at) { done_[at / 64] ^= std::uint64_t{1} << (at % 64); }

    void enter(std::size_t did = kNone, std::uint64_t value_before = 0) {
        while (first_open_ < operations_.size() && is_done(first_open_)) ++first_open_;
        // What takes effect next was called before any that is not done has returned.
        std::uint64_t by = Operation::kNever;
        for (std::size_t at = first_open_; at < operations_.size() && operations_[at].called < by; ++at)
            if (!is_done(at)) by = std::min(by, operations_[at].returned);
        stack_.push_back({value_before, did, first_open_, by});
    }

    // Tries the next operation from the present state; false if there is none.
    bool advance() {
        while (true) {
            Frame& frame = stack_.back();
            const std::size_t at = frame.next++;
            if (at >= operations_.size() || operations_[at].called > frame.must_be_called_by) return false;
            if (is_done(at)) continue;
            const Operation& operation = operations_[at];
            const bool returned = operation.returned != Operation::kNever;
            const std::uint64_t before = value_;
            std::uint64_t after = value_;
            if (operation.kind == Operation::Kind::add) after += operation.argument;
            if (operation.kind == Operation::Kind::put) after = operation.argument;
            if (returned && operation.kind != Operation::Kind::put && operation.result != after) continue;
            flip(at);
            if (!tried_.insert(state(after)).second) {
                flip(at);
                continue;
            }
            value_ = after;
            must_ -= returned ? 1 : 0;
            enter(at, before);
            return true;
        }
    }

    void leave() {
        const Frame frame = stack_.back();
        stack_.pop_back();
        if (frame.did == kNone) return;
        flip(frame.did);
        value_ = frame.value_before;
        must_ += operations_[frame.did].returned != Operation::kNever ? 1 : 0;
        first_open_ = std::min(first_open_, frame.did);
    }

    std::string state(std::uint64_t value) const {
        std::string key(reinterpret_cast<const char*>(done_.data()), done_.size() * sizeof done_[0]);
        return key.append(reinterpret_cast<const char*>(&value), sizeof value);
    }

    std::vector<Operation> operations_;
    std::size_t left_;
    std::vector<std::uint64_t> done_;
    std::size_t must_ = 0;        // operations that returned and are not done
    std::uint64_t value_ = 0;
    std::size_t first_open_ = 0;  // all before it are done
    std::vector<Frame> stack_;
    std::unordered_set<std::string> tried_;
};

}  // namespace

Verdict linearizable(std::vector<Operation> operations, std::size_t most_steps) {
    drop_what_says_nothing(operations);
    return Search(std::move(operations), most_steps).run();
}

}  // namespace lockstep::sim
