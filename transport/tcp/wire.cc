#include "transport/tcp/wire.h"

#include <algorithm>
#include <string>

namespace lockstep::transport::tcp {
namespace {

std::string number(std::uint64_t value) { return std::to_string(value); }

}  // namespace

Result<void> check(const LaneHeader& header, Position end, std::uint64_t ring_bytes) {
    if (header.mark != kLaneMark) return Error("lane frame without its mark: the stream is out of step");
    if (header.kind == LaneKind::probe) {
        if (header.bytes == 0) return {};
        return Error("probe with " + number(header.bytes) + " bytes behind it: it has none");
    }
    if (header.kind != LaneKind::write)
        return Error("lane frame of unknown kind " + number(static_cast<std::uint16_t>(header.kind)));
    if (header.bytes == 0 || header.bytes > std::min(kMaxTransferBytes, ring_bytes))
        return Error("ring write of " + number(header.bytes) + " bytes: 1 to " +
                     number(std::min(kMaxTransferBytes, ring_bytes)) + " are allowed");
    if (header.at % kWriteAlignment != 0)
        return Error("ring write at " + number(header.at) + ": not a multiple of " + number(kWriteAlignment));
    if (header.at < end.value)
        return Error("ring write at " + number(header.at) + ", before the end of the last one at " + number(end.value));
    if (header.at - end.value >= ring_bytes)
        return Error("ring write at " + number(header.at) + ", more than a ring beyond the end of the last one at " +
                     number(end.value));
    if ((header.at & (ring_bytes - 1)) + header.bytes > ring_bytes)
        return Error("ring write of " + number(header.bytes) + " bytes at " + number(header.at) +
                     " crosses the ring's end");
    return {};
}

}  // namespace lockstep::transport::tcp
