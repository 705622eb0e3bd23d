# What is built only where a library is installed: lockstep_optional(NAME TEXT LIBRARY PACKAGE MODULE). The cache variable
# LOCKSTEP_NAME asks for it (AUTO, ON or OFF), LOCKSTEP_HAS_NAME says whether it is built, PkgConfig::LIBRARY is what it
# links. TEXT names it for people, PACKAGE is Debian's, MODULE what pkg-config is asked for.
function(lockstep_optional name text library package module)
    string(REGEX MATCH "^[a-z]+" plain ${module})
    set(LOCKSTEP_${name} AUTO CACHE STRING "${text}: AUTO (where ${plain} is installed), ON or OFF")
    set_property(CACHE LOCKSTEP_${name} PROPERTY STRINGS AUTO ON OFF)
    set(LOCKSTEP_HAS_${name} FALSE PARENT_SCOPE)
    if(LOCKSTEP_${name} STREQUAL "OFF")
        message(STATUS "${text}: off, by LOCKSTEP_${name}")
        return()
    endif()
    pkg_check_modules(${library} QUIET IMPORTED_TARGET ${module})
    if(${library}_FOUND)
        message(STATUS "${text}: by ${plain} ${${library}_VERSION}")
        set(LOCKSTEP_HAS_${name} TRUE PARENT_SCOPE)
    elseif(LOCKSTEP_${name} STREQUAL "ON")
        message(FATAL_ERROR "LOCKSTEP_${name} is ON and ${plain} is not installed: install ${package}")
    else()
        message(STATUS "${text}: off, ${plain} is not installed (${package})")
    endif()
endfunction()

lockstep_optional(RDMA "RDMA" ibverbs libibverbs-dev libibverbs)
# The kernel writes and syncs the log by itself, where it can; else a thread does.
lockstep_optional(URING "io_uring" liburing liburing-dev "liburing>=2.2")
