#include "transport/link/mailbox.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace lockstep::transport::link {
namespace {

auto age(const Report& report) { return std::tie(report.ballot, report.open_number, report.sequence); }

}  // namespace

void Mail::clear() {
    messages.clear();
    bytes.clear();
    reports.clear();
    arrivals.clear();
    addresses.clear();
}

Mailbox::Mailbox(const std::vector<ReplicaId>& peers) {
    for (const ReplicaId peer : peers) slots_.push_back({peer, {}, {}, false});
}

bool Mailbox::put_message(ReplicaId peer, Incarnation incarnation, std::span<const std::byte> message) {
    const std::lock_guard lock(mutex_);
    if (mail_.messages.size() >= kMaxQueuedMessages) return false;
    if (mail_.bytes.size() + message.size() > kMaxQueuedMessageBytes) return false;
    mail_.messages.push_back({peer, incarnation, mail_.bytes.size(), message.size()});
    mail_.bytes.insert(mail_.bytes.end(), message.begin(), message.end());
    filled_.store(true, std::memory_order_release);
    return true;
}

bool Mailbox::put_report(ReplicaId peer, Incarnation incarnation, const Report& report) {
    const std::lock_guard lock(mutex_);
    const auto slot = std::find_if(slots_.begin(), slots_.end(), [&](const auto& one) { return one.peer == peer; });
    if (slot == slots_.end()) return false;
    // Another life of the peer starts its slot anew.
    const bool newer = slot->incarnation != incarnation || age(slot->report) < age(report);
    if (!newer) return false;
    *slot = {peer, incarnation, report, true};
    filled_.store(true, std::memory_order_release);
    return true;
}

bool Mailbox::put_arrival(ReplicaId peer) {
    const std::lock_guard lock(mutex_);
    if (std::find(mail_.arrivals.begin(), mail_.arrivals.end(), peer) == mail_.arrivals.end())
        mail_.arrivals.push_back(peer);
    filled_.store(true, std::memory_order_release);
    return true;
}

void Mailbox::put_address(Mail::Address address) {
    const std::lock_guard lock(mutex_);
    mail_.addresses.push_back(std::move(address));
    filled_.store(true, std::memory_order_release);
}

bool Mailbox::take(Mail& mail) {
    mail.clear();
    if (empty()) return false;
    const std::lock_guard lock(mutex_);
    std::swap(mail, mail_);
    for (Mail::Slot& slot : slots_) {
        if (!slot.fresh) continue;
        mail.reports.push_back(slot);
        slot.fresh = false;
    }
    filled_.store(false, std::memory_order_relaxed);
    return true;
}

}  // namespace lockstep::transport::link
