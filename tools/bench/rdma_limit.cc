#include "tools/bench/rdma_limit.h"

#include "tools/bench/progress.h"
#include "tools/bench/rdma_end.h"
#include "tools/bench/timing.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <thread>

namespace lockstep::bench {
namespace {

constexpr std::size_t kPeers = 2;
constexpr std::size_t kStreamMessage = std::size_t{1} << 16;
constexpr std::uint64_t kStreamWindow = (std::uint64_t{8} << 20) / kStreamMessage;  // messages on the way to a peer
constexpr int kSleepMs = 50;  // so that a deadline is seen whatever the peers do

using Queue = std::unique_ptr<ibv_cq, Destroy<ibv_destroy_cq>>;
using Channel = std::unique_ptr<ibv_comp_channel, Destroy<ibv_destroy_comp_channel>>;

// Both ends say where they are, one after the other.
Result<RdmaAddress> exchange(int socket, const RdmaAddress& own) {
    RdmaAddress other;
    if (::send(socket, &own, sizeof own, MSG_NOSIGNAL) != sizeof own ||
        ::recv(socket, &other, sizeof other, MSG_WAITALL) != sizeof other)
        return Error("the other process of the limit over RDMA has ended");
    return other;
}

struct Peer {
    Descriptor socket;
    std::optional<Child> child;
    std::optional<RdmaEnd> end;
    std::uint64_t posted = 0;
    std::uint64_t landed = 0;
};

class Initiator {
 public:
    Initiator(Polling polling, std::size_t bytes) : blocking_(polling == Polling::blocking), bytes_(bytes) {}

    Result<void> start(const std::vector<std::string>& hosts) {
        if (hosts.size() != kPeers + 1)
            return Error("the limit over RDMA takes " + std::to_string(kPeers + 1) + " --hosts");
        auto port = RdmaPort::open(hosts[0]);
        if (!port) return std::move(port).error();
        port_.emplace(std::move(port).value());
        channel_.reset(ibv_create_comp_channel(port_->context()));
        if (!channel_) return Error(std::string("cannot make a completion channel: ") + std::strerror(errno));
        ::fcntl(channel_->fd, F_SETFL, ::fcntl(channel_->fd, F_GETFL) | O_NONBLOCK);
        queue_.reset(ibv_create_cq(port_->context(), kPeers * RdmaEnd::kMostPosted, nullptr, channel_.get(), 0));
        if (!queue_) return Error(std::string("cannot make a completion queue: ") + std::strerror(errno));
        for (std::size_t i = 0; i < kPeers; ++i)
            if (auto started = start_peer(peers_[i], hosts[i + 1]); !started) return started;
        return {};
    }
    // To every peer that has fewer than `most` under way.
    Result<void> post(std::uint64_t most) {
        for (Peer& peer : peers_) {
            if (peer.posted - peer.landed >= most) continue;
            if (auto posted = peer.end->post_write(bytes_); !posted) return posted;
            ++peer.posted;
        }
        return {};
    }
    // Waits until something has landed, or a while.
    Result<void> turn(std::uint64_t deadline_ns) {
        if (auto going = go_on(deadline_ns, "a measurement of the limit over RDMA"); !going) return going;
        auto some = look();
        if (!some || some.value()) return some ? Result<void>() : Result<void>(std::move(some).error());
        if (!blocking_) {
            std::this_thread::yield();
            return {};
        }
        ibv_req_notify_cq(queue_.get(), 0);
        some = look();  // what came before the request says nothing
        if (!some || some.value()) return some ? Result<void>() : Result<void>(std::move(some).error());
        pollfd ready{channel_->fd, POLLIN, 0};
        ::poll(&ready, 1, kSleepMs);
        ibv_cq* queue = nullptr;
        void* context = nullptr;
        while (ibv_get_cq_event(channel_.get(), &queue, &context) == 0) ibv_ack_cq_events(queue, 1);
        some = look();
        return some ? Result<void>() : Result<void>(std::move(some).error());
    }
    std::uint64_t first() const { return std::max(peers_[0].landed, peers_[1].landed); }
    std::uint64_t last() const { return std::min(peers_[0].landed, peers_[1].landed); }

