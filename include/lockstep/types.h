// The words of the protocol as types that cannot be swapped in a call.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace lockstep {

// Bytes that belong to the caller for the duration of the call that they are passed to, unless it says otherwise.
using BytesView = std::span<const std::byte>;

// The number of an entry in the log. The first entry has index 1; 0 names the genesis, which is no entry.
struct Index {
    std::uint64_t value = 0;
    friend constexpr auto operator<=>(Index, Index) = default;
    constexpr Index next() const { return {value + 1}; }
};

// A byte offset in the endless log stream; never wraps in practice (2^64 bytes).
struct Position {
    std::uint64_t value = 0;
    friend constexpr auto operator<=>(Position, Position) = default;
    friend constexpr Position operator+(Position at, std::uint64_t bytes) { return {at.value + bytes}; }
    // Requires from <= to.
    friend constexpr std::uint64_t operator-(Position to, Position from) { return to.value - from.value; }
};

// Names a replica for the lifetime of a cluster: 1 to 255; 0 is "none".
struct ReplicaId {
    std::uint8_t value = 0;
    friend constexpr auto operator<=>(ReplicaId, ReplicaId) = default;
    constexpr explicit operator bool() const { return value != 0; }
};

// Paxos' proposal number: a round, made unique by the id of the replica that leads in it. Written "round.id".
struct Ballot {
    std::uint64_t value = 0;
    friend constexpr auto operator<=>(Ballot, Ballot) = default;
    static constexpr Ballot of(std::uint64_t round, ReplicaId id) { return {round << 8 | id.value}; }
    constexpr std::uint64_t round() const { return value >> 8; }
    constexpr ReplicaId leader() const { return {static_cast<std::uint8_t>(value & 0xff)}; }
    constexpr explicit operator bool() const { return value != 0; }
};

// A random number that names one life of a replica's memory or disk; 0 is "unknown".
struct Incarnation {
    std::uint64_t value = 0;
    friend constexpr auto operator<=>(Incarnation, Incarnation) = default;
    constexpr explicit operator bool() const { return value != 0; }
};

std::string to_string(Index index);
std::string to_string(Position position);
std::string to_string(ReplicaId id);            // "r2"
std::string to_string(Ballot ballot);           // "12.2"
std::string to_string(Incarnation incarnation);  // sixteen hexadecimal digits

}  // namespace lockstep

template <>
struct std::hash<lockstep::ReplicaId> {
    std::size_t operator()(lockstep::ReplicaId id) const noexcept { return id.value; }
};
