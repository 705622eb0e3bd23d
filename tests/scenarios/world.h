// What the commands of a scenario do: a simulated cluster with fixed latencies and no faults but those that it is told.
#pragma once

#include "tests/scenarios/script.h"
#include "sim/cluster.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::scenarios {

// docs/testing.md lists the commands.
class World {
 public:
    // Its output, each line ended. Throws ScriptError where the command cannot be understood, and sim::Violation where
    // a checker found a rule broken.
    std::string run(const Command& command);

 private:
    using Kind = transport::sim::Network::Kind;
    struct Link {
        ReplicaId from;
        ReplicaId to;
    };
    // A proposal or a read, and how it ended.
    struct Request {
        std::string name;
        std::string end = "open";
    };

    std::string dispatch();
    // Commands, by name.
    std::string cluster();
    std::string elect();
    std::string expect_leader();
    std::string leaders();
    std::string propose();
    std::string load();
    std::string read();
    std::string run_for();
    std::string hold();
    std::string release();
    std::string drop();
    std::string repeat();
    std::string cut_write(bool breaks);
    std::string break_lane();
    std::string tear_read();
    std::string hand_over();
    std::string cut();
    std::string heal();
    std::string each_replica(void (World::*what)(ReplicaId));
    std::string show_each(bool lanes);
    std::string fates();
    std::string settle();

    void pause(ReplicaId id) { sim_->pause(id); }
    void resume(ReplicaId id) { sim_->resume(id); }
    void crash(ReplicaId id) { sim_->crash(id); }
    void restart(ReplicaId id) { sim_->restart(id); }
    bool equal_and_applied() const;

    // The words behind the command's name.
    const std::string& word(std::size_t at) const;
    bool has_word(std::size_t at) const { return command_.words.size() > at; }
    std::uint64_t number(std::size_t at) const;
    std::uint64_t duration(std::size_t at) const;
    ReplicaId replica(std::size_t at) const { return replica_named(word(at)); }
    ReplicaId running(ReplicaId id) const;
    ReplicaId replica_named(const std::string& name) const;
    std::vector<ReplicaId> replicas(std::size_t from) const;
    std::vector<Link> links(std::size_t at) const;
    Kind kind(std::size_t at) const;
    [[noreturn]] void fail(const std::string& why) const;

    Command command_;
    std::vector<Request> requests_;
    std::uint64_t proposals_ = 0;
    std::uint64_t loaded_ = 0;
    std::size_t size_ = 0;
    std::unique_ptr<sim::Cluster> sim_;  // its end ends what is open
};

}  // namespace lockstep::scenarios
