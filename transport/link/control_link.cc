#include "transport/link/control_link.h"

#include "log/check.h"
#include "transport/logger.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>

#include <algorithm>
#include <cstring>

namespace lockstep::transport::link {
namespace {

constexpr auto kLeastBackoff = std::chrono::milliseconds(5);
constexpr auto kMostBackoff = std::chrono::milliseconds(500);
// A connection that stood this long was a good one: the next try comes soon.
constexpr auto kGoodLife = std::chrono::seconds(1);

}  // namespace

ControlLink::ControlLink(Initiator& initiator, ReplicaId peer, LinkWatcher* watcher)
    : initiator_(initiator), peer_(peer), watcher_(watcher), timer_(initiator.context), backoff_(kLeastBackoff),
      frames_(Expect::answers, initiator.ring.size()) {}

// -- Coming up --------------------------------------------------------------------------------------------------------

void ControlLink::set_address(const std::string& host, std::uint16_t port) {
    host_ = host;
    port_ = port;
    endpoint_.reset();
    if (port == 0) return;
    if (state_ > State::pausing) fail("its address has changed", false);
    backoff_ = kLeastBackoff;
    try_to_connect();
}

void ControlLink::try_now() {
    if (state_ != State::pausing) return;
    backoff_ = kLeastBackoff;
    try_to_connect();
}

void ControlLink::try_to_connect() {
    ++life_;
    boost::system::error_code error;
    const auto address = boost::asio::ip::make_address(host_, error);
    if (!error) {
        endpoint_ = Endpoint(address, port_);
        return connect();
    }
    // A name is looked up at every try: it can move.
    state_ = State::looking_up;
    set_deadline();
    initiator_.look_up(peer_, host_, port_);
}

void ControlLink::looked_up(const Endpoint& endpoint, const std::string& error) {
    if (state_ != State::looking_up) return;
    if (!error.empty()) return fail("cannot look up " + host_ + ": " + error, false);
    endpoint_ = endpoint;
    connect();
}

void ControlLink::connect() {
    state_ = State::connecting;
    auto socket = make_socket(initiator_.context, *endpoint_, initiator_.source);
    if (!socket) return fail(socket.error().message(), false);
    socket_ = std::move(socket).value();
    set_deadline();
    socket_->async_connect(*endpoint_, [this, life = life_](const boost::system::error_code& error) {
        if (life != life_) return;
        if (error) return fail(error);
        greet();
    });
}

void ControlLink::greet() {
    state_ = State::greeting;
    Hello hello;
    hello.cluster_id = initiator_.self.cluster_id;
    hello.sender = initiator_.self.id;
    hello.target = peer_;
    hello.incarnation = initiator_.self.incarnation;
    hello.ring_bytes = initiator_.self.ring_bytes;
    const std::string bytes = encode(hello);
    const Moved moved = send_some(socket_->native_handle(), bytes);
    if (moved.error != 0) return fail({moved.error, boost::system::system_category()});
    if (moved.bytes < bytes.size()) return fail("its socket does not take a hello", false);  // a fresh one does
    frames_.clear();
    receive_answer();
}

void ControlLink::receive_answer() {
    const std::span<std::byte> room = frames_.room();
    socket_->async_read_some(boost::asio::buffer(room.data(), room.size()),
                             [this, life = life_](const boost::system::error_code& error, std::size_t count) {
                                 if (life != life_) return;
                                 if (error) return fail(error);
                                 if (auto taken = take_answer(count); !taken) fail(taken.error().message(), false);
                             });
}

Result<void> ControlLink::take_answer(std::size_t count) {
    frames_.add(count);
    auto parsed = parse_answer(frames_.uncut());
    if (!parsed) return std::move(parsed).error();
    if (!parsed.value()) {
        receive_answer();
        return {};
    }
    frames_.skip(parsed.value()->bytes);
    const Answer& answer = parsed.value()->message;
    if (!answer.ok) {
        if (backoff_ < kMostBackoff) logger().error("r{}: {}", initiator_.self.id.value, answer.refusal);
        backoff_ = kMostBackoff;
        return Error("refused: " + answer.refusal);
    }
    if (answer.replica != peer_)
        return Error("it says that it is r" + std::to_string(answer.replica.value) + ": check the addresses");
    reach(answer);
    return {};
}

void ControlLink::reach(const Answer& answer) {
    state_ = State::preparing;
    incarnation_ = answer.incarnation;
    set_deadline();
    if (watcher_ != nullptr)
        watcher_->reached(*this);
    else
        ready();
    if (reached()) receive();
}

void ControlLink::ready() {
    LOCKSTEP_CHECK(state_ == State::preparing);
    timer_.cancel();
    state_ = State::up;
    up_since_ = std::chrono::steady_clock::now();
    told_ = Told::up;
    tell(EventKind::peer_up).incarnation = incarnation_;
    logger().info("r{}: r{} reached at {}", initiator_.self.id.value, peer_.value, to_string(*endpoint_));
}

// -- Going down -------------------------------------------------------------------------------------------------------

void ControlLink::fail(const boost::system::error_code& error) {
    const bool end_of_stream = error == boost::asio::error::eof;
    fail(end_of_stream ? "it has closed the connection" : error.message(),
         end_of_stream || suggests_death(error.value()));
}

void ControlLink::fail(const std::string& why, bool suspect_dead) {
    const bool was_up = state_ == State::up;
    const bool was_reached = reached();
    if (was_up && std::chrono::steady_clock::now() - up_since_ >= kGoodLife) backoff_ = kLeastBackoff;
    ++life_;
    socket_.reset();
    out_.clear();
    out_waits_ = false;
    report_.reset();
    board_asked_ = false;
    why_down_ = why;
    const Told told = suspect_dead ? Told::dead : Told::down;
    // Said again only where it says more: that the peer is dead, after it was only silent.
    if (told_ == Told::nothing || told_ == Told::up || (told_ == Told::down && told == Told::dead)) {
        told_ = told;
        Event& event = tell(EventKind::peer_down);
        event.suspect_dead = suspect_dead;
        event.why = "r" + std::to_string(peer_.value) + ": " + why;
        logger().info("r{}: r{} not reached: {}", initiator_.self.id.value, peer_.value, why);
    }
    while (!reads_.empty()) {
        tell_read(reads_.front().id, false);
        reads_.pop_front();
    }
    pause();
    if (was_reached && watcher_ != nullptr) watcher_->lost(*this, suspect_dead);
}

void ControlLink::pause() {
    state_ = State::pausing;
    // Between half and the whole of it, so that replicas do not knock in step.
    const auto most = static_cast<std::uint32_t>(backoff_.count());
    const std::chrono::milliseconds wait(most -
                                         std::uniform_int_distribution<std::uint32_t>(0, most / 2)(initiator_.jitter));
    backoff_ = std::min(2 * backoff_, kMostBackoff);
    timer_.expires_after(wait);
    timer_.async_wait([this, life = life_](const boost::system::error_code& error) {
        if (!error && life == life_) try_to_connect();
    });
}

void ControlLink::set_deadline() {
    timer_.expires_after(initiator_.handshake_timeout);
    timer_.async_wait([this, life = life_](const boost::system::error_code& error) {
        if (error || life != life_ || state_ == State::up) return;
        fail(state_ == State::preparing ? "it does not get ready in time" : "no answer to its hello in time", false);
    });
}

Event& ControlLink::tell(EventKind kind) {
    Event& event = initiator_.ready.emplace_back();
    event.kind = kind;
    event.peer = peer_;
    return event;
}

void ControlLink::tell_read(ReadId read, bool ok) {
    Event& event = tell(EventKind::ring_read);
    event.read = read;
    event.ok = ok;
}

std::string ControlLink::path() const {
    if (state_ == State::up) return "tcp (" + to_string(*endpoint_) + ")";
    return "not reached: " + why_down_;
}

// -- Out --------------------------------------------------------------------------------------------------------------

void ControlLink::ask_board() {
    if (state_ != State::up || board_asked_) return;
    board_asked_ = true;
    put({ControlKind::ask_board, 0, 0, 0, 0}, {});
}

void ControlLink::ask_ring(ReadId read, Position at, std::span<std::byte> into) {
    LOCKSTEP_CHECK_OP(into.size(), >, 0);
    LOCKSTEP_CHECK_OP(into.size(), <=, kMaxTransferBytes);
    LOCKSTEP_CHECK_OP((at.value & (initiator_.ring.size() - 1)) + into.size(), <=, initiator_.ring.size());
    if (state_ != State::up || reads_.size() == kMaxUnansweredReads) return tell_read(read, false);
    reads_.push_back({read, at, into});
    put({ControlKind::ask_ring, 0, read.value, at.value, into.size()}, {});
}

void ControlLink::write_report(const Report& report) {
    if (state_ == State::up) report_ = report;
}

void ControlLink::send(std::span<const std::byte> message) {
    LOCKSTEP_CHECK_OP(message.size(), <=, kMaxMessageBytes);
    if (state_ != State::up || out_.size() + message.size() > kMaxWaitingBytes) return;
    put({ControlKind::message, static_cast<std::uint32_t>(message.size()), 0, 0, 0}, message);
}

std::uint64_t ControlLink::call(std::span<const std::byte> call) {
    LOCKSTEP_CHECK_OP(call.size(), <=, kMaxCallBytes);
    LOCKSTEP_CHECK(reached());
    put({ControlKind::call, static_cast<std::uint32_t>(call.size()), ++calls_, 0, 0}, call);
    return calls_;
}

void ControlLink::put(const ControlHeader& header, std::span<const std::byte> payload) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&header);
    out_.insert(out_.end(), bytes, bytes + sizeof header);
    out_.insert(out_.end(), payload.begin(), payload.end());
}

