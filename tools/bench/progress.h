// What is going on, on stderr: a line that is written over on a terminal, lines elsewhere.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep::bench {

class Progress {
 public:
    Progress();
    ~Progress();
    void say(const std::string& what) const;

 private:
    const std::uint64_t from_ns_;
};

// A line of its own, for what somebody should know.
void tell(const std::string& what);

}  // namespace lockstep::bench
