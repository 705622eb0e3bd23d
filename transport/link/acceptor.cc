#include "transport/link/acceptor.h"

#include "transport/link/spin_pause.h"
#include "transport/logger.h"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

namespace lockstep::transport::link {
namespace {

constexpr auto kAcceptPause = std::chrono::milliseconds(20);
// Strangers do not fill the log.
constexpr auto kRefusalEvery = std::chrono::milliseconds(100);
constexpr auto kSameRefusalEvery = std::chrono::seconds(10);
constexpr int kAcceptsPerTurn = 16;

}  // namespace

Result<std::unique_ptr<Acceptor>> Acceptor::listen(const Target& target, const std::string& host, std::uint16_t port,
                                                   const Manner& manner) {
    std::unique_ptr<Acceptor> acceptor(new Acceptor(target, manner));
    if (auto bound = acceptor->bind(host, port); !bound)
        return std::move(bound).error().within("cannot listen for peers at " + host + ":" + std::to_string(port));
    return acceptor;
}

Acceptor::Acceptor(const Target& target, const Manner& manner) : target_(target), manner_(manner) {}

Acceptor::~Acceptor() {
    context_.stop();
    if (thread_.joinable()) thread_.join();
    for (const auto& greeter : std::exchange(greeters_, {})) greeter->close();
    for (const auto& [peer, control] : controls_) control->close("fabric ends");
    if (target_.lanes != nullptr) target_.lanes->close();
}

Result<void> Acceptor::bind(const std::string& host, std::uint16_t port) {
    boost::system::error_code error;
    const auto found = resolver_.resolve(host, std::to_string(port), boost::asio::ip::tcp::resolver::passive, error);
    if (error) return Error(error.message());
    const Endpoint endpoint = found.begin()->endpoint();
    const int descriptor =
        ::socket(endpoint.protocol().family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
    if (descriptor < 0) return Error(std::strerror(errno));
    listener_.assign(endpoint.protocol(), descriptor);
    listener_.set_option(boost::asio::socket_base::reuse_address(true), error);
    listener_.bind(endpoint, error);
    if (!error) listener_.listen(boost::asio::socket_base::max_listen_connections, error);
    if (error) return Error(error.message());
    port_ = listener_.local_endpoint().port();
    address_ = endpoint.address();
    return {};
}

void Acceptor::start() {
    accept_next();
    // Signals are the application's: its handlers do not run on this thread.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this] {
        pthread_setname_np(pthread_self(), "lockstep-accept");
        run();
    });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Acceptor::run() {
    using std::chrono::steady_clock;
    if (manner_.polling == Polling::blocking) {
        context_.run();
        return;
    }
    steady_clock::time_point spin_until = steady_clock::now();
    SpinPause pause;
    while (!context_.stopped()) {
        const bool lane = target_.lanes != nullptr && target_.lanes->has_lane();
        const bool spin = lane && (manner_.polling == Polling::spin || steady_clock::now() < spin_until);
        if (spin && context_.poll() == 0) {
            pause.once();
            continue;
        }
        if (!spin) context_.run_one();
        pause.found();
        if (manner_.polling == Polling::adaptive) spin_until = steady_clock::now() + manner_.spin;
    }
}

void Acceptor::accept_next() {
    listener_.async_wait(boost::asio::socket_base::wait_read, [this](const boost::system::error_code& error) {
        if (error) return;
        accept_one();
    });
}

void Acceptor::accept_one() {
    for (int count = 0; count < kAcceptsPerTurn; ++count) {
        const int descriptor =
            ::accept4(listener_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (descriptor < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
        if (descriptor < 0 && (errno == ECONNABORTED || errno == EINTR)) continue;
        if (descriptor < 0) {
            logger().error("cannot accept a peer's connection: {}", std::strerror(errno));
            pause_.expires_after(kAcceptPause);
            pause_.async_wait([this](const boost::system::error_code& error) {
                if (!error) accept_next();
            });
            return;
        }
        tune(descriptor);
        Socket socket(context_);
        boost::system::error_code error;
        socket.assign(listener_.local_endpoint().protocol(), descriptor, error);
        if (error)
            ::close(descriptor);
        else
            greet(std::move(socket));
    }
    accept_next();
}

void Acceptor::greet(Socket socket) {
    if (greeters_.size() >= kMaxGreeters) {
        const std::shared_ptr<Greeter> oldest = greeters_.front();
        oldest->close();
    }
    auto greeter = std::make_shared<Greeter>(
        std::move(socket), manner_.handshake_timeout,
        [this](const Hello& hello, Socket& its_socket, std::span<const std::byte> early) {
            return decide(hello, its_socket, early);
        },
        [this](Greeter& gone) { std::erase_if(greeters_, [&](const auto& one) { return one.get() == &gone; }); });
    greeters_.push_back(greeter);
    greeter->start();
}

Result<void> Acceptor::decide(const Hello& hello, Socket& socket, std::span<const std::byte> early) {
    Result<void> verdict = judge(hello, target_.self);
    if (verdict) verdict = let_in(hello, socket, early);
    if (!verdict) log_refusal(verdict.error().message());
    return verdict;
}

Result<void> Acceptor::let_in(const Hello& hello, Socket& socket, std::span<const std::byte> early) {
    const std::string answer = encode(Answer{true, target_.self.id, target_.self.incarnation, {}});
    if (hello.kind == LinkKind::lane) {
        if (target_.lanes != nullptr) return target_.lanes->let_in(hello, socket, early, answer);
        return Error("r" + std::to_string(target_.self.id.value) +
                     " takes no lane over TCP: give both replicas the same transport");
    }
    send_some(socket.native_handle(), answer);  // a fresh socket takes it whole, or is broken and will say so
    std::shared_ptr<ControlConnection>& control = controls_[hello.sender];
    if (control) control->close("the peer has connected again");
    control = std::make_shared<ControlConnection>(std::move(socket), hello.sender, hello.incarnation,
                                                  ++connections_, target_, context_);
    control->start(early);
    if (target_.mailbox.put_arrival(hello.sender)) target_.waker.wake();
    return {};
}

void Acceptor::log_refusal(const std::string& text) {
    const auto now = std::chrono::steady_clock::now();
    const auto since = now - last_refusal_at_;
    if (since < kRefusalEvery || (text == last_refusal_ && since < kSameRefusalEvery)) return;
    last_refusal_ = text;
    last_refusal_at_ = now;
    logger().warn("r{}: connection refused: {}", target_.self.id.value, text);
}

void Acceptor::look_up(ReplicaId peer, const std::string& host, std::uint16_t port) {
    boost::asio::post(context_, [this, peer, host, port] {
        resolver_.async_resolve(host, std::to_string(port),
                                [this, peer](const boost::system::error_code& error, const auto& found) {
                                    Mail::Address address{peer, {}, {}};
                                    if (error)
                                        address.error = error.message();
                                    else
                                        address.endpoint = found.begin()->endpoint();
                                    target_.mailbox.put_address(std::move(address));
                                    target_.waker.wake();
                                });
    });
}

}  // namespace lockstep::transport::link
