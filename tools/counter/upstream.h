// The connection to another replica's counter, for groups that it shall carry out.
#pragma once

#include "tools/counter/connection.h"
#include "tools/counter/limits.h"

#include <lockstep/types.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <functional>
#include <map>
#include <string>

namespace lockstep::counter {

// Connects when it is made; groups may be sent at once. Many are under way at a time. Every request that is sent ends
// exactly once: as the other replica answers, or when the connection breaks as `unknown` if the other may have got
// it, and as rejected (not leader) if it certainly has not.
class Upstream final : public Connection {
 public:
    using Ended = std::function<void(Request&, ReplicaId at)>;

    // `address` is "host:port". `ended` is called on the server's thread, never from inside `send`.
    Upstream(boost::asio::io_context& io, ReplicaId peer, const std::string& address, const Limits& limits,
             Ended ended);
    void start();
    // Takes effect with the next `flush_sends`.
    void send(Request& request);
    void flush_sends() {
        if (open_) flush();
    }
    ReplicaId peer() const { return peer_; }
    bool idle() const { return under_way_.empty(); }
    // When an answer last came, or a group was sent with none under way.
    Clock::time_point last_progress() const { return last_progress_; }

 private:
    struct UnderWay {
        Request* request;
        std::uint64_t end;  // of its frame in the stream of bytes sent
    };
    void connect(const boost::asio::ip::tcp::endpoint& endpoint);
    void on_connected();
    void on_input() override;
    void on_end() override { close(); }
    void on_closed() override;
    bool take_welcome();
    bool take_answer(std::string_view frame);

    const ReplicaId peer_;
    const std::string address_;
    const Limits& limits_;
    const Ended ended_;
    boost::asio::ip::tcp::resolver resolver_;
    boost::asio::steady_timer connect_timer_;
    std::map<std::uint64_t, UnderWay> under_way_;  // by number
    std::string held_back_;         // frames that wait for the other side to agree
    std::uint64_t next_number_ = 1;
    std::uint64_t stream_end_;      // bytes of the stream so far, the hello and what is held back included
    Clock::time_point last_progress_;
    bool open_ = false;             // the other side has agreed
};

}  // namespace lockstep::counter
