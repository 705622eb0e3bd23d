// In the place of rdma_limit.cc where there is no libibverbs to build it with.
#include "tools/bench/progress.h"
#include "tools/bench/rdma_limit.h"

namespace lockstep::bench {
namespace {

Error absent() {
    return Error("this build has no RDMA: install libibverbs-dev and build again with -DLOCKSTEP_RDMA=ON");
}

}  // namespace

int run_rdma_peer(int, const std::string&, std::size_t) {
    tell(absent().message());
    return 1;
}

Result<Histogram> measure_rdma_round_trips(const LimitPlan&, const std::vector<std::string>&, std::uint64_t) {
    return absent();
}

Result<double> measure_rdma_stream(const LimitPlan&, const std::vector<std::string>&, std::uint64_t) {
    return absent();
}

}  // namespace lockstep::bench
