#include "log/disk/sim_disk.h"

#include <algorithm>
#include <utility>

namespace lockstep::log {

using Kind = DiskOperation::Kind;

Error SimDisk::error(const DiskOperation& operation, const std::string& why) const {
    return Error("cannot " + to_string(operation) + ": " + why + " (simulated disk)");
}

std::uint64_t SimDisk::bytes_held() const {
    std::uint64_t bytes = 0;
    for (const auto& [name, file] : folder_) bytes += file->view.size();
    return bytes;
}

void SimDisk::apply(Folder& folder, const Change& change) const {
    switch (change.kind) {
        case Kind::create: folder[change.name] = change.file; break;
        case Kind::rename:
            if (const auto at = folder.find(change.name); at != folder.end()) {
                auto file = at->second;
                folder.erase(at);
                folder[change.to] = std::move(file);
            }
            break;
        case Kind::remove: folder.erase(change.name); break;
        default: break;
    }
}

void SimDisk::change(Change change) {
    apply(folder_, change);
    changes_.push_back(std::move(change));
}

Result<void> SimDisk::perform(const DiskOperation& operation) {
    LOCKSTEP_CHECK_OP(operation.file, <, kMaxOpenFiles);
    ++operations_;
    if (crashed_) return error(operation, "no power");
    if (crash_in_ && (*crash_in_)-- == 0) {
        crash_in_.reset();
        crashed_ = true;
        static_cast<void>(perform_now(operation, true));
        return error(operation, "power lost");
    }
    if (const auto planned = fail_.find(operation.kind); planned != fail_.end()) {
        const std::string why = planned->second;
        fail_.erase(planned);
        failed_ = true;
        static_cast<void>(perform_now(operation, true));
        return error(operation, why);
    }
    return perform_now(operation, false);
}

// With `part`, as much of it as happens before it fails.
Result<void> SimDisk::perform_now(const DiskOperation& operation, bool part) {
    const std::string name(operation.name.view());
    if (part && operation.kind != Kind::write && operation.kind != Kind::sync && draw_(2) == 0) return {};
    switch (operation.kind) {
        case Kind::create: return create(operation);
        case Kind::open: {
            const auto at = folder_.find(name);
            if (at == folder_.end()) return error(operation, "No such file or directory");
            open_[operation.file] = at->second;
            return {};
        }
        case Kind::write: return write(operation, part);
        case Kind::sync: return sync(operation, part);
        case Kind::rename:
            if (!folder_.contains(name)) return error(operation, "No such file or directory");
            change({.kind = Kind::rename, .name = name, .to = std::string(operation.to.view()), .file = {}});
            return {};
        case Kind::remove:
            if (!folder_.contains(name)) return error(operation, "No such file or directory");
            change({.kind = Kind::remove, .name = name, .to = {}, .file = {}});
            return {};
        case Kind::sync_folder:
            // As with a file: what a failing one made durable is any part of it.
            for (const Change& change : changes_)
                if (!part || draw_(2) == 0) apply(durable_, change);
            changes_.clear();
            return {};
        case Kind::close: open_[operation.file].reset(); return {};
    }
    return {};
}

Result<void> SimDisk::create(const DiskOperation& operation) {
    if (bytes_held() + operation.bytes > limit_) return error(operation, "No space left on device");
    auto file = std::make_shared<File>();
    file->view.resize(operation.bytes);
    file->durable.resize(operation.bytes);
    change({.kind = Kind::create, .name = std::string(operation.name.view()), .to = {}, .file = file});
    open_[operation.file] = std::move(file);
    return {};
}

Result<void> SimDisk::write(const DiskOperation& operation, bool part) {
    File* const file = open_[operation.file].get();
    if (file == nullptr) return error(operation, "no file is open there");
    std::uint64_t offset = operation.offset;
    std::uint64_t bytes = operation.data.size();
    if (part) bytes = draw_(bytes + 1);
    if (std::exchange(misdirect_, false)) offset = draw_(file->view.size() / kSectorBytes + 1) * kSectorBytes;
    if (bytes == 0) return {};
    if (offset + bytes > file->view.size()) {
        if (bytes_held() - file->view.size() + offset + bytes > limit_)
            return error(operation, "No space left on device");
        file->view.resize(offset + bytes);
        file->durable.resize(offset + bytes);
    }
    std::ranges::copy(operation.data.first(bytes), file->view.begin() + static_cast<std::ptrdiff_t>(offset));
    for (std::uint64_t number = offset / kSectorBytes; number * kSectorBytes < offset + bytes; ++number) {
        const std::uint64_t from = number * kSectorBytes;
        const std::uint64_t to = std::min<std::uint64_t>(from + kSectorBytes, file->view.size());
        file->pending.push_back({number, {file->view.begin() + static_cast<std::ptrdiff_t>(from),
                                          file->view.begin() + static_cast<std::ptrdiff_t>(to)}});
    }
    return {};
}

Result<void> SimDisk::sync(const DiskOperation& operation, bool part) {
    File* const file = open_[operation.file].get();
    if (file == nullptr) return error(operation, "no file is open there");
    ++syncs_;
    if (part && crashed_) return {};  // the crash decides
    for (const Sector& sector : file->pending)
        if (!part || draw_(2) == 0)
            std::ranges::copy(sector.bytes,
                              file->durable.begin() + static_cast<std::ptrdiff_t>(sector.number * kSectorBytes));
    file->pending.clear();
    return {};
}

Result<std::uint64_t> SimDisk::read(FileHandle handle, std::uint64_t offset, std::span<std::byte> into) {
    LOCKSTEP_CHECK_OP(handle, <, kMaxOpenFiles);
    const File* const file = open_[handle].get();
    if (crashed_ || file == nullptr) return Error("cannot read: no file is open there (simulated disk)");
    if (offset >= file->view.size()) return std::uint64_t{0};
    const std::uint64_t bytes = std::min<std::uint64_t>(into.size(), file->view.size() - offset);
    std::copy_n(file->view.begin() + static_cast<std::ptrdiff_t>(offset), bytes, into.begin());
    return bytes;
}

Result<std::vector<FileInfo>> SimDisk::list() {
    if (crashed_) return Error("cannot list the folder: no power (simulated disk)");
    std::vector<FileInfo> found;
    for (const auto& [name, file] : folder_) found.push_back({FileName(name), file->view.size()});
    return found;
}

void SimDisk::crash() {
    for (const Change& change : changes_)
        if (draw_(2) == 0) apply(durable_, change);
    changes_.clear();
    for (auto& [name, file] : durable_) {
        // Each sector ends in one of its states; a later one is drawn with the same right as none.
        std::map<std::uint64_t, std::vector<const Sector*>> states;
        for (const Sector& sector : file->pending) states[sector.number].push_back(&sector);
        for (const auto& [number, versions] : states) {
            const std::uint64_t chosen = draw_(versions.size() + 1);
            if (chosen < versions.size())
                std::ranges::copy(versions[chosen]->bytes,
                                  file->durable.begin() + static_cast<std::ptrdiff_t>(number * kSectorBytes));
        }
        file->pending.clear();
        file->view = file->durable;
    }
    folder_ = durable_;
    open_ = {};
    forget_planned();
    crashed_ = false;
    hung_ = false;
}

void SimDisk::forget_planned() {
    fail_.clear();
    crash_in_.reset();
    misdirect_ = false;
}

void SimDisk::flip_bit(const FileName& name, std::uint64_t offset, unsigned bit) {
    const auto at = folder_.find(name.view());
    LOCKSTEP_CHECK(at != folder_.end());
    LOCKSTEP_CHECK_OP(offset, <, at->second->view.size());
    const auto mask = static_cast<std::byte>(1u << bit % 8);
    at->second->view[offset] ^= mask;
    at->second->durable[offset] ^= mask;
}

std::vector<std::byte> SimDisk::contents(const FileName& name) const {
    const auto at = folder_.find(name.view());
    return at == folder_.end() ? std::vector<std::byte>{} : at->second->view;
}

std::vector<std::byte> SimDisk::durable_contents(const FileName& name) const {
    const auto at = durable_.find(name.view());
    return at == durable_.end() ? std::vector<std::byte>{} : at->second->durable;
}

void SimDisk::put(const FileName& name, std::vector<std::byte> bytes) {
    auto file = std::make_shared<File>();
    file->durable = bytes;
    file->view = std::move(bytes);
    folder_[std::string(name.view())] = file;
    durable_[std::string(name.view())] = std::move(file);
}

}  // namespace lockstep::log
