#include "log/disk/disk.h"

#include "log/planted.h"

namespace lockstep::log {

DiskOperation DiskOperation::create(FileHandle file, FileName name, std::uint64_t bytes) {
    DiskOperation operation{.kind = Kind::create, .file = file, .name = name};
    operation.bytes = bytes;
    return operation;
}

DiskOperation DiskOperation::open(FileHandle file, FileName name) {
    return {.kind = Kind::open, .file = file, .name = name};
}

DiskOperation DiskOperation::write(FileHandle file, std::uint64_t offset, BytesView data) {
    DiskOperation operation{.kind = Kind::write, .file = file};
    operation.offset = offset;
    operation.data = data;
    return operation;
}

DiskOperation DiskOperation::sync(FileHandle file) { return {.kind = Kind::sync, .file = file}; }

DiskOperation DiskOperation::rename(FileName name, FileName to) {
    return {.kind = Kind::rename, .name = name, .to = to};
}

DiskOperation DiskOperation::remove(FileName name) { return {.kind = Kind::remove, .name = name}; }

DiskOperation DiskOperation::sync_folder() { return {.kind = Kind::sync_folder}; }

DiskOperation DiskOperation::close(FileHandle file) { return {.kind = Kind::close, .file = file}; }

std::string to_string(const DiskOperation& operation) {
    const std::string name(operation.name.view());
    switch (operation.kind) {
        case DiskOperation::Kind::create: return "create " + name + " of " + std::to_string(operation.bytes) + " bytes";
        case DiskOperation::Kind::open: return "open " + name;
        case DiskOperation::Kind::write:
            return "write " + std::to_string(operation.data.size()) + " bytes at " + std::to_string(operation.offset);
        case DiskOperation::Kind::sync: return "fdatasync";
        case DiskOperation::Kind::rename: return "rename " + name + " to " + std::string(operation.to.view());
        case DiskOperation::Kind::remove: return "remove " + name;
        case DiskOperation::Kind::sync_folder: return "fsync the folder";
        case DiskOperation::Kind::close: return "close";
    }
    return "?";
}

Result<void> perform_all(Disk& disk, std::span<const DiskOperation> operations) {
    for (const DiskOperation& operation : operations) {
        auto done = disk.perform(operation);
        if (LOCKSTEP_PLANTED(failed_sync_repeated) && !done && operation.kind == DiskOperation::Kind::sync)
            done = disk.perform(operation);
        if (!done) return done;
    }
    return {};
}

}  // namespace lockstep::log
