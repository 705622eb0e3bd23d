#include "tools/counter/settings.h"

#include "tools/counter/address.h"
#include "tools/counter/local.h"

#include <CLI/CLI.hpp>

#include <charconv>
#include <iostream>
#include <map>
#include <optional>

namespace lockstep::counter {
namespace {

// What the flags hold before they are made into settings.
struct Flags {
    std::string config;
    bool form = false;
    bool join = false;
    std::uint32_t id = 0;
    std::uint64_t cluster_id = 0;
    std::vector<std::string> members;
    std::string data_folder;
    std::string client_host;
    std::uint16_t client_port = 0;
    std::string polling;
    std::string transport;
    std::string rdma_device;
    std::string durability;
    std::uint64_t ring_bytes = 0;
    std::optional<std::uint64_t> snapshot_bytes;
    std::uint32_t election_timeout_ms = 0;
    std::uint32_t heartbeat_ms = 0;
    std::string log_level = "info";
    Limits limits;
    std::uint32_t patience_ms = 2000;
    std::uint32_t forward_timeout_ms = 5000;
    std::uint32_t output_stall_ms = 60'000;
};

const std::map<std::string, Polling> kPollings = {
    {"blocking", Polling::blocking}, {"adaptive", Polling::adaptive}, {"spin", Polling::spin}};
const std::map<std::string, Transport> kTransports = {
    {"tcp", Transport::tcp}, {"rdma", Transport::rdma}, {"auto", Transport::automatic}};

const std::map<std::string, Durability> kDurabilities = {{"memory", Durability::memory},
                                                          {"persist_async", Durability::persist_async},
                                                          {"durable", Durability::durable}};

void add_cluster_flags(CLI::App& app, Flags& flags) {
    const std::string group = "The cluster";
    app.add_option("--config", flags.config, "The replica's config file (see configs/replica.sample.textproto)")
        ->type_name("FILE")
        ->check(CLI::ExistingFile)
        ->group(group);
    app.add_flag("--form", flags.form, "Form a new cluster, together with all other members: the first start only")
        ->group(group);
    app.add_flag("--join", flags.join,
                 "Come into the cluster that there is, with an empty data folder: after the loss of a disk")
        ->group(group);
    app.add_option("--id", flags.id, "Which member this replica is")
        ->type_name("N")
        ->check(CLI::Range(1, 255))
        ->group(group);
    app.add_option("--cluster-id", flags.cluster_id, "The cluster's number, the same on all replicas, not 0")
        ->type_name("N")
        ->group(group);
    app.add_option("--member", flags.members,
                   "Without --config: one member of the cluster, as ID=PEER_ADDRESS,CLIENT_ADDRESS[,PRIORITY]; "
                   "give it once for each")
        ->type_name("MEMBER")
        ->group(group);
    app.add_option("--data-folder", flags.data_folder, "Where this replica keeps what it keeps on disk")
        ->type_name("FOLDER")
        ->group(group);
    app.add_option("--polling", flags.polling, "How the protocol's thread waits: blocking, adaptive or spin")
        ->check(CLI::IsMember(kPollings))
        ->type_name("HOW")
        ->group(group);
    app.add_option("--transport", flags.transport, "How replicas reach each other: tcp, rdma or auto")
        ->check(CLI::IsMember(kTransports))
        ->type_name("HOW")
        ->group(group);
    app.add_option("--rdma-device", flags.rdma_device, "The RDMA device to use, not the one with the replica's address")
        ->type_name("DEVICE")
        ->group(group);
    app.add_option("--durability", flags.durability,
                   "Where an entry counts: durable, on disk; memory; persist_async, there too, a log on disk behind")
        ->check(CLI::IsMember(kDurabilities))
        ->type_name("WHERE")
        ->group(group);
    app.add_option("--ring-bytes", flags.ring_bytes, "The part of the log held in memory: a power of two")
        ->type_name("BYTES")
        ->group(group);
    app.add_option("--snapshot-bytes", flags.snapshot_bytes,
                   "Where the log is on disk: take a snapshot when it has grown by so much; 0: never")
        ->type_name("BYTES")
        ->group(group);
    app.add_option("--election-timeout-ms", flags.election_timeout_ms, "How long a leader may show no sign of life")
        ->type_name("MS")
        ->group(group);
    app.add_option("--heartbeat-ms", flags.heartbeat_ms, "How often replicas look for one")
        ->type_name("MS")
        ->group(group);
}

void add_server_flags(CLI::App& app, Flags& flags) {
    const std::string group = "Clients";
    Limits& limits = flags.limits;
    const auto number = [&](const char* name, auto& value, const char* text, auto least, auto most) {
        app.add_option(name, value, text)
            ->type_name("N")
            ->check(CLI::Range(least, most))
            ->capture_default_str()
            ->group(group);
    };
    app.add_option("--client-host", flags.client_host, "Listen for clients on this host, not on the config's")
        ->type_name("HOST")
        ->group(group);
    app.add_option("--client-port", flags.client_port, "Listen for clients on this port, not on the config's; 0: any")
        ->type_name("PORT")
        ->group(group);
    number("--max-clients", limits.clients, "Connections at a time", 1, 1'000'000);
    number("--max-args", limits.args, "Arguments of one command", 4, 1'048'576);
    number("--max-key-bytes", limits.key_bytes, "Bytes of a key", 1, 1 << 20);
    number("--max-value-bytes", limits.value_bytes, "Bytes of a value", 1, 16 << 20);
    number("--max-query-bytes", limits.query_bytes, "Bytes of one command on the wire", 1024, 64 << 20);
    number("--max-reply-bytes", limits.reply_bytes, "Bytes of the replies to one pipeline", 1024, 256 << 20);
    number("--max-memory-bytes", limits.memory_bytes, "Bytes of keys and values", std::uint64_t{1} << 16,
           std::uint64_t{1} << 46);
    number("--patience-ms", flags.patience_ms, "How long a command may wait for a leader, or for room in the log", 1,
           600'000);
    number("--forward-timeout-ms", flags.forward_timeout_ms, "How long another replica may owe an answer", 100,
           600'000);
    number("--output-stall-ms", flags.output_stall_ms, "Drop a client that reads nothing of its replies for so long",
           1000, 3'600'000);
    app.add_option("--log-level", flags.log_level, "What to log on stderr: trace, debug, info, warn, error or off")
        ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error", "off"}))
        ->type_name("LEVEL")
        ->capture_default_str()
        ->group("Other");
}

void add_load_flags(CLI::App& load, LoadOptions& options) {
    load.add_option("--servers", options.servers, "Client addresses, separated by commas")
        ->delimiter(',')
        ->required()
        ->type_name("HOST:PORT,...");
    load.add_option("--key", options.key, "What to increment")->capture_default_str();
    load.add_option("--seconds", options.seconds, "How long")->check(CLI::Range(0.01, 86'400.0))->capture_default_str();
    load.add_option("--connections", options.connections, "At a time")
        ->check(CLI::Range(1, 10'000))
        ->capture_default_str();
    load.add_option("--pipeline", options.pipeline, "Increments under way on each connection")
        ->check(CLI::Range(1, 10'000))
        ->capture_default_str();
    load.add_option("--count", options.count, "End after so many acknowledged increments; 0: by time alone")
        ->capture_default_str();
    load.add_option("--journal", options.journal, "Append a line for every answer to this file")->type_name("FILE");
    load.add_option("--reply-timeout-ms", options.reply_timeout_ms, "Give up a server that answers nothing for so long")
        ->check(CLI::Range(10, 600'000))
        ->capture_default_str();
    load.add_flag("--quiet", options.quiet, "No line of progress each second");
}

// The members and client addresses, from the file or from the flags.
Result<Router::Addresses> read_cluster(const Flags& flags, Options& options) {
    if (!flags.config.empty()) {
        if (!flags.members.empty())
            return Error("--member and --config exclude each other: the file names the members");
        auto read = Options::from_file(flags.config);
        if (!read) return std::move(read).error();
        options = std::move(read).value();
        return client_addresses(flags.config);
    }
    if (flags.members.empty())
        return Error("needs --config FILE, or --id, --cluster-id and a --member for each replica");
    Router::Addresses addresses;
    for (const std::string& text : flags.members) {
        auto member = parse_member(text);
        if (!member) return std::move(member).error();
        addresses[member.value().member.id] = member.value().client_address;
        options.members.push_back(member.value().member);
    }
    return addresses;
}

void override_options(const Flags& flags, Options& options) {
    if (flags.id != 0) options.id = ReplicaId{static_cast<std::uint8_t>(flags.id)};
    if (flags.cluster_id != 0) options.cluster_id = flags.cluster_id;
    if (!flags.data_folder.empty()) options.data_folder = flags.data_folder;
    if (flags.form) options.form = true;
    if (flags.join) {
        options.join = true;
        if (!flags.form) options.form = false;  // a config that says so was for the first start
    }
    if (!flags.polling.empty()) options.polling = kPollings.at(flags.polling);
    if (!flags.transport.empty()) options.transport = kTransports.at(flags.transport);
    if (!flags.rdma_device.empty()) options.rdma_device = flags.rdma_device;
    if (!flags.durability.empty()) options.durability = kDurabilities.at(flags.durability);
    if (flags.ring_bytes != 0) options.ring_bytes = flags.ring_bytes;
    if (flags.snapshot_bytes) options.snapshot_bytes = *flags.snapshot_bytes;
    if (flags.election_timeout_ms != 0) options.election_timeout_ms = flags.election_timeout_ms;
    if (flags.heartbeat_ms != 0) options.heartbeat_ms = flags.heartbeat_ms;
}

// A group may be this large: what has gathered, and one command more.
std::uint64_t largest_group(const Limits& limits) { return kGroupBytes + std::uint64_t{limits.query_bytes}; }

Result<void> check(const Settings& settings) {
    if (auto fine = settings.replica.check(); !fine) return fine;
    const std::uint64_t most = std::min(settings.replica.max_command_bytes(), settings.replica.max_queued_bytes);
    if (largest_group(settings.server.limits) > most) {
        return Error("--max-query-bytes " + std::to_string(settings.server.limits.query_bytes) +
                     " is too much for this log, which takes commands of " + std::to_string(most) +
                     " bytes: at most that less " + std::to_string(kGroupBytes) +
                     " (give less, or raise ring_bytes and max_queued_bytes in the config)");
    }
    return {};
}

Result<Settings> make_settings(const Flags& flags, bool port_given) {
    Settings settings;
    settings.log_level = flags.log_level;
    auto addresses = read_cluster(flags, settings.replica);
    if (!addresses) return std::move(addresses).error();
    override_options(flags, settings.replica);
    ServerOptions& server = settings.server;
    server.limits = flags.limits;
    server.limits.patience = std::chrono::milliseconds(flags.patience_ms);
    server.limits.forward_timeout = std::chrono::milliseconds(flags.forward_timeout_ms);
    server.limits.output_stall = std::chrono::milliseconds(flags.output_stall_ms);
    server.self = settings.replica.id;
    server.others = std::move(addresses).value();
    const auto own = server.others.extract(server.self);
    if (own.empty() && !port_given) {
        return Error("no client_address for member " + std::to_string(server.self.value) +
                     " in the config (add it, or give --client-port)");
    }
    if (!own.empty()) {
        auto address = parse_address(own.mapped());
        if (!address) return std::move(address).error().within("client_address");
        server.host = address.value().host;
        server.port = address.value().port;
    }
    for (const auto& [id, text] : server.others) {
        const auto address = parse_address(text);
        if (!address)
            return Error(address.error().message()).within("client_address of member " + std::to_string(id.value));
    }
    if (!flags.client_host.empty()) server.host = flags.client_host;
    if (port_given) server.port = flags.client_port;
    if (auto fine = check(settings); !fine) return std::move(fine).error();
    return settings;
}

}  // namespace

Result<MemberFlag> parse_member(const std::string& text) {
    const Error malformed("--member \"" + text + "\" is not ID=PEER_ADDRESS,CLIENT_ADDRESS[,PRIORITY], such as "
                          "1=127.0.0.1:7101,127.0.0.1:7201");
    const std::size_t equals = text.find('=');
    const std::size_t comma = text.find(',');
    if (equals == std::string::npos || comma == std::string::npos || comma < equals) return malformed;
    const std::size_t second = text.find(',', comma + 1);
    MemberFlag flag;
    const auto number = [&](std::size_t from, std::size_t to, auto& value) {
        const auto [end, error] = std::from_chars(text.data() + from, text.data() + to, value);
        return error == std::errc{} && end == text.data() + to;
    };
    if (!number(0, equals, flag.member.id.value) || !flag.member.id) return malformed;
    if (second != std::string::npos && !number(second + 1, text.size(), flag.member.priority)) return malformed;
    flag.member.address = text.substr(equals + 1, comma - equals - 1);
    flag.client_address = text.substr(comma + 1, second == std::string::npos ? second : second - comma - 1);
    if (!parse_address(flag.member.address) || !parse_address(flag.client_address)) return malformed;
    return flag;
}

Invocation parse_command_line(int argc, const char* const* argv) {
    Invocation invocation;
    Flags flags;
    LoadOptions load_options;
    CLI::App app("A replicated counter that speaks Redis' protocol: one replica of it.", "lockstep-counter");
    app.set_version_flag("--version", "lockstep-counter " + std::string(kServerVersion));
    app.footer("Any Redis client can talk to any replica: redis-cli -p PORT incr x\nSIGTERM or SIGINT stops it.");
    add_cluster_flags(app, flags);
    add_server_flags(app, flags);
    CLI::App* load = app.add_subcommand("load", "Increments a key as fast as it may, and checks that nothing was lost");
    load->footer(
        "SIGUSR1 marks an event: the report shows the time from it to the next acknowledged increment.\n"
        "Ends with 0 if acked <= value <= acked + unknown, with 1 if not, with 2 if the value is not to be had.");
    add_load_flags(*load, load_options);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        invocation.exit_code = app.exit(error);
        return invocation;
    }
    if (load->parsed()) {
        invocation.load = std::move(load_options);
        return invocation;
    }
    auto settings = make_settings(flags, app.count("--client-port") > 0);
    if (!settings) {
        std::cerr << "lockstep-counter: " << settings.error().message() << "\nRun with --help for more information.\n";
        invocation.exit_code = 1;
        return invocation;
    }
    invocation.serve = std::move(settings).value();
    return invocation;
}

}  // namespace lockstep::counter
