#include "transport/tcp/fabric.h"

#include "log/check.h"
#include "transport/tcp/acceptor.h"
#include "transport/tcp/control_link.h"
#include "transport/tcp/outgoing_lane.h"
#include "transport/tcp/sleeper.h"

#include <boost/asio/io_context.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

namespace lockstep::transport::tcp {
namespace {

Result<void> check(const TcpOptions& options) {
    if (options.cluster_id == 0) return Error("cluster_id is 0: choose another number, the same on all replicas");
    if (!options.id) return Error("id is 0: replicas have ids from 1 to 255");
    if (!options.incarnation) return Error("incarnation is 0, which means unknown");
    if (options.handshake_timeout <= std::chrono::milliseconds::zero())
        return Error("handshake_timeout is not positive");
    for (std::size_t i = 0; i < options.peers.size(); ++i) {
        const ReplicaId id = options.peers[i].id;
        if (!id) return Error("a peer's id is 0: replicas have ids from 1 to 255");
        if (id == options.id) return Error("r" + std::to_string(id.value) + " names itself as its peer");
        for (std::size_t j = 0; j < i; ++j)
            if (options.peers[j].id == id) return Error("peer r" + std::to_string(id.value) + " is named twice");
    }
    return {};
}

Identity identity_of(const TcpOptions& options) {
    Identity self{options.cluster_id, options.id, options.incarnation, options.ring_bytes, {}};
    for (const TcpPeer& peer : options.peers) self.peers.push_back(peer.id);
    return self;
}

class FabricOverTcp final : public TcpFabric {
 public:
    FabricOverTcp(const TcpOptions& options, RingMemory memory, std::unique_ptr<Waker> waker)
        : self_(identity_of(options)), memory_(std::move(memory)), waker_(std::move(waker)), mailbox_(self_.peers),
          initiator_{context_, self_, memory_.ring(), options.handshake_timeout, ready_,
                     [this](ReplicaId peer, const std::string& host, std::uint16_t port) {
                         acceptor_->look_up(peer, host, port);
                     }} {}

    Result<void> start(const TcpOptions& options);

    std::uint16_t listen_port() const override { return acceptor_->port(); }
    void set_peer_address(ReplicaId peer, const std::string& host, std::uint16_t port) override {
        if (ControlLink* link = link_to(peer)) link->set_address(host, port);
    }

    std::span<std::byte> ring() override { return memory_.ring(); }
    void publish(const Board& board) override { board_.publish(board); }
    Result<LaneAddress> open_incoming(ReplicaId holder, Incarnation incarnation, Position base) override;
    void revoke_incoming() override { gate_.revoke(); }
    Position incoming_landed() const override { return gate_.landed(); }

    void connect_lane(LaneId lane, ReplicaId peer, const LaneAddress& address) override;
    bool write(LaneId lane, Position at, std::uint64_t bytes) override;
    bool probe(LaneId lane, std::uint64_t number) override;
    void flush() override;
    void end_lane(LaneId lane) override;

    void read_board(ReplicaId peer) override {
        if (ControlLink* link = link_to(peer)) link->ask_board();
    }
    void read_ring(ReadId read, ReplicaId peer, Position at, std::span<std::byte> into) override;
    void write_report(ReplicaId peer, const Report& report) override {
        if (ControlLink* link = link_to(peer)) link->write_report(report);
    }
    void send(ReplicaId peer, std::span<const std::byte> message) override {
        if (ControlLink* link = link_to(peer)) link->send(message);
    }

    void poll(std::chrono::nanoseconds wait, std::vector<Event>& events) override;
    void wake() override { waker_->wake(); }
    std::string path(ReplicaId peer) const override;

 private:
    ControlLink* link_to(ReplicaId peer) const;
    OutgoingLane* lane(LaneId id) const;
    bool lanes_have_news() const;
    void collect(std::vector<Event>& events);
    void collect_mail(std::vector<Event>& events);

