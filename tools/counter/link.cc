#include "tools/counter/link.h"

#include "tools/counter/frame.h"
#include "tools/counter/group.h"

#include <cstring>
#include <utility>

namespace lockstep::counter {

Link::Link(Socket socket, Shared& shared, const Hooks& hooks, std::string_view unread)
    : Connection(std::move(socket)), shared_(shared), hooks_(hooks) {
    if (unread.empty()) return;
    std::memcpy(input().room(unread.size()), unread.data(), unread.size());
    input().added(unread.size());
}

void Link::start() {
    prepare();
    output() += "+OK\r\n";
    flush();
    on_input();
}

void Link::on_input() {
    const std::size_t most = kRequestHeaderBytes + kGroupBytes * 2 + std::size_t{shared_.limits.query_bytes} * 2;
    bool oversized = false;
    while (!closed() && output_bytes() < kOutputHighWaterBytes && all_.size() - free_.size() < kMaxForwarded) {
        const std::string_view frame = first_frame(input().unread(), kRequestHeaderBytes, most, oversized);
        if (oversized) return close();
        if (frame.empty()) return read_more();
        take(frame);
        input().consume(kFrameLengthBytes + frame.size());
    }
}

void Link::take(std::string_view frame) {
    if (free_.empty()) {
        all_.push_back(std::make_unique<Forwarded>());
        free_.push_back(all_.back().get());
    }
    Forwarded& forwarded = *free_.back();
    free_.pop_back();
    forwarded.number = get_number<std::uint64_t>(frame);
    forwarded.group.assign(frame.substr(kRequestHeaderBytes));
    forwarded.from_replica = true;
    forwarded.requester = std::static_pointer_cast<Link>(shared_from_this());
    const GroupSummary summary = summarize(forwarded.group);
    forwarded.writes = summary.writes;
    if (summary.whole && summary.commands > 0) return shared_.router.submit(forwarded);
    forwarded.end(Fate::rejected, Reason::none);
    forwarded.requester.reset();
    answered(forwarded);
}

void Link::answered(Request& request) {
    auto& forwarded = static_cast<Forwarded&>(request);
    if (!closed()) put_answer(forwarded);
    clear_and_trim(forwarded.group);
    clear_and_trim(forwarded.reply);
    free_.push_back(&forwarded);
    if (!closed()) hooks_.answered(*this);
}

void Link::put_answer(const Forwarded& forwarded) {
    std::string& out = output();
    put_number(out, static_cast<std::uint32_t>(kAnswerHeaderBytes + forwarded.reply.size()));
    put_number(out, forwarded.number);
    out.push_back(static_cast<char>(forwarded.fate));
    out.push_back(static_cast<char>(forwarded.reason));
    out.push_back(static_cast<char>(forwarded.leader.value));
    out += forwarded.reply;
}

}  // namespace lockstep::counter
