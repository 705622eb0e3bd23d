// A service of one's own under the simulator: accounts that money moves between. However replicas crash and leaders
// change, no money comes or goes. simulated_service [SEED [HOW_MANY]] runs that many seeds, from SEED on.
#include <lockstep/sim.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>

namespace {

struct Transfer {
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    std::uint64_t amount = 0;
};

class Bank final : public lockstep::sim::Service {
 public:
    static constexpr std::size_t kAccounts = 10;
    static constexpr std::uint64_t kTotal = 1000 * kAccounts;

    Bank() { accounts_.fill(1000); }

    void apply(std::span<const lockstep::Entry> batch, lockstep::Replies& replies) override {
        for (std::size_t i = 0; i < batch.size(); ++i) {
            Transfer transfer;
            std::memcpy(&transfer, batch[i].command.data(), sizeof transfer);
            const bool possible = accounts_[transfer.from] >= transfer.amount;
            if (possible) {
                accounts_[transfer.from] -= transfer.amount;
                accounts_[transfer.to] += transfer.amount;
            }
            replies.set(i, std::as_bytes(std::span(&possible, 1)));
        }
    }
    std::uint64_t digest() const override {
        std::uint64_t digest = 0;
        for (const std::uint64_t account : accounts_) digest = digest * 31 + account;
        return digest;
    }
    std::uint64_t total() const { return std::accumulate(accounts_.begin(), accounts_.end(), std::uint64_t{0}); }

 private:
    std::array<std::uint64_t, kAccounts> accounts_{};
};

}  // namespace

int main(int count, char** words) {
    lockstep::sim::Simulation simulation;
    simulation.make_service = [] { return std::make_unique<Bank>(); };
    simulation.next_command = [](std::uint64_t random) {
        const Transfer transfer{static_cast<std::uint32_t>(random % Bank::kAccounts),
                                static_cast<std::uint32_t>(random / 64 % Bank::kAccounts), random / 4096 % 500};
        std::vector<std::byte> command(sizeof transfer);
        std::memcpy(command.data(), &transfer, sizeof transfer);
        return command;
    };
    simulation.invariant = [](const lockstep::sim::Service& service) {
        const std::uint64_t total = static_cast<const Bank&>(service).total();
        return total == Bank::kTotal ? "" : "there are " + std::to_string(total) + " in all accounts";
    };

    const std::uint64_t first = count > 1 ? std::strtoull(words[1], nullptr, 10) : 1;
    const std::uint64_t how_many = count > 2 ? std::strtoull(words[2], nullptr, 10) : 1;
    for (std::uint64_t seed = first; seed < first + how_many; ++seed) {
        const lockstep::sim::Report report = lockstep::sim::simulate(simulation, seed);
        std::printf("seed %llu: %s; %llu transfers, %llu elections, %.1f virtual seconds, hash %016llx\n",
                    static_cast<unsigned long long>(seed), report.ok ? "ok" : report.what.c_str(),
                    static_cast<unsigned long long>(report.applied),
                    static_cast<unsigned long long>(report.elections), report.virtual_seconds,
                    static_cast<unsigned long long>(report.hash));
        if (!report.ok) return 1;
    }
}
