#include "transport/tcp/lanes.h"

#include "log/check.h"

#include <algorithm>

namespace lockstep::transport::tcp {

void Lanes::connect(LaneId id, ReplicaId peer, const Result<link::LaneToken>& token) {
    LOCKSTEP_CHECK(id);
    LOCKSTEP_CHECK(find(id) == nullptr);
    lanes_.push_back(std::make_shared<OutgoingLane>(station_.initiator(), id, peer));
    OutgoingLane& made = *lanes_.back();
    const link::ControlLink* link = station_.link_to(peer);
    if (link == nullptr || !link->endpoint()) return made.break_off("its address is not known");
    if (!token) return made.break_off(token.error().message());
    made.connect(*link->endpoint(), token.value());
}

OutgoingLane* Lanes::find(LaneId id) const {
    for (const auto& one : lanes_)
        if (one->id() == id) return one.get();
    return nullptr;
}

void Lanes::flush() {
    for (const auto& one : lanes_) one->flush();
}

void Lanes::end(LaneId id) {
    const auto found = std::find_if(lanes_.begin(), lanes_.end(), [&](const auto& one) { return one->id() == id; });
    if (found == lanes_.end()) return;
    (*found)->end();
    lanes_.erase(found);
}

void Lanes::break_off(ReplicaId peer, const std::string& why) {
    for (const auto& one : lanes_)
        if (one->peer() == peer) one->break_off(why);
}

bool Lanes::watch() {
    for (const auto& one : lanes_) one->watch();
    return std::any_of(lanes_.begin(), lanes_.end(), [](const auto& one) { return one->has_news(); });
}

void Lanes::report(std::vector<Event>& events) {
    for (const auto& one : lanes_) one->report(events);
    // A broken lane stays broken (F5): once that is said, there is none of that name.
    std::erase_if(lanes_, [](const auto& one) { return one->broken(); });
}

}  // namespace lockstep::transport::tcp
