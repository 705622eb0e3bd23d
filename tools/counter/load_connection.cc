#include "tools/counter/load_connection.h"

#include "tools/counter/resp.h"
#include "tools/counter/translate.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include <algorithm>
#include <thread>
#include <utility>

namespace lockstep::counter {

namespace asio = boost::asio;
using boost::system::error_code;
using std::chrono::milliseconds;

namespace {

constexpr milliseconds kConnectTimeout{500};

// The first word of an error reply.
std::string_view code_of(std::string_view reply) {
    return reply.substr(1, std::min(reply.find(' '), reply.size() - 2) - 1);
}

}  // namespace

LoadConnection::LoadConnection(asio::io_context& io, const LoadOptions& options, Ledger& ledger, std::ofstream& journal,
                               const std::vector<Endpoint>& servers, std::uint32_t number, Clock::time_point started)
    : io_(io), options_(options), ledger_(ledger), journal_(journal), servers_(servers), number_(number),
      started_(started), server_(number % servers.size()), timeout_(io), retry_(io), buffer_(64 * 1024) {
    std::string one;
    append_array(one, 2);
    append_bulk(one, "INCR");
    append_bulk(one, options.key);
    request_bytes_ = one.size();
    for (std::uint32_t i = 0; i < options.pipeline; ++i) requests_ += one;
}

void LoadConnection::connect() {
    if (finishing_) return;
    ++life_;
    socket_.emplace(io_);
    arm_timeout(kConnectTimeout);
    socket_->async_connect(servers_[server_], [self = shared_from_this(), life = life_](error_code error) {
        if (life != self->life_) return;
        if (error) return self->broken();
        self->connected();
    });
}

void LoadConnection::connected() {
    failures_ = 0;
    error_code ignored;
    socket_->set_option(asio::ip::tcp::no_delay(true), ignored);
    arm_timeout(milliseconds(options_.reply_timeout_ms));
    send(options_.pipeline);
    read();
}

void LoadConnection::broken() {
    ++life_;
    ++failures_;
    socket_.reset();
    timeout_.cancel();
    note_acks();
    if (under_way_ > 0) {
        ledger_.unknown(under_way_);
        note("unknown", 0, 0, under_way_);
    }
    under_way_ = 0;
    unsent_ = 0;
    writing_ = false;
    sent_.clear();
    received_.clear();
    give_up_server_ = false;
    server_ = (server_ + 1) % servers_.size();
    if (finishing_) return;
    ledger_.reconnected();
    // At once to the next; when all have been tried, a short rest.
    const bool all_tried = failures_ > servers_.size();
    retry_.expires_after(all_tried ? milliseconds(5) : milliseconds(0));
    retry_.async_wait([self = shared_from_this()](error_code error) {
        if (!error) self->connect();
    });
}

void LoadConnection::finish() {
    finishing_ = true;
    retry_.cancel();
    if (under_way_ > 0 || !socket_) return;
    ++life_;
    timeout_.cancel();
    socket_.reset();
}

void LoadConnection::arm_timeout(milliseconds after) {
    last_reply_ = Clock::now();
    timeout_.expires_after(after);
    timeout_.async_wait([self = shared_from_this(), life = life_, after](error_code error) {
        if (error || life != self->life_) return;
        const auto silent = std::chrono::duration_cast<milliseconds>(Clock::now() - self->last_reply_);
        if (silent >= after) return self->broken();
        const auto last = self->last_reply_;
        self->arm_timeout(after);
        self->last_reply_ = last;
    });
}

void LoadConnection::send(std::uint32_t count) {
    if (finishing_ || count == 0) return;
    sent_.push_back({count, ledger_.floor(), Clock::now()});
    under_way_ += count;
    unsent_ += count;
    write();
}

void LoadConnection::write() {
    if (writing_ || unsent_ == 0) return;
    writing_ = true;
    // All requests are the same bytes, so those of any count are a prefix that never changes.
    asio::async_write(*socket_, asio::buffer(requests_.data(), unsent_ * request_bytes_),
                      [self = shared_from_this(), life = life_](error_code error, std::size_t) {
                          if (life != self->life_) return;
                          if (error) return self->broken();
                          self->writing_ = false;
                          self->write();
                      });
    unsent_ = 0;
}

void LoadConnection::read() {
    socket_->async_read_some(asio::buffer(buffer_),
                             [self = shared_from_this(), life = life_](error_code error, std::size_t bytes) {
                                 if (life != self->life_) return;
                                 if (error) return self->broken();
                                 self->received_.append(self->buffer_.data(), bytes);
                                 self->take_replies();
                             });
}

void LoadConnection::take_replies() {
    const auto now = Clock::now();
    last_reply_ = now;
    std::string_view left = received_;
    std::uint32_t replies = 0;
    while (under_way_ > 0) {
        const auto bytes = reply_bytes(left);
        if (!bytes) {
            ledger_.violated("a server sent what is no reply: " + std::string(left.substr(0, 80)));
            return broken();
        }
        if (*bytes == 0) break;
        take(left.substr(0, *bytes), now);
        left.remove_prefix(*bytes);
        ++replies;
    }
    note_acks();
    received_.erase(0, received_.size() - left.size());
    if (give_up_server_ || (finishing_ && under_way_ == 0)) return broken();
    send(replies);
    read();
}

void LoadConnection::take(std::string_view reply, Clock::time_point now) {
    Sent& sent = sent_.front();
    --under_way_;
    const Sent of = sent;
    if (--sent.count == 0) sent_.pop_front();
    if (reply[0] == ':') {
        const auto value = parse_integer(reply.substr(1, reply.size() - 3));
        if (!value) return ledger_.violated("a server answered " + std::string(reply));
        ledger_.acked(*value, of.floor, of.at, now);
        if (acks_++ == 0) first_ack_ = *value;
        last_ack_ = *value;
        return;
    }
    note_acks();
    const std::string_view code = reply[0] == '-' ? code_of(reply) : std::string_view{};
    if (code == kUnknownCode) {
        ledger_.unknown(1);
        note("unknown", 0, 0, 1);
    } else if (code == kNoLeaderCode || code == kBusyCode || code == kStoppingCode) {
        ledger_.refused();
        note("refused", 0, 0, 1);
        if (code == kStoppingCode) give_up_server_ = true;
    } else {
        ledger_.violated("a server answered an increment with " + std::string(reply.substr(0, reply.size() - 2)));
        give_up_server_ = true;
    }
}

void LoadConnection::note_acks() {
    if (acks_ > 0) note("acked", first_ack_, last_ack_, acks_);
    acks_ = 0;
}

void LoadConnection::note(const char* what, std::int64_t first, std::int64_t last, std::uint64_t count) {
    if (!journal_.is_open()) return;
    const auto us = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - started_).count();
    journal_ << us << ' ' << number_ << ' ' << what << ' ' << count;
    if (first != 0 || last != 0) journal_ << ' ' << first << ' ' << last;
    journal_ << '\n';
}

void pause_for(milliseconds time) { std::this_thread::sleep_for(time); }

}  // namespace lockstep::counter
