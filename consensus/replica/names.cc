// How the public API's words read.
#include <lockstep/replica.h>

namespace lockstep {

const char* to_string(Fate fate) {
    switch (fate) {
        case Fate::applied:
            return "applied";
        case Fate::rejected:
            return "rejected";
        case Fate::unknown:
            return "unknown";
    }
    return "?";
}

const char* to_string(Reason reason) {
    switch (reason) {
        case Reason::none:
            return "none";
        case Reason::not_leader:
            return "not the leader";
        case Reason::busy:
            return "busy";
        case Reason::too_large:
            return "too large";
        case Reason::stopped:
            return "stopped";
    }
    return "?";
}

const char* to_string(Durability durability) {
    switch (durability) {
        case Durability::memory:
            return "memory";
        case Durability::durable:
            return "durable";
        case Durability::persist_async:
            return "persist_async";
    }
    return "?";
}

const char* to_string(Role role) {
    switch (role) {
        case Role::forming:
            return "forming";
        case Role::learner:
            return "learner";
        case Role::follower:
            return "follower";
        case Role::candidate:
            return "candidate";
        case Role::leader:
            return "leader";
        case Role::stopped:
            return "stopped";
    }
    return "?";
}

}  // namespace lockstep
