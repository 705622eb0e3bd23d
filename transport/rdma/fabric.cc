// How the fabric over RDMA is put together, and what it does in each turn.
#include "transport/rdma/fabric_over_rdma.h"

#include "log/check.h"
#include "transport/logger.h"
#include "transport/rdma/choice.h"
#include "transport/tcp/gate.h"

#include <algorithm>
#include <utility>

namespace lockstep::transport::rdma {
namespace {

// How long a lane or a control pair may be without the completion that it waits for, in ticks of this length. The
// queue pair's own time-outs add up to more, or to less on a card; both end it.
constexpr auto kTick = std::chrono::milliseconds(250);
constexpr unsigned kPatienceTicks = 12;

}  // namespace

Result<void> FabricOverRdma::start(const RdmaOptions& options) {
    std::vector<ReplicaId> peers;
    for (const link::PeerAddress& peer : options.peers) peers.push_back(peer.id);
    auto address = link::resolve(options.listen_host);
    if (!address) return std::move(address).error();
    auto choice = choose(survey(), {address.value(), options.device, options.port, options.gid_index});
    if (!choice) return std::move(choice).error();
    auto device = Device::open(choice.value(), [this](DeviceNews news) {
        station_->post([this, news] { heard(news); });
    });
    if (!device) return std::move(device).error();
    device_ = std::move(device).value();
    auto pages = SidePages::map(peers.size());
    if (!pages) return std::move(pages).error();
    pages_.emplace(std::move(pages).value());
    slots_.emplace(*pages_, peers);
    auto regions = Regions::make(*device_, station_->memory(), *pages_, peers);
    if (!regions) return std::move(regions).error();
    regions_.emplace(std::move(regions).value());
    resting_.emplace(device_->longest_echo());
    // Two lanes and two control pairs for each peer, an old one and its successor.
    constexpr int kCompletionsPerPeer = 2 * static_cast<int>(kMaxUnfinishedWrites + ControlPair::kRequests);
    const int entries = 16 + kCompletionsPerPeer * static_cast<int>(peers.size());
    auto completions = Completions::make(*device_, station_->context(), entries);
    if (!completions) return std::move(completions).error();
    completions_ = std::move(completions).value();
    // One strand per peer and one for the lane's queue pairs.
    workers_.emplace(peers.size() + 1);
    constexpr unsigned kSends = kMaxUnfinishedWrites;
    static_assert(kSends >= ControlPair::kRequests);
    lane_stock_.emplace(*device_, *resting_, regions_->lane_domain.get(), completions_->queue(), kSends,
                        workers_->strand());
    lane_stock_->fill();
    for (std::size_t i = 0; i < peers.size(); ++i) {
        stocks_.emplace_back(*device_, *resting_, regions_->peers[i].domain.get(), completions_->queue(), kSends,
                             workers_->strand());
        stocks_.back().fill();
        pairs_.emplace_back(*station_, regions_->peers[i], *pages_, i);
    }
    auto loopback = Loopback::make(*device_, station_->memory());
    if (!loopback) return std::move(loopback).error().within("cannot read the own ring through the device");
    incoming_.emplace(*device_, *lane_stock_, station_->memory(), range_of(regions_->lane_ring),
                      std::move(loopback).value());
    desk_.emplace(*regions_, stocks_, *incoming_);
    logger().info("r{}: RDMA by {}{}", options.id.value, device_->choice().text(),
                 station_->memory().huge() ? ", ring in huge pages" : "");
    if (options.fall_back) tcp_.emplace(*station_);
    tick();
    return station_->start(
        {.lanes = tcp_ ? &tcp_->door() : nullptr, .calls = &*desk_, .watcher = this, .source = this});
}

FabricOverRdma::~FabricOverRdma() {
    // First all threads that use what is taken apart after.
    if (device_) device_->end_listening();
    if (workers_) workers_->end();
    station_->end();
    for (ControlPair& pair : pairs_) pair.down();
}

// -- Lookup -----------------------------------------------------------------------------------------------------------

ControlPair* FabricOverRdma::pair_to(ReplicaId peer) {
    for (ControlPair& pair : pairs_)
        if (pair.peer() == peer) return &pair;
    return nullptr;
}

const PeerRegions& FabricOverRdma::regions_of(ReplicaId peer) const {
    const auto found = std::find_if(regions_->peers.begin(), regions_->peers.end(),
                                    [&](const PeerRegions& one) { return one.peer == peer; });
    LOCKSTEP_CHECK(found != regions_->peers.end());
    return *found;
}

Stock& FabricOverRdma::stock_of(ReplicaId peer) {
    for (std::size_t i = 0; i < stocks_.size(); ++i)
        if (regions_->peers[i].peer == peer) return stocks_[i];
    LOCKSTEP_CHECK(!"a peer of this replica");
    return stocks_.front();
}

OutgoingLane* FabricOverRdma::lane(LaneId id) const {
    for (const auto& one : lanes_)
        if (one->id() == id) return one.get();
    return nullptr;
}

std::string FabricOverRdma::path(ReplicaId peer) const {
    const ControlLink* link = station_->link_to(peer);
    if (link == nullptr) return "not reached: it is no peer of this replica";
    if (!link->up()) return link->path();
    if (detours_.taken(peer)) return "tcp (no RDMA: " + detours_.why(peer) + ")";
    return "rdma (" + device_->choice().text() + ")";
}

// -- Lanes ------------------------------------------------------------------------------------------------------------

// With TCP to fall back on, the same token opens the lane over the one and the other; the holder takes one of them.
Result<LaneAddress> FabricOverRdma::open_incoming(ReplicaId holder, Incarnation incarnation, Position base) {
    if (pair_to(holder) == nullptr)
        return Error("cannot open a lane for r" + std::to_string(holder.value) + ": it is no peer of this replica");
    auto address = incoming_->open(holder, incarnation);
    if (!tcp_) return address;
    if (!address) return tcp_->open_incoming(holder, incarnation, base);
    const auto plate = parse_address(address.value());
    LOCKSTEP_CHECK(plate.ok());
    if (auto opened = tcp_->open_incoming(plate.value().token, holder, incarnation, base); !opened)
        return std::move(opened).error();
    return address;
}

void FabricOverRdma::connect_lane(LaneId id, ReplicaId peer, const LaneAddress& address) {
    LOCKSTEP_CHECK(id);
    LOCKSTEP_CHECK(lane(id) == nullptr);
    if (link_without_rdma(peer) != nullptr) {
        const auto plate = parse_address(address);
        return tcp_->connect(id, peer, plate ? Result<link::LaneToken>(plate.value().token) : tcp::token_of(address));
    }
    const bool known = pair_to(peer) != nullptr;
    const std::uint32_t key = known ? regions_of(peer).ring->lkey : 0;
    lanes_.push_back(std::make_unique<OutgoingLane>(id, peer, station_->memory().ring(), key));
    OutgoingLane& made = *lanes_.back();
    if (!known) return made.break_off("it is no peer of this replica");
    ControlLink* link = station_->link_to(peer);
    if (!link->up()) return made.break_off("it is not reached");
    const auto plate = parse_address(address);
    if (!plate) return made.break_off(plate.error().message());
    auto pair = stock_of(peer).take();
    if (!pair) return made.break_off(pair.error().message());
    const std::shared_ptr<QueuePair> own = std::move(pair).value();
    made.start(own, plate.value().ring);
    const std::string call = encode(LaneCall{plate.value().token, own->address()});
    made.call = link->call(std::as_bytes(std::span(call)));
    link->push();
    // Both ends at the same time: the follower's is what the address names.
    post(stock_of(peer).strand(), [this, id, own, follower = plate.value().follower] {
        Result<void> done = own->reach(follower);
        if (done) done = own->arm(0);
        station_->post([this, id, done = std::move(done)] {
            OutgoingLane* to = lane(id);
            if (to == nullptr) return;
            if (!done) return to->break_off(done.error().message());
            to->connected();
            to->flush();
        });
    });
}

bool FabricOverRdma::write(LaneId id, Position at, std::uint64_t bytes) {
    if (tcp::OutgoingLane* over_tcp = tcp_ ? tcp_->find(id) : nullptr) return over_tcp->write(at, bytes);
    OutgoingLane* to = lane(id);
    active_ = true;
    return to != nullptr && to->write(at, bytes);
}

bool FabricOverRdma::probe(LaneId id, std::uint64_t number) {
    if (tcp::OutgoingLane* over_tcp = tcp_ ? tcp_->find(id) : nullptr) return over_tcp->probe(number);
    OutgoingLane* to = lane(id);
    return to != nullptr && to->probe(number);
}

void FabricOverRdma::flush() {
    for (const auto& one : lanes_) one->flush();
    if (tcp_) tcp_->flush();
    for (const auto& link : station_->links()) link->push();
}

void FabricOverRdma::end_lane(LaneId id) {
    if (tcp_) tcp_->end(id);
    const auto found = std::find_if(lanes_.begin(), lanes_.end(), [&](const auto& one) { return one->id() == id; });
    if (found == lanes_.end()) return;
    if (auto pair = (*found)->release()) {
        look();  // its completions do not stay behind to fill the queue up
        stock_of((*found)->peer()).bury(std::move(pair));
    }
    lanes_.erase(found);
}

void FabricOverRdma::release_broken_lanes() {
    for (const auto& one : lanes_)
        if (one->broken() && one->pair() != nullptr) stock_of(one->peer()).bury(one->release());
}

// -- Control links and pairs ------------------------------------------------------------------------------------------

void FabricOverRdma::reached(ControlLink& link) {
    if (detours_.taken(link.peer())) return link.ready();  // `tick` asks, when it is time
    ask_pair(link);
}

void FabricOverRdma::ask_pair(ControlLink& link) {
    if (!why_no_port_.empty()) return give_up(link, why_no_port_);
    auto own = stock_of(link.peer()).take();
    if (!own) return give_up(link, own.error().message());
    const std::string call = encode(PairCall{own.value()->address()});
    pair_to(link.peer())->ask(std::move(own).value(), link.call(std::as_bytes(std::span(call))));
    link.push();
}

// RDMA does not reach the peer (any more): it is tried again, over TCP meanwhile if that is allowed.
void FabricOverRdma::give_up(ControlLink& link, const std::string& why) {
    if (!tcp_) return link.give_up(why);
    if (!link.reached()) return;
    ControlPair& pair = *pair_to(link.peer());
    const bool owes_board = pair.board_asked();
    if (auto own = pair.down()) stock_of(link.peer()).bury(std::move(own));
    for (const auto& one : lanes_)
        if (one->peer() == link.peer()) one->break_off(why);
    take_detour(link.peer(), why);
    if (!link.up()) link.ready();
    else if (owes_board) link.ask_board();
}

void FabricOverRdma::take_detour(ReplicaId peer, const std::string& why) {
    if (detours_.take(peer, why))
        logger().info("r{}: r{} is reached over TCP: {}", station_->options().id.value, peer.value, why);
}

void FabricOverRdma::end_detour(ReplicaId peer) {
    detours_.end(peer);
    logger().info("r{}: r{} is reached over RDMA again", station_->options().id.value, peer.value);
    tcp_->break_off(peer, "RDMA reaches the peer again");  // its successor goes that way
}

void FabricOverRdma::try_rdma_again() {
    if (!why_no_port_.empty()) return;
    for (const auto& link : station_->links())
        if (link->up() && detours_.due(link->peer()) && pair_to(link->peer())->pair() == nullptr) ask_pair(*link);
}

// The link, if the peer is up without RDMA.
ControlLink* FabricOverRdma::link_without_rdma(ReplicaId peer) {
    if (!detours_.taken(peer)) return nullptr;
    ControlLink* link = station_->link_to(peer);
    return link->up() ? link : nullptr;
}

void FabricOverRdma::lost(ControlLink& link, bool suspect_dead) {
    // A peer that gets stuck while its pair is connected is reached without, the next time.
    const ControlPair& lost = *pair_to(link.peer());
    if (tcp_ && !suspect_dead && lost.pair() != nullptr && !lost.is_up())
        take_detour(link.peer(), "its control pair was not connected in time");
    if (auto pair = pair_to(link.peer())->down()) stock_of(link.peer()).bury(std::move(pair));
    for (const auto& one : lanes_)
        if (suspect_dead && one->peer() == link.peer()) one->break_off("the peer's process has ended");
}

void FabricOverRdma::replied(ControlLink& link, std::uint64_t call, std::span<const std::byte> bytes) {
    auto reply = parse_reply(bytes);
    if (!reply) return give_up(link, bytes.empty() ? "it has none" : reply.error().message());
    if (ControlPair* pair = pair_to(link.peer()); pair->call() == call)
        return pair_replied(link, *pair, reply.value());
    for (const auto& one : lanes_)
        if (one->peer() == link.peer() && one->call == call) lane_replied(*one, reply.value());
}

void FabricOverRdma::lane_replied(OutgoingLane& lane, const Reply& reply) {
    if (std::holds_alternative<LaneReply>(reply)) {
        lane.admitted();
        lane.flush();
    } else if (std::holds_alternative<LaneRevoked>(reply)) {
        lane.break_off("the peer has revoked it");
    } else if (const auto* refused = std::get_if<Refused>(&reply)) {
        lane.break_off("refused: " + refused->why);
    } else {
        lane.break_off("the peer's answer makes no sense");
    }
}

void FabricOverRdma::pair_replied(ControlLink& link, ControlPair& pair, const Reply& reply) {
    if (const auto* refused = std::get_if<Refused>(&reply)) return give_up(link, "refused: " + refused->why);
    const auto* answer = std::get_if<PairReply>(&reply);
    if (answer == nullptr || pair.is_up()) return give_up(link, "the peer's answer makes no sense");
    pair.answered(*answer);
    post(stock_of(pair.peer()).strand(),
         [this, peer = pair.peer(), call = pair.call(), own = pair.pair(), callee = answer->callee] {
             Result<void> done = own->reach(callee);
             if (done) done = own->arm(0);
             station_->post([this, peer, call, done = std::move(done)] { pair_connected(peer, call, done); });
         });
}

void FabricOverRdma::pair_connected(ReplicaId peer, std::uint64_t call, const Result<void>& connected) {
    ControlPair* pair = pair_to(peer);
    ControlLink* link = station_->link_to(peer);
    if (pair->call() != call) return;  // the link was lost meanwhile
    if (!connected) return give_up(*link, connected.error().message());
    pair->up();
    if (!link->up()) return link->ready();
    end_detour(peer);
}

// -- What the device says ---------------------------------------------------------------------------------------------

bool FabricOverRdma::look() {
    bool found = false;
    bool more = true;
    while (more) {
        const std::span<const ibv_wc> taken = completions_->take();
        for (const ibv_wc& completion : taken) completed(completion);
        found |= !taken.empty();
        more = taken.size() == Completions::kTakenAtOnce;  // fewer: the queue was empty behind them
    }
    return found;
}

bool FabricOverRdma::arm() {
    completions_->arm();
    return !look();
}

// The queue pair's number says whose it is; one that is of none any more is dropped (F5).
void FabricOverRdma::completed(const ibv_wc& completion) {
    for (const auto& one : lanes_)
        if (one->pair() != nullptr && one->pair()->number() == completion.qp_num) return one->completed(completion);
    for (ControlPair& pair : pairs_) {
        if (!pair.is_up() || pair.pair()->number() != completion.qp_num) continue;
        if (auto good = pair.completed(completion); !good)
            give_up(*station_->link_to(pair.peer()), good.error().message());
        return;
    }
}

void FabricOverRdma::heard(DeviceNews news) {
    const std::string port = "port " + std::to_string(device_->choice().port) + " of " + device_->choice().device;
    if (news == DeviceNews::port_up) {
        why_no_port_.clear();
        logger().info("{} is up", port);
        for (const auto& link : station_->links()) link->try_now();
        detours_.try_all_now();
        return;
    }
    why_no_port_ = news == DeviceNews::gone ? "device " + device_->choice().device + " is gone" : port + " is down";
    logger().error("{}", why_no_port_);
    for (const auto& one : lanes_) one->break_off(why_no_port_);
    for (const auto& link : station_->links())
        if (link->reached()) give_up(*link, why_no_port_);
}

void FabricOverRdma::tick() {
    for (const auto& one : lanes_) one->tick(kPatienceTicks);
    for (ControlPair& pair : pairs_)
        if (auto good = pair.tick(kPatienceTicks); !good)
            give_up(*station_->link_to(pair.peer()), good.error().message());
    try_rdma_again();
    ticker_.expires_after(kTick);
    ticker_.async_wait([this](const boost::system::error_code& error) {
        if (!error) tick();
    });
}

// -- The loop ---------------------------------------------------------------------------------------------------------

void FabricOverRdma::poll(std::chrono::nanoseconds wait, std::vector<Event>& events) {
    for (const auto& link : station_->links()) link->push();
    bool news = std::any_of(lanes_.begin(), lanes_.end(), [](const auto& one) { return one->has_news(); });
    if (tcp_) news |= tcp_->watch();
    if (!lanes_.empty() || incoming_->is_open()) wait = std::min(wait, look_after_);
    // Only the holder of a lane waits for completions that a commit waits for.
    station_->wait(wait, news, !lanes_.empty() || (tcp_ && !tcp_->empty()));
    active_ |= slots_->take(station_->mailbox());
    release_broken_lanes();
    station_->collect(events);
    for (const auto& one : lanes_) one->report(events);
    if (tcp_) tcp_->report(events);
    // A broken lane stays broken (F5): once that is said, there is none of that name.
    std::erase_if(lanes_, [](const auto& one) { return one->broken(); });
    const auto soon = station_->options().wakes_at_landing ? kLookAtOnce : kLookSoon;
    look_after_ = std::exchange(active_, false) ? soon : std::min<std::chrono::nanoseconds>(2 * look_after_, kLookLate);
}

Result<void> available() { return {}; }

Result<std::unique_ptr<RdmaFabric>> RdmaFabric::open(const RdmaOptions& options) {
    const std::string what = "cannot open the RDMA fabric of r" + std::to_string(options.id.value);
    auto station = Station::make(options, link::Pages::huge_if_any);
    if (!station) return std::move(station).error().within(what);
    auto fabric = std::make_unique<FabricOverRdma>(std::move(station).value());
    if (auto started = fabric->start(options); !started) return std::move(started).error().within(what);
    return std::unique_ptr<RdmaFabric>(std::move(fabric));
}

}  // namespace lockstep::transport::rdma
