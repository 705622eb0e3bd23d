// What is to be measured, and how long.
#pragma once

#include <lockstep/options.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::bench {

struct Plan {
    std::vector<std::size_t> bytes = {64, 1024, 16384};
    std::vector<std::size_t> depths = {1, 8, 64, 512};
    std::vector<Polling> pollings = {Polling::blocking};
    std::vector<std::string> transports = {"tcp"};                         // "tcp", "rdma"
    std::vector<Durability> durabilities = {Durability::memory};
    std::string folder;         // for the replicas' data, and the disk's limit; empty: where temporary files are
    std::vector<std::string> hosts = {"127.0.0.1", "127.0.0.1", "127.0.0.1"};  // of the replicas; the first leads
    unsigned rounds = 5;
    double seconds = 0.5;       // of each measurement, after a warm-up of a third of that
    double limit_seconds = 0;   // of all together; 0: as long as it takes
    bool commit = true;
    bool limit = true;
    std::string json;           // a file, or empty
    std::string plot;           // a file, or empty

    void make_quick() {
        rounds = 2;
        seconds = 0.1;
        limit_seconds = 28;
    }
};

}  // namespace lockstep::bench