    const Identity self_;
    RingMemory memory_;
    BoardCell board_;
    Gate gate_;
    std::unique_ptr<Waker> waker_;
    Mailbox mailbox_;
    Mail mail_;                        // what the events of the last poll point into
    // Only this thread uses the context: no locks in it.
    boost::asio::io_context context_{BOOST_ASIO_CONCURRENCY_HINT_UNSAFE};
    std::vector<Event> ready_;         // events that arose outside `collect`
    Initiator initiator_;
    std::unique_ptr<Sleeper> sleeper_;
    std::vector<std::unique_ptr<ControlLink>> links_;
    std::vector<std::shared_ptr<OutgoingLane>> lanes_;  // as many as peers: a search is short
    std::unique_ptr<Acceptor> acceptor_;                // last: its thread ends before what it uses
};

Result<void> FabricOverTcp::start(const TcpOptions& options) {
    auto sleeper = Sleeper::make(context_, *waker_, options.polling, std::chrono::microseconds(options.spin_us));
    if (!sleeper) return std::move(sleeper).error();
    sleeper_ = std::move(sleeper).value();
    const Target target{self_, memory_, board_, gate_, mailbox_, *waker_};
    auto acceptor = Acceptor::listen(target, options.listen_host, options.listen_port,
                                     {options.handshake_timeout, options.polling,
                                      std::chrono::microseconds(options.spin_us)});
    if (!acceptor) return std::move(acceptor).error();
    acceptor_ = std::move(acceptor).value();
    acceptor_->start();
    for (const TcpPeer& peer : options.peers) {
        links_.push_back(std::make_unique<ControlLink>(initiator_, peer.id));
        links_.back()->set_address(peer.host, peer.port);
    }
    return {};
}

ControlLink* FabricOverTcp::link_to(ReplicaId peer) const {
    for (const auto& link : links_)
        if (link->peer() == peer) return link.get();
    return nullptr;
}

OutgoingLane* FabricOverTcp::lane(LaneId id) const {
    for (const auto& one : lanes_)
        if (one->id() == id) return one.get();
    return nullptr;
}

Result<LaneAddress> FabricOverTcp::open_incoming(ReplicaId holder, Incarnation incarnation, Position base) {
    if (link_to(holder) == nullptr)
        return Error("cannot open a lane for r" + std::to_string(holder.value) + ": it is no peer of this replica");
    return gate_.open(holder, incarnation, base);
}

void FabricOverTcp::connect_lane(LaneId id, ReplicaId peer, const LaneAddress& address) {
    LOCKSTEP_CHECK(id);
    LOCKSTEP_CHECK(lane(id) == nullptr);
    lanes_.push_back(std::make_shared<OutgoingLane>(initiator_, id, peer));
    OutgoingLane& made = *lanes_.back();
    const ControlLink* link = link_to(peer);
    if (link == nullptr || !link->endpoint()) return made.break_off("its address is not known");
    const auto token = token_of(address);
    if (!token) return made.break_off(token.error().message());
    made.connect(*link->endpoint(), token.value());
}

bool FabricOverTcp::write(LaneId id, Position at, std::uint64_t bytes) {
    OutgoingLane* to = lane(id);
    return to != nullptr && to->write(at, bytes);
}

bool FabricOverTcp::probe(LaneId id, std::uint64_t number) {
    OutgoingLane* to = lane(id);
    return to != nullptr && to->probe(number);
}

void FabricOverTcp::flush() {
    for (const auto& one : lanes_) one->flush();
    for (const auto& link : links_) link->push();
}

void FabricOverTcp::end_lane(LaneId id) {
    const auto found = std::find_if(lanes_.begin(), lanes_.end(), [&](const auto& one) { return one->id() == id; });
    if (found == lanes_.end()) return;
    (*found)->end();
    lanes_.erase(found);
}

void FabricOverTcp::read_ring(ReadId read, ReplicaId peer, Position at, std::span<std::byte> into) {
    if (ControlLink* link = link_to(peer)) return link->ask_ring(read, at, into);
    Event& event = ready_.emplace_back();
    event.kind = EventKind::ring_read;
    event.peer = peer;
    event.read = read;
}

bool FabricOverTcp::lanes_have_news() const {
    return std::any_of(lanes_.begin(), lanes_.end(), [](const auto& one) { return one->has_news(); });
}

void FabricOverTcp::poll(std::chrono::nanoseconds wait, std::vector<Event>& events) {
    for (const auto& link : links_) link->push();
    for (const auto& one : lanes_) one->watch();
    const bool news = !ready_.empty() || !mailbox_.empty() || waker_->called() || lanes_have_news();
    // Only the holder of a lane waits for answers that a commit waits for; a follower's part is the acceptor thread's.
    // So there is one spinning thread per replica, not two.
    sleeper_->run(news ? std::chrono::nanoseconds::zero() : wait, !lanes_.empty());
    waker_->take();
    collect(events);
}

void FabricOverTcp::collect(std::vector<Event>& events) {
    // Mail first: it can start a connection, whose events belong to this turn.
    collect_mail(events);
    std::move(ready_.begin(), ready_.end(), std::back_inserter(events));
    ready_.clear();
    for (const auto& one : lanes_) one->report(events);
    // A broken lane stays broken (F5): once that is said, there is none of that name.
    std::erase_if(lanes_, [](const auto& one) { return one->broken(); });
}

void FabricOverTcp::collect_mail(std::vector<Event>& events) {
    if (!mailbox_.take(mail_)) return;
    for (const Mail::Address& address : mail_.addresses)
        if (ControlLink* link = link_to(address.peer)) link->looked_up(address.endpoint, address.error);
    for (const ReplicaId peer : mail_.arrivals)
        if (ControlLink* link = link_to(peer)) link->try_now();
    for (const Mail::Slot& slot : mail_.reports) {
        Event& event = events.emplace_back();
        event.kind = EventKind::report;
        event.peer = slot.peer;
        event.incarnation = slot.incarnation;
        event.report = slot.report;
    }
    for (const Mail::Message& message : mail_.messages) {
        Event& event = events.emplace_back();
        event.kind = EventKind::message;
        event.peer = message.peer;
        event.incarnation = message.incarnation;
        event.bytes = std::span<const std::byte>(mail_.bytes).subspan(message.at, message.size);
    }
}

std::string FabricOverTcp::path(ReplicaId peer) const {
    const ControlLink* link = link_to(peer);
    return link != nullptr ? link->path() : "not reached: it is no peer of this replica";
}

}  // namespace

Result<std::unique_ptr<TcpFabric>> TcpFabric::open(const TcpOptions& options) {
    const std::string what = "cannot open the TCP fabric of r" + std::to_string(options.id.value);
    if (auto sound = check(options); !sound) return std::move(sound).error().within(what);
    auto memory = RingMemory::map(options.ring_bytes);
    if (!memory) return std::move(memory).error().within(what);
    auto waker = Waker::make();
    if (!waker) return std::move(waker).error().within(what);
    auto fabric =
        std::make_unique<FabricOverTcp>(options, std::move(memory).value(), std::move(waker).value());
    if (auto started = fabric->start(options); !started) return std::move(started).error().within(what);
    return std::unique_ptr<TcpFabric>(std::move(fabric));
}

}  // namespace lockstep::transport::tcp