void ControlLink::push() {
    if (!reached() || out_waits_) return;
    if (report_) {
        put({ControlKind::report, sizeof(Report), 0, 0, 0}, std::as_bytes(std::span(&*report_, 1)));
        report_.reset();
    }
    if (out_.empty()) return;
    const iovec piece{out_.data(), out_.size()};
    const Moved moved = send_some(socket_->native_handle(), std::span(&piece, 1));
    if (moved.error != 0 && !moved.would_block()) return fail({moved.error, boost::system::system_category()});
    out_.erase(out_.begin(), out_.begin() + static_cast<std::ptrdiff_t>(moved.bytes));
    if (out_.empty()) return;
    out_waits_ = true;
    socket_->async_wait(Socket::wait_write, [this, life = life_](const boost::system::error_code& error) {
        if (life != life_) return;
        if (error) return fail(error);
        out_waits_ = false;
        push();
    });
}

// -- In ---------------------------------------------------------------------------------------------------------------

void ControlLink::receive() {
    // Answers that came along with the handshake's, then those that come.
    const std::uint64_t life = life_;
    if (auto taken = take(); !taken) return fail(taken.error().message(), false);
    if (life != life_) return;  // the watcher has given it up
    const std::span<std::byte> room = frames_.room();
    socket_->async_read_some(boost::asio::buffer(room.data(), room.size()),
                             [this, life = life_](const boost::system::error_code& error, std::size_t count) {
                                 if (life != life_) return;
                                 if (error) return fail(error);
                                 frames_.add(count);
                                 receive();
                             });
}

