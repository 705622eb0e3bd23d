// What a replica needs to know before it starts.
#pragma once

#include <lockstep/result.h>
#include <lockstep/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

// How the protocol thread waits for work.
enum class Polling : std::uint8_t {
    blocking,  // sleeps in the kernel; costs nothing while idle
    adaptive,  // spins for `Options::spin_us`, then sleeps
    spin,      // never sleeps: the lowest latency, and a core of its own is needed
};

// What a committed entry survives.
enum class Durability : std::uint8_t {
    memory,   // an entry counts where it has landed: it survives while a majority keeps its memory
    durable,  // an entry counts where it is fsynced: it survives while a majority keeps its disks
    persist_async,  // as memory, and the log is written to disk behind it: to be read, not to come back with
};

const char* to_string(Durability durability);

// How replicas reach each other's memory.
enum class Transport : std::uint8_t {
    tcp,        // Boost.Asio
    rdma,       // libibverbs; `Replica::open` fails where there is no fitting device
    automatic,  // each peer by RDMA where both ends have it and it connects, else by TCP; status says which, and why
};

// One replica of the cluster, as the others reach it.
struct Member {
    ReplicaId id;
    std::string address;             // "host:port" of the peer port; never given to clients
    std::uint32_t priority = 0;      // the higher campaigns first; equal ones by lower id
    std::string client_address{};    // "host:port" where the service takes clients; not used by the library itself
};

// Limits that hold for every replica.
inline constexpr std::size_t kMaxReplicas = 7;
inline constexpr std::uint64_t kMinRingBytes = std::uint64_t{1} << 20;
inline constexpr std::uint64_t kMaxRingBytes = std::uint64_t{1} << 31;

struct Options {
    std::uint64_t cluster_id = 0;    // the same on all replicas, not 0; the handshake refuses another
    ReplicaId id;                    // which of `members` this is
    std::vector<Member> members;     // 1 to kMaxReplicas, this one among them
    std::string data_folder;         // holds the marker of the formation, and what is kept on disk; made if missing
    // For a data folder that knows of no cluster, one of: this start forms a new cluster, together with all other
    // members; or this replica lost its disk, or never had one, and comes into the cluster that there is, as a learner
    // until the leader has it take its predecessor's place. Else both are of no effect.
    bool form = false;
    bool join = false;
    std::uint64_t ring_bytes = std::uint64_t{64} << 20;  // a power of two, the same on all replicas
    std::uint32_t election_timeout_ms = 250;   // 10 to 60,000
    std::uint32_t heartbeat_ms = 25;           // 1 to a quarter of the election time-out
    std::uint32_t max_queued_proposals = 65'536;          // 1 to 2^20; a full queue answers "busy"
    std::uint64_t max_queued_bytes = std::uint64_t{16} << 20;  // bytes of commands in it: 1 to 2^32
    Polling polling = Polling::blocking;
    // The same on all replicas.
    Durability durability = Durability::durable;
    // Where the log is on disk: a snapshot is taken by itself when the log has grown by so many bytes, or entries,
    // since the last one, and lets the log before it go. 0: not for that reason. With both 0, or a service without
    // snapshots, the log on disk grows for ever. Bytes: 0 or 64 KiB to 2^50.
    std::uint64_t snapshot_bytes = std::uint64_t{256} << 20;
    std::uint64_t snapshot_entries = 0;
    std::uint32_t spin_us = 50;      // for Polling::adaptive: 1 to 10,000
    // `tcp` and `automatic` work together, and `rdma` and `automatic`.
    Transport transport = Transport::automatic;
    std::string rdma_device{};       // such as "mlx5_0"; empty: the one that has the address of this member
    std::uint32_t rdma_port = 0;     // of the device, 1 to 255; 0: the first that fits
    std::int32_t rdma_gid_index = -1;  // 0 to 255; -1: the RoCE v2 entry of this member's address

    // Reads a replica's config from a file in Protobuf's text format (see configs/replica.sample.textproto). The
    // error names the file, the line or the key, the value, and what is allowed.
    static Result<Options> from_file(const std::string& path);
    // Checks every bound named above. `from_file` has done so; options made by hand are checked by Replica::open.
    Result<void> check() const;
    // The largest command, in bytes, that `propose` takes with this ring.
    std::uint64_t max_command_bytes() const;
};

}  // namespace lockstep
