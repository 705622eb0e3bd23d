// One Redis client.
#pragma once

#include "tools/counter/client.h"
#include "tools/counter/connection.h"
#include "tools/counter/group.h"
#include "tools/counter/resp.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::counter {

// Turns what the client has sent into groups, one under way at a time: so commands take effect, and are answered, in
// their order, whatever becomes of a group. What comes in meanwhile gathers in the next. A client that does not read
// its replies is not served further, and its memory stays bounded. Threads: the server's.
class Session final : public Connection, public Requester {
 public:
    struct Hooks {
        std::function<void(Session&)> closed;
        // The client is another replica's counter: takes the socket over, and what has been read of it since.
        std::function<void(Socket, std::string_view unread)> upgraded;
    };
    // `shared` and `hooks` must outlive the session.
    Session(Socket socket, Shared& shared, const Hooks& hooks, std::uint64_t id);
    void start();

    void answered(Request& request) override;
    bool gone() const override { return closed(); }

 private:
    // A reply made here, to be put between those of the group.
    struct Literal {
        std::uint32_t after;    // so many commands of the group come before it
        std::size_t end;        // of its bytes in `literal_bytes`
    };
    struct Pipeline {
        Request request;
        std::uint32_t commands = 0;    // in the group
        std::vector<Literal> literals;
        std::string literal_bytes;
        bool sealed = false;           // takes no more
        bool closes = false;           // the connection ends after its replies
        bool empty() const { return commands == 0 && literals.empty(); }
    };

    void on_input() override { process(); }
    void on_end() override;
    void on_sent() override { process(); }
    void on_closed() override;

    void process();
    // Puts what has arrived into the filling pipeline. True if it stopped because the client has much to read.
    bool take_commands();
    void take_command(std::span<const std::string_view> args);
    void take_data_command(const CommandSpec& spec, std::span<const std::string_view> args);
    // Starts a reply made here: append to what it returns, then call `literal_ends`.
    std::string& literal_begins() { return filling().literal_bytes; }
    void literal_ends();
    void refuse(std::string_view error);
    // True if the pipeline needed no log: its replies are in the output, and there is room for another.
    bool send_off();
    void upgrade();
    void splice(const Pipeline& pipeline, std::string_view replies);
    void append_errors(const Pipeline& pipeline, std::string& out) const;
    void reset(Pipeline& pipeline);
    Pipeline& filling() { return pipelines_[filling_]; }

    Shared& shared_;
    const Hooks& hooks_;
    Client client_;
    RequestParser parser_;
    Pipeline pipelines_[2];        // one fills while the other is under way
    std::size_t filling_ = 0;
    bool under_way_ = false;
    bool input_ended_ = false;
    bool processing_ = false;
};

}  // namespace lockstep::counter
