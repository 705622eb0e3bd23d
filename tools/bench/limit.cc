#include "tools/bench/limit.h"

#include "tools/bench/timing.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <thread>

namespace lockstep::bench {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

constexpr std::size_t kPeers = 2;
constexpr std::size_t kLargestWrite = std::size_t{1} << 20;
constexpr std::size_t kStreamMessage = std::size_t{1} << 16;
constexpr std::uint64_t kStreamWindow = std::uint64_t{8} << 20;  // bytes on the way to a peer

Error asio_error(const std::string& what, const boost::system::error_code& error) {
    return Error("cannot " + what + ": " + error.message());
}

// One connection to one peer, and that peer. Posts are counted, not kept: all carry the same bytes.
class Peer {
 public:
    explicit Peer(asio::io_context& context) : socket_(context) {}

    Result<void> start(asio::io_context& context, std::size_t bytes, Polling polling) {
        boost::system::error_code error;
        tcp::acceptor acceptor(context);
        tcp::socket theirs(context);
        const tcp::endpoint any(asio::ip::address_v4::loopback(), 0);
        acceptor.open(tcp::v4(), error);
        if (!error) acceptor.bind(any, error);
        if (!error) acceptor.listen(1, error);
        if (!error) socket_.connect(acceptor.local_endpoint(), error);
        if (!error) acceptor.accept(theirs, error);
        if (!error) socket_.set_option(tcp::no_delay(true), error);
        if (!error) theirs.set_option(tcp::no_delay(true), error);
        if (!error) socket_.non_blocking(true, error);
        if (error) return asio_error("connect to a peer", error);
        const Descriptor descriptor(theirs.release(error));
        const std::string mode = polling == Polling::blocking ? "blocking" : "spin";
        auto child = Child::again({"peer", "--descriptor", std::to_string(descriptor.number()), "--bytes",
                                   std::to_string(bytes), "--polling", mode},
                                  {descriptor.number()});
        if (!child) return std::move(child).error();
        child_ = std::move(child).value();
        bytes_ = bytes;
        return {};
    }

    void listen() {
        socket_.async_read_some(asio::buffer(answers_),
                                [this](const boost::system::error_code& error, std::size_t count) {
                                    if (error) return fail(error);
                                    take(count);
                                    listen();
                                });
    }
    // For the spinning mode: looks for answers once, without the reactor.
    void look() {
        boost::system::error_code error;
        const std::size_t count = socket_.read_some(asio::buffer(answers_), error);
        if (error == asio::error::would_block) return;
        if (error) return fail(error);
        take(count);
    }
    void post(std::uint64_t messages) { owed_ += messages * bytes_; }
    // Writes what is owed as far as the socket takes it.
    void push(const std::vector<char>& bytes) {
        while (owed_ > 0 && !failure_) {
            boost::system::error_code error;
            const std::size_t size = std::min<std::uint64_t>(owed_, bytes.size());
            const std::size_t count = socket_.write_some(asio::buffer(bytes.data(), size), error);
            if (error == asio::error::would_block) return;
            if (error) return fail(error);
            owed_ -= count;
        }
    }
    std::uint64_t owed() const { return owed_; }
    std::uint64_t answered() const { return answered_; }
    const std::optional<Error>& failure() const { return failure_; }

 private:
    // Answers are counts that only rise: the last one says all. One that is cut is finished by the next read.
    void take(std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) {
            word_[word_bytes_++] = answers_[i];
            if (word_bytes_ < word_.size()) continue;
            std::copy(word_.begin(), word_.end(), reinterpret_cast<char*>(&answered_));
            word_bytes_ = 0;
        }
    }
    void fail(const boost::system::error_code& error) { failure_ = asio_error("talk to a peer", error); }

    tcp::socket socket_;
    std::optional<Child> child_;
    std::size_t bytes_ = 1;
    std::uint64_t owed_ = 0;
    std::uint64_t answered_ = 0;
    std::array<char, 4096> answers_{};
    std::array<char, sizeof(std::uint64_t)> word_{};
    std::size_t word_bytes_ = 0;
    std::optional<Error> failure_;
};

class Initiator {
 public:
    explicit Initiator(Polling polling) : polling_(polling), bytes_(kLargestWrite, 'x') {}

    Result<void> start(std::size_t bytes) {
        for (auto& peer : peers_)
            if (auto started = peer.start(context_, bytes, polling_); !started) return started;
        if (polling_ == Polling::blocking) {
            for (auto& peer : peers_) peer.listen();
            tick();
        }
        return {};
    }
    void post(std::uint64_t messages) {
        for (auto& peer : peers_) {
            peer.post(messages);
            peer.push(bytes_);
        }
    }
    // Waits until at least one of the peers has answered something new, or a write may go on.
    void turn() {
        for (auto& peer : peers_) peer.push(bytes_);
        if (polling_ == Polling::blocking) {
            context_.run_one();  // where the sockets are full, answers come
            return;
        }
        for (auto& peer : peers_) peer.look();
    }
    void rest() const {
        if (polling_ != Polling::blocking) std::this_thread::yield();
    }
    std::uint64_t first() const { return std::max(peers_[0].answered(), peers_[1].answered()); }
    std::uint64_t last() const { return std::min(peers_[0].answered(), peers_[1].answered()); }
    Result<void> check(std::uint64_t deadline_ns) const {
        for (const auto& peer : peers_)
            if (peer.failure()) return *peer.failure();
        return go_on(deadline_ns, "a measurement of the limit");
    }

 private:
    // Ends `turn` now and then, so that a deadline is seen whatever the peers do.
    void tick() {
        tick_.expires_after(std::chrono::milliseconds(50));
        tick_.async_wait([this](const boost::system::error_code& error) {
            if (!error) tick();
        });
    }

    const Polling polling_;
    const std::vector<char> bytes_;
    // One thread: no locks in it.
    asio::io_context context_{BOOST_ASIO_CONCURRENCY_HINT_UNSAFE};
    asio::steady_timer tick_{context_};
    std::array<Peer, kPeers> peers_{Peer(context_), Peer(context_)};
};

}  // namespace

Result<Histogram> measure_round_trips(const LimitPlan& plan, std::uint64_t deadline_ns) {
    Initiator initiator(plan.polling);
    if (auto started = initiator.start(plan.bytes); !started) return std::move(started).error();
    return time_rounds(plan, [&](std::uint64_t number) -> Result<void> {
        initiator.post(1);
        while (true) {
            initiator.turn();
            if (initiator.first() >= number) return {};
            if (auto sound = initiator.check(deadline_ns); !sound) return sound;
            initiator.rest();
        }
    });
}

Result<double> measure_stream(const LimitPlan& plan, std::uint64_t deadline_ns) {
    Initiator initiator(plan.polling);
    if (auto started = initiator.start(kStreamMessage); !started) return std::move(started).error();
    const std::uint64_t window = kStreamWindow / kStreamMessage;
    std::uint64_t posted = 0;
    const auto turn = [&]() -> Result<void> {
        if (posted > 0) {
            if (auto sound = initiator.check(deadline_ns); !sound) return sound;
            initiator.rest();
        }
        const std::uint64_t room = window - (posted - initiator.last());
        initiator.post(room);
        posted += room;
        initiator.turn();
        return {};
    };
    return time_stream(plan, kStreamMessage, turn, [&] { return initiator.last(); });
}

}  // namespace lockstep::bench
