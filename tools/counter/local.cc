#include "tools/counter/local.h"

#include <algorithm>
#include <cctype>

namespace lockstep::counter {
namespace {

using Args = std::span<const std::string_view>;

bool fit_for_name(std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) { return c >= '!' && c <= '~'; });
}

constexpr std::string_view kBadName = "ERR Client names cannot contain spaces, newlines or special characters.";

void run_ping(Args args, std::string& out) {
    if (args.size() > 2) return append_error(out, arity_error("ping"));
    if (args.size() == 2) return append_bulk(out, args[1]);
    append_simple(out, "PONG");
}

void run_select(Args args, std::string& out) {
    const auto database = parse_integer(args[1]);
    if (!database || *database < INT32_MIN || *database > INT32_MAX) {
        return append_error(out, database ? "ERR value is out of range, value must between -2147483648 and 2147483647"
                                          : kNotAnInteger);
    }
    if (*database != 0) return append_error(out, "ERR DB index is out of range");
    append_simple(out, "OK");
}

void append_hello(const Client& client, std::string& out) {
    append_map(out, client.resp, 7);
    append_bulk(out, "server");
    append_bulk(out, "lockstep-counter");
    append_bulk(out, "version");
    append_bulk(out, kRedisVersion);
    append_bulk(out, "proto");
    append_integer(out, static_cast<std::int64_t>(client.resp));
    append_bulk(out, "id");
    append_integer(out, static_cast<std::int64_t>(client.id));
    append_bulk(out, "mode");
    append_bulk(out, "standalone");
    append_bulk(out, "role");
    // Any replica takes writes, so any looks like a master to a client.
    append_bulk(out, "master");
    append_bulk(out, "modules");
    append_array(out, 0);
}

void run_hello(Args args, Client& client, std::string& out) {
    Resp resp = client.resp;
    if (args.size() >= 2) {
        const auto version = parse_integer(args[1]);
        if (!version) return append_error(out, "ERR Protocol version is not an integer or out of range");
        if (*version < 2 || *version > 3) return append_error(out, "NOPROTO unsupported protocol version");
        resp = static_cast<Resp>(*version);
    }
    std::optional<std::string_view> name;
    for (std::size_t at = 2; at < args.size(); ++at) {
        if (same_name(args[at], "setname") && at + 1 < args.size()) {
            name = args[++at];
            if (!fit_for_name(*name)) return append_error(out, kBadName);
        } else if (same_name(args[at], "auth") && at + 2 < args.size()) {
            // There are no passwords: as Redis without one, only the default user exists, with any password.
            if (args[at + 1] != "default") {
                return append_error(out, "WRONGPASS invalid username-password pair or user is disabled.");
            }
            at += 2;
        } else {
            return append_error(out, one_line("ERR Syntax error in HELLO option '" +
                                              std::string(as_c_string(args[at], args[at].size())) + "'"));
        }
    }
    client.resp = resp;
    if (name) client.name = *name;
    append_hello(client, out);
}

std::string client_line(const Client& client) {
    const auto age = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - client.since).count();
    return "id=" + std::to_string(client.id) + " addr=" + client.address + " laddr=" + client.local_address +
           " name=" + client.name + " age=" + std::to_string(age) + " db=0 resp=" +
           std::to_string(static_cast<int>(client.resp)) + " lib-name=" + client.library +
           " lib-ver=" + client.library_version + "\n";
}

void run_client_setinfo(Args args, Client& client, std::string& out) {
    const bool is_name = same_name(args[2], "lib-name");
    if (!is_name && !same_name(args[2], "lib-ver")) {
        return append_error(out, one_line("ERR Unrecognized option '" + std::string(args[2].substr(0, 128)) + "'"));
    }
    if (!fit_for_name(args[3])) {
        return append_error(out, std::string("ERR ") + (is_name ? "lib-name" : "lib-ver") +
                                     " cannot contain spaces, newlines or special characters.");
    }
    (is_name ? client.library : client.library_version) = args[3];
    append_simple(out, "OK");
}

