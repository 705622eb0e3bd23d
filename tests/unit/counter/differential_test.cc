// The same bytes to this server and to Debian's redis-server: the same bytes must come back.
#include "tests/unit/counter/redis_process.h"
#include "tests/unit/counter/server_fixture.h"

#include <chrono>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace lockstep::counter {
namespace {

using Words = std::vector<std::string>;

class CounterLikeRedis : public ServerTest {
 protected:
    void SetUp() override {
        std::string why;
        redis_ = RedisProcess::start(why);
        if (!redis_) GTEST_SKIP() << why << ": nothing to compare with";
        start();
    }
    // Sends `bytes` to both on new connections and compares all that comes until both have closed.
    void compare_whole(const std::string& bytes) {
        TestClient ours = client();
        TestClient theirs(redis_->port());
        ours.send(bytes);
        theirs.send(bytes);
        ours.finish_sending();
        theirs.finish_sending();
        EXPECT_EQ(all_of(ours), all_of(theirs)) << "for " << testing::PrintToString(bytes);
    }
    std::unique_ptr<RedisProcess> redis_;

 private:
    static std::string all_of(TestClient& c) {
        std::string all;
        while (!all.ends_with("<closed>")) all += c.receive();
        return all;
    }
};

// Random commands: mostly right, some wrong in every way that a client can be wrong.
class Stream {
 public:
    explicit Stream(std::uint64_t seed) : random_(seed) {}

    Words command() {
        switch (pick(14)) {
            case 0: return {"INCR", key()};
            case 1: return {any_case("decr"), key()};
            case 2: return {"INCRBY", key(), number()};
            case 3: return {any_case("decrby"), key(), number()};
            case 4: return {"GET", key()};
            case 5: return many(any_case("mget"));
            case 6: return set();
            case 7: return many("DEL");
            case 8: return many("exists");
            case 9: return pick(4) == 0 ? Words{"DBSIZE"} : Words{any_case("ping")};
            case 10: return {"ECHO", value()};
            case 11: return connection();
            case 12: return wrong_arity();
            default: return unknown();
        }
    }

    std::size_t pick(std::size_t bound) { return random_() % bound; }

 private:
    std::string any_case(std::string name) {
        for (char& c : name) {
            if (pick(2) == 0) c = static_cast<char>(c - 32);
        }
        return name;
    }
    std::string key() {
        static const Words kKeys = {"a", "b", "c", "d", "", "key:__rand_int__", "with blank", std::string("nul\0l", 5),
                                    "line\r\nbreak", "\xff\xfe", std::string(300, 'k')};
        return kKeys[pick(kKeys.size())];
    }
    std::string number() {
        static const Words kNumbers = {"1",
                                       "-1",
                                       "0",
                                       "10",
                                       "9223372036854775807",
                                       "-9223372036854775808",
                                       "5000000000000000000",
                                       "-5000000000000000000",
                                       "9223372036854775808",
                                       "abc",
                                       "",
                                       "1.5",
                                       " 1",
                                       "01",
                                       "-0",
                                       "+1",
                                       "1 ",
                                       "99999999999999999999999"};
        return pick(3) == 0 ? kNumbers[pick(kNumbers.size())] : std::to_string(static_cast<int>(pick(200)) - 100);
    }
    std::string value() { return pick(2) == 0 ? number() : key(); }
    Words many(const std::string& name) {
        Words words = {name};
        const std::size_t keys = 1 + pick(4);
        for (std::size_t i = 0; i < keys; ++i) words.push_back(key());
        return words;
    }
    Words set() {
        Words words = {any_case("set"), key(), value()};
        static const Words kOptions = {"NX", "xx", "GET", "nX", "bogus", "get"};
        const std::size_t options = pick(3) == 0 ? 1 + pick(3) : 0;
        for (std::size_t i = 0; i < options; ++i) words.push_back(kOptions[pick(kOptions.size())]);
        return words;
    }
    Words connection() {
        switch (pick(10)) {
            case 0: return {"SELECT", "0"};
            case 1: return {"SELECT", pick(2) == 0 ? "x" : "99999999999"};
            case 2: return {"CLIENT", "SETNAME", "name"};
            case 3: return {"CLIENT", "SETNAME", "bad name"};
            case 4: return {"CLIENT", "GETNAME"};
            case 5: return {"CLIENT", "NO-EVICT", pick(2) == 0 ? "ON" : "maybe"};
            case 6: return {"CLIENT", pick(2) == 0 ? "NOSUCH" : std::string("no\0such", 7), "x"};
            case 7: return {"PING", value()};
            case 8: return {"CONFIG", "GET", pick(2) == 0 ? "save" : "nosuch*"};
            default: return {"HELLO", pick(2) == 0 ? "9" : "x"};
        }
    }
    Words wrong_arity() {
        static const std::vector<Words> kWrong = {{"INCR"},
                                                  {"INCR", "a", "b"},
                                                  {"INCRBY", "a"},
                                                  {"decrby", "a", "1", "2"},
                                                  {"GET"},
                                                  {"GET", "a", "b"},
                                                  {"MGET"},
                                                  {"SET", "a"},
                                                  {"DEL"},
                                                  {"EXISTS"},
                                                  {"ECHO"},
                                                  {"ECHO", "a", "b"},
                                                  {"PING", "a", "b"},
                                                  {"SELECT"},
                                                  {"DBSIZE", "x"},
                                                  {"CLIENT"},
                                                  {"CONFIG"},
                                                  {"CLIENT", "SETNAME"},
                                                  {"CLIENT", "GETNAME", "x"},
                                                  {"CONFIG", "GET"},
                                                  {"COMMAND", "COUNT", "x"},
                                                  {"RESET", "x"},
                                                  {"BGSAVE", "now"},
                                                  {"bgsave", "SCHEDULE", "x"},
                                                  {"LASTSAVE", "x"}};
        return kWrong[pick(kWrong.size())];
    }
    Words unknown() {
        Words words = {pick(2) == 0 ? "nosuch" : key()};
        const std::size_t args = pick(4);
        for (std::size_t i = 0; i < args; ++i) words.push_back(value());
        if (pick(4) == 0) words.push_back(std::string(200, 'z'));
        return words;
    }

