// A user of an installed Lockstep: checks the config that it is given, then runs a replica of its own by itself.
// usage: consumer CONFIG NEW_FOLDER
#include <lockstep/replica.h>

#include <chrono>
#include <cstdio>
#include <future>
#include <thread>

namespace {

struct CountsBytes : lockstep::StateMachine {
    void apply(std::span<const lockstep::Entry> batch, lockstep::Replies&) override {
        for (const lockstep::Entry& entry : batch) count += entry.command.size();
    }
    std::size_t count = 0;
};

// Proposes until the replica leads; the fate of what was taken then.
lockstep::Fate propose(lockstep::Replica& replica, std::string_view command) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (true) {
        std::promise<lockstep::Fate> fate;
        replica.propose(std::as_bytes(std::span(command)),
                        [&fate](const lockstep::Outcome& outcome) { fate.set_value(outcome.fate); });
        const lockstep::Fate got = fate.get_future().get();
        if (got != lockstep::Fate::rejected || std::chrono::steady_clock::now() > deadline) return got;
        std::this_thread::yield();
    }
}

int run(lockstep::Options options) {
    CountsBytes machine;
    auto replica = lockstep::Replica::open(options, machine);
    if (!replica) {
        std::fprintf(stderr, "%s\n", replica.error().message().c_str());
        return 1;
    }
    const lockstep::Fate fate = propose(*replica.value(), "five!");
    replica.value()->stop();
    std::printf("%s: %zu bytes\n", to_string(fate), machine.count);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    lockstep::Result<lockstep::Options> options = lockstep::Options::from_file(argv[1]);
    if (!options) {
        std::fprintf(stderr, "%s\n", options.error().message().c_str());
        return 1;
    }
    options.value().members = {{options.value().id, "127.0.0.1:0", 0, ""}};
    options.value().data_folder = argv[2];
    options.value().form = true;
    return run(std::move(options).value());
}
