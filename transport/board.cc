#include "transport/types.h"

#include <type_traits>

#include <xxhash.h>

namespace lockstep::transport {
namespace {

// The board is hashed, and crosses the fabric, as its bytes.
static_assert(std::is_trivially_copyable_v<Board> && sizeof(Board) == 64 && alignof(Board) == 8);
static_assert(std::is_standard_layout_v<Board> && offsetof(Board, checksum) == sizeof(Board) - sizeof(std::uint64_t));
static_assert(std::is_trivially_copyable_v<Report> && sizeof(Report) == 64 && alignof(Report) == 8);

// Seeded, so that a board of zeros (memory nobody has published in) is not intact.
constexpr std::uint64_t kBoardSeed = 0x6c6f636b73746570;

std::uint64_t checksum_of(const Board& board) {
    return XXH3_64bits_withSeed(&board, offsetof(Board, checksum), kBoardSeed);
}

}  // namespace

void Board::seal() { checksum = checksum_of(*this); }

bool Board::intact() const { return checksum == checksum_of(*this); }

}  // namespace lockstep::transport
