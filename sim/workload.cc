#include "sim/workload.h"

#include "consensus/core/random.h"

#include <charconv>
#include <cstring>
#include <string>

namespace lockstep::sim {

void KeyValue::apply(std::span<const Entry> batch, Replies& replies) {
    for (std::size_t i = 0; i < batch.size(); ++i) {
        const char* at = reinterpret_cast<const char*>(batch[i].command.data());
        const char* const end = at + batch[i].command.size();
        std::uint64_t number = 0;
        at = std::from_chars(at, end, number).ptr;
        if (end - at < 6) throw Violation("a command was applied that nobody has made");
        const bool adds = std::memcmp(at, " add ", 5) == 0;
        std::uint64_t which = 0;
        std::from_chars(at + 5, end, which);
        std::uint64_t& value = values_[which];
        value = adds ? value + Workload::delta(number) : number;
        digest_ = core::Random(digest_ ^ value ^ which << 48 ^ batch[i].index.value << 24).next();
        replies.set(i, std::as_bytes(std::span(&value, 1)));
    }
}

std::uint64_t KeyValue::value(std::uint64_t which) const {
    const auto found = values_.find(which);
    return found == values_.end() ? 0 : found->second;
}

// Different sets of numbers have different sums.
std::uint64_t Workload::delta(std::uint64_t number) { return core::Random(number).next(); }

Workload::OperationRef Workload::begin(Operation::Kind kind, std::uint64_t key, std::uint64_t argument) {
    auto [known, fresh] = value_of_.emplace(key, fresh_value_);
    if (fresh || values_[known->second].unknown >= kMostUnknown) known->second = ++fresh_value_;
    Value& value = values_[known->second];
    value.operations.push_back({kind, argument, ++moment_, Operation::kNever, 0});
    ++value.unknown;  // until it ends
    return {known->second, value.operations.size() - 1};
}

void Workload::end(OperationRef which, Fate fate, std::uint64_t result) {
    Value& value = values_[which.first];
    Operation& operation = value.operations[which.second];
    if (fate == Fate::unknown) return;
    --value.unknown;
    // One that was rejected says nothing: a read before everything else. That it has no effect shows in all others.
    if (fate == Fate::rejected) operation = {Operation::Kind::get, 0, operation.called, Operation::kNever, 0};
    else operation.returned = ++moment_, operation.result = result;
}

void Workload::write(Operation::Kind kind, ReplicaId to, std::uint64_t key, std::size_t bytes) {
    const std::uint64_t number = cluster_.next_number();
    const bool adds = kind == Operation::Kind::add;
    const OperationRef which = begin(kind, key, adds ? delta(number) : number);
    std::string command = std::to_string(number) + (adds ? " add " : " put ") + std::to_string(which.first) + " ";
    if (bytes > command.size()) command.resize(bytes, ' ');
    cluster_.history().proposed(number);
    Replica::Done done = [this, number, which](const Outcome& outcome) {
        cluster_.history().ended(number, outcome);
        std::uint64_t result = 0;
        if (outcome.fate == Fate::applied) std::memcpy(&result, outcome.reply.data(), sizeof result);
        end(which, outcome.fate, result);
    };
    if (!cluster_.propose(to, command, done)) done(Outcome{Fate::rejected, Reason::busy, {}, {}, {}});
}

void Workload::get(ReplicaId to, std::uint64_t key) {
    const OperationRef which = begin(Operation::Kind::get, key, 0);
    const Index must_see = cluster_.history().read_began();
    Replica::Done done = [this, to, must_see, which](const Outcome& outcome) {
        cluster_.history().read_ended(must_see, outcome);
        std::uint64_t result = 0;
        if (outcome.fate == Fate::applied)
            result = static_cast<const KeyValue&>(cluster_.service(to)).value(which.first);
        end(which, outcome.fate, result);
    };
    if (!cluster_.read(to, done)) done(Outcome{Fate::rejected, Reason::busy, {}, {}, {}});
}

void Workload::check() const {
    for (const auto& [which, value] : values_) {
        const Verdict verdict = linearizable(value.operations);
        if (verdict == Verdict::undecided) ++undecided_;
        if (verdict == Verdict::not_linearizable)
            throw Violation("what clients saw of value " + std::to_string(which) + ", in " +
                            std::to_string(value.operations.size()) + " operations, has no order (S15, S17)");
    }
}

}  // namespace lockstep::sim
