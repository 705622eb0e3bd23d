#include <lockstep/options.h>

#include "consensus/replica/options_check.h"
#include "log/ring.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <iterator>
#include <set>
#include <string_view>

namespace lockstep {
namespace {

constexpr std::size_t kMaxPathBytes = 1024;
constexpr std::size_t kMaxAddressBytes = 255;

using Problem = std::optional<OptionProblem>;

bool is_printable(std::string_view text) {
    return std::none_of(text.begin(), text.end(), [](char c) {
        const auto byte = static_cast<unsigned char>(c);
        return byte < 0x20 || byte == 0x7f;
    });
}

const KeyRange* find_range(std::string_view key) {
    const auto found = std::find_if(std::begin(kKeyRanges), std::end(kKeyRanges),
                                    [key](const KeyRange& range) { return range.key == key; });
    return found == std::end(kKeyRanges) ? nullptr : found;
}

// `key` is one of kKeyRanges.
Problem check_range(const char* key, std::uint64_t value) {
    const KeyRange& range = *find_range(key);
    if (value >= range.low && value <= range.high) return {};
    return OptionProblem{key, {}, std::to_string(value) + " is not in " + allowed_range(key)};
}

// What is wrong with "host:port" or "[IPv6]:port"; empty if nothing.
std::string address_problem(std::string_view address, std::uint32_t lowest_port) {
    if (address.empty()) return "is missing: \"host:port\" is needed, such as \"127.0.0.1:7101\"";
    const std::string shown = quoted(address);
    if (address.size() > kMaxAddressBytes) {
        return shown + " is longer than " + std::to_string(kMaxAddressBytes) + " bytes";
    }
    const std::size_t colon = address.rfind(':');
    if (colon == std::string_view::npos) return shown + " has no port: \"host:port\" is needed";
    std::string_view host = address.substr(0, colon);
    const bool bracketed = host.size() >= 2 && host.front() == '[' && host.back() == ']';
    if (bracketed) host = host.substr(1, host.size() - 2);
    if (host.empty()) return shown + " has no host: \"host:port\" is needed, such as \"127.0.0.1:7101\"";
    if (!bracketed && host.find(':') != std::string_view::npos) {
        return shown + " is ambiguous: an IPv6 address goes in brackets, as in \"[::1]:7101\"";
    }
    if (host.find_first_of(" []/@") != std::string_view::npos || !is_printable(host)) {
        return shown + ": the host has a character that no host name or address has";
    }
    const std::string_view port = address.substr(colon + 1);
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
    if (error != std::errc{} || end != port.data() + port.size() || number > 65535 || number < lowest_port) {
        return shown + ": port " + quoted(port) + " is not in " + std::to_string(lowest_port) + " to 65535";
    }
    return {};
}

// Member number `at`, as the other members leave room for it.
Problem check_member(const Options& options, std::size_t at, std::set<std::string>& addresses) {
    const Member& member = options.members[at];
    if (!member.id) return OptionProblem{"id", at, "is missing or 0: 1 to 255 is needed"};
    const auto same_id = [&](const Member& other) { return other.id == member.id; };
    const auto first = std::find_if(options.members.begin(), options.members.end(), same_id);
    if (static_cast<std::size_t>(first - options.members.begin()) != at) {
        return OptionProblem{"id", at, std::to_string(member.id.value) + " is another member's too: ids must differ"};
    }
    // Only one that nobody else has to find may let the system pick its port.
    const std::uint32_t lowest_port = options.members.size() == 1 ? 0 : 1;
    if (std::string problem = address_problem(member.address, lowest_port); !problem.empty()) {
        return OptionProblem{"address", at, std::move(problem)};
    }
    if (!addresses.insert(member.address).second) {
        return OptionProblem{"address", at, quoted(member.address) + " is used twice: each port needs its own"};
    }
    if (member.client_address.empty()) return {};
    if (std::string problem = address_problem(member.client_address, lowest_port); !problem.empty()) {
        return OptionProblem{"client_address", at, std::move(problem)};
    }
    if (!addresses.insert(member.client_address).second) {
        return OptionProblem{"client_address", at,
                             quoted(member.client_address) + " is used twice: each port needs its own"};
    }
    return {};
}

Problem check_members(const Options& options) {
    if (options.members.empty()) {
        return OptionProblem{"members", {}, "is empty: 1 to " + std::to_string(kMaxReplicas) + " members are needed"};
    }
    if (options.members.size() > kMaxReplicas) {
        return OptionProblem{"members", {}, std::to_string(options.members.size()) + " members are too many: " +
                                                std::to_string(kMaxReplicas) + " at most"};
    }
    std::set<std::string> addresses;
    for (std::size_t at = 0; at < options.members.size(); ++at) {
        if (Problem problem = check_member(options, at, addresses)) return problem;
    }
    const auto is_this = [&](const Member& member) { return member.id == options.id; };
    if (std::none_of(options.members.begin(), options.members.end(), is_this)) {
        std::string ids;
        for (const Member& member : options.members) {
            ids += (ids.empty() ? "" : ", ") + std::to_string(member.id.value);
        }
        return OptionProblem{"id", {}, std::to_string(options.id.value) + " is no member's: the members are " + ids};
    }
    return {};
}

Problem check_data_folder(const std::string& folder) {
    if (folder.empty()) return OptionProblem{"data_folder", {}, "is missing: the path of a folder is needed"};
    if (folder.size() > kMaxPathBytes) {
        return OptionProblem{"data_folder", {}, quoted(folder) + " is longer than " + std::to_string(kMaxPathBytes) +
                                                    " bytes"};
    }
    if (!is_printable(folder)) {
        return OptionProblem{"data_folder", {}, quoted(folder) + " has a control character in it"};
    }
    return {};
}

Problem check_ring(std::uint64_t bytes) {
    if (Problem problem = check_range("ring_bytes", bytes)) return problem;
    if (std::has_single_bit(bytes)) return {};
    return OptionProblem{"ring_bytes", {}, std::to_string(bytes) + " is not a power of two; the nearest below is " +
                                               std::to_string(std::bit_floor(bytes))};
}

Problem check_times(const Options& options) {
    if (Problem problem = check_range("election_timeout_ms", options.election_timeout_ms)) return problem;
    const std::uint32_t quarter = options.election_timeout_ms / 4;
    if (options.heartbeat_ms >= 1 && options.heartbeat_ms <= quarter) return {};
    return OptionProblem{"heartbeat_ms", {}, std::to_string(options.heartbeat_ms) + " is not in 1 to " +
                                                 std::to_string(quarter) + ", a quarter of election_timeout_ms"};
}

}  // namespace

std::string OptionProblem::message() const {
    const std::string where = member ? "members[" + std::to_string(*member) + "]." + key : key;
    return where + ": " + text;
}

std::string allowed_range(std::string_view key) {
    const KeyRange* range = find_range(key);
    if (range == nullptr) return {};
    std::string text = std::to_string(range->low) + " to " + std::to_string(range->high);
    if (!range->remark.empty()) text.append(", ").append(range->remark);
    return text;
}

std::string quoted(std::string_view text) {
    constexpr std::size_t kShown = 80;
    constexpr char kDigits[] = "0123456789abcdef";
    std::string out = "\"";
    for (const char c : text.substr(0, kShown)) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte < 0x20 || byte == 0x7f) {
            out += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
        } else {
            out += c;
        }
    }
    return out + (text.size() > kShown ? "...\"" : "\"");
}

