# Writes the header that names the commit of the sources, if it is not there already: cmake -DSOURCE=... -DHEADER=... -P
set(commit "unknown")
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12 OUTPUT_VARIABLE described
                OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed ERROR_QUIET)
if(NOT failed)
    set(commit ${described})
endif()
file(CONFIGURE OUTPUT ${HEADER} CONTENT "#pragma once\n\nnamespace lockstep::tools::sim {\n
inline constexpr const char* kCommit = \"${commit}\";\n\n}  // namespace lockstep::tools::sim\n")
