#include "sim/shrink.h"

#include <algorithm>
#include <cctype>
#include <string>

namespace lockstep::sim {

namespace {

// The first line without its numbers.
std::string outline(const std::string& what) {
    std::string text = what.substr(0, what.find('\n'));
    std::erase_if(text, [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; });
    return text;
}

class Shrinker {
 public:
    Shrinker(const Case& of, const RunResult& failure, std::chrono::seconds most,
             const std::function<void(std::size_t)>& progress)
        : best_{of, failure, 0}, ends_(std::chrono::steady_clock::now() + most), progress_(progress) {}

    Shrunk all() {
        // What comes behind the failure has no part in it.
        Case cut = best_.smaller;
        cut.actions.resize(std::min(cut.actions.size(), static_cast<std::size_t>(best_.failure.actions) + 1));
        attempt(cut);
        for (std::size_t before = SIZE_MAX; before != size() && !over();) {
            before = size();
            remove_actions();
            remove_faults();
        }
        return best_;
    }

 private:
    std::size_t size() const {
        std::size_t faults = 0;
        for (const Rate& rate : rates()) faults += best_.smaller.faults.*(rate.rate) != none_.*(rate.rate) ? 1 : 0;
        return best_.smaller.actions.size() + faults;
    }
    bool over() const { return std::chrono::steady_clock::now() >= ends_; }

    bool attempt(const Case& smaller) {
        if (over()) return false;
        ++best_.tries;
        RunResult result = run_apart(smaller, kRunLimit);
        if (!same_failure(result, best_.failure)) return false;
        best_.smaller = smaller;
        best_.failure = std::move(result);
        if (progress_) progress_(smaller.actions.size());
        return true;
    }

    void remove_actions() {
        for (std::size_t chunk = std::max<std::size_t>(best_.smaller.actions.size() / 2, 1);; chunk /= 2) {
            for (std::size_t at = 0; at < best_.smaller.actions.size() && !over();) {
                Case smaller = best_.smaller;
                const auto first = smaller.actions.begin() + static_cast<std::ptrdiff_t>(at);
                const std::size_t left = smaller.actions.size() - at;
                smaller.actions.erase(first, first + static_cast<std::ptrdiff_t>(std::min(chunk, left)));
                if (!attempt(smaller)) at += chunk;
            }
            if (chunk <= 1) return;
        }
    }

    void remove_faults() {
        for (const Rate& rate : rates()) {
            if (best_.smaller.faults.*(rate.rate) == none_.*(rate.rate)) continue;
            Case smaller = best_.smaller;
            smaller.faults.*(rate.rate) = none_.*(rate.rate);
            attempt(smaller);
        }
        if (best_.smaller.options.drift_ppm == 0) return;
        Case smaller = best_.smaller;
        smaller.options.drift_ppm = 0;
        attempt(smaller);
    }

    Shrunk best_;
    const transport::sim::Faults none_;
    std::chrono::steady_clock::time_point ends_;
    const std::function<void(std::size_t)>& progress_;
};

}  // namespace

bool same_failure(const RunResult& a, const RunResult& b) {
    return a.failure == b.failure && outline(a.what) == outline(b.what);
}

Shrunk shrink(const Case& of, const RunResult& failure, std::chrono::seconds most,
              const std::function<void(std::size_t)>& progress) {
    return Shrinker(of, failure, most, progress).all();
}

}  // namespace lockstep::sim
