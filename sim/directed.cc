#include "sim/directed.h"

#include <algorithm>
#include <initializer_list>
#include <utility>
#include <vector>

namespace lockstep::sim {

namespace {

constexpr std::size_t kSmall = 1;  // bytes: a command as short as it gets
constexpr std::uint64_t kHourMs = 3'600'000;

class Directed {
 public:
    explicit Directed(std::uint64_t seed) : random_(seed * 0x9e3779b97f4a7c15 + 2) { case_.options.seed = seed; }

    Case any() {
        case_.options.ring_bytes = std::uint64_t{8 * 1024} << random_.below(2);
        case_.faults.tells_landed = chance(30) ? 1 : 0;
        case_.faults.piece_bytes = chance(30) ? 64 : 0;
        if (chance(50)) splice();
        else contest();
        return std::move(case_);
    }

 private:
    bool chance(std::uint64_t percent) { return random_.below(100) < percent; }
    std::uint64_t between(std::uint64_t least, std::uint64_t most) { return least + random_.below(most - least + 1); }
    void push(Act act, Target target = {}, Target other = {}, std::uint64_t amount = 0, std::uint64_t key = 0) {
        case_.actions.push_back({act, target, other, amount, key});
    }
    void run_for(std::uint64_t ns) { push(Act::run, {}, {}, ns); }
    void await(std::uint64_t ns) { push(Act::await, {}, {}, ns); }

    // Who plays which part.
    void cast(std::size_t replicas) {
        case_.options.replicas = replicas;
        for (std::uint8_t id = 1; id <= replicas; ++id) parts_.push_back(Target::replica({id}));
        for (std::size_t at = replicas; at > 1; --at) std::swap(parts_[at - 1], parts_[random_.below(at)]);
    }
    void ask(Target to, std::uint64_t times, std::size_t bytes) {
        for (; times > 0; --times) {
            push(Act::add, to, {}, bytes, 2 * random_.below(4));
            run_for(between(50'000, 500'000));
        }
    }
    void between_all(Act act, std::initializer_list<Target> some, std::initializer_list<Target> others) {
        for (const Target& one : some)
            for (const Target& other : others) push(act, one, other), push(act, other, one);
    }
    // `first` leads, and all hold and know the same.
    void lead(Target first, std::size_t bytes) {
        await(kMs);
        push(Act::hand_over, first);
        await(50 * kMs);
        run_for(20 * kMs);
        ask(first, between(1, 3), bytes);
        run_for(30 * kMs);
    }

    // The next leader's first entry is written over the first one of an older tail that it does not know, with entries
    // of the same size: what stands behind it has the right index, at the right place, and a time that is not too old.
    // That next entry commits with the follower that has this ring, and then there is another election, among those
    // who know the tail better: is the follower's log the old tail's, or the new entry's?
    void splice() {
        cast(5);
        const Target old = parts_[0];
        const Target follower = parts_[1];
        const Target unknowing = parts_[2];
        const Target fourth = parts_[3];
        const Target fifth = parts_[4];
        push(Act::jump, old, {}, kHourMs, 0);
        lead(old, kSmall);
        between_all(Act::cut, {old, follower}, {unknowing, fourth, fifth});
        ask(old, between(2, 4), kSmall);
        between_all(Act::cut, {old}, {follower});
        ask(old, between(1, 2), kSmall);
        await(400 * kMs);
        push(Act::cut, Target::leader(), unknowing);
        between_all(Act::heal, {follower}, {fourth, fifth});
        run_for(between(15, 40) * kMs);
        between_all(Act::cut, {follower, unknowing}, {fourth, fifth});
        between_all(Act::heal, {old}, {follower, unknowing});
        between_all(Act::heal, {follower}, {unknowing});
        await(800 * kMs);
        run_for(between(1, 50) * kMs);
        ask(Target::leader(), 2, kSmall);
        run_for(20 * kMs);
    }

    // A candidate reads the log that it adopts, slowly; meanwhile another wins, and writes to the candidate's ring.
    // What the read still brings must not get there.
    void contest() {
        case_.faults.read_slow_chance = 1'000'000;
        case_.faults.read_slow_ns = between(50, 400) * kMs;
        cast(3);
        const Target candidate = parts_[0];
        const Target source = parts_[1];
        const Target winner = parts_[2];
        lead(source, 200);
        between_all(Act::cut, {source}, {candidate, winner});
        ask(source, between(1, 3), between(kSmall, 500));
        between_all(Act::cut, {candidate}, {winner});
        run_for(between(105, 125) * kMs);
        between_all(Act::heal, {candidate}, {source});
        run_for(between(3, 30) * kMs);
        between_all(Act::cut, {candidate}, {source});
        between_all(Act::heal, {candidate}, {winner});
        await(200 * kMs);
        run_for(kMs);
        ask(winner, between(1, 5), between(kSmall, 500));
        run_for(between(100, 400) * kMs);
        push(Act::heal_all);
        run_for(30 * kMs);
        push(Act::hand_over, candidate);
        await(50 * kMs);
        ask(candidate, 2, kSmall);
        run_for(50 * kMs);
    }

    core::Random random_;
    Case case_;
    std::vector<Target> parts_;
};

}  // namespace

Case draw_directed(std::uint64_t seed) { return Directed(seed).any(); }

}  // namespace lockstep::sim
