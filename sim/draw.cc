#include "sim/draw.h"

#include "sim/directed.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

namespace lockstep::sim {

namespace {

constexpr int kSteps = 150;
constexpr std::uint64_t kDirected = 8;  // one of so many cases is a directed one
constexpr std::uint64_t kDrawnKeys = 8;
constexpr std::uint64_t kSmallest = 32;  // bytes of a command
constexpr std::uint64_t kDurableSeeds = 0xd15c'0000'0000'0000;  // where those of durable mode begin

class Draw {
 public:
    Draw(std::uint64_t seed, std::size_t replicas, Durability durability)
        : random_((durability == Durability::memory ? seed : seed + kDurableSeeds) * 0x9e3779b97f4a7c15 + 1) {
        case_.options.seed = seed;
        case_.options.durability = durability;
        const std::size_t sizes[] = {1, 2, 3, 3, 3, 3, 4, 5, 5};
        replicas_ = sizes[random_.below(std::size(sizes))];
        if (replicas != 0) replicas_ = replicas;
        case_.options.replicas = replicas_;
        case_.options.ring_bytes = std::uint64_t{8 * 1024} << (chance(50) ? 0 : random_.below(4));
        if (chance(40)) case_.options.drift_ppm = 1 + random_.below(100'000);
        draw_faults();
        draw_rates();
        if (chance(50)) {
            case_.faults.read_slow_chance = random_.below(300'000);
            case_.faults.read_slow_ns = random_.below(300 * kMs);
        }
        if (durable()) draw_disks();
    }

    Case all() {
        const int recovers_at = chance(50) ? static_cast<int>(random_.below(kSteps)) : kSteps;
        for (int step = 0; step < kSteps; ++step) {
            disturb();
            load();
            run_for(1 + random_.below(10 * kMs));
            if (step == recovers_at) recover();
        }
        return std::move(case_);
    }

 private:
    bool durable() const { return case_.options.durability == Durability::durable; }
    bool chance(std::uint64_t percent) { return random_.below(100) < percent; }
    // Half of all cases have it at all.
    std::uint64_t some(std::uint64_t most) { return chance(50) ? random_.below(most) : 0; }
    ReplicaId any() { return {static_cast<std::uint8_t>(1 + random_.below(replicas_))}; }
    Target any_target() { return Target::replica(any()); }
    void push(Act act, Target target = {}, Target other = {}, std::uint64_t amount = 0, std::uint64_t key = 0) {
        case_.actions.push_back({act, target, other, amount, key});
    }
    void run_for(std::uint64_t ns) { push(Act::run, {}, {}, ns); }

    // What the network does by itself.
    void draw_faults() {
        auto& faults = case_.faults;
        faults.slow_chance = some(100'000);
        faults.slow_ns = 1 + random_.below(20 * kMs);
        faults.message_lost_chance = some(200'000);
        faults.message_repeated_chance = some(200'000);
        faults.repeated_late_ns = some(2000 * kMs);
        faults.lane_breaks_chance = some(50'000);
        faults.completion_lost_chance = some(20'000);
        faults.retransmit_chance = some(50'000);
        faults.retransmit_ns = random_.below((chance(30) ? 100 : 5) * kMs);
        faults.read_fails_chance = some(200'000);
        faults.read_torn_chance = some(300'000);
        faults.piece_bytes = chance(50) ? 64 + random_.below(8) * 64 : 0;
        faults.fence_slow_chance = some(1'000'000);
        faults.tells_landed = chance(30) ? 1 : 0;
        faults.apply_slow_chance = some(30'000);
        faults.apply_slow_ns = chance(20) ? 300 * kMs : random_.below(20 * kMs);
    }

    // What is done to it.
    void draw_rates() {
        crash_permille_ = chance(50) ? 1 + random_.below(20) : 0;
        lingers_ = chance(50);
        restarts_ = chance(50);
        pause_percent_ = some(10);
        cut_percent_ = some(10);
        fail_percent_ = some(10);
        hang_percent_ = some(5);
        jump_percent_ = some(5);
        attack_percent_ = chance(60) ? random_.below(12) : 0;
        storm_percent_ = chance(60) ? random_.below(30) : 0;
        relay_percent_ = some(20);
        usurp_percent_ = some(20);
        starve_percent_ = chance(30) ? random_.below(15) : 0;
        reopen_percent_ = chance(30) ? random_.below(15) : 0;
        lose_percent_ = crash_permille_ != 0 && restarts_ ? random_.below(6) : 0;
        burst_ = 1 + random_.below(20);
        largest_ = chance(50) ? 64 : case_.options.ring_bytes / 4 - 64;
    }

    // What becomes of disks and of power. Not rot and what else makes a replica suspect: that one counts only where all
    // voters do, and a damaged one never does, so that both may rightly wait for ever (S14).
    void draw_disks() {
        if (chance(60)) case_.options.snapshot_after.bytes = 5'000 + random_.below(100'000);
        const bool rots = chance(25);
        rot_percent_ = rots ? 1 + random_.below(3) : 0;
        power_percent_ = rots ? 0 : some(8);
        black_out_percent_ = rots ? 0 : some(4);
        relapse_percent_ = some(12);
        disk_hang_percent_ = some(8);
        disk_fail_percent_ = rots ? 0 : some(4);
        snapshot_percent_ = some(4);
        crash_permille_ = chance(50) ? random_.below(60) : 0;
        // Every restart reads the log back, and a simulated snapshot has all commands there ever were.
        largest_ = std::min<std::uint64_t>(largest_, 2000);
    }

    // A request by a client.
    void ask(Target to) {
        const std::uint64_t key = random_.below(kDrawnKeys);
        if (chance(20)) return push(Act::get, to, {}, 0, key);
        push(key % 2 == 0 ? Act::add : Act::put, to, {}, kSmallest + random_.below(largest_ - kSmallest), key);
    }

    void load() {
        for (std::uint64_t i = random_.below(burst_ + 1); i > 0; --i)
            ask(chance(85) ? Target::leader() : any_target());
    }

    // Take-overs with writes in flight are where the rules are needed: whoever leads is paused, cut off or disturbed
    // more often than others, and clients go on asking it.
    void attack_leader() {
        push(Act::mark);
        const Target marked = Target::marked();
        for (std::uint64_t i = random_.below(burst_ + 1); i > 0; --i) ask(marked);
        run_for(random_.below(60'000));
        const std::uint64_t how = random_.below(4);
        if (how == 0) push(Act::pause, marked);
        if (how == 1) cut_all(marked, true);
        if (how == 2) cut_all(marked, false);
        if (how == 3 && replicas_ > 2 && crash_permille_ != 0) crash(marked);
        // Long enough for another to lead, then short enough for this one not to know it yet.
        const std::uint64_t how_long = random_.below(3);
        run_for(how_long == 0   ? (20 + random_.below(20)) * kMs
                : how_long == 1 ? 85 * kMs + random_.below(40 * kMs)
                                : 200 * kMs + random_.below(20 * kMs));
        ask_both(marked);
        push(Act::resume, marked);
        ask_both(marked);
        if (chance(60)) {
            push(Act::heal_all);
            cuts_.clear();
        }
    }

    // Much at once, at the pace of single messages: leaders change hands while their writes are under way, and each
    // change is cut short by the next.
    void storm() {
        for (std::uint64_t i = 5 + random_.below(40); i > 0; --i) {
            const Target one = any_target();
            const Target other = any_target();
            switch (random_.below(14)) {
                case 0:
                case 1:
                case 2:
                    push(Act::hand_over, one);
                    break;
                case 3:
                    push(Act::mark);
                    break;
                case 4:
                    push(Act::hang, chance(50) ? Target::leader() : one, {}, quick());
                    break;
                case 5:
                    push(Act::cut, chance(50) ? Target::leader() : one, other);
                    break;
                case 6:
                    push(Act::cut, one, chance(50) ? Target::leader() : other);
                    break;
                case 7:
                    if (chance(50)) push(Act::heal_all);
                    else push(Act::heal, one, other);
                    break;
                case 8:
                    push(Act::fail, Target::leader(), other);
                    break;
                case 9:
                    if (crash_permille_ != 0 && chance(30)) crash(chance(50) ? Target::leader() : one);
                    if (restarts_) push(Act::restart, any_target());
                    break;
                default:
                    for (std::uint64_t n = random_.below(4); n > 0; --n) {
                        ask(Target::leader());
                        ask(chance(50) ? Target::marked() : one);
                    }
            }
            run_for(quick());
        }
        if (!chance(70)) return;
        push(Act::heal_all);
        cuts_.clear();
    }

    // One leader after the other is cut off right after it has begun, with what it appended still alone, and the one
    // before comes back (the Raft paper's figure 8, and its kin).
    void relay() {
        for (std::uint64_t i = 2 + random_.below(5); i > 0; --i) {
            push(Act::await, {}, {}, 300 * kMs);
            run_for(random_.below(chance(50) ? 40'000 : 400'000));
            push(Act::heal_all);
            for (std::uint64_t n = random_.below(3); n > 0; --n) ask(Target::leader());
            if (chance(50)) run_for(random_.below(30'000));
            cut_all(Target::leader(), true);
            cut_all(Target::leader(), false);
            for (std::uint64_t n = random_.below(3); n > 0; --n) ask(Target::leader());
        }
        push(Act::heal_all);
        cuts_.clear();
    }

    // Leadership is handed over, and the one that had it does not hear of it.
    void usurp() {
        push(Act::mark);
        const Target heir = any_target();
        ask(Target::leader());
        push(Act::await);
        push(Act::hand_over, heir);
        run_for(random_.below(20'000));
        push(Act::cut, heir, Target::marked());
        push(Act::await, {}, {}, 5 * kMs);
        ask(Target::leader());
        run_for(random_.below(200'000));
        for (std::uint64_t n = random_.below(6); n > 0; --n) {
            push(Act::get, Target::marked(), {}, 0, random_.below(kDrawnKeys));
            if (chance(50)) ask(chance(50) ? Target::leader() : Target::marked());
            run_for(random_.below(50'000));
        }
        push(Act::heal, heir, Target::marked());
    }

    // Followers that do not apply while their leader goes on to the end of its window, and then lose their lanes.
    void starve() {
        for (std::uint8_t id = 1; id <= replicas_; ++id)
            if (chance(80)) push(Act::hang, Target::replica({id}), {}, random_.below(chance(50) ? 5 * kMs : 60 * kMs));
        for (std::uint64_t i = 10 + random_.below(60); i > 0; --i) {
            ask(Target::leader());
            run_for(random_.below(200'000));
        }
        fail_all();
        if (chance(50)) push(Act::hand_over, any_target());
    }

    // Lanes that are asked for again and again, and answers to it that come when a lap has gone by.
    void reopen() {
        const Target whom = any_target();
        for (std::uint64_t i = 1 + random_.below(4); i > 0; --i) {
            push(Act::fail, Target::leader(), whom);
            run_for(random_.below(400'000));
        }
        for (std::uint64_t i = 10 + random_.below(60); i > 0; --i) {
            ask(Target::leader());
            run_for(random_.below(500'000));
        }
        push(Act::cut, Target::leader(), whom);
        for (std::uint64_t i = random_.below(20); i > 0; --i) {
            ask(Target::leader());
            run_for(random_.below(10 * kMs));
        }
        push(Act::heal, Target::leader(), whom);
    }

    // A replica loses its memory and comes back; soon the leader is gone too, with what it and the lost one had.
    void lose() {
        const Target whom = any_target();
        for (std::uint64_t i = random_.below(4); i > 0; --i) ask(Target::leader());
        run_for(random_.below(300'000));
        push(Act::crash, whom);
        run_for(quick());
        push(Act::restart, whom);
        run_for(2 * kMs + quick());
        cut_all(Target::leader(), true);
        cut_all(Target::leader(), false);
        push(Act::await, {}, {}, 200 * kMs);
        for (std::uint64_t i = random_.below(4); i > 0; --i) ask(Target::leader());
        run_for(quick());
        push(Act::heal_all);
        cuts_.clear();
    }

    void fail_all() {
        for (std::uint8_t id = 1; id <= replicas_; ++id)
            if (chance(80)) push(Act::fail, Target::leader(), Target::replica({id}));
    }

    // From a microsecond to four milliseconds, as likely in each order of magnitude.
    std::uint64_t quick() { return random_.below(std::uint64_t{1000} << random_.below(13)) + 1; }

    void cut_all(Target whom, bool away) {
        for (std::uint8_t id = 1; id <= replicas_; ++id) {
            const Target other = Target::replica({id});
            if (chance(70)) push(Act::cut, away ? whom : other, away ? other : whom);
        }
    }

    void ask_both(Target old_leader) {
        for (int i = 0; i < 3; ++i) {
            push(Act::get, old_leader, {}, 0, random_.below(kDrawnKeys));
            ask(old_leader);
            ask(Target::leader());
            run_for(random_.below(100'000));
        }
    }

    void crash(Target whom) {
        if (lingers_ && chance(50)) push(Act::linger, whom, {}, random_.below(1000 * kMs));
        else push(Act::crash, whom);
    }

    void disturb_disks() {
        const Target one = chance(40) ? Target::leader() : any_target();
        if (chance(power_percent_)) push(Act::power, one);
        if (chance(black_out_percent_)) push(Act::power_all);
        if (chance(disk_hang_percent_))
            push(Act::disk_hang, one, {}, random_.below(chance(30) ? 400 * kMs : 5 * kMs));
        if (chance(disk_fail_percent_)) push(Act::disk_fail, one, {}, random_.below(4));
        if (chance(snapshot_percent_)) push(Act::snapshot, any_target());
        if (chance(relapse_percent_)) relapse();
        if (chance(rot_percent_)) {
            const Target whom = any_target();
            push(Act::crash, whom);
            push(Act::rot, whom, {}, random_.next());
        }
        for (std::uint8_t id = 1; id <= replicas_; ++id)
            if (chance(30)) push(Act::restart, Target::replica({id}));
    }

    // What is acknowledged is on a majority's disks, so whoever of it loses power, or only its process, may come back
    // and be a majority with one that knows nothing of it, while the others are away.
    void relapse() {
        for (std::uint64_t i = 1 + random_.below(4); i > 0; --i) ask(Target::leader());
        run_for(random_.below(chance(50) ? 300'000 : 2 * kMs));
        push(Act::mark);
        const Target whom = chance(50) ? Target::marked() : any_target();
        const Target away = chance(50) ? Target::marked() : any_target();
        if (chance(30)) push(Act::hand_over, any_target());
        if (chance(50)) run_for(random_.below(kMs));
        push(power_percent_ != 0 ? Act::power : Act::crash, whom);
        push(Act::crash, away);
        if (whom != away || chance(50)) push(Act::restart, whom);
        push(Act::await, {}, {}, 300 * kMs);
        for (std::uint64_t i = random_.below(3); i > 0; --i) ask(Target::leader());
        run_for(random_.below(20 * kMs));
        push(Act::restart, away);
    }

    void disturb() {
        if (durable()) disturb_disks();
        if (chance(attack_percent_)) attack_leader();
        if (chance(storm_percent_)) storm();
        if (chance(relay_percent_)) relay();
        if (chance(usurp_percent_)) usurp();
        if (chance(starve_percent_)) starve();
        if (chance(reopen_percent_)) reopen();
        if (chance(lose_percent_)) lose();
        if (random_.below(1000) < crash_permille_) crash(any_target());
        if (restarts_ && chance(5)) push(Act::restart, any_target());
        const ReplicaId one = any();
        if (paused_.contains(one) ? chance(30) : chance(pause_percent_)) {
            push(paused_.contains(one) ? Act::resume : Act::pause, Target::replica(one));
            if (!paused_.insert(one).second) paused_.erase(one);
        }
        if (chance(hang_percent_)) push(Act::hang, any_target(), {}, random_.below(chance(20) ? 500 * kMs : 20 * kMs));
        if (chance(jump_percent_)) push(Act::jump, any_target(), {}, random_.below(7'200'000), random_.below(2));
        const ReplicaId a = any();
        const ReplicaId b = any();
        if (a == b) return;
        const std::pair link{a, b};
        if (cuts_.contains(link) ? chance(30) : chance(cut_percent_)) {
            push(cuts_.contains(link) ? Act::heal : Act::cut, Target::replica(a), Target::replica(b));
            if (!cuts_.insert(link).second) cuts_.erase(link);
        }
        if (chance(fail_percent_)) push(Act::fail, Target::replica(a), Target::replica(b));
    }

    void recover() {
        push(Act::recover, chance(30) ? Target::leader() : Target{});
        cuts_.clear();
        paused_.clear();
    }

    core::Random random_;
    Case case_;
    std::size_t replicas_ = 0;
    std::uint64_t crash_permille_ = 0;
    bool lingers_ = false;
    bool restarts_ = false;
    std::uint64_t pause_percent_ = 0;
    std::uint64_t cut_percent_ = 0;
    std::uint64_t fail_percent_ = 0;
    std::uint64_t hang_percent_ = 0;
    std::uint64_t jump_percent_ = 0;
    std::uint64_t attack_percent_ = 0;
    std::uint64_t storm_percent_ = 0;
    std::uint64_t relay_percent_ = 0;
    std::uint64_t usurp_percent_ = 0;
    std::uint64_t starve_percent_ = 0;
    std::uint64_t reopen_percent_ = 0;
    std::uint64_t lose_percent_ = 0;
    std::uint64_t power_percent_ = 0;
    std::uint64_t black_out_percent_ = 0;
    std::uint64_t relapse_percent_ = 0;
    std::uint64_t disk_hang_percent_ = 0;
    std::uint64_t disk_fail_percent_ = 0;
    std::uint64_t snapshot_percent_ = 0;
    std::uint64_t rot_percent_ = 0;
    std::uint64_t burst_ = 1;
    std::uint64_t largest_ = 64;
    std::set<ReplicaId> paused_;
    std::set<std::pair<ReplicaId, ReplicaId>> cuts_;
};

}  // namespace

Case draw(std::uint64_t seed, std::size_t replicas) {
    if (replicas == 0 && seed % kDirected == 0) return draw_directed(seed);
    return Draw(seed, replicas, Durability::memory).all();
}

Case draw_durable(std::uint64_t seed, std::size_t replicas) { return Draw(seed, replicas, Durability::durable).all(); }

Case draw_either(std::uint64_t seed, std::size_t replicas) {
    return seed % 2 == 0 ? draw_durable(seed, replicas) : draw(seed, replicas);
}

}  // namespace lockstep::sim
