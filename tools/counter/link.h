// Another replica's counter, which hands groups of its clients to this one: the leader's side of Upstream.
#pragma once

#include "tools/counter/client.h"
#include "tools/counter/connection.h"

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

namespace lockstep::counter {

// Each group is tried at this replica's own log and nowhere else. Threads: the server's.
class Link final : public Connection, public Requester {
 public:
    struct Hooks {
        std::function<void(Link&)> closed;
        std::function<void(Link&)> answered;   // an answer is in the output: `flush_answers` is due
    };
    // `shared` and `hooks` must outlive the link. `unread` is what came behind the upgrade.
    Link(Socket socket, Shared& shared, const Hooks& hooks, std::string_view unread);
    void start();

    void answered(Request& request) override;
    bool gone() const override { return closed(); }
    // Sends the answers, and takes what had to wait for room.
    void flush_answers() {
        flush();
        if (!closed()) on_input();
    }

 private:
    struct Forwarded : Request {
        std::uint64_t number = 0;
    };
    void on_input() override;
    void on_end() override { close(); }
    void on_sent() override { on_input(); }
    void on_closed() override { hooks_.closed(*this); }
    void take(std::string_view frame);
    void put_answer(const Forwarded& forwarded);

    Shared& shared_;
    const Hooks& hooks_;
    std::vector<std::unique_ptr<Forwarded>> all_;
    std::vector<Forwarded*> free_;
};

}  // namespace lockstep::counter
