// Which peers are reached over TCP because RDMA does not reach them, why, and when it is tried again. Protocol thread.
#pragma once

#include <lockstep/types.h>

#include <chrono>
#include <map>
#include <string>

namespace lockstep::transport::rdma {

class Detours {
 public:
    using Clock = std::chrono::steady_clock;

    // RDMA has failed once more: the pauses between trials grow. True if the reason is a new one.
    bool take(ReplicaId peer, const std::string& why);
    // RDMA reaches the peer.
    void end(ReplicaId peer) { detours_.erase(peer); }
    // There is reason to try every peer now.
    void try_all_now();

    bool taken(ReplicaId peer) const { return detours_.contains(peer); }
    bool due(ReplicaId peer) const { return taken(peer) && Clock::now() >= detours_.at(peer).until; }
    // Empty if there is none.
    std::string why(ReplicaId peer) const { return taken(peer) ? detours_.at(peer).why : ""; }

 private:
    static constexpr auto kFirstPause = std::chrono::seconds(1);
    static constexpr auto kLongestPause = std::chrono::seconds(30);

    struct Detour {
        std::string why;
        Clock::time_point until;
        std::chrono::seconds pause = kFirstPause;
    };
    std::map<ReplicaId, Detour> detours_;
};

}  // namespace lockstep::transport::rdma
