// "host:port", as people write it.
#pragma once

#include <lockstep/result.h>

#include <cstdint>
#include <string>

namespace lockstep::counter {

struct Address {
    std::string host;   // without the brackets of an IPv6 address
    std::uint16_t port = 0;
};

// Takes "host:port" or "[v6]:port"; port 0 is allowed. The error names what is wrong and shows the right form.
Result<Address> parse_address(const std::string& text);

}  // namespace lockstep::counter
