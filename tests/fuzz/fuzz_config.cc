// Any bytes as a config: a checked config, or an error that names the file; never a crash, never endless work.
#include "consensus/replica/config_file.h"
#include "log/check.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t count);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t count) {
    const std::string_view text(reinterpret_cast<const char*>(bytes), count);
    const lockstep::Result<lockstep::Options> result = lockstep::parse_config(text, "fuzz");
    if (result.ok()) {
        LOCKSTEP_CHECK(result.value().check().ok());
        LOCKSTEP_CHECK_OP(result.value().max_command_bytes(), >, 0);
    } else {
        LOCKSTEP_CHECK(result.error().message().starts_with("fuzz:"));
    }
    return 0;
}
