#include "consensus/replica/snapshot_files.h"

#include "log/snapshot/writer.h"

#include <algorithm>
#include <array>
#include <utility>

namespace lockstep::replica {

using log::DiskOperation;
using log::FileHandle;
using log::FileName;
using Kind = SnapshotOutcome::Kind;

namespace {

// The log has the others, where both are on one disk.
constexpr FileHandle kTakenFile = 3;
constexpr FileHandle kReceivedFile = 4;
constexpr FileHandle kPieceFile = 5;
constexpr FileHandle kSourceFile = 6;

// Written data goes to the disk as it comes, and not all at once at the end, where the log's own fdatasync would wait
// for it.
constexpr std::uint64_t kSyncEveryBytes = std::uint64_t{512} << 10;

SnapshotOutcome failed(Kind kind, const log::SnapshotName& name, std::string why) {
    return {.kind = kind, .name = name, .meta = {}, .peer = {}, .offset = 0, .bytes = {}, .why = std::move(why)};
}

SnapshotOutcome done(Kind kind, const log::SnapshotName& name, log::SnapshotMeta meta, std::uint64_t offset) {
    return {.kind = kind, .name = name, .meta = std::move(meta), .peer = {}, .offset = offset, .bytes = {}, .why = {}};
}

// Reads, and closes the file at last, unless the handle is a newer source's by then.
class FileSource final : public SnapshotSource {
 public:
    FileSource(log::Disk& disk, const std::uint64_t& newest, log::SnapshotReader reader, FileName name)
        : disk_(disk), newest_(newest), number_(newest), reader_(std::move(reader)), name_(name) {}
    ~FileSource() override {
        if (number_ == newest_) static_cast<void>(disk_.perform(DiskOperation::close(kSourceFile)));
    }

    Result<std::size_t> read(std::span<std::byte> into) override {
        auto got = reader_.read(into);
        if (!got) return std::move(got).error().within("cannot read the snapshot " + std::string(name_.view()));
        return got;
    }

 private:
    log::Disk& disk_;
    const std::uint64_t& newest_;
    const std::uint64_t number_;
    log::SnapshotReader reader_;
    FileName name_;
};

}  // namespace

// Between a view and a writer: keeps dirty data few, and remembers which kind of error it was.
class TakingSink final : public SnapshotSink {
 public:
    TakingSink(SnapshotFiles& files, log::SnapshotWriter& writer, const std::atomic<bool>& stop)
        : files_(files), writer_(writer), stop_(stop) {}

    Result<void> write(BytesView bytes) override {
        while (!bytes.empty() && !error_) {
            const BytesView part = bytes.first(std::min<std::size_t>(bytes.size(), log::kSnapshotChunkBytes));
            bytes = bytes.subspan(part.size());
            write_part(part);
        }
        return error_ ? Result<void>(*error_) : Result<void>();
    }

    const std::optional<Error>& error() const { return error_; }
    bool disk_broke_its_promise() const { return fatal_; }

 private:
    void write_part(BytesView part) {
        if (stop_) {
            error_ = Error("the replica stops");
            return;
        }
        auto written = writer_.write(part);
        if (written) {
            written = files_.sync_if_due(kTakenFile, writer_.written(), synced_);
            fatal_ = !written;
        }
        if (!written) error_ = std::move(written).error();
    }

