// The holder's end of a lane: writes from the own ring into the follower's. Protocol thread.
#pragma once

#include "transport/fabric.h"
#include "transport/link/lane_news.h"
#include "transport/rdma/calls.h"
#include "transport/rdma/queue_pair.h"
#include "transport/types.h"

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace lockstep::transport::rdma {

class OutgoingLane {
 public:
    // `ring_key` is the own ring's in the queue pair's domain.
    OutgoingLane(LaneId id, ReplicaId peer, std::span<const std::byte> ring, std::uint32_t ring_key)
        : id_(id), peer_(peer), ring_(ring), ring_key_(ring_key), news_(id, peer) {}

    // What is written from here on goes out once `connected` and `admitted` have both been called.
    void start(std::shared_ptr<QueuePair> pair, const RemoteRange& target) {
        pair_ = std::move(pair);
        target_ = target;
    }
    // The own end stands; the peer has let this lane in.
    void connected() { connected_ = true; }
    void admitted() { admitted_ = true; }
    std::uint64_t call = 0;             // the number of the call that asks to be let in

    // See Fabric.
    bool write(Position at, std::uint64_t bytes);
    bool probe(std::uint64_t number);
    // Posts all that has gathered, with one doorbell.
    void flush();
    // A completion of this lane's queue pair.
    void completed(const ibv_wc& completion);
    // No byte of the ring is read after this: the queue pair is stopped (F9). It is returned, to be
    // destroyed.
    std::shared_ptr<QueuePair> release();
    void break_off(const std::string& why);
    // Called in even intervals: breaks a lane that makes no progress for so many of them.
    void tick(unsigned patience);

    LaneId id() const { return id_; }
    ReplicaId peer() const { return peer_; }
    const QueuePair* pair() const { return pair_.get(); }
    bool broken() const { return broken_; }
    // Whether there is news, which `report` appends to `events` and then is none.
    bool has_news() const { return news_.any(landed_, broken_); }
    void report(std::vector<Event>& events) { news_.report(landed_, broken_, why_broken_, events); }

 private:
    // A completion is asked for with the last request of every doorbell, and at least so often.
    static constexpr std::uint64_t kSignalEvery = kMaxUnfinishedWrites / 4;

    struct Request {
        ibv_send_wr work;
        ibv_sge piece;
        std::uint64_t probe;
    };

    Request& request(std::uint64_t number) { return requests_[number % kMaxUnfinishedWrites]; }
    Request* next(std::uint64_t remote, const void* from, std::uint64_t bytes);
    bool open() const { return connected_ && admitted_ && !broken_; }

    const LaneId id_;
    const ReplicaId peer_;
    const std::span<const std::byte> ring_;
    const std::uint32_t ring_key_;
    std::shared_ptr<QueuePair> pair_;
    RemoteRange target_;
    bool connected_ = false;
    bool admitted_ = false;
    bool broken_ = false;
    std::string why_broken_;
    link::LaneNews news_;
    unsigned idle_ticks_ = 0;
    std::uint64_t landed_at_tick_ = 0;

    // Requests are numbered from 0. [landed_, sent_) are on their way, [sent_, posted_) wait for a doorbell.
    std::array<Request, kMaxUnfinishedWrites> requests_{};
    std::uint64_t posted_ = 0;
    std::uint64_t sent_ = 0;
    std::uint64_t landed_ = 0;
    std::uint64_t signalled_ = 0;       // the end of the last request that a completion was asked for
    Position end_;                      // of the write posted last
};

}  // namespace lockstep::transport::rdma
