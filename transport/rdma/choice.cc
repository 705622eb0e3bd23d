#include "transport/rdma/choice.h"

#include "transport/rdma/verbs.h"

#include <algorithm>
#include <optional>

#include <arpa/inet.h>
#include <net/if.h>
#include <unistd.h>

namespace lockstep::transport::rdma {
namespace {

constexpr unsigned kMaxGids = 1024;
constexpr Gid kMappedPrefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
constexpr std::size_t kMappedBytes = 12;

bool is_mapped(const Gid& gid) {
    return std::equal(gid.begin(), gid.begin() + kMappedBytes, kMappedPrefix.begin());
}

bool is_link_local(const Gid& gid) { return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80; }

std::optional<Gid> gid_of(const std::string& address) {
    Gid gid = kMappedPrefix;
    if (inet_pton(AF_INET, address.c_str(), gid.data() + kMappedBytes) == 1) return gid;
    if (inet_pton(AF_INET6, address.c_str(), gid.data()) == 1) return gid;
    return std::nullopt;
}

bool names_one_machine(const std::string& address) {
    return address != "0.0.0.0" && address != "::" && address != "::1" && !address.starts_with("127.");
}

std::string kind_text(GidKind kind) {
    switch (kind) {
        case GidKind::roce_v2: return "RoCE v2";
        case GidKind::roce_v1: return "RoCE v1";
        case GidKind::infiniband: return "InfiniBand";
    }
    return "unknown";
}

PortInfo look_at_port(ibv_context* context, int number, const std::vector<ibv_gid_entry>& entries) {
    PortInfo port;
    port.number = number;
    ibv_port_attr attributes{};
    if (const int error = ibv_query_port(context, static_cast<std::uint8_t>(number), &attributes); error != 0) {
        port.state = std::string("unknown: ") + std::strerror(error);
        return port;
    }
    port.active = attributes.state == IBV_PORT_ACTIVE;
    port.state = ibv_port_state_str(attributes.state);
    port.ethernet = attributes.link_layer == IBV_LINK_LAYER_ETHERNET;
    port.lid = attributes.lid;
    port.mtu_bytes = 128u << attributes.active_mtu;
    for (const ibv_gid_entry& entry : entries) {
        if (entry.port_num != static_cast<std::uint32_t>(number)) continue;
        GidEntry& gid = port.gids.emplace_back();
        gid.index = static_cast<int>(entry.gid_index);
        gid.kind = entry.gid_type == IBV_GID_TYPE_ROCE_V2   ? GidKind::roce_v2
                   : entry.gid_type == IBV_GID_TYPE_ROCE_V1 ? GidKind::roce_v1
                                                            : GidKind::infiniband;
        std::copy(entry.gid.raw, entry.gid.raw + gid.gid.size(), gid.gid.begin());
        char name[IF_NAMESIZE];
        if (entry.ndev_ifindex != 0 && if_indextoname(entry.ndev_ifindex, name) != nullptr) gid.interface = name;
    }
    return port;
}

DeviceInfo look_at(ibv_device* device) {
    DeviceInfo info;
    info.name = ibv_get_device_name(device);
    info.hardware = ::access((std::string(device->ibdev_path) + "/device").c_str(), F_OK) == 0;
    const Context context(ibv_open_device(device));
    if (!context) {
        info.problem = std::string("cannot be opened: ") + std::strerror(errno);
        return info;
    }
    ibv_device_attr attributes{};
    if (const int error = ibv_query_device(context.get(), &attributes); error != 0) {
        info.problem = std::string("does not answer: ") + std::strerror(error);
        return info;
    }
    std::vector<ibv_gid_entry> entries(kMaxGids);
    const ssize_t count = ibv_query_gid_table(context.get(), entries.data(), entries.size(), 0);
    entries.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
    for (int port = 1; port <= attributes.phys_port_cnt; ++port)
        info.ports.push_back(look_at_port(context.get(), port, entries));
    return info;
}

// Why an entry does not do; nothing if it does.
std::optional<std::string> refusal(const GidEntry& entry, const Wish& wish) {
    if (wish.gid_index >= 0) {
        if (entry.index == wish.gid_index) return std::nullopt;
        return "another index is asked for, " + std::to_string(wish.gid_index);
    }
    if (entry.kind != GidKind::roce_v2) return kind_text(entry.kind) + ", and RoCE v2 is needed";
    if (!names_one_machine(wish.address)) {
        if (wish.device.empty()) return "the address " + wish.address + " names no network: name a device";
        return std::nullopt;
    }
    if (const auto own = gid_of(wish.address); own && *own == entry.gid) return std::nullopt;
    return "not the replica's address, " + wish.address;
}

// The entry to use of an Ethernet port; where several do, a routable one.
const GidEntry* entry_of(const PortInfo& port, const Wish& wish) {
    const GidEntry* found = nullptr;
    for (const GidEntry& entry : port.gids) {
        if (refusal(entry, wish)) continue;
        if (found == nullptr || (is_link_local(found->gid) && !is_link_local(entry.gid))) found = &entry;
    }
    return found;
}

std::string table_of(const DeviceInfo& device, const PortInfo& port, const Wish& wish) {
    const std::string head = "\n  " + device.name + " port " + std::to_string(port.number);
    if (wish.port != 0 && wish.port != port.number) return head + ": another port is asked for";
    if (!port.active) return head + ": its state is " + port.state;
    if (!port.ethernet) return head + ": InfiniBand without a LID: is a subnet manager running?";
    if (port.gids.empty()) return head + ": its GID table is empty: its network interface has no address";
    std::string text;
    for (const GidEntry& entry : port.gids)
        text += head + " GID " + std::to_string(entry.index) + " " + to_string(entry.gid) + " (" +
                kind_text(entry.kind) + (entry.interface.empty() ? "" : ", " + entry.interface) +
                "): " + refusal(entry, wish).value_or("fits");
    return text;
}

}  // namespace

std::vector<DeviceInfo> survey() {
    std::vector<DeviceInfo> found;
    int count = 0;
    const std::unique_ptr<ibv_device*, Freer<ibv_free_device_list>> list(ibv_get_device_list(&count));
    for (int i = 0; list && i < count; ++i) found.push_back(look_at(list.get()[i]));
    return found;
}

Result<Choice> choose(const std::vector<DeviceInfo>& devices, const Wish& wish) {
    if (devices.empty())
        return Error("this machine has no RDMA device: \"ibv_devices\" lists them; is its driver loaded?");
    std::string table;
    for (const DeviceInfo& device : devices) {
        if (!wish.device.empty() && device.name != wish.device) {
            table += "\n  " + device.name + ": another device is asked for, " + wish.device;
            continue;
        }
        if (!device.problem.empty()) table += "\n  " + device.name + ": " + device.problem;
        for (const PortInfo& port : device.ports) {
            const bool asked_for = wish.port == 0 || wish.port == port.number;
            if (asked_for && port.active && !port.ethernet && port.lid != 0) {
                const GidEntry* first = port.gids.empty() ? nullptr : &port.gids.front();
                return Choice{device.name, device.hardware, port.number, false, 0, first ? first->gid : Gid{}};
            }
            const GidEntry* entry = asked_for && port.active && port.ethernet ? entry_of(port, wish) : nullptr;
            if (entry != nullptr)
                return Choice{device.name, device.hardware, port.number, true, entry->index, entry->gid};
            table += table_of(device, port, wish);
        }
    }
    return Error("no RDMA device fits the address " + wish.address + ":" + table);
}

std::string Choice::text() const {
    if (!ethernet) return device + " port " + std::to_string(port) + ", InfiniBand";
    return device + ", GID " + std::to_string(gid_index) + " " + to_string(gid);
}

std::string to_string(const Gid& gid) {
    char text[INET6_ADDRSTRLEN] = "";
    if (is_mapped(gid))
        inet_ntop(AF_INET, gid.data() + kMappedBytes, text, sizeof text);
    else
        inet_ntop(AF_INET6, gid.data(), text, sizeof text);
    return text;
}

}  // namespace lockstep::transport::rdma