namespace {

Problem check_transport(const Options& options) {
    // The kernel's own bound on a device's name.
    constexpr std::size_t kMaxDeviceBytes = 63;
    if (options.transport > Transport::automatic)
        return OptionProblem{"transport", {}, std::to_string(static_cast<int>(options.transport)) +
                                                  " is none of tcp, rdma, automatic"};
    if (options.rdma_device.size() > kMaxDeviceBytes || !is_printable(options.rdma_device))
        return OptionProblem{"rdma_device", {}, quoted(options.rdma_device) +
                                                    " is no device's name: one such as \"mlx5_0\" is needed"};
    if (options.rdma_gid_index < -1 || options.rdma_gid_index > 255)
        return OptionProblem{"rdma_gid_index", {}, std::to_string(options.rdma_gid_index) +
                                                       " is not in -1 to 255, -1 for the one of the address"};
    return check_range("rdma_port", options.rdma_port);
}

}  // namespace

std::optional<OptionProblem> find_problem(const Options& options) {
    if (options.cluster_id == 0) {
        return OptionProblem{"cluster_id", {}, "is missing or 0: a random number is needed, the same on all replicas"};
    }
    if (!options.id) {
        return OptionProblem{"id", {}, "is missing or 0: 1 to 255 is needed, the id of one of the members"};
    }
    if (Problem problem = check_members(options)) return problem;
    if (Problem problem = check_data_folder(options.data_folder)) return problem;
    if (options.form && options.join)
        return OptionProblem{"join", {}, "is set, and so is form: one comes into the cluster that there is, the other "
                                         "makes a new one"};
    if (Problem problem = check_ring(options.ring_bytes)) return problem;
    if (Problem problem = check_times(options)) return problem;
    if (Problem problem = check_range("max_queued_proposals", options.max_queued_proposals)) return problem;
    if (Problem problem = check_range("max_queued_bytes", options.max_queued_bytes)) return problem;
    if (options.polling > Polling::spin) {
        return OptionProblem{"polling", {}, std::to_string(static_cast<int>(options.polling)) + " is none of blocking, "
                                                "adaptive, spin"};
    }
    if (Problem problem = check_range("spin_us", options.spin_us)) return problem;
    if (options.durability > Durability::persist_async)
        return OptionProblem{"durability", {}, std::to_string(static_cast<int>(options.durability)) +
                                                   " is none of memory, persist_async, durable"};
    constexpr std::uint64_t kMinSnapshotBytes = std::uint64_t{64} << 10;
    constexpr std::uint64_t kMaxSnapshotBytes = std::uint64_t{1} << 50;
    if (options.snapshot_bytes != 0 &&
        (options.snapshot_bytes < kMinSnapshotBytes || options.snapshot_bytes > kMaxSnapshotBytes))
        return OptionProblem{"snapshot_bytes", {}, std::to_string(options.snapshot_bytes) + " is neither 0 nor in " +
                                                       std::to_string(kMinSnapshotBytes) + " to " +
                                                       std::to_string(kMaxSnapshotBytes)};
    return check_transport(options);
}

Result<void> Options::check() const {
    const std::optional<OptionProblem> problem = find_problem(*this);
    if (problem) return Error(problem->message());
    return {};
}

std::uint64_t Options::max_command_bytes() const {
    const std::uint64_t in_ring = log::Geometry::of(ring_bytes).max_entry_bytes - sizeof(log::EntryHeader);
    return std::min(in_ring, max_queued_bytes);
}

}  // namespace lockstep
