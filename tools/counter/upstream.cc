#include "tools/counter/upstream.h"

#include "tools/counter/address.h"
#include "tools/counter/frame.h"

#include <boost/asio/ip/address.hpp>
#include <boost/asio/post.hpp>

#include <utility>

namespace lockstep::counter {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

// A replica that does not take a connection within this time is as good as down: the group is tried elsewhere.
constexpr std::chrono::milliseconds kConnectTimeout{500};

std::string hello() { return std::string(kUpstreamCommand) + " " + std::string(kUpstreamVersion) + "\r\n"; }

}  // namespace

Upstream::Upstream(asio::io_context& io, ReplicaId peer, const std::string& address, const Limits& limits, Ended ended)
    : Connection(Socket(io)), peer_(peer), address_(address), limits_(limits), ended_(std::move(ended)), resolver_(io),
      connect_timer_(io), stream_end_(hello().size()), last_progress_(Clock::now()) {}

void Upstream::start() {
    const auto self = std::static_pointer_cast<Upstream>(shared_from_this());
    connect_timer_.expires_after(kConnectTimeout);
    connect_timer_.async_wait([self](error_code error) {
        if (!error && !self->open_) self->close();
    });
    const auto address = parse_address(address_);
    if (!address) return asio::post(socket().get_executor(), [self] { self->close(); });
    error_code no_number;
    const auto ip = asio::ip::make_address(address.value().host, no_number);
    if (!no_number) return connect({ip, address.value().port});
    resolver_.async_resolve(address.value().host, std::to_string(address.value().port),
                            [self](error_code error, const asio::ip::tcp::resolver::results_type& found) {
                                if (self->closed()) return;
                                if (error || found.empty()) return self->close();
                                self->connect(*found.begin());
                            });
}

void Upstream::connect(const asio::ip::tcp::endpoint& endpoint) {
    const auto self = std::static_pointer_cast<Upstream>(shared_from_this());
    socket().async_connect(endpoint, [self](error_code error) {
        if (self->closed()) return;
        if (error) return self->close();
        self->on_connected();
    });
}

void Upstream::on_connected() {
    prepare();
    output() = hello();
    flush();
    read_more();
}

void Upstream::send(Request& request) {
    if (under_way_.empty()) last_progress_ = Clock::now();
    std::string& out = open_ ? output() : held_back_;
    const std::size_t before = out.size();
    put_number(out, static_cast<std::uint32_t>(kRequestHeaderBytes + request.group.size()));
    put_number(out, next_number_);
    out += request.group;
    stream_end_ += out.size() - before;
    under_way_.emplace_hint(under_way_.end(), next_number_, UnderWay{&request, stream_end_});
    ++next_number_;
}

bool Upstream::take_welcome() {
    const std::string_view unread = input().unread();
    const std::size_t end = unread.find("\r\n");
    if (end == std::string_view::npos) return false;
    if (unread.substr(0, end) != "+OK") {
        close();
        return false;
    }
    input().consume(end + 2);
    open_ = true;
    connect_timer_.cancel();
    output() += held_back_;
    held_back_.clear();
    flush();
    return !closed();
}

void Upstream::on_input() {
    if (!open_ && !take_welcome()) return read_more();
    last_progress_ = Clock::now();
    bool oversized = false;
    while (!closed()) {
        // The replies of one group are bounded, but for errors in place of what was left out.
        const std::size_t most = kAnswerHeaderBytes + std::size_t{limits_.reply_bytes} * 2 + kGroupBytes * 64;
        const std::string_view frame = first_frame(input().unread(), kAnswerHeaderBytes, most, oversized);
        if (oversized || (!frame.empty() && !take_answer(frame))) return close();
        if (frame.empty()) break;
        input().consume(kFrameLengthBytes + frame.size());
    }
    read_more();
}

bool Upstream::take_answer(std::string_view frame) {
    const auto found = under_way_.find(get_number<std::uint64_t>(frame));
    const auto fate = static_cast<std::uint8_t>(frame[8]);
    const auto reason = static_cast<std::uint8_t>(frame[9]);
    if (found == under_way_.end() || fate > static_cast<std::uint8_t>(Fate::unknown) ||
        reason > static_cast<std::uint8_t>(Reason::stopped)) {
        return false;
    }
    Request& request = *found->second.request;
    under_way_.erase(found);
    request.end(static_cast<Fate>(fate), static_cast<Reason>(reason), ReplicaId{static_cast<std::uint8_t>(frame[10])});
    request.reply.assign(frame.substr(kAnswerHeaderBytes));
    ended_(request, peer_);
    return true;
}

void Upstream::on_closed() {
    connect_timer_.cancel();
    resolver_.cancel();
    std::map<std::uint64_t, UnderWay> left;
    left.swap(under_way_);
    const std::uint64_t taken = open_ ? bytes_taken() : 0;
    for (const auto& [number, under_way] : left) {
        if (under_way.end <= taken) {
            under_way.request->end(Fate::unknown, Reason::none);
        } else {
            under_way.request->end(Fate::rejected, Reason::not_leader);
        }
        ended_(*under_way.request, peer_);
    }
}

}  // namespace lockstep::counter
