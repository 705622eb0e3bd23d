// Who votes, as bytes that stand in files: in a snapshot's head.
#pragma once

#include "consensus/core/config.h"

#include <lockstep/result.h>

#include <string>
#include <string_view>

namespace lockstep::replica {

// At most log::SnapshotMeta::kMaxConfigBytes.
std::string bytes_of(const core::Config& config);
// Any bytes are safe to pass. The error says what is wrong.
Result<core::Config> config_of(std::string_view bytes);

}  // namespace lockstep::replica
