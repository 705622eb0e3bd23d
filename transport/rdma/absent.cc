// In the place of all else in this folder where Lockstep is built without RDMA.
#include "transport/rdma/choice.h"
#include "transport/rdma/fabric.h"

namespace lockstep::transport::rdma {

Result<void> available() {
    return Error("this build of Lockstep has no RDMA: install libibverbs-dev and build again with -DLOCKSTEP_RDMA=ON");
}

Result<std::unique_ptr<RdmaFabric>> RdmaFabric::open(const RdmaOptions&) { return available().error(); }

std::vector<DeviceInfo> survey() { return {}; }

Result<Choice> choose(const std::vector<DeviceInfo>&, const Wish&) { return available().error(); }

std::string Choice::text() const { return device; }

std::string to_string(const Gid&) { return {}; }

}  // namespace lockstep::transport::rdma
