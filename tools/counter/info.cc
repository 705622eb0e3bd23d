// INFO: what this replica knows of itself.
#include "tools/counter/local.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace lockstep::counter {
namespace {

void line(std::string& out, std::string_view key, std::string_view value) {
    out.append(key).append(":").append(one_line(std::string(value))).append("\r\n");
}
void line(std::string& out, std::string_view key, std::uint64_t value) { line(out, key, std::to_string(value)); }

void server_section(const Shared& shared, std::string& out) {
    char run_id[17];
    std::snprintf(run_id, sizeof run_id, "%016llx", static_cast<unsigned long long>(shared.run_id));
    const auto up = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - shared.started).count();
    line(out, "redis_version", kRedisVersion);
    line(out, "lockstep_version", kServerVersion);
    line(out, "redis_mode", "standalone");
    line(out, "process_id", static_cast<std::uint64_t>(getpid()));
    line(out, "run_id", run_id);
    line(out, "tcp_port", shared.port);
    line(out, "uptime_in_seconds", static_cast<std::uint64_t>(up));
}

void clients_section(const Shared& shared, std::string& out) {
    line(out, "connected_clients", shared.clients_connected - shared.replicas_connected);
    line(out, "connected_forwarders", shared.replicas_connected);
    line(out, "maxclients", shared.limits.clients);
}

void memory_section(const Shared& shared, std::string& out) {
    line(out, "used_memory_dataset", shared.machine.bytes());
    line(out, "maxmemory", shared.limits.memory_bytes);
    line(out, "maxmemory_policy", "noeviction");
}

void persistence_section(const Shared& shared, const LogStatus& status, std::string& out) {
    line(out, "rdb_bgsave_in_progress", shared.saves->under_way ? 1 : 0);
    line(out, "rdb_last_save_time", static_cast<std::uint64_t>(last_save_s(shared, status)));
    line(out, "rdb_last_bgsave_status", shared.saves->last_failed ? "err" : "ok");
}

void stats_section(const Shared& shared, const LogStatus& status, std::string& out) {
    const RouterStats& router = shared.router.stats();
    line(out, "total_connections_received", shared.clients_accepted);
    line(out, "rejected_connections", shared.clients_refused);
    line(out, "total_commands_processed", shared.commands);
    line(out, "commands_applied", shared.machine.commands());
    line(out, "protocol_errors", shared.protocol_errors);
    line(out, "groups_proposed", router.proposed);
    line(out, "groups_read", router.read);
    line(out, "groups_forwarded", router.forwarded);
    line(out, "attempts_put_off", router.waited);
    line(out, "outcomes_unknown", router.unknown);
    line(out, "entries_committed", status.entries_committed);
    line(out, "writes_posted", status.writes_posted);
    line(out, "elections_started", status.elections_started);
}

void replication_section(const Shared& shared, const LogStatus& status, std::string& out) {
    line(out, "replica_id", shared.self.value);
    line(out, "role", status.role);
    line(out, "leader", status.leader ? std::to_string(status.leader.value) : "none");
    line(out, "ballot", status.ballot);
    line(out, "incarnation", status.incarnation);
    line(out, "durability", status.durability);
    line(out, "durable", status.durable);
    line(out, "snapshot", status.snapshot);
    line(out, "committed", status.committed);
    line(out, "applied", status.applied);
    line(out, "log_end", status.end);
    line(out, "note", status.note);
    line(out, "peers", status.peers.size());
    for (const LogStatus::Peer& peer : status.peers) {
        line(out, "peer" + std::to_string(peer.id.value),
             "connected=" + std::string(peer.connected ? "yes" : "no") + ",votes=" + (peer.votes ? "yes" : "no") +
                 ",path=" + peer.path + ",lane=" + peer.lane + ",landed=" + std::to_string(peer.landed) +
                 ",consumed=" + std::to_string(peer.consumed));
    }
}

void keyspace_section(const Shared& shared, std::string& out) {
    const std::uint64_t keys = shared.machine.keys();
    if (keys > 0) line(out, "db0", "keys=" + std::to_string(keys) + ",expires=0,avg_ttl=0");
}

}  // namespace

std::string info_text(const Shared& shared, std::span<const std::string_view> sections) {
    const auto wanted = [&](std::string_view name) {
        return sections.empty() || std::any_of(sections.begin(), sections.end(), [&](std::string_view section) {
                   return same_name(section, name) || same_name(section, "all") || same_name(section, "default") ||
                          same_name(section, "everything");
               });
    };
    const LogStatus status = shared.log.status();
    std::string out;
    const auto section = [&](std::string_view name, std::string_view title, auto fill) {
        if (!wanted(name)) return;
        if (!out.empty()) out += "\r\n";
        out.append("# ").append(title).append("\r\n");
        fill();
    };
    section("server", "Server", [&] { server_section(shared, out); });
    section("clients", "Clients", [&] { clients_section(shared, out); });
    section("memory", "Memory", [&] { memory_section(shared, out); });
    section("persistence", "Persistence", [&] { persistence_section(shared, status, out); });
    section("stats", "Stats", [&] { stats_section(shared, status, out); });
    section("replication", "Replication", [&] { replication_section(shared, status, out); });
    section("keyspace", "Keyspace", [&] { keyspace_section(shared, out); });
    return out;
}

}  // namespace lockstep::counter
