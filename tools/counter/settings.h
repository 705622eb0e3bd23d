// What lockstep-counter is told: on its command line, and in the config file.
#pragma once

#include "tools/counter/limits.h"
#include "tools/counter/load.h"
#include "tools/counter/server.h"

#include <lockstep/options.h>
#include <lockstep/result.h>

#include <optional>
#include <string>

namespace lockstep::counter {

struct Settings {
    Options replica;
    ServerOptions server;
    std::string log_level = "info";
};

// What to do: serve, or one of the subcommands. Or nothing, because help was asked for or the words make no sense:
// then what there is to say has been printed, and the program ends with `exit_code`.
struct Invocation {
    std::optional<Settings> serve;
    std::optional<LoadOptions> load;
    int exit_code = 0;
};

// Reads the command line, and the files that it names. Prints help to stdout and errors to stderr.
Invocation parse_command_line(int argc, const char* const* argv);

// "ID=PEER_ADDRESS,CLIENT_ADDRESS[,PRIORITY]", as --member takes it.
struct MemberFlag {
    Member member;
    std::string client_address;
};
Result<MemberFlag> parse_member(const std::string& text);
// The client addresses in a config file that Options::from_file has accepted.
Result<Router::Addresses> client_addresses(const std::string& path);

}  // namespace lockstep::counter