void run_client(Args args, Client& client, std::string& out) {
    struct Subcommand {
        std::string_view name;
        std::size_t args;
    };
    constexpr Subcommand kSubcommands[] = {{"id", 2},      {"getname", 2}, {"setname", 3}, {"setinfo", 4},
                                           {"info", 2},    {"no-evict", 3}, {"no-touch", 3}, {"help", 2}};
    const auto* found = std::find_if(std::begin(kSubcommands), std::end(kSubcommands),
                                     [&](const Subcommand& s) { return same_name(args[1], s.name); });
    if (found == std::end(kSubcommands)) return append_unknown_subcommand("client", args[1], out);
    if (args.size() != found->args) return append_error(out, arity_error("client|" + std::string(found->name)));
    if (found->name == "id") return append_integer(out, static_cast<std::int64_t>(client.id));
    if (found->name == "info") return append_verbatim(out, client.resp, client_line(client));
    if (found->name == "setinfo") return run_client_setinfo(args, client, out);
    if (found->name == "getname") {
        return client.name.empty() ? append_null(out, client.resp) : append_bulk(out, client.name);
    }
    if (found->name == "setname") {
        if (!fit_for_name(args[2])) return append_error(out, kBadName);
        client.name = args[2];
        return append_simple(out, "OK");
    }
    if (found->name == "help") {
        append_array(out, 1);
        return append_simple(out, "CLIENT ID | INFO | GETNAME | SETNAME <name> | SETINFO <option> <value> | "
                                  "NO-EVICT ON|OFF | NO-TOUCH ON|OFF");
    }
    // Nothing is ever evicted here, so both settings of no-evict and no-touch hold.
    if (!same_name(args[2], "on") && !same_name(args[2], "off")) return append_error(out, kSyntaxError);
    append_simple(out, "OK");
}

void run_bgsave(Args args, const Shared& shared, std::string& out) {
    // SCHEDULE is for what may run aside besides: nothing here.
    if (args.size() > 2 || (args.size() == 2 && !same_name(args[1], "schedule")))
        return append_error(out, kSyntaxError);
    const std::shared_ptr<Saves> saves = shared.saves;
    if (saves->under_way.exchange(true)) return append_error(out, "ERR Background save already in progress");
    // Before this returns, perhaps, where the replica has stopped.
    shared.log.take_snapshot([saves](const Result<Index>& taken) {
        saves->last_failed = !taken.ok();
        if (taken) saves->last_s = std::time(nullptr);
        saves->under_way = false;
    });
    append_simple(out, "Background saving started");
}

}  // namespace

std::int64_t last_save_s(const Shared& shared, const LogStatus& status) {
    return std::max(shared.saves->last_s.load(), static_cast<std::int64_t>(status.snapshot_ns / 1'000'000'000));
}

void append_unknown_subcommand(std::string_view container, std::string_view subcommand, std::string& out) {
    std::string upper(container);
    for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    append_error(out, one_line("ERR unknown subcommand '" + std::string(as_c_string(subcommand, 128)) + "'. Try " +
                               upper + " HELP."));
}

void run_local(const CommandSpec& spec, Args args, const Shared& shared, Client& client, std::string& out) {
    switch (spec.id) {
        case CommandId::ping: return run_ping(args, out);
        case CommandId::echo: return append_bulk(out, args[1]);
        case CommandId::info: return append_verbatim(out, client.resp, info_text(shared, args.subspan(1)));
        case CommandId::command: return run_command(args, client, out);
        case CommandId::config: return run_config(args, shared, client, out);
        case CommandId::client: return run_client(args, client, out);
        case CommandId::select: return run_select(args, out);
        case CommandId::quit: client.quits = true; return append_simple(out, "OK");
        case CommandId::hello: return run_hello(args, client, out);
        case CommandId::bgsave: return run_bgsave(args, shared, out);
        case CommandId::lastsave: return append_integer(out, last_save_s(shared, shared.log.status()));
        case CommandId::reset:
            client.name.clear();
            client.resp = Resp::v2;
            return append_simple(out, "RESET");
        default: return;
    }
}

}  // namespace lockstep::counter
