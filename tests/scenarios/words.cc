// The words of a command: numbers, times, replicas, links.
#include "tests/scenarios/world.h"

#include <charconv>
#include <map>

namespace lockstep::scenarios {

const std::string& World::word(std::size_t at) const {
    if (!has_word(at)) fail("a word is missing at its end");
    return command_.words[at];
}

std::uint64_t World::number(std::size_t at) const {
    const std::string& text = word(at);
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) fail("\"" + text + "\" is not a number");
    return value;
}

std::uint64_t World::duration(std::size_t at) const {
    static const std::map<std::string, std::uint64_t> units{{"us", 1'000},
                                                            {"ms", 1'000'000},
                                                            {"s", 1'000'000'000},
                                                            {"min", 60'000'000'000},
                                                            {"h", 3'600'000'000'000},
                                                            {"d", 86'400'000'000'000}};
    const std::string& text = word(at);
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const auto unit = units.find(std::string(end, text.data() + text.size()));
    if (error != std::errc{} || unit == units.end()) fail("\"" + text + "\" is not a time such as 5ms or 60d");
    return value * unit->second;
}

ReplicaId World::replica_named(const std::string& name) const {
    std::uint64_t value = 0;
    const char* first = name.data() + 1;
    const char* last = name.data() + name.size();
    if (name.size() < 2 || name[0] != 'r' || std::from_chars(first, last, value).ptr != last || value < 1 ||
        value > size_)
        fail("\"" + name + "\" is no replica of the cluster");
    return ReplicaId{static_cast<std::uint8_t>(value)};
}

ReplicaId World::running(ReplicaId id) const {
    if (!sim_->alive(id)) fail(to_string(id) + " does not run");
    return id;
}

// Those that are named; all that there are, if none is.
std::vector<ReplicaId> World::replicas(std::size_t from) const {
    std::vector<ReplicaId> ids;
    for (std::size_t at = from; has_word(at); ++at) ids.push_back(replica(at));
    if (!has_word(from))
        for (std::size_t i = 1; i <= size_; ++i) ids.push_back(ReplicaId{static_cast<std::uint8_t>(i)});
    return ids;
}

// "r1->r2", or "r1->*" and "*->r1" for all of one end.
std::vector<World::Link> World::links(std::size_t at) const {
    const std::string& text = word(at);
    const std::size_t arrow = text.find("->");
    if (arrow == std::string::npos) fail("\"" + text + "\" is not a link such as r1->r2");
    const auto ends = [&](const std::string& name) {
        return name == "*" ? replicas(command_.words.size()) : std::vector{replica_named(name)};
    };
    std::vector<Link> found;
    for (const ReplicaId from : ends(text.substr(0, arrow)))
        for (const ReplicaId to : ends(text.substr(arrow + 2)))
            if (from != to) found.push_back({from, to});
    return found;
}

World::Kind World::kind(std::size_t at) const {
    static const std::map<std::string, Kind> kinds{{"messages", Kind::message},
                                                   {"writes", Kind::piece},
                                                   {"completions", Kind::completion},
                                                   {"reads", Kind::read},
                                                   {"reports", Kind::report}};
    const auto found = kinds.find(word(at));
    if (found == kinds.end()) fail("\"" + word(at) + "\" is none of messages, writes, completions, reads, reports");
    return found->second;
}

void World::fail(const std::string& why) const {
    std::string text;
    for (const std::string& each : command_.words) text += (text.empty() ? "" : " ") + each;
    throw ScriptError("line " + std::to_string(command_.line) + ": \"" + text + "\": " + why);
}

}  // namespace lockstep::scenarios
