#include "tools/cli/replica_answer.h"

#include "tools/counter/address.h"
#include "tools/counter/ask.h"

#include <boost/asio/io_context.hpp>

#include <algorithm>
#include <charconv>

namespace lockstep::cli {

namespace {

constexpr std::string_view kQuestion = "*2\r\n$4\r\nINFO\r\n$11\r\nreplication\r\n";

std::uint64_t number(std::string_view text) {
    std::uint64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

std::string printable(std::string_view text) {
    std::string out(text);
    for (char& c : out)
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
    return out;
}

// "connected=yes,votes=yes,path=PATH,lane=LANE,landed=1,consumed=2": path and lane are texts with commas of their own.
PeerAnswer read_peer(std::uint64_t id, std::string_view text) {
    const auto between = [text](std::string_view key, std::string_view next) {
        const std::size_t at = text.find(key);
        if (at == std::string_view::npos) return std::string_view{};
        const std::size_t from = at + key.size();
        const std::size_t to = next.empty() ? text.size() : text.find(next, from);
        return text.substr(from, to == std::string_view::npos ? to : to - from);
    };
    PeerAnswer peer;
    peer.id = id;
    peer.connected = between("connected=", ",votes=") == "yes";
    peer.votes = between(",votes=", ",path=") == "yes";
    peer.path = printable(between(",path=", ",lane="));
    peer.lane = printable(between(",lane=", ",landed="));
    peer.landed = number(between(",landed=", ",consumed="));
    peer.consumed = number(between(",consumed=", ""));
    return peer;
}

void take(ReplicaAnswer& answer, std::string_view key, std::string_view value) {
    if (key == "replica_id") answer.id = number(value);
    else if (key == "role") answer.role = printable(value);
    else if (key == "leader") answer.leader = number(value);  // "none" is no number
    else if (key == "ballot") answer.ballot = printable(value);
    else if (key == "committed") answer.committed = number(value);
    else if (key == "applied") answer.applied = number(value);
    else if (key == "log_end") answer.log_end = number(value);
    else if (key == "durability") answer.durability = printable(value);
    else if (key == "durable") answer.durable = number(value);
    else if (key == "snapshot") answer.snapshot = number(value);
    else if (key == "note") answer.note = printable(value);
    else if (key.starts_with("peer") && key != "peers")
        answer.peers.push_back(read_peer(number(key.substr(4)), value));
}

}  // namespace

std::optional<ReplicaAnswer> read_info(std::string_view text) {
    ReplicaAnswer answer;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find("\r\n"), text.size());
        const std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 2, text.size()));
        const std::size_t colon = line.find(':');
        if (colon != std::string_view::npos) take(answer, line.substr(0, colon), line.substr(colon + 1));
    }
    if (answer.id == 0 || answer.durability.empty()) return {};
    return answer;
}

Result<ReplicaAnswer> ask_replica(const std::string& address, std::chrono::milliseconds patience) {
    const auto parsed = counter::parse_address(address);
    if (!parsed) return parsed.error();
    boost::asio::io_context io;
    boost::system::error_code failed;
    const auto found = boost::asio::ip::tcp::resolver(io).resolve(
        parsed.value().host, std::to_string(parsed.value().port), failed);
    if (failed || found.empty()) return Error("its host is not found: " + failed.message());
    auto reply = counter::ask_once(found.begin()->endpoint(), std::string(kQuestion), patience);
    if (!reply) return std::move(reply).error();
    const std::string& bytes = reply.value();
    const std::size_t line_end = bytes.find("\r\n");
    if (bytes.front() == '-') return Error("it refuses: " + printable(bytes.substr(1, line_end - 1)));
    const auto answer = bytes.front() == '$' ? read_info(std::string_view(bytes).substr(line_end + 2)) : std::nullopt;
    if (!answer) return Error("what answers there is no replica of lockstep-counter");
    return *answer;
}

}  // namespace lockstep::cli
