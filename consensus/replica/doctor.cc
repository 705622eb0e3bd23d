#include <lockstep/doctor.h>

#include "transport/link/station.h"
#include "transport/rdma/choice.h"
#include "transport/rdma/fabric.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <string_view>

namespace lockstep {
namespace {

using transport::rdma::Choice;
using transport::rdma::DeviceInfo;
using transport::rdma::GidKind;
using transport::rdma::PortInfo;
using Kind = Finding::Kind;

const char* name_of(GidKind kind) {
    switch (kind) {
        case GidKind::infiniband: return "InfiniBand";
        case GidKind::roce_v1: return "RoCE v1";
        case GidKind::roce_v2: return "RoCE v2";
    }
    return "?";
}

std::string mebibytes(std::uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

void examine_port(const std::string& device, const PortInfo& port, std::vector<Finding>& findings) {
    const std::string subject = "RDMA device " + device + ", port " + std::to_string(port.number);
    const std::string kind = port.ethernet ? "Ethernet" : "InfiniBand, LID " + std::to_string(port.lid);
    std::string text = port.state + ", " + kind + ", MTU " + std::to_string(port.mtu_bytes);
    for (const auto& entry : port.gids)
        text += "\n  GID " + std::to_string(entry.index) + ": " + transport::rdma::to_string(entry.gid) + ", " +
                name_of(entry.kind) + (entry.interface.empty() ? "" : ", " + entry.interface);
    if (port.active) findings.push_back({Kind::good, subject, text, ""});
    else findings.push_back({Kind::problem, subject, text, "bring its network interface up, or plug its cable in"});
}

void examine_devices(const std::vector<DeviceInfo>& devices, std::vector<Finding>& findings) {
    if (devices.empty())
        findings.push_back({Kind::fact, "RDMA devices", "there is none: replicas are reached over TCP",
                            "to try RDMA without a card: tools/rdma-lab, or rdma link add rxe0 type rxe netdev IF"});
    for (const DeviceInfo& device : devices) {
        const std::string subject = "RDMA device " + device.name;
        if (!device.problem.empty()) {
            findings.push_back({Kind::problem, subject, device.problem, "see its driver's messages in dmesg"});
            continue;
        }
        if (!device.hardware)
            findings.push_back({Kind::fact, subject, "a driver in software over a network interface, no card", ""});
        for (const PortInfo& port : device.ports) examine_port(device.name, port, findings);
    }
}

// A replica registers its ring and small change around it.
void examine_memory_lock(std::uint64_t ring_bytes, std::vector<Finding>& findings) {
    rlimit limit{};
    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return;
    constexpr std::uint64_t kBeside = std::uint64_t{16} << 20;
    const std::string needed = "a ring of " + mebibytes(ring_bytes) + " needs about " + mebibytes(ring_bytes + kBeside);
    if (limit.rlim_cur == RLIM_INFINITY)
        findings.push_back({Kind::good, "memory lock", "unlimited", ""});
    else if (limit.rlim_cur >= ring_bytes + kBeside)
        findings.push_back({Kind::good, "memory lock", mebibytes(limit.rlim_cur) + ", and " + needed, ""});
    else if (geteuid() == 0)
        findings.push_back({Kind::good, "memory lock", mebibytes(limit.rlim_cur) + ", which does not bind root", ""});
    else
        findings.push_back({Kind::problem, "memory lock", mebibytes(limit.rlim_cur) + ", and for RDMA " + needed,
                            "\"ulimit -l unlimited\", memlock in /etc/security/limits.conf, or LimitMEMLOCK= of the "
                            "service's unit"});
}

std::uint64_t number_in(const char* path) {
    std::uint64_t number = 0;
    std::ifstream(path) >> number;
    return number;
}

void examine_huge_pages(std::uint64_t ring_bytes, std::vector<Finding>& findings) {
    constexpr std::uint64_t kHuge = std::uint64_t{2} << 20;
    const std::uint64_t free_pages = number_in("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages");
    const std::uint64_t wanted = ring_bytes / kHuge + 1;
    const std::string text = std::to_string(free_pages) + " of 2 MiB set aside and free, a ring of " +
                             mebibytes(ring_bytes) + " takes " + std::to_string(wanted);
    if (free_pages >= wanted) findings.push_back({Kind::good, "huge pages", text, ""});
    else
        findings.push_back({Kind::fact, "huge pages", text + ": RDMA takes small pages instead",
                            "\"sysctl vm.nr_hugepages=" + std::to_string(wanted) + "\" for one replica"});
    std::string setting;
    std::getline(std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled"), setting);
    if (setting.find("[never]") != std::string::npos)
        findings.push_back({Kind::problem, "transparent huge pages", "never: a dead replica is noticed later over TCP",
                            "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"});
}

// The address that packets to `host` leave from; empty if there is no way.
std::string address_towards(const std::string& host) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_DGRAM;
    addrinfo* found = nullptr;
    if (getaddrinfo(host.c_str(), "7101", &hints, &found) != 0) return {};
    const std::unique_ptr<addrinfo, void (*)(addrinfo*)> list(found, freeaddrinfo);
    // Nothing is sent: connecting a datagram socket only asks for the route.
    const int socket = ::socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (socket < 0) return {};
    sockaddr_storage own{};
    socklen_t size = sizeof own;
    char text[NI_MAXHOST] = "";
    if (connect(socket, found->ai_addr, found->ai_addrlen) == 0 &&
        getsockname(socket, reinterpret_cast<sockaddr*>(&own), &size) == 0)
        getnameinfo(reinterpret_cast<sockaddr*>(&own), size, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
    close(socket);
    return text;
}

std::string host_of(const std::string& peer) {
    const std::size_t colon = peer.rfind(':');
    if (colon == std::string::npos || peer.find(':') != colon) {
        // An IPv6 address, with or without brackets and a port.
        if (!peer.empty() && peer.front() == '[') return peer.substr(1, peer.find(']') - 1);
        return peer;
    }
    return peer.substr(0, colon);
}

void examine_peer(const std::string& peer, const std::vector<DeviceInfo>& devices, const Question& question,
                  std::vector<Finding>& findings) {
    const std::string subject = "peer " + peer;
    const std::string from = address_towards(host_of(peer));
    if (from.empty()) {
        findings.push_back({Kind::problem, subject, "no way leads there",
                            "check the name, and the routes of this machine (ip route get " + host_of(peer) + ")"});
        return;
    }
    const auto choice = choose(devices, {from, question.rdma_device, static_cast<int>(question.rdma_port),
                                         question.rdma_gid_index});
    if (choice)
        findings.push_back({Kind::good, subject, "from " + from + ", over RDMA by " + choice.value().text() +
                                                     " if it has RDMA too, else over TCP", ""});
    else findings.push_back({Kind::fact, subject, "from " + from + ", over TCP: no RDMA device has that address", ""});
}

}  // namespace

std::vector<Finding> examine(const Question& question) {
    std::vector<Finding> findings;
    if (auto built = transport::rdma::available(); !built) {
        findings.push_back({Kind::problem, "RDMA", "not in this build", built.error().message()});
    }
    const std::vector<DeviceInfo> devices = transport::rdma::survey();
    examine_devices(devices, findings);
    auto address = transport::link::resolve(host_of(question.address));
    if (!address) {
        findings.push_back({Kind::problem, "address " + question.address, address.error().message(),
                            "name an address of this machine"});
    } else if (!devices.empty()) {
        const auto choice = choose(devices, {address.value(), question.rdma_device,
                                             static_cast<int>(question.rdma_port), question.rdma_gid_index});
        const std::string subject = "address " + address.value();
        if (choice) findings.push_back({Kind::good, subject, "RDMA by " + choice.value().text(), ""});
        else
            findings.push_back({Kind::problem, subject, choice.error().message(),
                                "give the replica an address of the device's interface, or name the device"});
    }
    examine_memory_lock(question.ring_bytes, findings);
    examine_huge_pages(question.ring_bytes, findings);
    for (const std::string& peer : question.peers) examine_peer(peer, devices, question, findings);
    return findings;
}

}  // namespace lockstep
