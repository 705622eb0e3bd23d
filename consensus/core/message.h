// What replicas say to each other on the control plane. F7: any of it can be lost, repeated and reordered, so each
// message carries what makes an old one harmless. The sender's id and incarnation come with it from the transport.
#pragma once

#include "consensus/core/config.h"
#include "log/entry.h"
#include "transport/types.h"

#include <lockstep/types.h>

#include <cstdint>
#include <variant>

namespace lockstep::core {

// Forming (S7): the former tells every voter the genesis and who the voters are ...
struct Form {
    std::uint64_t genesis = 0;  // never 0; never shown to clients
    Config voters;
};
// ... each answers once it has kept that (the marker is written) ...
struct FormAck {
    std::uint64_t genesis = 0;  // 0: it holds none yet, and is there to form
};
// ... and when all have, it lets them begin.
struct Formed {
    std::uint64_t genesis = 0;
};

// From a leader to a life that no config of its log names (S12): this is the log of the cluster. The voters are those
// that the cluster began with, which stand in no entry; none where the sender's log does not reach back to there.
struct Join {
    std::uint64_t genesis = 0;
    Config voters;
};

// Would you promise? Changes nothing at the receiver (S3).
struct PreVote {
    std::uint64_t genesis = 0;  // one formed apart has nothing to say here
    Ballot ballot;        // that the candidate would ask a promise for
    Position commit;      // the candidate's: a receiver whose low mark is above it is the better candidate
    Ballot handed_over;   // not 0: the leader or candidate of this ballot asked the sender to campaign
};
struct PreVoteReply {
    Ballot ballot;        // as asked
    bool granted = false;
    bool better = false;  // not granted because the sender of this would be the better candidate
    Ballot promised;      // by the sender of this
};

// Promise me this ballot, and open a lane for me. Also the re-opening of a broken lane in the same ballot, then with a
// higher open number (S1).
struct Prepare {
    std::uint64_t genesis = 0;      // as in PreVote
    Ballot ballot;
    std::uint64_t open_number = 0;  // rises with every lane that the sender asks of the receiver
};
// What a replica's disk may have lost of what the replica acknowledged (S14).
enum class Loss : std::uint8_t {
    none,
    suspect,  // the last batch: torn and never acknowledged, or rotten
    corrupt,  // more than that
};
// The answer after the steps of S2.
struct Promise {
    Ballot ballot;                  // as asked ...
    Incarnation candidate;          // ... by this life of the candidate ...
    std::uint64_t open_number = 0;  // ... in this open
    log::Point last;                // the end of the log, by a scan after the fence
    log::Point commit;
    Index config;                   // of the newest config in the log
    Position low_mark;              // the ring holds the log from here (S6)
    Position consumed;              // the lane's holder may write up to this plus the ring's size
    Loss loss = Loss::none;         // with it, this answer may leave out what was acknowledged
    transport::LaneAddress lane;
};
struct Refusal {
    Ballot ballot;                  // as asked
    std::uint64_t open_number = 0;
    Ballot promised;                // a higher one, or the same of another life of the candidate
    bool hears_leader = false;      // whether the leader of `promised` is heard (S1)
};

// From a leader: my ring no longer holds what you lack; catch up by other means, and I open a lane again (S6). Counts
// as an open (S1): with a higher open number it ends the lane that stands, as a Prepare does.
struct Behind {
    std::uint64_t genesis = 0;
    Ballot ballot;
    std::uint64_t open_number = 0;
    Position low_mark;              // the sender's ring holds the log from here
};

// Please campaign: from a candidate that cannot adopt, or a leader that hands over (S3).
struct Campaign {
    Ballot ballot;                  // the sender's own, promised by the receiver or newer
};

using Message =
    std::variant<Form, FormAck, Formed, Join, PreVote, PreVoteReply, Prepare, Promise, Refusal, Campaign, Behind>;

}  // namespace lockstep::core