Result<void> ControlLink::take() {
    for (;;) {
        auto frame = frames_.next();
        if (!frame) return std::move(frame).error();
        if (!frame.value()) return {};
        if (frame.value()->header.kind == ControlKind::ring) {
            if (auto taken = take_piece(*frame.value()); !taken) return taken;
            continue;
        }
        if (frame.value()->header.kind == ControlKind::reply) {
            if (watcher_ == nullptr) return Error("it answers a call that was not made");
            const std::uint64_t life = life_;
            watcher_->replied(*this, frame.value()->header.number, frame.value()->payload);
            if (life != life_) return {};
            continue;
        }
        if (!board_asked_) return Error("it answers a read of its board that was not asked for");
        board_asked_ = false;
        Event& event = tell(EventKind::board);
        std::memcpy(&event.board, frame.value()->payload.data(), sizeof event.board);
    }
}

Result<void> ControlLink::take_piece(const FrameBuffer::Frame& frame) {
    if (reads_.empty() || frame.header.number != reads_.front().id.value)
        return Error("it answers a ring read that was not asked for");
    Read& read = reads_.front();
    if (frame.header.at != read.at.value || frame.payload.size() > read.into.size())
        return Error("it answers another range of its ring than was asked for");
    std::memcpy(read.into.data(), frame.payload.data(), frame.payload.size());
    read.at = read.at + frame.payload.size();
    read.into = read.into.subspan(frame.payload.size());
    if (!read.into.empty()) return {};
    tell_read(read.id, true);
    reads_.pop_front();
    return {};
}

}  // namespace lockstep::transport::link
