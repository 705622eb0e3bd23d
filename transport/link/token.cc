#include "transport/link/token.h"

#include <cerrno>
#include <cstring>

#include <sys/random.h>

namespace lockstep::transport::link {

Result<LaneToken> random_token() {
    LaneToken token;
    for (std::size_t done = 0; done < token.size();) {
        const ssize_t count = getrandom(token.data() + done, token.size() - done, 0);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0)
            return Error("cannot open a lane: the system gives no random bytes for its token: " +
                         std::string(std::strerror(errno)));
        done += static_cast<std::size_t>(count);
    }
    return token;
}

bool same(const LaneToken& left, const LaneToken& right) {
    unsigned different = 0;
    for (std::size_t i = 0; i < left.size(); ++i) different |= std::to_integer<unsigned>(left[i] ^ right[i]);
    return different == 0;
}

}  // namespace lockstep::transport::link
