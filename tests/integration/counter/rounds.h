// A load against a cluster, and the round that every fail-over test repeats.
#pragma once

#include "tests/integration/counter/cluster.h"
#include "tools/counter/load.h"

#include <cstdint>
#include <functional>
#include <future>
#include <vector>

namespace lockstep::counter {

// LOCKSTEP_ROUNDS, or so many.
int rounds(int by_default);

// A load on a thread of its own, against all servers of a cluster but one; its books are checked at the end.
class Running {
 public:
    explicit Running(const Cluster& cluster, std::vector<std::string> servers = {});
    ~Running() { control_.finish(); }

    // Waits until so many more increments are acknowledged; false after half a minute.
    bool wait_for_progress(std::uint64_t increments) const;
    std::uint64_t acked() const { return control_.acked(); }
    void event() { control_.event(); }
    // Ends the load; what it finds wrong is a test failure.
    LoadReport finish();

 private:
    LoadOptions options_;
    LoadControl control_;
    std::future<Result<LoadReport>> report_;
};

void print_times(const char* what, std::vector<std::uint64_t> times_us);

// Each round forms a fresh cluster on the network that `network` gives for it, and kills its leader under load: nothing
// acknowledged may be lost, nothing counted twice. `before` may look at the cluster and its leader before that.
void kill_leaders(int count, const std::function<Network(int round)>& network,
                  const std::function<void(const Cluster& cluster, int leader)>& before = {});

}  // namespace lockstep::counter
