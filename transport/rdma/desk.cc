#include "transport/rdma/desk.h"

#include "transport/logger.h"

#include <utility>

namespace lockstep::transport::rdma {

Desk::Desk(const Regions& regions, std::deque<Stock>& stocks, IncomingLane& lane) : lane_(lane) {
    for (std::size_t i = 0; i < regions.peers.size(); ++i) ends_.push_back({regions.peers[i], stocks[i], nullptr, 0});
}

Desk::End* Desk::end_of(ReplicaId peer) {
    for (End& end : ends_)
        if (end.regions.peer == peer) return &end;
    return nullptr;
}

void Desk::called(const link::Caller& caller, std::span<const std::byte> call) {
    auto parsed = parse_call(call);
    if (!parsed) return caller.reply(encode(Refused{parsed.error().message()}));
    End* end = end_of(caller.peer);  // there is one: the handshake lets no other in
    if (const auto* lane = std::get_if<LaneCall>(&parsed.value()))
        return lane_.admit(caller, *lane, end->stock.strand());
    const PairAddress address = std::get<PairCall>(parsed.value()).caller;
    post(end->stock.strand(), [end, caller, address] { make_pair(*end, caller, address); });
}

void Desk::make_pair(End& end, const link::Caller& caller, const PairAddress& address) {
    // The older one first: a life of the peer that is over must not write into the slot of the next one.
    drop_pair(end);
    auto pair = end.stock.take();
    Result<void> done = pair ? Result<void>() : Result<void>(pair.error());
    if (done) done = pair.value()->reach(address);
    if (done) done = pair.value()->arm(IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
    if (!done) {
        logger().error("no control queue pair for r{}: {}", caller.peer.value, done.error().message());
        if (pair) end.stock.bury(std::move(pair).value());
        return caller.reply(encode(Refused{done.error().message()}));
    }
    end.pair = std::move(pair).value();
    end.connection = caller.connection;
    caller.reply(encode(PairReply{end.pair->address(), range_of(end.regions.board), range_of(end.regions.ring),
                                  range_of(end.regions.slot)}));
}

void Desk::drop_pair(End& end) {
    if (!end.pair) return;
    if (auto stopped = end.pair->stop(); !stopped) logger().error("control pair: {}", stopped.error().message());
    end.stock.bury(std::exchange(end.pair, nullptr));
}

void Desk::gone(ReplicaId peer, std::uint64_t connection) {
    End* end = end_of(peer);
    post(end->stock.strand(), [end, connection] {
        if (end->connection == connection) drop_pair(*end);
    });
}

}  // namespace lockstep::transport::rdma
