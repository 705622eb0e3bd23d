#include "consensus/replica/driver.h"

#include "consensus/replica/codec.h"
#include "log/check.h"
#include "log/planted.h"
#include "transport/logger.h"

#include <algorithm>
#include <utility>

namespace lockstep::replica {

using std::chrono::nanoseconds;
using transport::EventKind;

Driver::Driver(const core::CoreOptions& options, const SnapshotTriggers& triggers, transport::Fabric& fabric,
               std::span<std::byte> scratch, const Parts& parts)
    : fabric_(fabric),
      queue_(parts.queue),
      clock_(parts.clock),
      store_(parts.formation),
      storage_(parts.storage),
      lost_(parts.recovered != nullptr && parts.recovered->loss != core::Loss::none),
      options_(options),
      scratch_(LOCKSTEP_PLANTED(adoption_into_own_ring) ? fabric.ring() : scratch),
      core_(parts.recovered == nullptr ? core::Core(options, log::Ring(fabric.ring()), scratch_)
                                       : core::Core(options, log::Ring(fabric.ring()), scratch_, *parts.recovered)),
      applier_(parts.state_machine),
      catch_up_({parts.cluster_id, triggers, options.heartbeat_ns, options.election_timeout_ns}, parts.state_machine,
                parts.snapshots, log::Ring(fabric.ring()), scratch_, parts.storage, parts.wal,
                [this](ReplicaId peer, const Transfer& transfer) {
                    encode(transfer, encoded_);
                    fabric_.send(peer, encoded_);
                }),
      reads_(64),
      snapshot_(catch_up_.newest_snapshot()) {
    LOCKSTEP_CHECK((parts.storage != nullptr) == (options.durability != Durability::memory));
    LOCKSTEP_CHECK((parts.storage != nullptr) == (parts.wal != nullptr));
    step(clock_.now(), core::event::Tick{});
}

Result<void> Driver::turn(nanoseconds wait) {
    events_.clear();
    fabric_.poll(wait, events_);
    now_ = clock_.now();
    for (const transport::Event& event : events_) take(now_, event);
    take_kept();
    catch_up();
    if (!failure_.ok()) return std::move(failure_);
    step(now_, core::event::Look{fabric_.incoming_landed()});
    if (now_.monotonic_ns >= core_.deadline()) step(now_, core::event::Tick{});
    apply();
    take_requests();
    more_to_post_ = core_.flush(now_, effects_);
    carry_out();
    fabric_.flush();
    return std::move(failure_);
}

nanoseconds Driver::patience() {
    // Where requests wait for room, only an event makes some: no use in turning at once.
    queue_.fetch();
    const bool waiting = (queue_.has_proposal() && !waits_for_room_) || queue_.has_read();
    if (more_to_post_ || waiting || core_.applied().index < core_.commit().index) return nanoseconds{0};
    const std::uint64_t now = clock_.now().monotonic_ns;
    return nanoseconds{core_.deadline() > now ? core_.deadline() - now : 0};
}

void Driver::stop() {
    if (!LOCKSTEP_PLANTED(stopped_and_writable)) fabric_.revoke_incoming();
    applier_.lose_all();
    catch_up_.stop();
    for (; !reads_.empty(); reads_.pop_front()) reject(reads_.front().done, Reason::stopped);
    queue_.close();
    do {
        while (queue_.has_proposal()) reject(queue_.pop_proposal(), Reason::stopped);
        while (queue_.has_read()) reject(queue_.pop_read(), Reason::stopped);
        queue_.fetch();
    } while (queue_.has_proposal() || queue_.has_read());
}

void Driver::take(core::Now now, const transport::Event& event) {
    switch (event.kind) {
        case EventKind::peer_up:
            step(now, core::event::PeerUp{event.peer, event.incarnation});
            break;
        case EventKind::peer_down:
            step(now, core::event::PeerDown{event.peer, event.suspect_dead});
            break;
        case EventKind::landed:
            step(now, core::event::Landed{event.lane, event.count});
            break;
        case EventKind::lane_broken:
            logger().info("{}: lane to {} broken: {}", to_string(options_.id), to_string(event.peer), event.why);
            step(now, core::event::LaneBroken{event.lane});
            break;
        case EventKind::board:
            // F6: a torn one says nothing; the next one will.
            if (event.board.intact()) step(now, core::event::BoardRead{event.peer, event.board});
            break;
        case EventKind::ring_read:
            step(now, core::event::RingRead{event.read, event.ok});
            break;
        case EventKind::report:
            step(now, core::event::Reported{event.peer, event.report});
            break;
        case EventKind::message:
            take_message(now, event);
            break;
    }
}

void Driver::take_message(core::Now now, const transport::Event& event) {
    const auto drop = [&](const Error& why) {
        logger().warn("{}: message from {} dropped: {}", to_string(options_.id), to_string(event.peer), why.message());
    };
    if (is_transfer(event.bytes)) {
        auto transfer = decode_transfer(event.bytes);
        if (!transfer) return drop(transfer.error());
        fetched_.clear();
        catch_up_.receive(now.monotonic_ns, event.peer, transfer.value(), core_, fetched_);
        for (const core::Event& fetched : fetched_) step(now, fetched);
        return;
    }
    auto message = decode(event.bytes);
    if (!message) return drop(message.error());
    if (const auto* promise = std::get_if<core::Promise>(&message.value()))
        logger().debug("{}: {} promises ballot {}", to_string(options_.id), to_string(event.peer),
                       to_string(promise->ballot));
    step(now, core::event::Received{event.peer, event.incarnation, std::move(message).value()});
}

void Driver::catch_up() {
    fetched_.clear();
    if (auto turned = catch_up_.turn(now_.monotonic_ns, core_, fetched_); !turned) {
        failure_ = std::move(turned).error();
        return;
    }
    for (const core::Event& fetched : fetched_) step(now_, fetched);
    if (snapshot_ == catch_up_.newest_snapshot()) return;
    snapshot_ = catch_up_.newest_snapshot();
    snapshot_ns_ = now_.wall_ns;
}

// One event, the effects that it has, and the outcomes of those that have one.
void Driver::step(core::Now now, const core::Event& event) {
    core_.step(now, event, effects_);
    carry_out();
    // Outcomes have effects of their own; each promise is made of three steps, so this is soon over.
    while (!outcomes_.empty()) {
        const core::Event outcome = std::move(outcomes_.front());
        outcomes_.erase(outcomes_.begin());
        core_.step(now, outcome, effects_);
        carry_out();
    }
}

void Driver::carry_out() {
    for (const core::Effect& effect : effects_.all())
        std::visit([this](const auto& what) { carry_out(what); }, effect);
    effects_.clear();
}

// A write that is not posted belongs to a lane that has broken: the fabric says so by an event of its own.
void Driver::carry_out(const core::effect::PostWrite& effect) { fabric_.write(effect.lane, effect.at, effect.bytes); }

void Driver::carry_out(const core::effect::PostProbe& effect) { fabric_.probe(effect.lane, effect.number); }

void Driver::carry_out(const core::effect::ConnectLane& effect) {
    fabric_.connect_lane(effect.lane, effect.peer, effect.address);
}

void Driver::carry_out(const core::effect::EndLane& effect) { fabric_.end_lane(effect.lane); }

void Driver::carry_out(const core::effect::Fence& effect) {
    logger().debug("{}: fences its ring for ballot {}", to_string(options_.id), to_string(core_.promised()));
    fabric_.revoke_incoming();
    logger().debug("{}: its ring is fenced", to_string(options_.id));
    outcomes_.push_back(core::event::Fenced{effect.serial});
}

void Driver::carry_out(const core::effect::OpenIncoming& effect) {
    auto address = fabric_.open_incoming(effect.holder, effect.incarnation, effect.base);
    if (address) {
        outcomes_.push_back(core::event::IncomingOpened{effect.serial, address.value()});
    } else {
        outcomes_.push_back(core::event::IncomingOpened{effect.serial, std::nullopt});
        logger().error("{}: cannot open a lane for {}: {}", to_string(options_.id), to_string(effect.holder),
                      address.error().message());
    }
}

void Driver::carry_out(const core::effect::ReadBoard& effect) { fabric_.read_board(effect.peer); }

void Driver::carry_out(const core::effect::ReadRing& effect) {
    fabric_.read_ring(effect.read, effect.peer, effect.at, std::span(scratch_.at(effect.at), effect.bytes));
}

void Driver::carry_out(const core::effect::WriteReport& effect) { fabric_.write_report(effect.peer, effect.report); }

void Driver::carry_out(const core::effect::Publish& effect) {
    transport::Board board = effect.board;
    board.seal();
    fabric_.publish(board);
}

void Driver::carry_out(const core::effect::Send& effect) {
    encoded_.clear();
    encode(effect.message, encoded_);
    fabric_.send(effect.peer, encoded_);
}

void Driver::carry_out(const core::effect::KeepFormation& effect) {
    if (auto kept = store_.keep(effect.genesis, effect.voters, effect.formed); !kept) {
        failure_ = std::move(kept).error();
    } else if (!effect.formed) {
        outcomes_.push_back(core::event::FormationKept{effect.genesis});
    }
}

void Driver::carry_out(const core::effect::KeepPromise& effect) { storage_->keep_promise(effect); }

void Driver::carry_out(const core::effect::KeepLog& effect) { storage_->keep_log(effect); }

void Driver::take_kept() {
    if (storage_ == nullptr) return;
    kept_.clear();
    if (auto taken = storage_->take_outcomes(kept_); !taken) {
        failure_ = std::move(taken).error();  // what was kept before it failed is not acted upon any more (S13)
        return;
    }
    for (const core::Event& outcome : kept_) step(now_, outcome);
    if (!lost_ || core_.loss() != core::Loss::none) return;
    // S14: forgiven on disk only when what makes up for it is there too; else the next start would know of no loss.
    if (!made_up_at_) made_up_at_ = core_.commit().index;
    if (core_.kept().index < *made_up_at_) return;
    lost_ = false;
    storage_->forgive();
    logger().info("{}: what its disk had lost is made up for, up to index {}", to_string(options_.id),
                  to_string(*made_up_at_));
}

void Driver::carry_out(const core::effect::Fetch& effect) { catch_up_.fetch(effect, core_.genesis()); }

void Driver::carry_out(const core::effect::EndFetch&) { catch_up_.end_fetch(); }

void Driver::carry_out(const core::effect::InstallSnapshot& effect) {
    if (auto installed = catch_up_.install(effect.at); !installed) failure_ = std::move(installed).error();
}

void Driver::carry_out(const core::effect::ProposalsLost&) { applier_.lose_all(); }

void Driver::carry_out(const core::effect::ReadsReady& effect) {
    while (!reads_.empty() && reads_.front().ticket <= effect.through) {
        const Replica::Done done = std::move(reads_.front().done);
        reads_.pop_front();
        done(Outcome{Fate::applied, Reason::none, {}, core_.applied().index, {}});
    }
}

void Driver::carry_out(const core::effect::ReadsLost&) {
    while (!reads_.empty()) {
        Replica::Done done = std::move(reads_.front().done);
        reads_.pop_front();
        reject(done, Reason::not_leader);
    }
}

void Driver::apply() {
    if (core_.applied().index == core_.commit().index) return;
    const Index before = core_.applied().index;
    queue_.fetch();
    takes_at_once_ = !queue_.has_proposal() && !catch_up_.holds_up();
    catch_up_.keep(core_.commit().position);
    const log::Point to = applier_.apply_some(core_);
    takes_at_once_ = false;
    entries_committed_ += to.index.value - before.value;
    carry_out();  // what a proposal wanted that found no room
    step(now_, core::event::Applied{to});
}

bool Driver::propose_at_once(BytesView command, Replica::Done& done) {
    if (!takes_at_once_ || !applier_.has_room()) return false;
    if (core_.propose(now_, command, effects_) != core::Proposed::appended) {
        takes_at_once_ = false;  // the others come behind it
        return false;
    }
    applier_.expect(core_.end().index, done);
    return true;
}

void Driver::take_requests() {
    waits_for_room_ = false;
    queue_.fetch();
    while (queue_.has_read()) {
        Replica::Done& done = queue_.pop_read();
        if (reads_.size() >= queue_.max_requests()) {
            reject(done, Reason::busy);  // S17: it has no ticket, and never gets one
            continue;
        }
        const auto ticket = core_.read(now_);
        if (!ticket) {
            reject(done, Reason::not_leader);
            continue;
        }
        if (reads_.full()) reads_.set_capacity(reads_.capacity() * 2);
        reads_.push_back({*ticket, std::move(done)});
    }
    while (queue_.has_proposal()) {
        if (catch_up_.holds_up()) {
            waits_for_room_ = true;
            return;
        }
        switch (core_.propose(now_, queue_.command(), effects_)) {
            case core::Proposed::appended:
                applier_.expect(core_.end().index, queue_.pop_proposal());
                break;
            case core::Proposed::not_leader:
                reject(queue_.pop_proposal(), Reason::not_leader);
                break;
            case core::Proposed::too_large:
                reject(queue_.pop_proposal(), Reason::too_large);
                break;
            case core::Proposed::not_yet:
                if (!effects_.empty()) {
                    carry_out();  // lanes that held the ring up are ended; then there is room
                    break;
                }
                waits_for_room_ = true;
                return;
        }
    }
}

void Driver::reject(Replica::Done& done, Reason reason) const {
    done(Outcome{Fate::rejected, reason, reason == Reason::not_leader ? core_.leader() : ReplicaId{}, {}, {}});
    done = nullptr;  // what it holds is to be let go now
}

std::string Driver::lane_text(const core::Lane& lane) const {
    switch (lane.state) {
        case core::Lane::State::none:
            return "none";
        case core::Lane::State::opening:
            return "opening";
        case core::Lane::State::open:
            return core_.streaming(lane) ? "streaming" : "repairing";
        case core::Lane::State::detached:
            return "detached: it needs older entries than the ring holds, and catches up";
    }
    return "none";
}

// What keeps a voter without a leader, if it is that too few others are there.
std::string Driver::missing_text() const {
    if (core_.leader() || !core_.votes()) return {};
    const auto there = [&](core::Voter voter) {
        return voter.id == options_.id || (core_.connected(voter.id) && core_.votes(voter.id));
    };
    if (core::has_majority(core_.config(), there)) return {};
    std::string missing;
    for (const core::Voter& voter : core_.config().voters.all())
        if (!there(voter)) missing += (missing.empty() ? "" : ", ") + lockstep::to_string(voter.id);
    return "no leader without a majority: " + missing + " are not there as the voters that they were; if too many "
           "of them have lost what they held, see 'lockstep recover'";
}

// What the disk has lost (S14), as long as that matters.
std::string Driver::loss_text() const {
    switch (core_.loss()) {
        case core::Loss::none:
            return {};
        case core::Loss::suspect:
            return "the end of its log may be lost: until that is made up for, it votes only where all voters do";
        case core::Loss::corrupt:
            return "repairs its log: what it had acknowledged is damaged on its disk; it does not vote until a leader "
                   "has made up for that";
    }
    return {};
}

Status Driver::status() const {
    Status status;
    status.id = options_.id;
    status.incarnation = options_.incarnation;
    status.role = core_.role();
    status.leader = core_.leader();
    status.ballot = core_.promised();
    status.committed = core_.commit().index;
    status.applied = core_.applied().index;
    status.end = core_.end().position;
    status.durability = lockstep::to_string(options_.durability);
    status.durable = core_.kept().position;
    status.snapshot = catch_up_.newest_snapshot();
    status.snapshot_ns = snapshot_ns_;
    if (core_.forming())
        status.note = options_.form ? "waits until every replica of the config has been started with --form"
                                    : "waits for the leader of its cluster to take it in";
    else if (!core_.votes()) status.note = "learns: it does not vote before a config of the log names this life of it";
    if (const std::string missing = missing_text(); !missing.empty()) status.note = missing;
    if (core_.catching_up()) status.note = catch_up_.text();
    if (std::string loss = loss_text(); !loss.empty())
        status.note = loss + (status.note.empty() ? "" : "; ") + status.note;
    if (core_.log_full()) status.note = "log full: not even a no-op fits before more is applied";
    for (std::size_t i = 0; i < options_.member_count; ++i) {
        const ReplicaId id = options_.members[i];
        if (id == options_.id) continue;
        const core::Lane& lane = core_.lane_to(id);
        status.peers.push_back({id, core_.connected(id), core_.votes(id), fabric_.path(id), lane_text(lane),
                                lane.landed.position, lane.consumed});
    }
    status.entries_committed = entries_committed_;
    status.writes_posted = core_.writes_posted();
    status.log_batches = storage_ != nullptr ? storage_->batches() : 0;
    status.elections_started = core_.elections_started();
    return status;
}

}  // namespace lockstep::replica
