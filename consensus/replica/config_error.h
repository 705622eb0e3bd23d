// What Protobuf says of a config that it cannot parse, in words that name the place, the key and what is allowed.
#pragma once

#include <string>
#include <string_view>

namespace lockstep {

// Lines and columns as Protobuf counts them: from 0, a tab up to the next multiple of 8; a line of -1 is "nowhere".
struct Place {
    int line = -1;
    int column = -1;
};

// "name:line:column", counted from 1; only the name if the place is nowhere.
std::string at_place(const std::string& name, Place place);

// The error as a person reads it: at_place, the key, what is wrong and what is allowed. `message` is Protobuf's, about
// `place` in `text`.
std::string explain(std::string_view text, const std::string& name, Place place, const std::string& message);

}  // namespace lockstep