    SnapshotFiles& files_;
    log::SnapshotWriter& writer_;
    const std::atomic<bool>& stop_;
    std::uint64_t synced_ = 0;
    std::optional<Error> error_;
    bool fatal_ = false;
};

// -- Taking ---------------------------------------------------------------------------------------------------------

Result<SnapshotOutcome> SnapshotFiles::take(const log::SnapshotMeta& meta, SnapshotView& view,
                                            const std::atomic<bool>& stop) {
    log::SnapshotWriter writer(disk_, kTakenFile);
    TakingSink sink(*this, writer, stop);
    const auto write_all = [&]() -> Result<log::SnapshotName> {
        if (auto begun = writer.begin(log::kTakenName, meta); !begun) return std::move(begun).error();
        auto written = view.write(sink);
        // A view may have swallowed what the sink said.
        if (sink.error()) return *sink.error();
        if (!written) return std::move(written).error();
        return writer.finish();
    };
    auto name = write_all();
    if (!name) {
        if (sink.disk_broke_its_promise()) return std::move(name).error();
        if (auto removed = remove_if_there(log::kTakenName); !removed) return std::move(removed).error();
        return failed(Kind::take_failed, {.at = meta.at}, std::move(name).error().message());
    }
    if (auto safe = complete(kTakenFile, log::kTakenName, snapshot_file_name(name.value())); !safe)
        return std::move(safe).error();
    return done(Kind::taken, name.value(), meta, name.value().bytes);
}

Result<void> SnapshotFiles::sync_if_due(FileHandle file, std::uint64_t written, std::uint64_t& synced) {
    if (written - synced < kSyncEveryBytes) return {};
    synced = written;
    return disk_.perform(DiskOperation::sync(file));
}

// From here on a failure is final (S13): what became of the file is not known.
Result<void> SnapshotFiles::complete(FileHandle file, const FileName& name, const FileName& to) {
    const std::array operations = {DiskOperation::sync(file), DiskOperation::close(file),
                                   DiskOperation::rename(name, to), DiskOperation::sync_folder()};
    return log::perform_all(disk_, operations);
}

// Not made durable: one that comes back after a crash is removed then.
Result<void> SnapshotFiles::remove_if_there(const FileName& name) {
    const FileHandle file = name == log::kTakenName ? kTakenFile : kReceivedFile;
    if (auto closed = disk_.perform(DiskOperation::close(file)); !closed) return closed;
    auto files = disk_.list();
    if (!files) return std::move(files).error();
    if (std::ranges::none_of(files.value(), [&](const log::FileInfo& there) { return there.name == name; })) return {};
    return disk_.perform(DiskOperation::remove(name));
}

// -- Handing out ----------------------------------------------------------------------------------------------------

SnapshotOutcome SnapshotFiles::read_piece(ReplicaId peer, const log::SnapshotName& name, std::uint64_t offset,
                                          std::uint64_t bytes) {
    SnapshotOutcome outcome = done(Kind::piece_read, name, {}, offset);
    outcome.peer = peer;
    const std::uint64_t left = offset < name.bytes ? name.bytes - offset : 0;
    outcome.bytes.resize(std::min({bytes, left, SnapshotStore::kMaxPieceBytes}));
    const auto read = [&]() -> Result<std::uint64_t> {
        auto opened = disk_.perform(DiskOperation::open(kPieceFile, snapshot_file_name(name)));
        if (!opened) return std::move(opened).error();
        auto got = disk_.read(kPieceFile, offset, outcome.bytes);
        if (auto closed = disk_.perform(DiskOperation::close(kPieceFile)); !closed) return std::move(closed).error();
        return got;
    };
    auto got = read();
    outcome.bytes.resize(got ? got.value() : 0);
    if (!got) outcome.why = std::move(got).error().message();
    return outcome;
}

Result<void> SnapshotFiles::remove(const std::vector<FileName>& names) {
    for (const FileName& name : names)
        if (auto removed = disk_.perform(DiskOperation::remove(name)); !removed) return removed;
    return disk_.perform(DiskOperation::sync_folder());
}

// -- Receiving ------------------------------------------------------------------------------------------------------

Result<SnapshotOutcome> SnapshotFiles::give_up_receiving(std::string why) {
    const log::SnapshotName name = *std::exchange(incoming_, std::nullopt);
    if (auto removed = remove_if_there(log::kReceivedName); !removed) return std::move(removed).error();
    return failed(Kind::receive_failed, name, std::move(why));
}

Result<std::optional<SnapshotOutcome>> SnapshotFiles::begin_to_receive(const log::SnapshotName& name) {
    if (incoming_)
        if (auto dropped = give_up_receiving({}); !dropped) return std::move(dropped).error();
    incoming_ = name;
    incoming_bytes_ = 0;
    incoming_synced_ = 0;
    const auto gives_up = [&](std::string why) -> Result<std::optional<SnapshotOutcome>> {
        auto outcome = give_up_receiving(std::move(why));
        if (!outcome) return std::move(outcome).error();
        return std::optional(std::move(outcome).value());
    };
    if (!log::state_bytes_of(name.bytes))
        return gives_up("no snapshot has " + std::to_string(name.bytes) + " bytes: the sender is wrong");
    if (auto created = disk_.perform(DiskOperation::create(kReceivedFile, log::kReceivedName, name.bytes)); !created)
        return gives_up(std::move(created).error().message());
    return std::optional<SnapshotOutcome>();
}

Result<std::optional<SnapshotOutcome>> SnapshotFiles::write_piece(BytesView bytes) {
    if (!incoming_) return std::optional<SnapshotOutcome>();
    const auto write = [&]() -> Result<void> {
        if (bytes.size() > incoming_->bytes - incoming_bytes_)
            return Error("more bytes came than the snapshot has, which are " + std::to_string(incoming_->bytes) +
                         ": the sender is wrong");
        return disk_.perform(DiskOperation::write(kReceivedFile, incoming_bytes_, bytes));
    };
    if (auto written = write(); !written) {
        auto outcome = give_up_receiving(std::move(written).error().message());
        if (!outcome) return std::move(outcome).error();
        return std::optional(std::move(outcome).value());
    }
    incoming_bytes_ += bytes.size();
    if (auto synced = sync_if_due(kReceivedFile, incoming_bytes_, incoming_synced_); !synced)
        return std::move(synced).error();
    if (incoming_bytes_ == incoming_->bytes) return finish_receiving();
    return std::optional(done(Kind::piece_written, *incoming_, {}, incoming_bytes_));
}

Result<std::optional<SnapshotOutcome>> SnapshotFiles::finish_receiving() {
    const auto verify_all = [&]() -> Result<log::SnapshotMeta> {
        auto read = reader(kReceivedFile, incoming_->bytes);
        if (!read) return std::move(read).error();
        if (read.value().name() != *incoming_) return Error("it is not the one that was asked for");
        if (auto verified = read.value().verify(); !verified) return std::move(verified).error();
        return read.value().meta();
    };
    auto meta = verify_all();
    if (!meta) {
        auto outcome = give_up_receiving("what was received cannot be used: " + meta.error().message());
        if (!outcome) return std::move(outcome).error();
        return std::optional(std::move(outcome).value());
    }
    const log::SnapshotName name = *std::exchange(incoming_, std::nullopt);
    if (auto safe = complete(kReceivedFile, log::kReceivedName, snapshot_file_name(name)); !safe)
        return std::move(safe).error();
    return std::optional(done(Kind::received, name, std::move(meta).value(), name.bytes));
}

// -- Reading back ---------------------------------------------------------------------------------------------------

Result<log::SnapshotReader> SnapshotFiles::reader(FileHandle file, std::uint64_t bytes) {
    return log::SnapshotReader::open(
        [this, file](std::uint64_t offset, std::span<std::byte> into) { return disk_.read(file, offset, into); },
        bytes);
}

Result<std::unique_ptr<SnapshotSource>> SnapshotFiles::open(const log::SnapshotName& name) {
    const FileName file = snapshot_file_name(name);
    const auto within = [&](Error error) {
        return std::move(error).within("cannot read the snapshot " + std::string(file.view()));
    };
    if (auto opened = disk_.perform(DiskOperation::open(kSourceFile, file)); !opened)
        return within(std::move(opened).error());
    ++sources_;
    auto read = reader(kSourceFile, name.bytes);
    if (read && read.value().name() != name) read = Error("it is not the one that its name says");
    if (!read) {
        static_cast<void>(disk_.perform(DiskOperation::close(kSourceFile)));
        return within(std::move(read).error());
    }
    return std::unique_ptr<SnapshotSource>(new FileSource(disk_, sources_, std::move(read).value(), file));
}

// Nothing, and why, where it is not whole. An error is the disk's, or that the file is of another version.
Result<std::optional<SnapshotStore::Held>> SnapshotFiles::verify(const log::FileInfo& file, std::string& why) {
    bool disk_failed = false;
    const auto read_at = [&](std::uint64_t offset, std::span<std::byte> into) {
        auto got = disk_.read(kSourceFile, offset, into);
        disk_failed |= !got;
        return got;
    };
    const auto read_all = [&]() -> Result<SnapshotStore::Held> {
        auto read = log::SnapshotReader::open(read_at, file.bytes);
        if (!read) return std::move(read).error();
        if (snapshot_file_name(read.value().name()) != file.name) return Error("its name is another one's");
        if (auto verified = read.value().verify(); !verified) return std::move(verified).error();
        return SnapshotStore::Held{read.value().name(), read.value().meta()};
    };
    if (auto opened = disk_.perform(DiskOperation::open(kSourceFile, file.name)); !opened)
        return std::move(opened).error();
    log::SnapshotHeadBlock head{};
    static_cast<void>(read_at(0, std::as_writable_bytes(std::span(&head, 1))));
    auto held = read_all();
    if (auto closed = disk_.perform(DiskOperation::close(kSourceFile)); !closed) return std::move(closed).error();
    if (held) return std::optional(std::move(held).value());
    Error error = std::move(held).error().within("the snapshot " + std::string(file.name.view()));
    if (disk_failed || of_another_version(head)) return error;
    why = error.message();
    return std::optional<SnapshotStore::Held>();
}

Result<SnapshotFiles::Loaded> SnapshotFiles::load(bool none_counts) {
    auto files = disk_.list();
    if (!files) return std::move(files).error();
    Loaded loaded;
    for (const log::FileInfo& file : files.value()) {
        const bool begun = file.name == log::kTakenName || file.name == log::kReceivedName;
        if (!begun && !log::names_snapshot(file.name)) continue;
        if (!begun && !none_counts) {
            std::string why;
            auto held = verify(file, why);
            if (!held) return std::move(held).error();
            if (held.value()) loaded.held.push_back(std::move(*held.value()));
            else loaded.damaged.push_back({file.name, std::move(why)});
            continue;
        }
        if (auto removed = disk_.perform(DiskOperation::remove(file.name)); !removed) return std::move(removed).error();
    }
    // A process that was killed may have renamed one, and not made that durable.
    if (auto synced = disk_.perform(DiskOperation::sync_folder()); !synced) return std::move(synced).error();
    std::ranges::sort(loaded.held, [](const auto& left, const auto& right) {
        return left.name.at.index > right.name.at.index;
    });
    return loaded;
}

}  // namespace lockstep::replica
