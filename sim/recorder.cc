#include "sim/recorder.h"

#include <optional>
#include <span>
#include <string_view>

namespace lockstep::sim {

namespace {

// The bytes of a recorder's snapshot.
class RecorderView final : public SnapshotView {
 public:
    RecorderView(std::vector<std::byte> own, std::unique_ptr<SnapshotView> service)
        : own_(std::move(own)), service_(std::move(service)) {}
    Result<void> write(SnapshotSink& sink) override {
        if (auto written = sink.write(own_); !written) return written;
        return service_ ? service_->write(sink) : Result<void>();
    }

 private:
    std::vector<std::byte> own_;
    std::unique_ptr<SnapshotView> service_;
};

void put(std::vector<std::byte>& out, std::uint64_t number) {
    const auto bytes = std::as_bytes(std::span(&number, 1));
    out.insert(out.end(), bytes.begin(), bytes.end());
}

void put(std::vector<std::byte>& out, std::span<const std::byte> bytes) {
    put(out, bytes.size());
    out.insert(out.end(), bytes.begin(), bytes.end());
}

// Takes them out again; keeps the first error.
class Taker {
 public:
    explicit Taker(SnapshotSource& source) : source_(source) {}

    const Result<void>& ok() const { return ok_; }
    std::uint64_t number() {
        std::uint64_t number = 0;
        fill(std::as_writable_bytes(std::span(&number, 1)));
        return ok_ ? number : 0;
    }
    std::vector<std::byte> bytes() {
        std::vector<std::byte> bytes(number());
        fill(bytes);
        return bytes;
    }

 private:
    void fill(std::span<std::byte> into) {
        if (!ok_) return;
        auto got = source_.read(into);
        if (!got) ok_ = std::move(got).error();
        else if (got.value() != into.size()) ok_ = Error("a recorder's snapshot ends too soon");
    }

    SnapshotSource& source_;
    Result<void> ok_;
};

}  // namespace

void Recorder::apply(std::span<const Entry> batch, Replies& replies) {
    ++batches_;
    for (std::size_t i = 0; i < batch.size(); ++i) {
        const Entry& entry = batch[i];
        const std::string_view text(reinterpret_cast<const char*>(entry.command.data()), entry.command.size());
        const std::string_view command = text.substr(0, text.find(' '));
        history_.applied(id_, incarnation_, entry.index, command);
        history_.stamped(entry.index, entry.ballot, entry.timestamp_ns, network_.now_ns());
        if (service_ != nullptr) continue;
        replies.set(i, entry.command);
        commands_[entry.index] = std::string(command);
    }
    applied_ = batch.back().index;
    if (service_ == nullptr) return;
    for (const Entry& entry : batch)
        given_.push_back({entry.index, entry.ballot, entry.timestamp_ns, {entry.command.begin(), entry.command.end()}});
    service_->apply(batch, replies);
    history_.state(id_, batch.back().index, service_->digest());
}


std::unique_ptr<SnapshotView> Recorder::snapshot() {
    auto view = service_ != nullptr ? service_->snapshot() : nullptr;
    std::vector<std::byte> own;
    put(own, applied_.value);
    put(own, commands_.size());
    for (const auto& [index, command] : commands_) {
        put(own, index.value);
        put(own, std::as_bytes(std::span(command)));
    }
    put(own, view ? 0 : given_.size());
    for (const Command& command : given_) {
        if (view) break;
        put(own, command.index.value);
        put(own, command.ballot.value);
        put(own, command.timestamp_ns);
        put(own, command.bytes);
    }
    return std::make_unique<RecorderView>(std::move(own), std::move(view));
}

Result<void> Recorder::restore(SnapshotSource& source) {
    Taker taker(source);
    applied_ = Index{taker.number()};
    commands_.clear();
    for (std::uint64_t count = taker.number(); count > 0 && taker.ok(); --count) {
        const Index index{taker.number()};
        const std::vector<std::byte> command = taker.bytes();
        commands_[index] = std::string(reinterpret_cast<const char*>(command.data()), command.size());
    }
    given_.clear();
    for (std::uint64_t count = taker.number(); count > 0 && taker.ok(); --count)
        given_.push_back({Index{taker.number()}, Ballot{taker.number()}, taker.number(), taker.bytes()});
    if (!taker.ok()) return taker.ok();
    history_.restored(id_, incarnation_, applied_);
    if (service_ == nullptr || applied_ == Index{}) return {};
    if (given_.empty()) {
        if (auto restored = service_->restore(source); !restored) return restored;
    } else {
        service_ = renew_();
        for (const Command& command : given_) {
            const Entry entry{command.index, command.ballot, command.timestamp_ns, command.bytes};
            Replies replies;
            replies.begin(1, false);
            service_->apply({&entry, 1}, replies);
        }
    }
    history_.state(id_, applied_, service_->digest());
    return {};
}

}  // namespace lockstep::sim
