#include "sim/history.h"

#include "consensus/core/random.h"

#include <algorithm>
#include <iterator>

namespace lockstep::sim {

namespace {

// Longer than any entry waits between its stamp and its application.
constexpr std::uint64_t kStampSlackNs = 60'000'000'000;
constexpr std::uint64_t kWindowNs = 100'000'000;
constexpr std::size_t kMostInWindow = 20'000;  // a long pause ends with many an answer

}  // namespace

void History::leads(ReplicaId id, Ballot ballot) {
    const auto [known, fresh] = leaders_.emplace(ballot, id);
    if (!fresh && known->second != id)
        throw Violation("ballot " + to_string(ballot) + " has two leaders: " + to_string(known->second) + " and " +
                        to_string(id));
    if (ballot.leader() != id) throw Violation(to_string(id) + " leads in another's ballot " + to_string(ballot));
}

void History::committed(ReplicaId id, Incarnation incarnation, Index index, std::uint64_t checksum) {
    Index& before = commit_of_[{id, incarnation}];
    if (index < before)
        throw Violation("the commit of " + to_string(id) + " fell from " + to_string(before) + " to " +
                        to_string(index));
    before = index;
    if (index == Index{}) return;
    const auto [known, fresh] = checksums_.emplace(index, checksum);
    if (!fresh && known->second != checksum)
        throw Violation("two entries are committed at index " + to_string(index) + "; " + to_string(id) +
                        " has the second");
}

void History::configured(ReplicaId id, Index commit, const core::Config& config) {
    if (config.voters.size() == 0) return;  // holds no log
    const auto [known, fresh] = configs_.emplace(commit, config);
    if (!fresh && known->second != config)
        throw Violation(to_string(id) + " has other voters at its commit " + to_string(commit) + " than another (S16)");
}

void History::counts_by(ReplicaId id, const core::Config& config, const core::ConfigAt& newest) {
    if (config == newest.config) return;
    throw Violation(to_string(id) + " leads by another config than the newest of its log, of " + to_string(newest.at) +
                    " (S5, S16)");
}

void History::applied(ReplicaId id, Incarnation incarnation, Index index, std::string_view command) {
    // Every life's n-th command is everybody's n-th, so nothing is left out, and nothing comes twice.
    const std::size_t nth = applied_count_[{id, incarnation}]++;
    if (nth == commands_.size()) {
        if (!commands_.empty() && index <= commands_.back().first)
            throw Violation(to_string(id) + " applies " + to_string(index) + " after " +
                            to_string(commands_.back().first));
        commands_.emplace_back(index, command);
        return;
    }
    const auto& [known_index, known_command] = commands_[nth];
    if (known_index != index || known_command != command)
        throw Violation(to_string(id) + " applies '" + std::string(command) + "' at " + to_string(index) +
                        " where others applied '" + known_command + "' at " + to_string(known_index));
}

void History::restored(ReplicaId id, Incarnation incarnation, Index index) {
    const auto held = std::ranges::upper_bound(commands_, index, {}, [](const auto& one) { return one.first; });
    const bool known = index == Index{} || (held != commands_.begin() && std::prev(held)->first == index);
    if (!known)
        throw Violation(to_string(id) + " takes a snapshot up to " + to_string(index) + ", which nobody applied");
    std::size_t& count = applied_count_[{id, incarnation}];
    const auto holds = static_cast<std::size_t>(held - commands_.begin());
    if (holds < count) throw Violation(to_string(id) + " takes a snapshot of less than it has applied");
    count = holds;
}

// Every replica applies the same entries, so the first to apply an entry speaks for all.
void History::stamped(Index index, Ballot ballot, std::uint64_t timestamp_ns, std::uint64_t now_ns) {
    if (index <= newest_stamp_.index) return;
    if (timestamp_ns < newest_stamp_.timestamp_ns)
        throw Violation("time goes back at index " + to_string(index));
    if (ballot != newest_stamp_.ballot) {
        newest_stamp_ = {index, ballot, timestamp_ns, timestamp_ns, now_ns};
        return;
    }
    newest_stamp_.index = index;
    newest_stamp_.timestamp_ns = timestamp_ns;
    // An entry is applied after it was stamped; what it may have waited to be applied at first is allowed for.
    const std::uint64_t stamps = timestamp_ns - newest_stamp_.ballot_began_ns;
    const std::uint64_t went_by = now_ns - newest_stamp_.ballot_began_at_ns + kStampSlackNs;
    if (stamps > went_by + went_by / 4)
        throw Violation("the time of ballot " + to_string(ballot) + " runs ahead by " +
                        std::to_string(stamps - went_by) + " ns at index " + to_string(index));
}

void History::state(ReplicaId id, Index index, std::uint64_t digest) {
    const auto [known, fresh] = digests_.emplace(index, digest);
    if (!fresh && known->second != digest)
        throw Violation("the state of " + to_string(id) + " at " + to_string(index) + " differs from another's");
}

void History::wrote(ReplicaId id, Incarnation incarnation, Ballot ballot, ReplicaId writer, Incarnation writer_life) {
    const auto [known, fresh] = writers_.emplace(std::pair{Life{id, incarnation}, ballot}, writer_life);
    if (ballot.leader() == writer && known->second == writer_life) return;
    throw Violation("the ring of " + to_string(id) + ", which has promised " + to_string(ballot) +
                    ", was written by " + to_string(writer) +
                    (ballot.leader() == writer ? ", by two lives of it" : ""));
}

void History::asked(ReplicaId id, Incarnation incarnation, ReplicaId of, std::uint64_t open_number) {
    std::uint64_t& newest = newest_open_[{{id, incarnation}, of}];
    newest = std::max(newest, open_number);
}

void History::answered(ReplicaId id, Incarnation incarnation, Ballot ballot, std::uint64_t open_number,
                       const std::string& lane) {
    Answer& newest = answers_[{{id, incarnation}, ballot}];
    const std::string what = to_string(id) + " answers open " + std::to_string(open_number) + " of " +
                             to_string(ballot);
    if (open_number < newest.open_number)
        throw Violation(what + " after open " + std::to_string(newest.open_number) + " (S1)");
    if (open_number == newest.open_number && lane != newest.lane)
        throw Violation(what + " twice, with two lanes (S1)");
    newest = {open_number, lane};
    opened_by_[{id, lane}] = open_number;
}

void History::connected(ReplicaId id, Incarnation incarnation, ReplicaId to, const std::string& lane) {
    const auto opened = opened_by_.find({to, lane});
    if (opened == opened_by_.end())
        throw Violation(to_string(id) + " connects a lane that " + to_string(to) + " has not opened");
    const std::uint64_t newest = newest_open_[{{id, incarnation}, to}];
    if (opened->second != newest)
        throw Violation(to_string(id) + " takes the answer of " + to_string(to) + " to open " +
                        std::to_string(opened->second) + ", having asked for open " + std::to_string(newest) +
                        " since (S1)");
}

void History::gave_up(ReplicaId id, Position low_mark, std::span<const Position> commits) {
    const auto within_reach = std::ranges::count_if(commits, [&](Position commit) { return commit >= low_mark; });
    if (static_cast<std::size_t>(within_reach) >= commits.size() / 2 + 1) return;
    throw Violation(to_string(id) + " leads and gives its ring up below " + to_string(low_mark) + ", from where only " +
                    std::to_string(within_reach) + " of " + std::to_string(commits.size()) +
                    " could still be repaired (S6)");
}

void History::holds(ReplicaId id, const char* what, std::size_t count, std::size_t most) {
    if (count <= most) return;
    throw Violation(to_string(id) + " holds " + std::to_string(count) + " " + what + ", of " + std::to_string(most) +
                    " that it may have");
}

void History::sent(ReplicaId id, std::uint64_t now_ns) {
    Window& window = windows_[id];
    if (now_ns - window.began_ns > kWindowNs) window = {now_ns, 0};
    if (++window.sent > kMostInWindow)
        throw Violation(to_string(id) + " sent more than " + std::to_string(kMostInWindow) + " messages in " +
                        std::to_string(kWindowNs / 1'000'000) + " ms");
}

void History::ended(std::uint64_t number, const Outcome& outcome) {
    if (open_.erase(number) == 0) throw Violation("proposal " + std::to_string(number) + " ended twice (S17)");
    switch (outcome.fate) {
        case Fate::applied:
            acknowledged_[number] = outcome.index;
            seen_ = std::max(seen_, outcome.index);
            break;
        case Fate::rejected:
            rejected_.insert(number);
            break;
        case Fate::unknown:
            unknown_.insert(number);
            break;
    }
}

void History::read_ended(Index must_see, const Outcome& outcome) {
    if (open_reads_ == 0) throw Violation("a read ended twice (S17)");
    --open_reads_;
    if (outcome.fate != Fate::applied) return;
    ++reads_;
    const Index saw = outcome.index;
    if (saw < must_see)
        throw Violation("a read saw the state at " + to_string(saw) + " though " + to_string(must_see) +
                        " was acknowledged before it began (S15)");
    seen_ = std::max(seen_, saw);
}

void History::check_complete() const {
    std::map<std::uint64_t, Index> times;
    for (const auto& [index, command] : commands_) {
        const std::uint64_t number = std::stoull(command);
        if (!times.emplace(number, index).second)
            throw Violation("proposal " + std::to_string(number) + " was applied twice");
        if (rejected_.contains(number))
            throw Violation("proposal " + std::to_string(number) + " was rejected and applied all the same");
    }
    for (const auto& [number, index] : acknowledged_) {
        const auto found = times.find(number);
        if (found == times.end())
            throw Violation("proposal " + std::to_string(number) + " was acknowledged and is missing");
        if (found->second != index)
            throw Violation("proposal " + std::to_string(number) + " was acknowledged at another index than it has");
    }
}

std::uint64_t History::hash() const {
    std::uint64_t hash = 0;
    const auto mix = [&](std::uint64_t value) { hash = core::Random(hash ^ value).next(); };
    for (const auto& [index, checksum] : checksums_) mix(index.value), mix(checksum);
    for (const auto& [number, index] : acknowledged_) mix(number), mix(index.value);
    for (const std::uint64_t number : rejected_) mix(number);
    for (const std::uint64_t number : unknown_) mix(number);
    return hash;
}

}  // namespace lockstep::sim