 private:
    Result<void> start_peer(Peer& peer, const std::string& host) {
        int ends[2];
        if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
            return Error(std::string("cannot make a pair of sockets: ") + std::strerror(errno));
        peer.socket = Descriptor(ends[0]);
        const Descriptor theirs(ends[1]);
        auto child = Child::again({"rdma-peer", "--descriptor", std::to_string(theirs.number()), "--host", host,
                                   "--bytes", std::to_string(bytes_)},
                                  {theirs.number()});
        if (!child) return std::move(child).error();
        peer.child = std::move(child).value();
        auto end = RdmaEnd::make(*port_, bytes_, queue_.get());
        if (!end) return std::move(end).error();
        peer.end.emplace(std::move(end).value());
        auto other = exchange(peer.socket.number(), peer.end->address());
        if (!other) return std::move(other).error();
        if (auto connected = peer.end->connect(other.value()); !connected) return connected;
        char standing = 0;  // its end is connected too
        if (::recv(peer.socket.number(), &standing, 1, 0) != 1)
            return Error("a peer's process of the limit over RDMA has ended");
        return {};
    }
    // Whether anything has landed.
    Result<bool> look() {
        std::array<ibv_wc, 64> completions;
        const int count = ibv_poll_cq(queue_.get(), static_cast<int>(completions.size()), completions.data());
        if (count < 0) return Error("cannot look into the completion queue");
        for (int i = 0; i < count; ++i) {
            const ibv_wc& one = completions[static_cast<std::size_t>(i)];
            if (one.status != IBV_WC_SUCCESS)
                return Error(std::string("a write of the limit over RDMA failed: ") + ibv_wc_status_str(one.status));
            for (Peer& peer : peers_)
                if (peer.end->queue_pair() == one.qp_num) ++peer.landed;
        }
        return count > 0;
    }

    const bool blocking_;
    const std::size_t bytes_;
    std::optional<RdmaPort> port_;
    Channel channel_;
    Queue queue_;
    std::array<Peer, kPeers> peers_;
};

}  // namespace

int run_rdma_peer(int descriptor, const std::string& host, std::size_t bytes) {
    const Descriptor socket(descriptor);
    const auto serve = [&]() -> Result<void> {
        auto port = RdmaPort::open(host);
        if (!port) return std::move(port).error();
        const Queue queue(ibv_create_cq(port.value().context(), 16, nullptr, nullptr, 0));
        if (!queue) return Error(std::string("cannot make a completion queue: ") + std::strerror(errno));
        auto end = RdmaEnd::make(port.value(), bytes, queue.get());
        if (!end) return std::move(end).error();
        auto other = exchange(socket.number(), end.value().address());
        if (!other) return std::move(other).error();
        if (auto connected = end.value().connect(other.value()); !connected) return connected;
        char byte = 1;
        ::send(socket.number(), &byte, 1, MSG_NOSIGNAL);
        while (::recv(socket.number(), &byte, 1, 0) > 0) {
        }
        return {};
    };
    const auto served = serve();
    if (!served) tell(served.error().message());
    return served ? 0 : 1;
}

Result<Histogram> measure_rdma_round_trips(const LimitPlan& plan, const std::vector<std::string>& hosts,
                                           std::uint64_t deadline_ns) {
    Initiator initiator(plan.polling, plan.bytes);
    if (auto started = initiator.start(hosts); !started) return std::move(started).error();
    return time_rounds(plan, [&](std::uint64_t number) -> Result<void> {
        if (auto posted = initiator.post(RdmaEnd::kMostPosted); !posted) return posted;
        while (initiator.first() < number)
            if (auto turned = initiator.turn(deadline_ns); !turned) return turned;
        return {};
    });
}

Result<double> measure_rdma_stream(const LimitPlan& plan, const std::vector<std::string>& hosts,
                                   std::uint64_t deadline_ns) {
    Initiator initiator(plan.polling, kStreamMessage);
    if (auto started = initiator.start(hosts); !started) return std::move(started).error();
    static_assert(kStreamWindow <= RdmaEnd::kMostPosted);
    const auto turn = [&]() -> Result<void> {
        for (std::uint64_t i = 0; i < kStreamWindow; ++i)
            if (auto posted = initiator.post(kStreamWindow); !posted) return posted;
        return initiator.turn(deadline_ns);
    };
    return time_stream(plan, kStreamMessage, turn, [&] { return initiator.last(); });
}

}  // namespace lockstep::bench
