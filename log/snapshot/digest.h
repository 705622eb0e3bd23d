// XXH3-64 of bytes that come in pieces.
#pragma once

#include <lockstep/types.h>

#include <cstdint>
#include <memory>

namespace lockstep::log {

class Digest {
 public:
    Digest();
    void add(BytesView bytes);
    std::uint64_t value() const;  // of all that was added; more may be added behind that

 private:
    struct State;
    struct Free {
        void operator()(State* state) const;
    };
    std::unique_ptr<State, Free> state_;
};

}  // namespace lockstep::log
