// A client of servers under test that speaks bytes.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace lockstep::counter {

// A blocking client with deadlines. A failure is a test failure.
class TestClient {
 public:
    explicit TestClient(std::uint16_t port);
    ~TestClient();
    TestClient(TestClient&& other) noexcept;
    TestClient(const TestClient&) = delete;

    void send(std::string_view bytes);
    // The next reply, whole, as bytes; what came before the end if the server closed, followed by "<closed>".
    std::string receive();
    // So many replies, one after the other.
    std::string receive(std::size_t replies);
    std::string ask(std::string_view bytes) {
        send(bytes);
        return receive();
    }
    // Whether the server has closed the connection and sent nothing more before.
    bool closed();
    void finish_sending();

 private:
    bool read_some();
    int socket_ = -1;
    std::string received_;
};

// A loopback port that nobody has, and nobody gets by chance while this process lives: for servers that need to know
// each other's before they start.
std::uint16_t free_port();
// Whether anybody listens there.
bool port_answers(std::uint16_t port);

// RESP's array of bulk strings.
std::string request(std::initializer_list<std::string_view> args);

}  // namespace lockstep::counter
