#include "tools/bench/failover.h"
#include "tools/bench/failover_wire.h"
#include "tools/bench/progress.h"

#include <sys/socket.h>

#include <algorithm>

namespace lockstep::bench {
namespace {

// An answer that finds no room is lost: the client asks for one thing at a time, so there is room.
void answer(int descriptor, const Answer& answer) {
    ::send(descriptor, &answer, sizeof answer, MSG_DONTWAIT | MSG_NOSIGNAL);
}

Answer describe(std::uint64_t number, const Status& status) {
    const auto streaming = std::ranges::count_if(status.peers, [](const PeerStatus& peer) {
        return peer.lane == "streaming";
    });
    Answer about;
    about.number = number;
    about.leader = status.leader.value;
    about.streaming = static_cast<std::uint8_t>(streaming);
    about.leads = status.role == Role::leader;
    return about;
}

void propose(Replica& replica, std::uint64_t number, int descriptor) {
    replica.propose(std::as_bytes(std::span(&number, 1)), [descriptor, number](const Outcome& outcome) {
        answer(descriptor, {.number = number,
                            .fate = outcome.fate,
                            .reason = outcome.reason,
                            .leader = outcome.leader.value});
    });
}

}  // namespace

int run_failover_replica(const ClusterSpec& spec, std::uint8_t id, int descriptor) {
    const auto steps = FailoverSteps::watch_library();
    Nothing state_machine;
    auto opened = Replica::open(spec.options(id), state_machine);
    if (!opened) {
        tell(opened.error().message());
        return 1;
    }
    Replica& replica = *opened.value();
    Request request;
    while (::recv(descriptor, &request, sizeof request, 0) == sizeof request) {
        switch (request.kind) {
            case Request::Kind::status:
                answer(descriptor, describe(request.number, replica.status()));
                break;
            case Request::Kind::watch:
                steps->restart();
                answer(descriptor, {.number = request.number});
                break;
            case Request::Kind::steps:
                answer(descriptor, {.number = request.number, .steps_ns = steps->times()});
                break;
            case Request::Kind::propose:
                propose(replica, request.number, descriptor);
                break;
        }
    }
    return 0;
}

}  // namespace lockstep::bench
