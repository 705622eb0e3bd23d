#include "tools/counter/address.h"

#include <charconv>

namespace lockstep::counter {

Result<Address> parse_address(const std::string& text) {
    const std::size_t colon = text.rfind(':');
    const std::string form = " (expected host:port, such as 127.0.0.1:6379 or [::1]:6379)";
    if (colon == std::string::npos || colon == 0) return Error("address \"" + text + "\" has no port" + form);
    Address address;
    address.host = text.substr(0, colon);
    const char* from = text.data() + colon + 1;
    const char* end = text.data() + text.size();
    const auto [at, error] = std::from_chars(from, end, address.port);
    if (error != std::errc{} || at != end) {
        return Error("address \"" + text + "\" has a port that is no number from 0 to 65535" + form);
    }
    if (address.host.front() == '[') {
        if (address.host.back() != ']') return Error("address \"" + text + "\" lacks a closing bracket" + form);
        address.host = address.host.substr(1, address.host.size() - 2);
    } else if (address.host.find(':') != std::string::npos) {
        return Error("address \"" + text + "\" needs brackets around its IPv6 host" + form);
    }
    return address;
}

}  // namespace lockstep::counter
