// Lane tokens: drawn, compared.
#pragma once

#include "transport/link/handshake.h"

#include <lockstep/result.h>

namespace lockstep::transport::link {

// Error: the system gives no random bytes.
Result<LaneToken> random_token();

// In the same time for every token: how long a refusal takes must not tell how much of a guess was right.
bool same(const LaneToken& left, const LaneToken& right);

}  // namespace lockstep::transport::link
