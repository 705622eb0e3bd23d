// The smallest service: one replica that adds numbers. hello FOLDER 1 2 3 prints 1, 3, 6.
#include <lockstep/replica.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <future>
#include <thread>

struct Adder : lockstep::StateMachine {
    void apply(std::span<const lockstep::Entry> batch, lockstep::Replies& replies) override {
        for (std::size_t i = 0; i < batch.size(); ++i) {
            long number = 0;
            std::memcpy(&number, batch[i].command.data(), sizeof number);
            sum += number;
            replies.set(i, std::as_bytes(std::span(&sum, 1)));
        }
    }
    long sum = 0;
};

int main(int count, char** words) {
    if (count < 2) return std::fputs("usage: hello FOLDER NUMBER...\n", stderr), 2;
    Adder adder;
    const lockstep::Options options{.cluster_id = 42, .id = {1}, .members = {{{1}, "127.0.0.1:7300"}},
                                    .data_folder = words[1], .form = true};
    auto replica = lockstep::Replica::open(options, adder);
    if (!replica) return std::fprintf(stderr, "%s\n", replica.error().message().c_str()), 1;
    while (replica.value()->status().role != lockstep::Role::leader) std::this_thread::yield();
    for (int i = 2; i < count; ++i) {
        const long number = std::atol(words[i]);
        std::promise<long> sum;
        replica.value()->propose(std::as_bytes(std::span(&number, 1)), [&](const lockstep::Outcome& outcome) {
            sum.set_value(outcome.fate == lockstep::Fate::applied ? *(const long*)outcome.reply.data() : -1);
        });
        std::printf("%ld\n", sum.get_future().get());
    }
}
