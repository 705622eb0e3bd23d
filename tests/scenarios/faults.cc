// Commands that disturb: what is held, cut, torn, broken.
#include "consensus/replica/codec.h"
#include "tests/scenarios/world.h"

namespace lockstep::scenarios {

std::string World::hold() {
    for (const Link& link : links(2)) sim_->network().hold(kind(1), link.from, link.to);
    return "";
}

std::string World::release() {
    for (const Link& link : links(2)) sim_->network().release(kind(1), link.from, link.to);
    return "";
}

// What is held never arrives; what comes goes on being held. A lane that lost a write is broken (F1).
std::string World::drop() {
    for (const Link& link : links(2)) {
        sim_->network().drop_held(kind(1), link.from, link.to);
        if (kind(1) == Kind::piece && sim_->alive(link.from)) sim_->fabric(link.from).break_lane(link.to, "dropped");
    }
    return "";
}

std::string World::repeat() {
    if (kind(1) != Kind::message) fail("only messages are ever repeated (F1, F7)");
    for (const Link& link : links(2)) sim_->network().repeat_held(kind(1), link.from, link.to);
    return "";
}

// tear rX->rY BYTES: the next write of the ring lands only that far, then its lane breaks.
// split rX->rY BYTES: it lands that far, and the rest is held, as if by hold writes.
std::string World::cut_write(bool breaks) {
    for (const Link& link : links(1)) sim_->network().cut_next_write(link.from, link.to, number(2), breaks);
    return "";
}

std::string World::break_lane() {
    for (const Link& link : links(1)) sim_->fabric(running(link.from)).break_lane(link.to, "broken by the scenario");
    return "";
}

// tear-read rX->rY BYTES: rX's next read of rY's ring brings no more than that, and says nothing of it.
std::string World::tear_read() {
    for (const Link& link : links(1)) sim_->network().tear_next_read(link.from, link.to, number(2));
    return "";
}

// hand-over rX->rY: rX asks rY to campaign, in the ballot that rX has promised (S3).
std::string World::hand_over() {
    for (const Link& link : links(1)) {
        std::vector<std::byte> bytes;
        replica::encode(core::Campaign{sim_->core(running(link.from)).promised()}, bytes);
        sim_->fabric(link.from).send(link.to, bytes);
    }
    return "";
}

// cut rX->rY: nothing goes that way; cut rX rY...: nothing goes between rX and any of the others.
std::string World::cut() {
    if (word(1).find("->") != std::string::npos) {
        for (const Link& link : links(1)) sim_->network().cut(link.from, link.to);
        return "";
    }
    const ReplicaId one = replica(1);
    replica(2);  // one other at least
    for (const ReplicaId other : replicas(2)) {
        sim_->network().cut(one, other);
        sim_->network().cut(other, one);
    }
    return "";
}

// heal: every cut; heal rX->rY or heal rX rY...: as for cut.
std::string World::heal() {
    if (!has_word(1)) {
        sim_->network().heal_all();
    } else if (word(1).find("->") != std::string::npos) {
        for (const Link& link : links(1)) sim_->network().heal(link.from, link.to);
    } else {
        const ReplicaId one = replica(1);
        replica(2);
        for (const ReplicaId other : replicas(2)) {
            sim_->network().heal(one, other);
            sim_->network().heal(other, one);
        }
    }
    return "";
}

}  // namespace lockstep::scenarios
