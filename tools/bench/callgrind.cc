#include "tools/bench/callgrind.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <unordered_map>

namespace lockstep::bench {
namespace {

constexpr int kMostThreads = 64;

// "(12) name" defines a name, "(12)" means it.
class Names {
 public:
    const std::string& get(const std::string& text) {
        const std::size_t close = text.find(')');
        if (text.empty() || text[0] != '(' || close == std::string::npos) return names_[text] = text;
        std::string& name = names_[text.substr(0, close + 1)];
        if (close + 2 < text.size()) name = text.substr(close + 2);
        return name;
    }

 private:
    std::unordered_map<std::string, std::string> names_;
};

// "LINE COST": the cost of one line of source.
std::uint64_t cost_of(const std::string& line) {
    const std::size_t space = line.find(' ');
    return space == std::string::npos ? 0 : std::strtoull(line.c_str() + space + 1, nullptr, 10);
}

}  // namespace

bool Profile::names(const std::string& part) const {
    return std::ranges::any_of(self, [&](const auto& entry) { return entry.first.find(part) != std::string::npos; });
}

Result<Profile> read_profile(const std::string& path) {
    std::ifstream file(path);
    if (!file) return Error("cannot read " + path);
    Profile profile;
    Names names;
    std::uint64_t* cost = nullptr;
    bool of_call = false;  // the next cost is what a called function took
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with("fn=")) {
            cost = &profile.self[names.get(line.substr(3))];
        } else if (line.starts_with("cfn=")) {
            names.get(line.substr(4));
        } else if (line.starts_with("calls=")) {
            of_call = true;
        } else if (cost != nullptr && !line.empty() && (std::isdigit(static_cast<unsigned char>(line[0])) ||
                                                        line[0] == '+' || line[0] == '-' || line[0] == '*')) {
            if (!of_call) {
                *cost += cost_of(line);
                profile.total += cost_of(line);
            }
            of_call = false;
        }
    }
    return profile;
}

Result<Profile> profile_of_thread(const std::string& prefix, const std::string& part) {
    Profile costliest;
    for (int thread = 1; thread <= kMostThreads; ++thread) {
        char suffix[8];
        std::snprintf(suffix, sizeof suffix, "-%02d", thread);
        std::error_code ignored;
        if (!std::filesystem::exists(prefix + suffix, ignored)) break;
        auto profile = read_profile(prefix + suffix);
        if (!profile) return profile;
        if (profile.value().names(part) && profile.value().total > costliest.total)
            costliest = std::move(profile).value();
    }
    if (costliest.total == 0) return Error("no thread of " + prefix + " ran " + part);
    return costliest;
}

}  // namespace lockstep::bench
