#include "consensus/replica/backlog.h"

#include "log/check.h"

#include <algorithm>
#include <utility>

namespace lockstep::replica {

void Backlog::start(Position at) {
    if (!chunks_.empty()) return;
    chunks_.push_back({at, {}});
    chunks_.back().bytes.reserve(chunk_bytes_);
    end_ = at;
}

void Backlog::extend(Position commit) {
    if (chunks_.empty()) return;
    LOCKSTEP_CHECK_OP(commit.value, <=, end_.value + ring_.bytes());
    while (end_ < commit) {
        if (chunks_.back().bytes.size() == chunk_bytes_) {
            chunks_.push_back({end_, {}});
            chunks_.back().bytes.reserve(chunk_bytes_);
        }
        std::vector<std::byte>& bytes = chunks_.back().bytes;
        const std::uint64_t count =
            std::min({commit - end_, ring_.bytes_to_lap_end(end_), chunk_bytes_ - bytes.size()});
        bytes.insert(bytes.end(), ring_.at(end_), ring_.at(end_) + count);
        end_ = end_ + count;
    }
    full_ |= end_ - begin() > max_bytes_;
}

void Backlog::forget(Position below) {
    while (chunks_.size() > 1 && chunks_[1].begin <= below) chunks_.pop_front();
}

Position Backlog::begin() const { return chunks_.empty() ? log::kNoLimit : chunks_.front().begin; }

void Backlog::read(ReplicaId peer, Position at, std::uint64_t bytes) {
    LogBytes answer{peer, at, {}};
    for (const Chunk& chunk : chunks_) {
        const Position chunk_end = chunk.begin + chunk.bytes.size();
        if (at < chunk.begin || at >= chunk_end) continue;
        const auto from = chunk.bytes.begin() + static_cast<std::ptrdiff_t>(at - chunk.begin);
        answer.bytes.assign(from, from + static_cast<std::ptrdiff_t>(std::min(bytes, chunk_end - at)));
        break;
    }
    read_.push_back(std::move(answer));
}

void Backlog::take(std::vector<LogBytes>& read) {
    std::ranges::move(read_, std::back_inserter(read));
    read_.clear();
}

}  // namespace lockstep::replica
