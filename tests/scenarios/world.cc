#include "tests/scenarios/world.h"

#include "tests/scenarios/show.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <map>

namespace lockstep::scenarios {

namespace {

constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint64_t kLatencyNs = 10'000;
// What takes longer than this, in virtual time, does not come.
constexpr std::uint64_t kPatienceNs = 5'000 * kMs;

std::string end_of(const Outcome& outcome) {
    switch (outcome.fate) {
        case Fate::applied:
            return "applied at " + to_string(outcome.index);
        case Fate::rejected:
            return std::string("rejected, ") + lockstep::to_string(outcome.reason) +
                   (outcome.leader ? " (" + to_string(outcome.leader) + " leads)" : "");
        case Fate::unknown:
            break;
    }
    return "unknown";
}

}  // namespace

std::string World::run(const Command& command) {
    command_ = command;
    const bool first = sim_ == nullptr;
    if (first != (word(0) == "cluster")) fail("a scenario starts with the command cluster, and has one only");
    return dispatch();
}

std::string World::dispatch() {
    static const std::map<std::string, std::function<std::string(World&)>> commands{
        {"cluster", &World::cluster},
        {"elect", &World::elect},
        {"expect-leader", &World::expect_leader},
        {"leaders", &World::leaders},
        {"propose", &World::propose},
        {"load", &World::load},
        {"read", &World::read},
        {"run", &World::run_for},
        {"hold", &World::hold},
        {"release", &World::release},
        {"drop", &World::drop},
        {"repeat", &World::repeat},
        {"tear", [](World& world) { return world.cut_write(true); }},
        {"split", [](World& world) { return world.cut_write(false); }},
        {"break", &World::break_lane},
        {"tear-read", &World::tear_read},
        {"hand-over", &World::hand_over},
        {"cut", &World::cut},
        {"heal", &World::heal},
        {"pause", [](World& world) { return world.each_replica(&World::pause); }},
        {"resume", [](World& world) { return world.each_replica(&World::resume); }},
        {"crash", [](World& world) { return world.each_replica(&World::crash); }},
        {"restart", [](World& world) { return world.each_replica(&World::restart); }},
        {"show", [](World& world) { return world.show_each(false); }},
        {"lanes", [](World& world) { return world.show_each(true); }},
        {"fates", &World::fates},
        {"settle", &World::settle},
    };
    const auto found = commands.find(word(0));
    if (found == commands.end()) fail("there is no such command");
    return found->second(*this);
}

// cluster N [ring BYTES] [heartbeat TIME] [timeout TIME] [unformed]
std::string World::cluster() {
    sim::Cluster::Options options;
    options.replicas = size_ = number(1);
    bool formed = true;
    for (std::size_t at = 2; has_word(at); ++at) {
        if (word(at) == "ring") options.ring_bytes = number(++at);
        else if (word(at) == "heartbeat") options.heartbeat_ns = duration(++at);
        else if (word(at) == "timeout") options.election_timeout_ns = duration(++at);
        else if (word(at) == "unformed") formed = false;
        else fail("\"" + word(at) + "\" is none of ring, heartbeat, timeout, unformed");
    }
    if (size_ < 1 || size_ > kMaxReplicas) fail("a cluster has 1 to " + std::to_string(kMaxReplicas) + " replicas");
    if (!std::has_single_bit(options.ring_bytes) || options.ring_bytes < log::Ring::kMinBytes)
        fail("a ring is a power of two, " + std::to_string(log::Ring::kMinBytes) + " bytes at least");
    sim_ = std::make_unique<sim::Cluster>(options);
    sim_->network().faults().latency_min_ns = sim_->network().faults().latency_max_ns = kLatencyNs;
    sim_->start_all();
    if (!formed) return "";
    const auto all_formed = [&] {
        return std::ranges::none_of(sim_->ids(), [&](ReplicaId id) { return sim_->core(id).forming(); });
    };
    return sim_->run_until(kPatienceNs, all_formed) ? "formed\n" : "not formed\n";
}

// elect rX: runs until rX leads. What it then writes has not landed anywhere.
std::string World::elect() {
    const ReplicaId id = replica(1);
    const auto leads = [&] { return sim_->alive(id) && sim_->leader() == id; };
    if (sim_->run_until(kPatienceNs, leads))
        return to_string(id) + " leads in " + to_string(sim_->core(id).promised()) + "\n";
    return to_string(id) + " does not lead:\n" + sim_->describe();
}

std::string World::expect_leader() {
    const ReplicaId id = replica(1);
    if (sim_->leader() == id) return "";
    return to_string(id) + " does not lead:\n" + sim_->describe();
}

// Everyone that takes itself for the leader.
std::string World::leaders() {
    std::string text;
    for (const ReplicaId id : sim_->ids())
        if (sim_->core(id).role() == Role::leader)
            text += to_string(id) + " leads in " + to_string(sim_->core(id).promised()) + "\n";
    return text.empty() ? "nobody leads\n" : text;
}

// propose rX NAME... [bytes BYTES]: names are commands. Nothing happens before the next run.
std::string World::propose() {
    const ReplicaId id = running(replica(1));
    std::size_t names_end = command_.words.size();
    std::size_t bytes = 0;
    if (names_end >= 4 && command_.words[names_end - 2] == "bytes") {
        bytes = number(names_end - 1);
        names_end -= 2;
    }
    if (names_end < 3) fail("it names no command");
    for (std::size_t at = 2; at < names_end; ++at) {
        std::string command = word(at);
        const std::size_t place = requests_.size();
        requests_.push_back({command});
        if (bytes > command.size()) command.resize(bytes, ' ');
        const std::uint64_t history_number = ++proposals_;
        sim_->history().proposed(history_number);
        const auto done = [this, place, history_number](const Outcome& outcome) {
            requests_[place].end = end_of(outcome);
            sim_->history().ended(history_number, outcome);
        };
        if (!sim_->propose(id, command, done)) done(Outcome{Fate::rejected, Reason::busy, {}, {}, {}});
    }
    return "";
}

// load rX COUNT BYTES: that many commands, named by numbers, as fast as they are taken; says how they ended.
std::string World::load() {
    const ReplicaId id = running(replica(1));
    const std::uint64_t count = number(2);
    const std::size_t bytes = number(3);
    auto ends = std::make_shared<std::map<std::string, std::uint64_t>>();
    const auto ended = [&] {
        std::uint64_t total = 0;
        for (const auto& [unused, times] : *ends) total += times;
        return total;
    };
    const auto done = [ends](const Outcome& outcome) {
        ++(*ends)[outcome.fate == Fate::applied ? "applied" : end_of(outcome)];
    };
    std::uint64_t taken = 0;
    const std::uint64_t give_up_ns = sim_->network().now_ns() + kPatienceNs;
    while (taken < count && sim_->network().now_ns() < give_up_ns) {
        std::string command = std::to_string(++loaded_);
        if (bytes > command.size()) command.resize(bytes, ' ');
        for (++taken; !sim_->propose(id, command, done) && sim_->network().now_ns() < give_up_ns;) sim_->run_for(kMs);
    }
    sim_->run_until(kPatienceNs, [&] { return ended() == count; });
    std::string text;
    for (const auto& [end, times] : *ends) text += std::to_string(times) + " " + end + "\n";
    if (ended() < count) text += std::to_string(count - ended()) + " open\n";
    return text;
}

// read rX NAME: notes what the state machine holds at the moment when it is answered.
std::string World::read() {
    const ReplicaId id = running(replica(1));
    const std::size_t place = requests_.size();
    requests_.push_back({word(2)});
    const Index must_see = sim_->history().read_began();
    const auto done = [this, id, place, must_see](const Outcome& outcome) {
        std::string& end = requests_[place].end;
        end = outcome.fate == Fate::applied ? "sees" : end_of(outcome);
        if (outcome.fate == Fate::applied) {
            for (const auto& [unused, command] : sim_->recorder(id).commands()) end += " " + command;
            if (end == "sees") end += " nothing";
        }
        sim_->history().read_ended(must_see, outcome);
    };
    if (!sim_->read(id, done)) done(Outcome{Fate::rejected, Reason::busy, {}, {}, {}});
    return "";
}

std::string World::run_for() {
    sim_->run_for(duration(1));
    return "";
}

std::string World::each_replica(void (World::*what)(ReplicaId)) {
    replica(1);  // one at least
    for (const ReplicaId id : replicas(1)) {
        const bool starts = what == &World::restart;
        if (starts && sim_->alive(id)) fail(to_string(id) + " runs");
        (this->*what)(starts ? id : running(id));
    }
    return "";
}

std::string World::show_each(bool lanes) {
    std::string text;
    for (const ReplicaId id : replicas(1))
        text += (lanes ? show_lanes(*sim_, id, size_) : show(*sim_, id)) + "\n";
    return text;
}

std::string World::fates() {
    std::string text;
    for (const Request& request : requests_) text += request.name + ": " + request.end + "\n";
    return text;
}

bool World::equal_and_applied() const {
    const auto leader = sim_->leader();
    if (!leader) return false;
    const log::Point end = sim_->core(*leader).end();
    return std::ranges::all_of(sim_->ids(), [&](ReplicaId id) {
        return sim_->core(id).forming() || sim_->core(id).applied() == end;
    });
}

// settle: everything is released, healed and resumed; then, soon, all hold and have applied the same log.
std::string World::settle() {
    for (const ReplicaId from : replicas(1)) {
        for (const ReplicaId to : replicas(1))
            for (const Kind kind : {Kind::message, Kind::piece, Kind::completion, Kind::read, Kind::report})
                sim_->network().release(kind, from, to);
        if (sim_->alive(from) && sim_->paused(from)) sim_->resume(from);
    }
    sim_->network().heal_all();
    sim_->run_for(200 * kMs);
    if (sim_->run_until(kPatienceNs, [&] { return equal_and_applied(); })) return show_each(false);
    return "not all have applied the same:\n" + show_each(false) + sim_->describe();
}

}  // namespace lockstep::scenarios
