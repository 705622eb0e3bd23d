#include "transport/tcp/lane_receiver.h"

#include "log/check.h"

#include <algorithm>
#include <cstring>

namespace lockstep::transport::tcp {

Result<void> LaneReceiver::take(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        if (!rest_.empty()) {
            const std::size_t count = std::min(bytes.size(), rest_.size());
            std::memcpy(rest_.data(), bytes.data(), count);
            took(count);
            bytes = bytes.subspan(count);
            continue;
        }
        const std::size_t count = std::min(bytes.size(), header_.size() - header_bytes_);
        std::memcpy(header_.data() + header_bytes_, bytes.data(), count);
        header_bytes_ += count;
        bytes = bytes.subspan(count);
        if (header_bytes_ < header_.size()) break;
        header_bytes_ = 0;
        if (auto opened = open_frame(); !opened) return opened;
    }
    return {};
}

Result<void> LaneReceiver::open_frame() {
    LaneHeader header;
    std::memcpy(&header, header_.data(), sizeof header);
    if (auto sound = check(header, end_, memory_.ring().size()); !sound) return sound;
    if (header.kind == LaneKind::probe) {
        std::memcpy(memory_.probe_line().data(), &header.at, sizeof header.at);
        ++count_;
        return {};
    }
    rest_ = memory_.range({header.at}, header.bytes);
    end_ = Position{header.at} + header.bytes;
    return {};
}

void LaneReceiver::took(std::size_t count) {
    LOCKSTEP_CHECK_OP(count, <=, rest_.size());
    rest_ = rest_.subspan(count);
    if (!rest_.empty()) return;
    ++count_;
    landed_ = end_;
}

}  // namespace lockstep::transport::tcp
