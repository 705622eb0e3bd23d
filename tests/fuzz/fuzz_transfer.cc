// What a replica that catches up, and the one that helps it, may get from a mad peer; and a config out of a snapshot.
#include "consensus/core/config.h"
#include "consensus/replica/transfer.h"
#include "log/check.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

using namespace lockstep;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t count) {
    const auto input = std::as_bytes(std::span(bytes, count));
    if (const auto transfer = replica::decode_transfer(input)) {
        LOCKSTEP_CHECK(replica::is_transfer(input));
        LOCKSTEP_CHECK_OP(transfer.value().bytes.size(), <=, replica::Transfer::kMaxPieceBytes);
        std::vector<std::byte> again;
        replica::encode(transfer.value(), again);
        LOCKSTEP_CHECK_OP(again.size(), ==, input.size());
        LOCKSTEP_CHECK(replica::decode_transfer(again).ok());
    } else {
        LOCKSTEP_CHECK(!transfer.error().message().empty());
    }
    const std::string_view text(reinterpret_cast<const char*>(bytes), count);
    if (const auto config = core::config_of(text)) LOCKSTEP_CHECK(bytes_of(config.value()) == text);
    return 0;
}
