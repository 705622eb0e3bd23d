#include "transport/rdma/detours.h"

#include <algorithm>

namespace lockstep::transport::rdma {

bool Detours::take(ReplicaId peer, const std::string& why) {
    Detour& detour = detours_[peer];
    const bool is_new = detour.why != why;
    detour.why = why;
    detour.until = Clock::now() + detour.pause;
    detour.pause = std::min(2 * detour.pause, std::chrono::seconds(kLongestPause));
    return is_new;
}

void Detours::try_all_now() {
    for (auto& [peer, detour] : detours_) detour.until = {};
}

}  // namespace lockstep::transport::rdma
