// Any bytes as requests: the same commands, or the same error, however the bytes arrive. The first byte says where the
// stream is cut; the rest is the stream. The replies' scanner gets it too.
#include "log/check.h"
#include "tools/counter/resp.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t count);

namespace {

using lockstep::counter::Limits;
using lockstep::counter::RequestParser;

struct Parsed {
    std::vector<std::string> words;
    std::string error;
    std::size_t left = 0;
    friend bool operator==(const Parsed&, const Parsed&) = default;
};

Parsed parse(std::string_view stream, std::size_t cut) {
    Limits limits;
    limits.args = 64;
    limits.query_bytes = 4096;
    RequestParser parser(limits);
    Parsed parsed;
    std::size_t begin = 0;
    for (const std::size_t end : {cut, stream.size()}) {
        while (true) {
            // A copy of its own size: a read past its end is found.
            const std::vector<char> unread(stream.begin() + static_cast<std::ptrdiff_t>(begin),
                                           stream.begin() + static_cast<std::ptrdiff_t>(end));
            const auto step = parser.next({unread.data(), unread.size()});
            if (step == RequestParser::Step::incomplete) break;
            if (step == RequestParser::Step::failed) {
                LOCKSTEP_CHECK(!parser.error().empty());
                LOCKSTEP_CHECK(parser.error().find_first_of("\r\n") == std::string::npos);
                parsed.error = parser.error();
                return parsed;
            }
            if (step == RequestParser::Step::command) {
                LOCKSTEP_CHECK(!parser.args().empty());
                LOCKSTEP_CHECK_OP(parser.args().size(), <=, limits.args);
                for (const std::string_view arg : parser.args()) parsed.words.emplace_back(arg);
            }
            LOCKSTEP_CHECK_OP(parser.consumed(), >, 0);
            LOCKSTEP_CHECK_OP(parser.consumed(), <=, unread.size());
            begin += parser.consumed();
        }
    }
    parsed.left = stream.size() - begin;
    return parsed;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t count) {
    if (count == 0) return 0;
    const std::string_view stream(reinterpret_cast<const char*>(bytes) + 1, count - 1);
    const std::size_t cut = stream.empty() ? 0 : bytes[0] % stream.size();
    LOCKSTEP_CHECK(parse(stream, stream.size()) == parse(stream, cut));
    const auto reply = lockstep::counter::reply_bytes(stream);
    if (reply) LOCKSTEP_CHECK_OP(*reply, <=, stream.size());
    return 0;
}
