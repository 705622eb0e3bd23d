// The public simulator finds what is wrong with a user's service, and nothing where nothing is.
#include "transport/logger.h"

#include <lockstep/sim.h>

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <cstring>

namespace lockstep::sim {
namespace {

// Adds numbers up; and is wrong in ways that tests choose.
class Sum final : public Service {
 public:
    enum class Fault { none, depends_on_batches, forgets_a_number };
    explicit Sum(Fault fault) : fault_(fault) {}

    void apply(std::span<const Entry> batch, Replies& replies) override {
        for (std::size_t i = 0; i < batch.size(); ++i) {
            std::uint64_t number = 0;
            std::memcpy(&number, batch[i].command.data(), sizeof number);
            sum_ += number;
            numbers_ += fault_ == Fault::forgets_a_number && number == 7 ? 0 : 1;
            replies.set(i, std::as_bytes(std::span(&sum_, 1)));
        }
        if (fault_ == Fault::depends_on_batches) sum_ += batch.size() > 1 ? 1 : 0;
        entries_ += batch.size();
    }
    std::uint64_t digest() const override { return sum_; }
    bool right() const { return numbers_ == entries_; }

 private:
    Fault fault_;
    std::uint64_t sum_ = 0;
    std::uint64_t numbers_ = 0;
    std::uint64_t entries_ = 0;
};

class Simulate : public testing::Test {
 protected:
    void SetUp() override { spdlog::set_level(spdlog::level::off); }
    static Simulation simulation(Sum::Fault fault) {
        Simulation simulation;
        simulation.make_service = [fault] { return std::make_unique<Sum>(fault); };
        simulation.next_command = [](std::uint64_t random) {
            const std::uint64_t number = random % 10;
            std::vector<std::byte> command(sizeof number);
            std::memcpy(command.data(), &number, sizeof number);
            return command;
        };
        simulation.invariant = [](const Service& service) {
            return static_cast<const Sum&>(service).right() ? "" : "a number is missing";
        };
        return simulation;
    }
    // What the first few seeds find; empty if nothing.
    static std::string found(const Simulation& simulation) {
        for (std::uint64_t seed = 1; seed <= 20; ++seed)
            if (const Report report = simulate(simulation, seed); !report.ok) return report.what;
        return {};
    }
};

TEST_F(Simulate, finds_nothing_where_nothing_is) {
    Simulation sum = simulation(Sum::Fault::none);
    std::uint64_t ended = 0;
    std::uint64_t applied = 0;
    sum.ended = [&](BytesView command, const Outcome& outcome) {
        ++ended;
        EXPECT_EQ(command.size(), 8u);
        if (outcome.fate != Fate::applied) return;
        ++applied;
        EXPECT_EQ(outcome.reply.size(), 8u);
    };
    const Report first = simulate(sum, 1);
    EXPECT_TRUE(first.ok) << first.what;
    EXPECT_EQ(first.applied, applied);
    EXPECT_GT(applied, 10u);
    EXPECT_GE(ended, applied);
    EXPECT_EQ(simulate(sum, 1).hash, first.hash);
    EXPECT_NE(simulate(sum, 2).hash, first.hash);
    EXPECT_EQ(found(sum), "");
}

TEST_F(Simulate, finds_replicas_that_differ) {
    EXPECT_NE(found(simulation(Sum::Fault::depends_on_batches)).find("differs from another's"), std::string::npos);
}

TEST_F(Simulate, finds_a_broken_invariant) {
    EXPECT_NE(found(simulation(Sum::Fault::forgets_a_number)).find("a number is missing"), std::string::npos);
}

TEST_F(Simulate, writes_log_lines_only_where_it_is_asked_to) {
    const auto lines = [](bool log) {
        Simulation sum = simulation(Sum::Fault::none);
        sum.log = log;
        testing::internal::CaptureStderr();
        EXPECT_EQ(found(sum), "");
        return testing::internal::GetCapturedStderr();
    };
    logger().set_level(spdlog::level::info);
    EXPECT_EQ(lines(false), "");
    EXPECT_NE(lines(true).find("lane to"), std::string::npos);
    logger().set_level(spdlog::level::off);
}

TEST_F(Simulate, refuses_a_bad_simulation) {
    Simulation bad = simulation(Sum::Fault::none);
    bad.replicas = 8;
    EXPECT_EQ(simulate(bad, 1).what, "a simulation has 1 to 7 replicas, not 8");
    bad = simulation(Sum::Fault::none);
    bad.ring_bytes = 20'000;
    EXPECT_EQ(simulate(bad, 1).what, "ring_bytes is 20000: it must be a power of two from 16384 to 1073741824");
    bad = simulation(Sum::Fault::none);
    bad.make_service = nullptr;
    EXPECT_EQ(simulate(bad, 1).what, "make_service is missing");
    bad = simulation(Sum::Fault::none);
    bad.next_command = [](std::uint64_t) { return std::vector<std::byte>(60'000); };
    EXPECT_NE(simulate(bad, 1).what.find("a command has 60000 bytes"), std::string::npos);
    EXPECT_FALSE(simulate(bad, 1).ok);
}

}  // namespace
}  // namespace lockstep::sim
