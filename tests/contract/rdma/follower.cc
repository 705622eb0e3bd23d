// r2 in a process of its own: opens a lane for r1, says where it is, and polls until it is killed.
//
//   --with-child      has a child process, made by fork while the lane is open, that outlives it
//   --memlock BYTES   may lock no more memory than that, as if it were not root
#include "tests/contract/rdma/follower.h"
#include "tests/contract/rdma/rdma_world.h"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace lockstep::transport::contract {
namespace {

using namespace std::chrono_literals;

bool limit_locked_memory(rlim_t bytes) {
    const rlimit limit{bytes, bytes};
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3]{};
    if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0 || syscall(SYS_capget, &header, data) != 0) return false;
    data[0].effective &= ~(1u << CAP_IPC_LOCK);
    return syscall(SYS_capset, &header, data) == 0;
}

int live(bool with_child) {
    rdma::RdmaOptions options = rdma_options({.id = {2}});
    options.peers = {{{1}, rdma_options({.id = {1}}).listen_host, 0}};
    auto fabric = rdma::RdmaFabric::open(options);
    if (!fabric) {
        std::cerr << fabric.error().message() << std::endl;
        return 1;
    }
    const auto lane = fabric.value()->open_incoming({1}, {1}, {});
    if (!lane) return 1;
    FollowerHello hello{fabric.value()->listen_port(), lane.value(), 0};
    if (with_child && (hello.child = fork()) == 0) {
        alarm(120);  // whatever happens, it ends
        for (;;) pause();
    }
    if (write(STDOUT_FILENO, &hello, sizeof hello) != sizeof hello) return 1;
    std::vector<Event> events;
    for (;;) {
        events.clear();
        fabric.value()->poll(10ms, events);
    }
}

}  // namespace
}  // namespace lockstep::transport::contract

int main(int argc, char** argv) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    bool with_child = false;
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        with_child |= word == "--with-child";
        if (word == "--memlock" && i + 1 < argc &&
            !lockstep::transport::contract::limit_locked_memory(std::strtoull(argv[i + 1], nullptr, 10)))
            return 2;
    }
    return lockstep::transport::contract::live(with_child);
}
