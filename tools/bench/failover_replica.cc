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

}  // namespace

int run_failover_replica(const ClusterSpec& spec, std::uint8_t id, int descriptor) {
    Nothing state_machine;
    auto opened = Replica::open(spec.options(id), state_machine);
    if (!opened) {
        tell(opened.error().message());
        return 1;
    }
    Replica& replica = *opened.value();
    Request request;
    while (::recv(descriptor, &request, sizeof request, 0) == sizeof request) {
        if (request.kind == Request::Kind::status) {
            answer(descriptor, describe(request.number, replica.status()));
            continue;
        }
        const auto command = std::as_bytes(std::span(&request.number, 1));
        replica.propose(command, [descriptor, number = request.number](const Outcome& outcome) {
            answer(descriptor, {number, outcome.fate, outcome.reason, outcome.leader.value, 0, false});
        });
    }
    return 0;
}

}  // namespace lockstep::bench
