// The counter's client side: accepts Redis clients and serves them on a thread of its own.
#pragma once

#include "tools/counter/client.h"
#include "tools/counter/link.h"
#include "tools/counter/session.h"

#include <lockstep/result.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <unordered_set>
#include <vector>

namespace lockstep::counter {

struct ServerOptions {
    std::string host = "127.0.0.1";
    std::uint16_t port = 0;        // 0: the system picks one, see Server::port
    ReplicaId self;
    Router::Addresses others;      // client addresses of the other replicas
    Limits limits;
};

class Server {
 public:
    // `log` and `machine` must outlive the server.
    Server(ServerOptions options, Log& log, Machine& machine);
    // As `stop`.
    ~Server();
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    // Binds the port: clients may connect and wait. Error: the address cannot be used, and why.
    Result<void> listen();
    // Starts the thread that serves them. After `listen`.
    void start();
    std::uint16_t port() const { return shared_.port; }
    // Closes the port and all connections, and joins the thread. The log must have been stopped before, or have
    // nothing under way: whatever it still holds of this server ends with the server. May be called twice.
    void stop();

 private:
    Result<void> bind();
    void accept();
    void accepted(Connection::Socket socket);
    void upgraded(Connection::Socket socket, std::string_view unread);
    void add(const std::shared_ptr<Connection>& connection);
    void remove(Connection& connection);
    void flush_links();
    void sweep();
    void close_all();

    const ServerOptions options_;
    boost::asio::io_context io_{1};
    boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
    Shared shared_;
    Session::Hooks session_hooks_;
    Link::Hooks link_hooks_;
    boost::asio::ip::tcp::acceptor acceptor_;
    boost::asio::steady_timer accept_timer_;
    boost::asio::steady_timer sweep_timer_;
    std::unordered_set<std::shared_ptr<Connection>> connections_;
    std::vector<std::shared_ptr<Link>> links_to_flush_;
    std::uint64_t next_client_ = 1;
    std::thread thread_;
    bool stopping_ = false;
};

}  // namespace lockstep::counter
