// In the place of all else in this folder where Lockstep is built without RDMA.
#include "transport/rdma/fabric.h"

namespace lockstep::transport::rdma {

Result<void> available() {
    return Error("this build of Lockstep has no RDMA: install libibverbs-dev and build again with -DLOCKSTEP_RDMA=ON");
}

Result<std::unique_ptr<RdmaFabric>> RdmaFabric::open(const RdmaOptions&) { return available().error(); }

}  // namespace lockstep::transport::rdma
