// `lockstep status`: what it shows of real replicas, of some that are gone, and of what is none.
#include "tests/integration/counter/cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <signal.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace lockstep::counter {
namespace {

using testing::HasSubstr;

Finished status(const std::vector<std::string>& args) {
    std::vector<std::string> words = {LOCKSTEP_CLI, "status"};
    words.insert(words.end(), args.begin(), args.end());
    return run_program(words);
}

// A time-out that a busy machine does not exceed: who leads is to stay so.
std::vector<std::string> flags(const std::string& durability) {
    return {"--durability", durability, "--transport", "tcp", "--ring-bytes", "8388608",
            "--election-timeout-ms", "3000", "--heartbeat-ms", "50"};
}

std::string id_text(int id) { return std::to_string(id); }

// Lanes are opened behind the election.
Finished status_that_ends_with(const std::vector<std::string>& args, int wanted) {
    Finished last;
    for (int i = 0; i < 100; ++i) {
        last = status(args);
        if (last.status == wanted) break;
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    EXPECT_EQ(last.status, wanted) << last.output;
    return last;
}

TEST(Status, shows_every_replica_and_whether_a_majority_follows) {
    Cluster cluster(flags("persist_async"));
    const int leader = cluster.wait_for_leader();
    ASSERT_NE(leader, 0);
    std::vector<std::string> all = cluster.servers();
    Finished shown = status_that_ends_with(all, 0);
    EXPECT_THAT(shown.output, HasSubstr("r" + id_text(leader) + " leads, "));
    EXPECT_THAT(shown.output, HasSubstr(": tcp (127.0.0.1:"));
    EXPECT_THAT(shown.output, HasSubstr("; streaming\n"));
    EXPECT_THAT(shown.output, HasSubstr("persist_async, on disk up to "));
    EXPECT_THAT(shown.output, HasSubstr("follower"));

    // Followers alone do not lead.
    const int gone = leader % Cluster::kReplicas + 1;
    const int hangs = 6 - leader - gone;
    shown = status({"127.0.0.1:" + id_text(cluster.client_port(hangs))});
    EXPECT_EQ(shown.status, 1) << shown.output;
    EXPECT_THAT(shown.output, HasSubstr("no leader among those that answered"));

    // One that is gone, and one that hangs, are lines of their own.
    cluster.signal(gone, SIGKILL);
    // What the leader says of it may be a heartbeat old.
    EXPECT_TRUE(within_a_minute([&] {
        shown = status_that_ends_with(all, 0);
        return shown.output.find("2 of 3 hold its log\n") != std::string::npos;
    })) << shown.output;
    EXPECT_THAT(shown.output, HasSubstr("does not answer: Connection refused"));
    cluster.signal(hangs, SIGSTOP);
    all.insert(all.end(), {"--timeout-ms", "500"});
    shown = status(all);
    EXPECT_THAT(shown.output, HasSubstr("does not answer: Connection timed out"));
    cluster.signal(hangs, SIGCONT);

    // One alone has no majority, whether it has led until now or not.
    cluster.signal(leader, SIGKILL);
    shown = status_that_ends_with(cluster.servers(), 1);
    EXPECT_THAT(shown.output, testing::AnyOf(HasSubstr("no leader among those that answered"),
                                             HasSubstr("1 of 3 hold its log: no majority")));
}

TEST(Status, is_one_json_object) {
    Cluster cluster(flags("durable"));
    const int leader = cluster.wait_for_leader();
    ASSERT_NE(leader, 0);
    std::vector<std::string> args = cluster.servers();
    args.push_back("--json");
    const Finished shown = status_that_ends_with(args, 0);
    EXPECT_THAT(shown.output, testing::StartsWith("{\"leader\": " + id_text(leader) + ", \"serves\": true, "));
    for (const char* key : {"\"address\": \"127.0.0.1:", "\"answered\": true", "\"role\": \"leader\"", "\"ballot\": \"",
                            "\"committed\": ", "\"applied\": ", "\"lag\": ", "\"durable\": ",
                            "\"durability\": \"durable\"", "\"path\": \"tcp (", "\"lane\": \"streaming\""})
        EXPECT_THAT(shown.output, HasSubstr(key));
    if (program_exists("python3")) {
        const Finished parsed =
            run_program({"python3", "-c", "import json, sys; json.loads(sys.argv[1])", shown.output});
        EXPECT_EQ(parsed.status, 0) << parsed.output << shown.output;
    }
}

TEST(Status, wrong_arguments_and_what_is_no_replica_are_told) {
    EXPECT_NE(status({}).status, 0);
    Finished shown = status({"127.0.0.1"});
    EXPECT_EQ(shown.status, 2);
    EXPECT_THAT(shown.output, HasSubstr("\"127.0.0.1\" has no port"));
    shown = status({"127.0.0.1:7", "127.0.0.1:x"});
    EXPECT_EQ(shown.status, 2);
    EXPECT_THAT(shown.output, HasSubstr("no number"));
    shown = status({"127.0.0.1:7", "--timeout-ms", "1"});
    EXPECT_NE(shown.status, 0);
    EXPECT_THAT(shown.output, HasSubstr("600000"));
    shown = status({"no-such-host.invalid:7"});
    EXPECT_EQ(shown.status, 1);
    EXPECT_THAT(shown.output, HasSubstr("its host is not found"));
}

}  // namespace
}  // namespace lockstep::counter
