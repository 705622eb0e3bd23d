#include "tools/bench/failover.h"

#include "tools/bench/clock.h"
#include "tools/bench/failover_wire.h"
#include "tools/bench/histogram.h"
#include "tools/bench/progress.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <optional>
#include <random>
#include <thread>

namespace lockstep::bench {
namespace {

constexpr std::uint64_t kRoundLimit = 5 * kSecond;
constexpr std::uint64_t kAnswerLimit = 20 * kMillisecond;  // then the client asks another replica
constexpr auto kPause = std::chrono::microseconds(50);     // after every replica has refused once
constexpr std::uint64_t kLoadBefore = 30 * kMillisecond;   // at least so long, at most twice, before the kill

// What happened when.
struct Gap {
    std::uint64_t killed_ns = 0;
    std::uint64_t closed_ns = 0;  // the dead process's sockets, as the client saw it; before that nobody can know
    StepTimes steps_ns{};         // of the new leader
    std::uint64_t served_ns = 0;  // the next proposal was acknowledged
};

// One fresh cluster and its client.
class Round {
 public:
    static Result<Gap> run(const FailoverPlan& plan, std::uint64_t load_ns) {
        auto ports = Ports::reserve(kReplicas);
        if (!ports) return std::move(ports).error();
        auto folder = TemporaryFolder::make();
        if (!folder) return std::move(folder).error();
        ClusterSpec spec = ClusterSpec::make(ports.value(), folder.value(), plan.polling, plan.transport, plan.hosts);
        spec.election_timeout_ms = plan.election_timeout_ms;
        Round round(std::move(spec));
        if (auto started = round.start(); !started) return std::move(started).error();
        auto leader = round.await_leader(now_ns() + kStartLimitMs * kMillisecond);
        if (!leader) return std::move(leader).error();
        if (auto watched = round.watch(); !watched) return std::move(watched).error();
        if (auto loaded = round.load(leader.value(), load_ns); !loaded) return std::move(loaded).error();
        return round.kill_and_wait(leader.value());
    }

 private:
    struct Server {
        std::optional<Child> process;
        Descriptor socket;
    };

    explicit Round(ClusterSpec spec) : spec_(std::move(spec)) {}

    Result<void> start() {
        for (std::uint8_t id = 1; id <= kReplicas; ++id) {
            int ends[2];
            if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
                return Error(std::string("cannot make a pair of sockets: ") + std::strerror(errno));
            server(id).socket = Descriptor(ends[0]);
            const Descriptor theirs(ends[1]);
            std::vector<std::string> words = {"failover-replica", "--descriptor", std::to_string(theirs.number())};
            for (const std::string& word : spec_.arguments(id)) words.push_back(word);
            auto child = Child::again(words, {theirs.number()});
            if (!child) return std::move(child).error();
            server(id).process = std::move(child).value();
        }
        return {};
    }

    Result<std::uint8_t> await_leader(std::uint64_t deadline_ns) {
        while (true) {
            for (std::uint8_t id = 1; id <= kReplicas; ++id) {
                const auto status = ask(id, Request::Kind::status, now_ns() + kSecond);
                if (status && status->leads && status->streaming == kReplicas - 1) return id;
            }
            if (auto going = go_on(deadline_ns, "starting three replicas"); !going) return std::move(going).error();
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
        }
    }

    // Proposals one after the other, so that the leader falls in the middle of work.
    Result<void> load(std::uint8_t leader, std::uint64_t load_ns) {
        const std::uint64_t end = now_ns() + load_ns;
        while (now_ns() < end) {
            const auto answer = ask(leader, Request::Kind::propose, now_ns() + kSecond);
            if (!answer || answer->fate != Fate::applied)
                return Error("a proposal before the kill was not acknowledged");
        }
        return {};
    }

    Result<void> watch() {
        for (std::uint8_t id = 1; id <= kReplicas; ++id)
            if (!ask(id, Request::Kind::watch, now_ns() + kSecond))
                return Error("replica " + std::to_string(id) + " does not answer");
        return {};
    }

    // As a client would: from the dead one to another, to the one that it names, or to the next.
    Result<Gap> kill_and_wait(std::uint8_t dead) {
        Gap gap;
        gap.killed_ns = now_ns();
        server(dead).process->strike();
        std::uint8_t at = next(dead, dead);
        unsigned refusals = 0;
        while (true) {
            const auto answer = ask(at, Request::Kind::propose, now_ns() + kAnswerLimit);
            const std::uint64_t now = now_ns();
            if (gap.closed_ns == 0 && closed(dead)) gap.closed_ns = now;
            if (answer && answer->fate == Fate::applied) {
                gap.served_ns = now;
                const auto steps = ask(at, Request::Kind::steps, now + kSecond);
                if (!steps) return Error("the new leader does not answer");
                gap.steps_ns = steps->steps_ns;
                return gap;
            }
            if (auto going = go_on(gap.killed_ns + kRoundLimit, "the next acknowledgement"); !going)
                return std::move(going).error();
            const bool named = answer && answer->leader != 0 && answer->leader != dead && answer->leader != at;
            at = named ? answer->leader : next(at, dead);
            if (!named && ++refusals % (kReplicas - 1) == 0) std::this_thread::sleep_for(kPause);
        }
    }

