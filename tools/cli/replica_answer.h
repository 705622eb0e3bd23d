// What a running replica of the counter says of itself: INFO replication, asked at its clients' port.
#pragma once

#include <lockstep/result.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::cli {

// How it sees one of the others.
struct PeerAnswer {
    std::uint64_t id = 0;
    bool connected = false;
    bool votes = false;
    std::string path;  // "tcp", "rdma (...)", and why
    std::string lane;  // of a leader: how far that one follows
    std::uint64_t landed = 0;
    std::uint64_t consumed = 0;
};

struct ReplicaAnswer {
    std::uint64_t id = 0;
    std::string role;
    std::uint64_t leader = 0;  // 0: it knows of none
    std::string ballot;        // "round.id"
    std::uint64_t committed = 0;
    std::uint64_t applied = 0;
    std::uint64_t log_end = 0;
    std::string durability;
    std::uint64_t durable = 0;
    std::uint64_t snapshot = 0;
    std::string note;
    std::vector<PeerAnswer> peers;
};

// Blocks for at most `patience`. Errors: it cannot be reached, does not answer, or is no replica of the counter.
Result<ReplicaAnswer> ask_replica(const std::string& address, std::chrono::milliseconds patience);

// Takes the text of INFO apart; nothing if it is not of a replica. What comes from a server is made fit for a terminal.
std::optional<ReplicaAnswer> read_info(std::string_view text);

}  // namespace lockstep::cli
