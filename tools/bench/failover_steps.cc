#include "tools/bench/failover_steps.h"

#include "tools/bench/clock.h"

#include <spdlog/spdlog.h>

#include <string_view>

namespace lockstep::bench {
namespace {

// What a line says that tells of a step; by Step.
constexpr std::array<std::string_view, kSteps> kWords = {
    " not reached: ", ": fences its ring ", " is stopped", " is in memory", ": its ring is fenced", " promises ballot ",
    ": leader in ballot "};

constexpr std::size_t at(Step step) { return static_cast<std::size_t>(step); }

}  // namespace

std::shared_ptr<FailoverSteps> FailoverSteps::watch_library() {
    const auto shown = spdlog::default_logger();
    auto steps = std::make_shared<FailoverSteps>();
    const auto to_terminal = shown->sinks().front();
    to_terminal->set_level(shown->level());
    auto library = std::make_shared<spdlog::logger>("lockstep", spdlog::sinks_init_list{to_terminal, steps});
    spdlog::register_logger(library);
    library->set_level(spdlog::level::debug);
    return steps;
}

void FailoverSteps::restart() {
    const std::lock_guard lock(mutex_);
    times_ = {};
}

StepTimes FailoverSteps::times() {
    const std::lock_guard lock(mutex_);
    return times_;
}

void FailoverSteps::sink_it_(const spdlog::details::log_msg& line) {
    if (times_[at(Step::leads)] != 0) return;
    const std::string_view text(line.payload.data(), line.payload.size());
    for (std::size_t i = 0; i < kSteps; ++i) {
        if (text.find(kWords[i]) == std::string_view::npos) continue;
        if (i == at(Step::noticed) && times_[i] != 0) return;
        times_[i] = now_ns();
        return;
    }
}

}  // namespace lockstep::bench
