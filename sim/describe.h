// Control messages as a person reads them.
#pragma once

#include "consensus/core/message.h"

#include <string>

namespace lockstep::sim {

std::string describe_message(const core::Message& message);

}  // namespace lockstep::sim