    static std::uint8_t next(std::uint8_t id, std::uint8_t dead) {
        do id = static_cast<std::uint8_t>(id % kReplicas + 1);
        while (id == dead);
        return id;
    }

    // Nothing if no answer came in time; one that comes later is passed over.
    std::optional<Answer> ask(std::uint8_t id, Request::Kind kind, std::uint64_t deadline_ns) {
        const int socket = server(id).socket.number();
        const Request request{++number_, kind};
        if (::send(socket, &request, sizeof request, MSG_NOSIGNAL) != sizeof request) return std::nullopt;
        for (std::uint64_t now = now_ns(); now < deadline_ns && !interrupted(); now = now_ns()) {
            const timespec wait{0, static_cast<long>(std::min<std::uint64_t>(deadline_ns - now, kSecond - 1))};
            pollfd ready{socket, POLLIN, 0};
            if (::ppoll(&ready, 1, &wait, nullptr) <= 0) continue;
            Answer answer;
            if (::recv(socket, &answer, sizeof answer, MSG_DONTWAIT) != sizeof answer) return std::nullopt;
            if (answer.number == number_) return answer;
        }
        return std::nullopt;
    }

    bool closed(std::uint8_t id) {
        Answer late;
        ssize_t count = 0;
        do count = ::recv(server(id).socket.number(), &late, sizeof late, MSG_DONTWAIT);
        while (count > 0);
        return count == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
    }

    Server& server(std::uint8_t id) { return servers_[id - std::size_t{1}]; }

    const ClusterSpec spec_;
    std::array<Server, kReplicas> servers_;
    std::uint64_t number_ = 0;
};

// From one moment to the next. What the client saw later than what followed from it, was not later.
struct Phase {
    const char* name;
    Histogram times;
    void record(std::uint64_t& from_ns, std::uint64_t to_ns) {
        if (to_ns == 0) return;  // there is no such part
        times.record(to_ns - std::min(from_ns, to_ns));
        from_ns = std::max(from_ns, to_ns);
    }
    void print() const {
        if (times.total() == 0) return;
        std::printf("%-52s %8.2f %8.2f %8.2f %8.2f\n", name, times.at_us(0.5) / 1000, times.at_us(0.9) / 1000,
                    times.at_us(0.99) / 1000, times.at_us(1) / 1000);
    }
};

class Parts {
 public:
    void record(const Gap& gap) {
        std::uint64_t at = gap.killed_ns;
        const auto step = [&gap](Step which) { return gap.steps_ns[static_cast<std::size_t>(which)]; };
        closed_.record(at, std::min(gap.closed_ns, step(Step::noticed)));
        noticed_.record(at, step(Step::noticed));
        welcome_.record(at, step(Step::fences));
        stopped_.record(at, step(Step::stopped));
        pushed_out_.record(at, step(Step::pushed_out));
        fenced_.record(at, step(Step::fenced));
        promised_.record(at, step(Step::promised));
        adopted_.record(at, step(Step::leads));
        served_.record(at, gap.served_ns);
        std::uint64_t from = gap.killed_ns;
        all_.record(from, gap.served_ns);
    }
    void print() const {
        std::printf("%-52s %8s %8s %8s %8s\n", "ms", "median", "p90", "p99", "max");
        for (const Phase* part : {&all_, &closed_, &noticed_, &welcome_, &stopped_, &pushed_out_, &fenced_, &promised_,
                                 &adopted_, &served_})
            part->print();
    }
    std::uint64_t rounds() const { return all_.times.total(); }

 private:
    Phase all_{"all", {}};
    Phase closed_{"  until the system has closed its sockets", {}};
    Phase noticed_{"  noticed: then until the next leader knows", {}};
    Phase welcome_{"  welcome: then until a majority would vote for it", {}};
    Phase stopped_{"  fenced: then until the old queue pair is stopped", {}};
    Phase pushed_out_{"          then until the loopback READ is back", {}};
    Phase fenced_{"          then until the fence has returned", {}};
    Phase promised_{"  promised: then until another replica's promise", {}};
    Phase adopted_{"  adopted: then until it leads", {}};
    Phase served_{"  first commit: then until an acknowledgement", {}};
};

}  // namespace

int run_failover(const FailoverPlan& plan) {
    std::mt19937_64 random(1);
    std::uniform_int_distribution<std::uint64_t> load_ns(kLoadBefore, 2 * kLoadBefore);
    Parts parts;
    unsigned failed = 0;
    {
        const Progress progress;
        for (unsigned round = 1; round <= plan.rounds; ++round) {
            progress.say("round " + std::to_string(round) + " of " + std::to_string(plan.rounds));
            const auto gap = Round::run(plan, load_ns(random));
            if (interrupted()) return 1;
            if (!gap) {
                ++failed;
                tell("round " + std::to_string(round) + " failed: " + gap.error().message());
                continue;
            }
            parts.record(gap.value());
        }
    }
    std::printf("SIGKILL of the leader to the next acknowledged proposal, %llu rounds, %s, %s\n",
                static_cast<unsigned long long>(parts.rounds()), plan.transport.c_str(), to_string(plan.polling));
    parts.print();
    if (failed > 0) std::printf("%u rounds FAILED, and are not counted above\n", failed);
    return failed > 0 ? 1 : 0;
}

}  // namespace lockstep::bench
