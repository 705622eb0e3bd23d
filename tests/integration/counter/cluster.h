// Three counters in processes of their own.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace lockstep::counter {

// A program that has ended, and what it printed.
struct Finished {
    int status = -1;          // exit status; -1 if a signal ended it or it could not be started
    std::string output;       // stdout and stderr
};
// Runs a program to its end, found in PATH if it has no slash. Blocks.
Finished run_program(const std::vector<std::string>& args);
bool program_exists(const std::string& name);

// Asks again and again; false if `done` does not come true within a minute.
bool within_a_minute(const std::function<bool()>& done);

// How replicas reach each other: the host of each one's peer port, and flags of its own.
struct Network {
    std::array<std::string, 3> hosts{"127.0.0.1", "127.0.0.1", "127.0.0.1"};
    std::array<std::vector<std::string>, 3> flags{};
    // What the program of a replica is run by, in front of it, if anything.
    std::function<std::vector<std::string>(int id, const std::string& data_folder)> run_by{};
};

// A fresh cluster, ended with this object. Ids are 1 to 3.
class Cluster {
 public:
    static constexpr int kReplicas = 3;
    // Starts and forms it. `flags` go to each replica.
    explicit Cluster(std::vector<std::string> flags = {}, Network network = {});
    ~Cluster();
    Cluster(const Cluster&) = delete;
    Cluster& operator=(const Cluster&) = delete;

    std::uint16_t client_port(int id) const { return client_ports_[index(id)]; }
    // "host:port" of all, or of all but one, for the load.
    std::vector<std::string> servers(int without = 0) const;
    // The id of who leads, as the running replicas say it; 0 if nobody does within half a minute.
    int wait_for_leader() const;
    // What a replica says in a section of INFO under `key`; empty if it says nothing of it.
    std::string info(int id, const std::string& section, const std::string& key) const;
    std::uint64_t number(int id, const std::string& section, const std::string& key) const;
    // Sends a signal; SIGKILL also waits for the end, SIGSTOP until the process has stopped.
    void signal(int id, int number);
    // Starts a replica that has ended once more: it does not form, it comes back. `flags` go to this start only.
    void restart(int id, const std::vector<std::string>& flags = {});
    // Whether it has come so far that clients can connect.
    bool serves(int id) const;
    // Whether it is a voter, by its own word, within a minute.
    bool is_taken_in(int id) const;
    // Stops a replica with SIGTERM and gives its exit status.
    int stop(int id);
    // Waits until a replica has ended by itself, for half a minute at most, and gives its exit status; -1: it has not.
    int wait_for_end(int id);
    // What a replica has logged, for messages.
    std::string log_of(int id) const;
    // The flags that a replica was started with.
    std::vector<std::string> command(int id) const;
    std::string data_folder(int id) const { return folder_ + "/data" + std::to_string(id); }

 private:
    static std::size_t index(int id) { return static_cast<std::size_t>(id - 1); }
    std::string folder_;
    std::vector<std::string> flags_;
    Network network_;
    std::array<std::uint16_t, kReplicas> peer_ports_{};
    std::array<std::uint16_t, kReplicas> client_ports_{};
    std::array<pid_t, kReplicas> pids_{};     // 0: has ended
    std::array<bool, kReplicas> paused_{};
};

}  // namespace lockstep::counter
