#include "sim/case.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <sstream>

namespace lockstep::sim {

namespace {

using transport::sim::Faults;

constexpr const char* kFirstLine = "lockstep-sim case 1";
constexpr std::uint64_t kMillion = 1'000'000;
constexpr std::uint64_t kHourNs = 3'600'000'000'000;
constexpr std::size_t kMaxActions = 1'000'000;
constexpr std::uint64_t kMostKeys = 1024;

// What an action's line has behind its name.
struct Form {
    const char* name;
    Act act;
    bool target;
    bool other;
    const char* amount;  // what it is called; null: none
    std::uint64_t most;  // of the amount
    bool key;
};

constexpr std::array kForms{
    Form{"run", Act::run, false, false, "NS", kHourNs, false},
    Form{"await", Act::await, false, false, "NS", kHourNs, false},
    Form{"mark", Act::mark, false, false, nullptr, 0, false},
    Form{"add", Act::add, true, false, "BYTES", kMillion, true},
    Form{"put", Act::put, true, false, "BYTES", kMillion, true},
    Form{"get", Act::get, true, false, nullptr, 0, true},
    Form{"pause", Act::pause, true, false, nullptr, 0, false},
    Form{"resume", Act::resume, true, false, nullptr, 0, false},
    Form{"crash", Act::crash, true, false, nullptr, 0, false},
    Form{"linger", Act::linger, true, false, "NS", kHourNs, false},
    Form{"restart", Act::restart, true, false, nullptr, 0, false},
    Form{"hang", Act::hang, true, false, "NS", kHourNs, false},
    Form{"jump", Act::jump, true, false, "MS", kHourNs, true},
    Form{"cut", Act::cut, true, true, nullptr, 0, false},
    Form{"heal", Act::heal, true, true, nullptr, 0, false},
    Form{"heal-all", Act::heal_all, false, false, nullptr, 0, false},
    Form{"hand-over", Act::hand_over, true, false, nullptr, 0, false},
    Form{"fail", Act::fail, true, true, nullptr, 0, false},
    Form{"power", Act::power, true, false, nullptr, 0, false},
    Form{"power-all", Act::power_all, false, false, nullptr, 0, false},
    Form{"disk-hang", Act::disk_hang, true, false, "NS", kHourNs, false},
    Form{"disk-fail", Act::disk_fail, true, false, "0..3", 3, false},
    Form{"rot", Act::rot, true, false, "WHERE", UINT64_MAX, false},
    Form{"snapshot", Act::snapshot, true, false, nullptr, 0, false},
    Form{"recover", Act::recover, true, false, nullptr, 0, false},
};

const Form& form_of(Act act) { return *std::ranges::find(kForms, act, &Form::act); }

std::string usage(const Form& form) {
    std::string text = form.name;
    if (form.target) text += form.act == Act::recover ? " WHO|none" : " WHO";
    if (form.other) text += " WHO";
    if (form.amount != nullptr) text += std::string(" ") + form.amount;
    if (form.key) text += form.act == Act::jump ? " 0|1" : " KEY";
    return text;
}

std::string to_string(const Target& target) {
    switch (target.kind) {
        case Target::Kind::none:
            return "none";
        case Target::Kind::leader:
            return "leader";
        case Target::Kind::marked:
            return "marked";
        case Target::Kind::replica:
            return lockstep::to_string(target.id);
    }
    return "none";
}

bool read_number(const std::string& word, std::uint64_t least, std::uint64_t most, std::uint64_t& into) {
    const char* end = word.data() + word.size();
    const auto [stop, error] = std::from_chars(word.data(), end, into);
    return error == std::errc{} && stop == end && into >= least && into <= most;
}

bool read_target(const std::string& word, bool may_be_none, Target& into) {
    std::uint64_t id = 0;
    if (word == "leader") into = Target::leader();
    else if (word == "marked") into = Target::marked();
    else if (word == "none" && may_be_none) into = {};
    else if (word.starts_with("r") && read_number(word.substr(1), 1, kMaxReplicas, id))
        into = Target::replica({static_cast<std::uint8_t>(id)});
    else return false;
    return true;
}

// The numbers of a case that are no rates of faults.
struct Setting {
    const char* name;
    std::uint64_t least;
    std::uint64_t most;
    std::uint64_t (*get)(const Cluster::Options&);
    void (*set)(Cluster::Options&, std::uint64_t);
};

constexpr std::array kSettings{
    Setting{"replicas", 1, kMaxReplicas, [](const Cluster::Options& o) -> std::uint64_t { return o.replicas; },
            [](Cluster::Options& o, std::uint64_t value) { o.replicas = value; }},
    Setting{"ring", 4096, std::uint64_t{1} << 26, [](const Cluster::Options& o) { return o.ring_bytes; },
            [](Cluster::Options& o, std::uint64_t value) { o.ring_bytes = value; }},
    Setting{"seed", 0, UINT64_MAX, [](const Cluster::Options& o) { return o.seed; },
            [](Cluster::Options& o, std::uint64_t value) { o.seed = value; }},
    Setting{"durable", 0, 1,
            [](const Cluster::Options& o) { return std::uint64_t{o.durability == Durability::durable}; },
            [](Cluster::Options& o, std::uint64_t value) {
                o.durability = value == 0 ? Durability::memory : Durability::durable;
            }},
    Setting{"snapshot_bytes", 0, std::uint64_t{1} << 40,
            [](const Cluster::Options& o) { return o.snapshot_after.bytes; },
            [](Cluster::Options& o, std::uint64_t value) { o.snapshot_after.bytes = value; }},
    Setting{"drift", 0, 200'000, [](const Cluster::Options& o) { return o.drift_ppm; },
            [](Cluster::Options& o, std::uint64_t value) { o.drift_ppm = value; }},
};

Result<Action> read_action(const Form& form, const std::vector<std::string>& words) {
    Action action;
    action.act = form.act;
    const Error wrong("expected \"" + usage(form) + "\", WHO being r1 to r" + std::to_string(kMaxReplicas) +
                      ", leader or marked");
    const std::size_t expected = 1u + (form.target ? 1 : 0) + (form.other ? 1 : 0) + (form.amount != nullptr ? 1 : 0) +
                                 (form.key ? 1 : 0);
    if (words.size() != expected) return wrong;
    std::size_t at = 1;
    if (form.target && !read_target(words[at++], form.act == Act::recover, action.target)) return wrong;
    if (form.other && !read_target(words[at++], false, action.other)) return wrong;
    if (form.amount != nullptr && !read_number(words[at++], 0, form.most, action.amount))
        return Error("\"" + words[at - 1] + "\" is no number from 0 to " + std::to_string(form.most));
    if (form.key && !read_number(words[at++], 0, form.act == Act::jump ? 1 : kMostKeys - 1, action.key))
        return Error("\"" + words[at - 1] + "\" is no number from 0 to " + std::to_string(kMostKeys - 1));
    return action;
}

Result<void> read_line(const std::vector<std::string>& words, Case& into) {
    const std::string& name = words.front();
    std::uint64_t value = 0;
    if (const auto setting = std::ranges::find(kSettings, name, &Setting::name); setting != kSettings.end()) {
        if (words.size() != 2 || !read_number(words[1], setting->least, setting->most, value))
            return Error("expected \"" + name + "\" and a number from " + std::to_string(setting->least) + " to " +
                         std::to_string(setting->most));
        setting->set(into.options, value);
        return {};
    }
    if (const auto rate = std::ranges::find(rates(), name, [](const Rate& r) { return std::string(r.name); });
        rate != rates().end()) {
        if (words.size() != 2 || !read_number(words[1], 0, rate->most, value))
            return Error("expected \"" + name + "\" and a number from 0 to " + std::to_string(rate->most));
        into.faults.*(rate->rate) = value;
        return {};
    }
    const auto form = std::ranges::find(kForms, name, [](const Form& f) { return std::string(f.name); });
    if (form == kForms.end()) return Error("\"" + name + "\" is no setting, no fault and no action");
    if (into.actions.size() == kMaxActions)
        return Error("more than " + std::to_string(kMaxActions) + " actions");
    auto action = read_action(*form, words);
    if (!action) return std::move(action).error();
    into.actions.push_back(action.value());
    return {};
}

Result<void> check(const Case& read) {
    if ((read.options.ring_bytes & (read.options.ring_bytes - 1)) != 0)
        return Error("ring " + std::to_string(read.options.ring_bytes) + " is no power of two");
    if (read.faults.latency_max_ns < read.faults.latency_min_ns)
        return Error("latency_max_ns is below latency_min_ns");
    for (const Action& action : read.actions)
        for (const Target& target : {action.target, action.other})
            if (target.kind == Target::Kind::replica && target.id.value > read.options.replicas)
                return Error("\"" + to_string(action) + "\" names a replica that is not there: there are " +
                             std::to_string(read.options.replicas));
    return {};
}

}  // namespace

const std::vector<Rate>& rates() {
    static const std::vector<Rate> all{
        {"latency_min_ns", &Faults::latency_min_ns, kHourNs},
        {"latency_max_ns", &Faults::latency_max_ns, kHourNs},
        {"slow_chance", &Faults::slow_chance, kMillion},
        {"slow_ns", &Faults::slow_ns, kHourNs},
        {"message_lost_chance", &Faults::message_lost_chance, kMillion},
        {"message_repeated_chance", &Faults::message_repeated_chance, kMillion},
        {"repeated_late_ns", &Faults::repeated_late_ns, kHourNs},
        {"lane_breaks_chance", &Faults::lane_breaks_chance, kMillion},
        {"completion_lost_chance", &Faults::completion_lost_chance, kMillion},
        {"retransmit_chance", &Faults::retransmit_chance, kMillion},
        {"retransmit_ns", &Faults::retransmit_ns, kHourNs},
        {"read_fails_chance", &Faults::read_fails_chance, kMillion},
        {"read_torn_chance", &Faults::read_torn_chance, kMillion},
        {"read_slow_chance", &Faults::read_slow_chance, kMillion},
        {"read_slow_ns", &Faults::read_slow_ns, kHourNs},
        {"piece_bytes", &Faults::piece_bytes, kMillion},
        {"fence_slow_chance", &Faults::fence_slow_chance, kMillion},
        {"fence_leaks_chance", &Faults::fence_leaks_chance, kMillion},
        {"tells_landed", &Faults::tells_landed, 1},
        {"apply_slow_chance", &Faults::apply_slow_chance, kMillion},
        {"apply_slow_ns", &Faults::apply_slow_ns, kHourNs},
    };
    return all;
}

std::string to_string(const Action& action) {
    const Form& form = form_of(action.act);
    std::string text = form.name;
    if (form.target) text += " " + to_string(action.target);
    if (form.other) text += " " + to_string(action.other);
    if (form.amount != nullptr) text += " " + std::to_string(action.amount);
    if (form.key) text += " " + std::to_string(action.key);
    return text;
}

std::string Case::text() const {
    std::string text = std::string(kFirstLine) + "\n";
    for (const Setting& setting : kSettings)
        text += std::string(setting.name) + " " + std::to_string(setting.get(options)) + "\n";
    const Faults none;
    for (const Rate& rate : rates())
        if (faults.*(rate.rate) != none.*(rate.rate))
            text += std::string(rate.name) + " " + std::to_string(faults.*(rate.rate)) + "\n";
    for (const Action& action : actions) text += to_string(action) + "\n";
    return text;
}

Result<Case> read_case(const std::string& text) {
    std::istringstream lines(text);
    std::string line;
    if (!std::getline(lines, line) || line != kFirstLine)
        return Error("line 1: not a case of lockstep-sim: expected \"" + std::string(kFirstLine) + "\"");
    Case read;
    for (std::size_t number = 2; std::getline(lines, line); ++number) {
        if (line.empty() || line.starts_with("#")) continue;
        std::istringstream split(line);
        std::vector<std::string> words;
        for (std::string word; split >> word;) words.push_back(word);
        if (words.empty()) continue;
        if (auto done = read_line(words, read); !done)
            return std::move(done).error().within("line " + std::to_string(number));
    }
    if (auto checked = check(read); !checked) return std::move(checked).error();
    return read;
}

}  // namespace lockstep::sim
