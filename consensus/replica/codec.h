// The control plane's messages as bytes and back (proto/control.proto).
#pragma once

#include "consensus/core/message.h"

#include <lockstep/result.h>

#include <cstddef>
#include <span>
#include <vector>

namespace lockstep::replica {

// Replaces what `out` holds by the message's bytes: at most transport::kMaxMessageBytes, whatever the message. Any
// thread; does not block.
void encode(const core::Message& message, std::vector<std::byte>& out);

// The message that the bytes stand for, in bounds in all its fields: ids from 1 to 255 and distinct in a set, at most
// kMaxReplicas voters and one at least, ballots that name their leader, positions where entries can start, points in
// order, a lane's address that fits. Else an error that names the message's kind, the field, and what is allowed. Any
// bytes are safe to pass. Any thread; does not block.
Result<core::Message> decode(std::span<const std::byte> bytes);

}  // namespace lockstep::replica
