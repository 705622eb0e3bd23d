#include "tools/counter/machine.h"

#include <charconv>
#include <limits>

namespace lockstep::counter {
namespace {

// Carries out the commands of one group, in order.
class Executor {
 public:
    Executor(Store& store, Resp resp, std::string* out, std::size_t reply_limit)
        : store_(store), resp_(resp), out_(out), reply_end_(out == nullptr ? 0 : out->size() + reply_limit) {}

    void run(const Operation& operation) {
        switch (operation.id) {
            case CommandId::incr: return add(operation.key, 1);
            case CommandId::decr: return add(operation.key, -1);
            case CommandId::incrby: return add(operation.key, operation.by);
            case CommandId::decrby: return subtract(operation.key, operation.by);
            case CommandId::get: return get(operation.key);
            case CommandId::mget: return mget(operation);
            case CommandId::set: return set(operation);
            case CommandId::del: return count(operation, [this](std::string_view key) { return store_.erase(key); });
            case CommandId::exists:
                return count(operation, [this](std::string_view key) { return store_.find(key) != nullptr; });
            case CommandId::dbsize: return integer(static_cast<std::int64_t>(store_.keys()));
            default: return;
        }
    }

 private:
    void integer(std::int64_t value) {
        if (out_ != nullptr) append_integer(*out_, value);
    }
    void error(std::string_view text) {
        if (out_ != nullptr) append_error(*out_, text);
    }

    void add(std::string_view key, std::int64_t by) {
        // A key that is missing counts as 0, and 0 plus any number is in range: adding it at once is safe.
        Value& value = store_.find_or_add(key);
        auto* number = std::get_if<std::int64_t>(&value);
        if (number == nullptr) return error(kNotAnInteger);
        std::int64_t sum = 0;
        if (__builtin_add_overflow(*number, by, &sum)) return error(kOverflow);
        *number = sum;
        integer(sum);
    }

    void subtract(std::string_view key, std::int64_t by) {
        // Such a number cannot be negated. A client's is refused before it gets here, in the same words.
        if (by == std::numeric_limits<std::int64_t>::min()) return error(kDecrementOverflow);
        add(key, -by);
    }

    // Appends one value, or the null; false where that would make the replies too long.
    bool append_value(const Value* value) {
        if (value == nullptr) {
            append_null(*out_, resp_);
            return out_->size() <= reply_end_;
        }
        char number[24];
        std::string_view text;
        if (const auto* held = std::get_if<std::int64_t>(value)) {
            const char* end = std::to_chars(number, number + sizeof number, *held).ptr;
            text = {number, static_cast<std::size_t>(end - number)};
        } else {
            text = std::get<std::string>(*value);
        }
        if (out_->size() + text.size() > reply_end_) return false;
        append_bulk(*out_, text);
        return true;
    }

    void get(std::string_view key) {
        if (out_ != nullptr && !append_value(store_.find(key))) error(kReplyTooLong);
    }

    void mget(const Operation& operation) {
        if (out_ == nullptr) return;
        const std::size_t start = out_->size();
        append_array(*out_, operation.key_count);
        FieldReader keys = operation.keys;
        for (std::string_view key; keys.take_text(key);) {
            if (append_value(store_.find(key))) continue;
            // Redis never puts an error inside MGET's array, so the whole reply gives way.
            out_->resize(start);
            return append_error(*out_, kReplyTooLong);
        }
    }

    void set(const Operation& operation) {
        const Value* held = store_.find(operation.key);
        const bool returns_old = (operation.flags & kSetReturnsOld) != 0;
        if (returns_old) get(operation.key);
        const bool refused = (held != nullptr && (operation.flags & kSetIfMissing) != 0) ||
                             (held == nullptr && (operation.flags & kSetIfPresent) != 0);
        if (!refused) store_.set(operation.key, operation.value);
        if (returns_old || out_ == nullptr) return;
        if (refused) return append_null(*out_, resp_);
        append_simple(*out_, "OK");
    }

    template <class Found>
    void count(const Operation& operation, Found found) {
        std::int64_t hits = 0;
        FieldReader keys = operation.keys;
        for (std::string_view key; keys.take_text(key);) hits += found(key) ? 1 : 0;
        integer(hits);
    }

    static constexpr std::string_view kReplyTooLong =
        "ERR the replies of this pipeline are too long (see --max-reply-bytes): this one is left out";

    Store& store_;
    const Resp resp_;
    std::string* const out_;
    const std::size_t reply_end_;
};

std::string_view as_text(BytesView bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

}  // namespace

std::size_t execute(Store& store, std::string_view group, std::string* out, std::size_t reply_limit) {
    GroupReader reader(group);
    Executor executor(store, reader.resp(), out, reply_limit);
    std::size_t commands = 0;
    for (Operation operation; reader.next(operation); ++commands) executor.run(operation);
    if (!reader.whole() && out != nullptr) append_error(*out, kMalformedGroup);
    return commands;
}

void Machine::apply(std::span<const Entry> batch, Replies& replies) {
    std::uint64_t commands = 0;
    for (std::size_t at = 0; at < batch.size(); ++at) {
        scratch_.clear();
        commands += execute(store_, as_text(batch[at].command), replies.wanted() ? &scratch_ : nullptr, reply_limit_);
        if (replies.wanted()) replies.set(at, std::as_bytes(std::span(scratch_)));
    }
    commands_.store(commands_.load(std::memory_order_relaxed) + commands, std::memory_order_relaxed);
    show_size();
}

Result<void> Machine::restore(SnapshotSource& source) {
    auto restored = store_.restore(source);
    show_size();
    return restored;
}

void Machine::show_size() {
    keys_.store(store_.keys(), std::memory_order_relaxed);
    bytes_.store(store_.bytes(), std::memory_order_relaxed);
}

void Machine::read(std::string_view group, std::string& out) { execute(store_, group, &out, reply_limit_); }

}  // namespace lockstep::counter
