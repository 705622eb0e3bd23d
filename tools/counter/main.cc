// lockstep-counter: one replica of a counter service that any Redis client can drive.
#include "tools/counter/replica_log.h"
#include "tools/counter/settings.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <signal.h>

#include <cerrno>
#include <ctime>
#include <iostream>

namespace lockstep::counter {
namespace {

void log_to_stderr(const std::string& level) {
    spdlog::set_default_logger(spdlog::stderr_color_mt("lockstep-counter"));
    spdlog::set_pattern("%Y-%m-%d %H:%M:%S.%e %^%l%$ %v");  // the library's lines too
    spdlog::set_level(spdlog::level::from_str(level));
}

int fail(const Error& error) {
    std::cerr << "lockstep-counter: " << error.message() << '\n';
    return 1;
}

// Waits for a signal to stop, or until the replica has stopped by itself. Returns the exit status.
int wait_for_the_end(const sigset_t& signals, const ReplicaLog& log) {
    ReplicaId leader;
    while (true) {
        constexpr timespec kLookAgain{0, 100'000'000};
        const int signal = sigtimedwait(&signals, nullptr, &kLookAgain);
        if (signal > 0) {
            spdlog::info("stops: signal {} came", signal == SIGINT ? "SIGINT" : "SIGTERM");
            return 0;
        }
        if (errno != EAGAIN && errno != EINTR) return 1;
        const LogStatus status = log.status();
        if (status.stopped) {
            spdlog::error("the replica has stopped by itself: {}", status.note);
            return 1;
        }
        if (status.leader != leader) {
            leader = status.leader;
            spdlog::info("{} leads, ballot {}", leader ? "replica " + std::to_string(leader.value) : "nobody",
                         status.ballot);
        }
    }
}

int serve(const Settings& settings) {
    log_to_stderr(settings.log_level);
    // Blocked before any thread starts, so that all inherit it and only `wait_for_the_end` takes these signals.
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    signal(SIGPIPE, SIG_IGN);

    Machine machine(settings.server.limits);
    ReplicaLog log;
    Server server(settings.server, log, machine);
    // The port first: a replica that cannot serve should not form a cluster.
    if (const auto listening = server.listen(); !listening) return fail(listening.error());
    if (const auto opened = log.open(settings.replica, machine); !opened) return fail(opened.error());
    server.start();
    spdlog::info("replica {} takes clients on {}:{}", settings.replica.id.value, settings.server.host, server.port());
    const int status = wait_for_the_end(signals, log);
    log.stop();
    server.stop();
    return status;
}

int load(const LoadOptions& options) {
    const auto report = run_load(options);
    return report ? print_report(report.value()) : fail(report.error());
}

}  // namespace
}  // namespace lockstep::counter

int main(int argc, char** argv) {
    const auto invocation = lockstep::counter::parse_command_line(argc, argv);
    if (invocation.serve) return lockstep::counter::serve(*invocation.serve);
    if (invocation.load) return lockstep::counter::load(*invocation.load);
    return invocation.exit_code;
}
