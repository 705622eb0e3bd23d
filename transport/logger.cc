#include "transport/logger.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>

namespace lockstep {

namespace {

constexpr const char* kName = "lockstep";

std::shared_ptr<spdlog::logger> find_or_make() {
    if (auto registered = spdlog::get(kName)) return registered;
    auto made = std::make_shared<spdlog::logger>(kName, std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    spdlog::initialize_logger(made);  // the program's levels and format
    return made;
}

}  // namespace

spdlog::logger& logger() {
    static const std::shared_ptr<spdlog::logger> found = find_or_make();
    return *found;
}

}  // namespace lockstep
