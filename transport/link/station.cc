#include "transport/link/station.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace lockstep::transport::link {
namespace {

Result<void> check(const StationOptions& options) {
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

Identity identity_of(const StationOptions& options) {
    Identity self{options.cluster_id, options.id, options.incarnation, options.ring_bytes, {}};
    for (const PeerAddress& peer : options.peers) self.peers.push_back(peer.id);
    return self;
}

}  // namespace

Result<std::string> resolve(const std::string& host) {
    boost::asio::io_context context;
    boost::asio::ip::tcp::resolver resolver(context);
    boost::system::error_code error;
    const auto found = resolver.resolve(host, "", boost::asio::ip::tcp::resolver::passive, error);
    if (error) return Error("cannot look up " + host + ": " + error.message());
    return found.begin()->endpoint().address().to_string();
}

Result<std::unique_ptr<Station>> Station::make(const StationOptions& options, Pages pages) {
    if (auto sound = check(options); !sound) return std::move(sound).error();
    auto memory = RingMemory::map(options.ring_bytes, pages);
    if (!memory) return std::move(memory).error();
    auto waker = Waker::make();
    if (!waker) return std::move(waker).error();
    return std::unique_ptr<Station>(new Station(options, std::move(memory).value(), std::move(waker).value()));
}

Station::Station(const StationOptions& options, RingMemory memory, std::unique_ptr<Waker> waker)
    : options_(options), self_(identity_of(options)), memory_(std::move(memory)), waker_(std::move(waker)),
      mailbox_(self_.peers), initiator_{context_, self_, memory_.ring(), options.handshake_timeout, ready_, {},
                                        [this](ReplicaId peer, const std::string& host, std::uint16_t port) {
                                            acceptor_->look_up(peer, host, port);
                                        }} {}

Station::~Station() = default;

Result<void> Station::start(const Fittings& fittings) {
    auto sleeper = Sleeper::make(context_, *waker_, fittings.source, options_.polling,
                                 std::chrono::microseconds(options_.spin_us));
    if (!sleeper) return std::move(sleeper).error();
    sleeper_ = std::move(sleeper).value();
    const Target target{self_, memory_, board_, mailbox_, *waker_, fittings.lanes, fittings.calls};
    auto acceptor = Acceptor::listen(target, options_.listen_host, options_.listen_port,
                                     {options_.handshake_timeout, options_.polling,
                                      std::chrono::microseconds(options_.spin_us)});
    if (!acceptor) return std::move(acceptor).error();
    acceptor_ = std::move(acceptor).value();
    const boost::asio::ip::address own = acceptor_->address();
    if (!own.is_unspecified() && !own.is_loopback()) initiator_.source = own;
    acceptor_->start();
    for (const PeerAddress& peer : options_.peers) {
        links_.push_back(std::make_unique<ControlLink>(initiator_, peer.id, fittings.watcher));
        links_.back()->set_address(peer.host, peer.port);
    }
    return {};
}

ControlLink* Station::link_to(ReplicaId peer) const {
    for (const auto& link : links_)
        if (link->peer() == peer) return link.get();
    return nullptr;
}

void Station::set_peer_address(ReplicaId peer, const std::string& host, std::uint16_t port) {
    if (ControlLink* link = link_to(peer)) link->set_address(host, port);
}

void Station::post(std::function<void()> errand) {
    errands_.put(std::move(errand));
    waker_->wake();
}

Event& Station::tell(EventKind kind, ReplicaId peer) {
    Event& event = ready_.emplace_back();
    event.kind = kind;
    event.peer = peer;
    return event;
}

void Station::tell_read(ReadId read, ReplicaId peer, bool ok) {
    Event& event = tell(EventKind::ring_read, peer);
    event.read = read;
    event.ok = ok;
}

void Station::wait(std::chrono::nanoseconds wait, bool news, bool may_spin) {
    news = news || !ready_.empty() || !mailbox_.empty() || waker_->called();
    sleeper_->run(news ? std::chrono::nanoseconds::zero() : wait, may_spin);
    waker_->take();
    errands_.run();
}

void Station::collect(std::vector<Event>& events) {
    // Mail first: it can start a connection, whose events belong to this turn.
    collect_mail(events);
    std::move(ready_.begin(), ready_.end(), std::back_inserter(events));
    ready_.clear();
}

void Station::collect_mail(std::vector<Event>& events) {
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

}  // namespace lockstep::transport::link