    std::mt19937_64 random_;
};

std::string encode(const Words& words) {
    std::string bytes = "*" + std::to_string(words.size()) + "\r\n";
    for (const std::string& word : words) bytes += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
    return bytes;
}

TEST_F(CounterLikeRedis, random_pipelines_get_the_same_replies) {
    const char* given = std::getenv("LOCKSTEP_SEED");
    const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
    SCOPED_TRACE("LOCKSTEP_SEED=" + std::to_string(seed));
    Stream stream(seed);
    TestClient ours = client();
    TestClient theirs(redis_->port());
    for (int round = 0; round < 2000; ++round) {
        std::vector<Words> commands;
        std::string bytes;
        for (std::size_t i = 0, count = 1 + stream.pick(10); i < count; ++i) {
            commands.push_back(stream.command());
            bytes += encode(commands.back());
        }
        ours.send(bytes);
        theirs.send(bytes);
        for (const Words& command : commands) {
            ASSERT_EQ(ours.receive(), theirs.receive())
                << "for " << testing::PrintToString(command) << " in round " << round;
        }
    }
}

TEST_F(CounterLikeRedis, words_typed_by_hand_get_the_same_replies) {
    for (const char* line : {"PING",
                             "  ping  ",
                             "SET x \"a b\"",
                             "GET x",
                             "SET x 'it\\'s'",
                             "GET x",
                             "SET x \"\\x41\\n\\q\"",
                             "GET x",
                             "SET x a\"b\"",
                             "GET x",
                             "SET \"\" \"\"",
                             "GET \"\"",
                             "",
                             "  ",
                             "nosuch 'a b' c",
                             "INCR n extra",
                             "SET x \"unbalanced",
                             "SET x 'unbalanced",
                             "SET x \"a\"b",
                             "set x \"\\xzz\"",
                             "get x"}) {
        compare_whole(std::string(line) + "\r\n");
        compare_whole(std::string(line) + "\nPING\n");
    }
}

// One while the other is under way is an error in both; afterwards the time of the last is there.
TEST_F(CounterLikeRedis, background_saves_get_the_same_replies) {
    TestClient ours = client();
    TestClient theirs(redis_->port());
    const auto both = [&](const std::string& line) {
        const std::string reply = ours.ask(line + "\r\n");
        EXPECT_EQ(reply, theirs.ask(line + "\r\n")) << line;
        return reply;
    };
    // Redis holds its child up for this long with every key, so that it is under way when it is asked again.
    ASSERT_EQ(theirs.ask("CONFIG SET rdb-key-save-delay 300000\r\n"), "+OK\r\n");
    both("SET x 1");
    cluster_->hold_snapshots(true);
    EXPECT_EQ(both("BGSAVE"), "+Background saving started\r\n");
    EXPECT_EQ(both("BGSAVE"), "-ERR Background save already in progress\r\n");
    EXPECT_EQ(both("bgsave schedule"), "-ERR Background save already in progress\r\n");
    EXPECT_EQ(ours.ask("LASTSAVE\r\n").front(), theirs.ask("LASTSAVE\r\n").front());
    cluster_->hold_snapshots(false);
    EXPECT_NE(ours.ask("INFO persistence\r\n").find("rdb_bgsave_in_progress:0"), std::string::npos);
    for (int i = 0; i < 500; ++i) {
        if (theirs.ask("INFO persistence\r\n").find("rdb_bgsave_in_progress:0") != std::string::npos) break;
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_EQ(both("BGSAVE SCHEDULE"), "+Background saving started\r\n");
}

TEST_F(CounterLikeRedis, broken_protocol_gets_the_same_error_and_end) {
    const std::vector<std::string> streams = {
        "*x\r\n", "*\r\n", "*-5\r\nPING\r\n", "*0\r\nPING\r\n", "*9999999999\r\n", "*1\r\nPING\r\n", "*1\r\n\r\n",
        "*1\r\n$x\r\n", "*1\r\n$-1\r\n", "*1\r\n$01\r\nx\r\n", "*1\r\n$99999999999\r\n", "*2\r\n$4\r\nPING\r\n+x\r\n",
        "*1\r\n$4\r\nPING__*1\r\n$4\r\nPING\r\n", "PING\r\n*1\r\n:1\r\n", std::string(70'000, 'x'),
        "*" + std::string(70'000, '1'), "*1\r\n$" + std::string(70'000, '1'), "QUIT\r\nPING\r\n", "quit now\r\n"};
    for (const std::string& stream : streams) compare_whole(stream);
}

}  // namespace
}  // namespace lockstep::counter
