// The contract suite over RDMA.
#include "tests/contract/fixture.h"
#include "tests/contract/rdma/rdma_world.h"

namespace lockstep::transport::contract {

INSTANTIATE_TEST_SUITE_P(
    rdma, Contract,
    testing::Values(Kind{"blocking", [] { return std::make_unique<RdmaWorld>(); }, why_no_rdma},
                    Kind{"adaptive", [] { return std::make_unique<RdmaWorld>(Polling::adaptive); }, why_no_rdma},
                    Kind{"spin", [] { return std::make_unique<RdmaWorld>(Polling::spin); }, why_no_rdma}),
    kind_name);

}  // namespace lockstep::transport::contract
