// One connection of the load.
#pragma once

#include "tools/counter/ledger.h"
#include "tools/counter/load.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <deque>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::counter {

// Keeps a number of increments under way at one server; goes on with the next server when the connection breaks or
// nothing is answered for too long. Threads: its io_context's.
class LoadConnection : public std::enable_shared_from_this<LoadConnection> {
 public:
    using Endpoint = boost::asio::ip::tcp::endpoint;

    // All references must outlive it. `number` chooses the first server.
    LoadConnection(boost::asio::io_context& io, const LoadOptions& options, Ledger& ledger, std::ofstream& journal,
                   const std::vector<Endpoint>& servers, std::uint32_t number, Clock::time_point started);
    void start() { connect(); }
    // Sends no more; ends when what is under way has been answered, or is given up.
    void finish();

 private:
    // Increments that were sent together.
    struct Sent {
        std::uint32_t count;
        std::int64_t floor;
        Clock::time_point at;
    };
    void connect();
    void connected();
    void broken();
    void send(std::uint32_t count);
    void write();
    void read();
    void take_replies();
    void take(std::string_view reply, Clock::time_point now);
    void arm_timeout(std::chrono::milliseconds after);
    void note(const char* what, std::int64_t first, std::int64_t last, std::uint64_t count);
    void note_acks();

    boost::asio::io_context& io_;
    const LoadOptions& options_;
    Ledger& ledger_;
    std::ofstream& journal_;
    const std::vector<Endpoint>& servers_;
    const std::uint32_t number_;
    const Clock::time_point started_;
    std::size_t server_;
    std::optional<boost::asio::ip::tcp::socket> socket_;
    boost::asio::steady_timer timeout_;
    boost::asio::steady_timer retry_;
    std::uint64_t life_ = 0;             // of the present connection: handlers of an earlier one do nothing
    std::string requests_;               // as many increments as may be under way
    std::size_t request_bytes_ = 0;      // of one of them
    std::string received_;
    std::vector<char> buffer_;
    std::deque<Sent> sent_;
    std::uint32_t under_way_ = 0;        // sent or to be sent, and not answered
    std::uint32_t unsent_ = 0;           // of these, not handed to the system yet
    bool writing_ = false;
    std::uint32_t failures_ = 0;         // connections in a row that did not come about
    Clock::time_point last_reply_;
    std::int64_t first_ack_ = 0;         // of the acknowledgements that are not in the journal yet
    std::int64_t last_ack_ = 0;
    std::uint64_t acks_ = 0;
    bool finishing_ = false;
    bool give_up_server_ = false;
};

void pause_for(std::chrono::milliseconds time);

}  // namespace lockstep::counter
