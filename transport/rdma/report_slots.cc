#include "transport/rdma/report_slots.h"

#include "transport/link/memory.h"

#include <atomic>
#include <span>

namespace lockstep::transport::rdma {

ReportSlots::ReportSlots(const SidePages& pages, const std::vector<ReplicaId>& peers) {
    for (std::size_t i = 0; i < peers.size(); ++i) slots_.push_back({peers[i], pages.slot(i), 0});
}

bool ReportSlots::take(link::Mailbox& mailbox) {
    bool found = false;
    for (Watched& one : slots_) {
        if (std::atomic_ref(one.slot->checksum).load(std::memory_order_acquire) == one.seen) continue;
        Slot copy;
        link::copy_torn(std::as_writable_bytes(std::span(&copy, 1)), std::as_bytes(std::span(one.slot, 1)));
        if (!copy.whole()) continue;
        one.seen = copy.checksum;
        mailbox.put_report(one.peer, {copy.writer}, copy.report);
        found = true;
    }
    return found;
}

}  // namespace lockstep::transport::rdma
