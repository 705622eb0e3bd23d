// Control messages as a person reads them.
#pragma once

#include "consensus/core/message.h"
#include "consensus/replica/transfer.h"

#include <string>

namespace lockstep::sim {

std::string describe_message(const core::Message& message);
std::string describe_transfer(const replica::Transfer& transfer);

}  // namespace lockstep::sim
