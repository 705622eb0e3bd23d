// Your own service under the simulator: N replicas of it on a simulated network, in virtual time, with the library's
// own code between them, while messages get lost, lanes break, replicas pause and crash and leaders change. One seed
// gives one run, always the same.
#pragma once

#include <lockstep/replica.h>
#include <lockstep/state_machine.h>
#include <lockstep/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::sim {

// A state machine that can be compared. If it has snapshots, replicas that fall far behind catch up by them; if not, by
// all the commands of before.
class Service : public StateMachine {
 public:
    // A number that is equal where states are equal: replicas that applied the same must agree in it. Not called while
    // `apply` runs. Called after every batch, so it should be quick.
    virtual std::uint64_t digest() const = 0;
};

// What to run. Every function is called on the thread that called `simulate`.
struct Simulation {
    std::size_t replicas = 3;  // 1 to kMaxReplicas
    // The log's window; small ones wrap often, which is where it gets interesting. A power of two from 16 KiB on; a
    // command has at most a quarter of it, less 128 bytes.
    std::uint64_t ring_bytes = std::uint64_t{64} << 10;
    // A service in its first state: one for every life of every replica. Needed.
    std::function<std::unique_ptr<Service>()> make_service;
    // What a client asks next; `random` is another number each time. Needed.
    std::function<std::vector<std::byte>(std::uint64_t random)> next_command;
    // Told how a command ended, once: its reply, if it was applied, is the service's.
    std::function<void(BytesView command, const Outcome& outcome)> ended;
    // What is wrong with a replica's state after any batch; empty where nothing is.
    std::function<std::string(const Service& service)> invariant;
    // Let the library's log lines through: those of hundreds of lanes that break, as they are meant to.
    bool log = false;
};

struct Report {
    bool ok = false;
    std::string what;           // what went wrong, where and when; empty if nothing did
    std::uint64_t hash = 0;     // of the whole run: the same seed gives the same
    std::uint64_t applied = 0;  // commands that were acknowledged
    std::uint64_t elections = 0;
    double virtual_seconds = 0;
};

// Runs the faults and the load that `seed` stands for; takes some ten milliseconds, blocking. Not ok where the
// invariant does not hold, replicas' states differ, an acknowledged command is lost or applied twice, or the cluster
// does not get on after faults have ended. A bad simulation is not ok either, and says what is wrong with it. Any
// thread; a broken invariant inside the library aborts the process.
Report simulate(const Simulation& simulation, std::uint64_t seed);

}  // namespace lockstep::sim
