#include <lockstep/types.h>

#include <cinttypes>
#include <cstdio>

namespace lockstep {

std::string to_string(Index index) { return std::to_string(index.value); }

std::string to_string(Position position) { return std::to_string(position.value); }

std::string to_string(ReplicaId id) { return "r" + std::to_string(id.value); }

std::string to_string(Ballot ballot) {
    return std::to_string(ballot.round()) + "." + std::to_string(ballot.leader().value);
}

std::string to_string(Incarnation incarnation) {
    char text[17];
    std::snprintf(text, sizeof text, "%016" PRIx64, incarnation.value);
    return text;
}

}  // namespace lockstep
