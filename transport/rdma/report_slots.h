// The report slots of this replica: written by its peers' cards, looked at by its protocol thread.
#pragma once

#include "transport/link/mailbox.h"
#include "transport/rdma/regions.h"

#include <lockstep/types.h>

#include <cstdint>
#include <vector>

namespace lockstep::transport::rdma {

class ReportSlots {
 public:
    // `pages` outlive this; one slot for each of `peers`, in their order.
    ReportSlots(const SidePages& pages, const std::vector<ReplicaId>& peers);

    // Puts what is new into the mailbox; whether there was something. Costs a load per peer when there is not. A slot
    // that is just being written is left for the next time.
    bool take(link::Mailbox& mailbox);

 private:
    struct Watched {
        ReplicaId peer;
        Slot* slot;
        std::uint64_t seen = 0;  // the checksum of what was taken last
    };
    std::vector<Watched> slots_;
};

}  // namespace lockstep::transport::rdma
