#include "tools/counter/server.h"

#include <boost/asio/ip/address.hpp>
#include <boost/asio/post.hpp>

#include <pthread.h>

#include <random>
#include <utility>

namespace lockstep::counter {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

constexpr std::chrono::milliseconds kAcceptRetry{100};
constexpr std::chrono::milliseconds kSweepInterval{1000};
// What clients have not read of their last replies by then is dropped at a stop.
constexpr std::chrono::milliseconds kStopGrace{200};

}  // namespace

Server::Server(ServerOptions options, Log& log, Machine& machine)
    : options_(std::move(options)), work_(io_.get_executor()),
      shared_(io_, log, machine, options_.self, options_.others, options_.limits, [this] { flush_links(); }),
      acceptor_(io_), accept_timer_(io_), sweep_timer_(io_) {
    std::random_device random;
    shared_.run_id = static_cast<std::uint64_t>(random()) << 32 | random();
    session_hooks_.closed = [this](Session& session) { remove(session); };
    session_hooks_.upgraded = [this](Connection::Socket socket, std::string_view unread) {
        upgraded(std::move(socket), unread);
    };
    link_hooks_.closed = [this](Link& link) {
        --shared_.replicas_connected;
        remove(link);
    };
    link_hooks_.answered = [this](Link& link) {
        if (links_to_flush_.empty()) asio::post(io_, [this] { flush_links(); });
        links_to_flush_.push_back(std::static_pointer_cast<Link>(link.shared_from_this()));
    };
}

Server::~Server() {
    stop();
    // What the log has ended since is let go.
    io_.restart();
    io_.poll();
}

Result<void> Server::bind() {
    error_code error;
    asio::ip::tcp::endpoint endpoint;
    const auto ip = asio::ip::make_address(options_.host, error);
    if (!error) {
        endpoint = {ip, options_.port};
    } else {
        asio::ip::tcp::resolver resolver(io_);
        const auto found = resolver.resolve(options_.host, std::to_string(options_.port), error);
        if (error || found.empty()) return Error("host \"" + options_.host + "\" is not known: " + error.message());
        endpoint = *found.begin();
    }
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(asio::socket_base::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    if (error) {
        const std::string remedy =
            error == asio::error::address_in_use ? " (another program has it: choose one with --client-port)" : "";
        return Error(error.message() + remedy);
    }
    shared_.port = acceptor_.local_endpoint(error).port();
    return {};
}

Result<void> Server::listen() {
    auto bound = bind();
    if (bound) return bound;
    return std::move(bound).error().within("cannot listen for clients on " + options_.host + ":" +
                                           std::to_string(options_.port));
}

void Server::start() {
    accept();
    sweep();
    thread_ = std::thread([this] {
        pthread_setname_np(pthread_self(), "clients");
        io_.run();
    });
}

void Server::accept() {
    acceptor_.async_accept([this](error_code error, Connection::Socket socket) {
        if (stopping_) return;
        if (!error) {
            accepted(std::move(socket));
            return accept();
        }
        // Out of descriptors, say: those who are in are served on, and after a while there may be room.
        accept_timer_.expires_after(kAcceptRetry);
        accept_timer_.async_wait([this](error_code cancelled) {
            if (!cancelled) accept();
        });
    });
}

void Server::accepted(Connection::Socket socket) {
    if (connections_.size() >= options_.limits.clients) {
        ++shared_.clients_refused;
        error_code ignored;
        socket.non_blocking(true, ignored);
        socket.write_some(asio::buffer(std::string_view("-ERR max number of clients reached\r\n")), ignored);
        return;
    }
    ++shared_.clients_accepted;
    auto session = std::make_shared<Session>(std::move(socket), shared_, session_hooks_, next_client_++);
    add(session);
    session->start();
}

void Server::upgraded(Connection::Socket socket, std::string_view unread) {
    auto link = std::make_shared<Link>(std::move(socket), shared_, link_hooks_, unread);
    ++shared_.replicas_connected;
    add(link);
    link->start();
}

void Server::add(const std::shared_ptr<Connection>& connection) {
    connections_.insert(connection);
    shared_.clients_connected = connections_.size();
}

void Server::remove(Connection& connection) {
    connections_.erase(connection.shared_from_this());
    shared_.clients_connected = connections_.size();
}

void Server::flush_links() {
    std::vector<std::shared_ptr<Link>> links;
    links.swap(links_to_flush_);
    for (const auto& link : links) link->flush_answers();
}

void Server::sweep() {
    const auto now = Clock::now();
    std::vector<std::shared_ptr<Connection>> stalled;
    for (const auto& connection : connections_) {
        Clock::time_point since;
        if (connection->stalled_since(since) && now - since > options_.limits.output_stall)
            stalled.push_back(connection);
    }
    for (const auto& connection : stalled) connection->close();
    sweep_timer_.expires_after(kSweepInterval);
    sweep_timer_.async_wait([this](error_code cancelled) {
        if (!cancelled && !stopping_) sweep();
    });
}

void Server::close_all() {
    stopping_ = true;
    error_code ignored;
    acceptor_.close(ignored);
    accept_timer_.cancel();
    shared_.router.stop();
    const std::vector<std::shared_ptr<Connection>> open(connections_.begin(), connections_.end());
    for (const auto& connection : open) connection->close_when_sent();
    sweep_timer_.expires_after(kStopGrace);
    sweep_timer_.async_wait([this](error_code cancelled) {
        if (cancelled) return;
        const std::vector<std::shared_ptr<Connection>> left(connections_.begin(), connections_.end());
        for (const auto& connection : left) connection->close();
    });
    if (connections_.empty()) sweep_timer_.cancel();
    work_.reset();
}

void Server::stop() {
    if (!thread_.joinable()) return;
    asio::post(io_, [this] { close_all(); });
    thread_.join();
}

}  // namespace lockstep::counter
