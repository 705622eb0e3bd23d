# How every target of this project is built. Flags stay on targets: nothing leaks to users of the library.

# Common flags, warnings and sanitizers for one target.
function(lockstep_flags target)
    target_compile_features(${target} PUBLIC cxx_std_20)
    set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON)
    target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor
                           $<$<BOOL:${LOCKSTEP_WERROR}>:-Werror>)
    # g++ 12 sees an overlap in `"text" + std::to_string(...)` where there is none (GCC bug 105651).
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
        target_compile_options(${target} PRIVATE -Wno-restrict)
    endif()
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
    lockstep_sanitizers(${target})
endfunction()

# What LOCKSTEP_SANITIZE and LOCKSTEP_FUZZ ask of one target.
function(lockstep_sanitizers target)
    if(LOCKSTEP_SANITIZE)
        target_compile_options(${target} PRIVATE -fsanitize=${LOCKSTEP_SANITIZE} -fno-omit-frame-pointer
                               -fno-sanitize-recover=all)
        target_link_options(${target} PUBLIC -fsanitize=${LOCKSTEP_SANITIZE})
    endif()
    if(LOCKSTEP_FUZZ)
        target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
    endif()
endfunction()

# An internal part of the library, built once and linked into it: lockstep_part(NAME SOURCES...). A test links the
# parts that it needs as lockstep_NAME, each by name: the objects of a part do not come along with another part.
function(lockstep_part name)
    if(NOT ARGN)
        add_library(lockstep_${name} INTERFACE)
        return()
    endif()
    add_library(lockstep_${name} OBJECT ${ARGN})
    lockstep_flags(lockstep_${name})
    target_include_directories(lockstep_${name} PUBLIC ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR})
    set_property(GLOBAL APPEND PROPERTY LOCKSTEP_PARTS lockstep_${name})
endfunction()

# A part once more, as lockstep_NAME_planted: with known bugs in it that can be switched on (log/planted.h). Only the
# simulator's tests link it; a program takes all parts of this kind that there are, or none.
function(lockstep_planted name)
    get_target_property(sources lockstep_${name} SOURCES)
    get_target_property(folder lockstep_${name} SOURCE_DIR)
    get_target_property(libraries lockstep_${name} LINK_LIBRARIES)
    list(TRANSFORM sources PREPEND "${folder}/" REGEX "^[^/]")
    add_library(lockstep_${name}_planted OBJECT ${sources})
    lockstep_flags(lockstep_${name}_planted)
    target_compile_definitions(lockstep_${name}_planted PRIVATE LOCKSTEP_PLANTABLE)
    target_include_directories(lockstep_${name}_planted PUBLIC ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR})
    if(libraries)
        target_link_libraries(lockstep_${name}_planted PUBLIC ${libraries})
    endif()
endfunction()

# A program in build/PRESET/bin; it is installed if it is one of the tools: lockstep_program(NAME SOURCES...).
function(lockstep_program name)
    add_executable(${name} ${ARGN})
    lockstep_flags(${name})
    cmake_path(SET tools ${PROJECT_SOURCE_DIR}/tools)
    cmake_path(IS_PREFIX tools ${CMAKE_CURRENT_SOURCE_DIR} is_tool)
    if(is_tool)
        set_property(GLOBAL APPEND PROPERTY LOCKSTEP_PROGRAMS ${name})
    endif()
endfunction()

# A GoogleTest program that needs RDMA: lockstep_rdma_tests(TARGET LABEL NAMES...). ctest runs the cases of a name
# together, as TARGET.NAME, with the labels LABEL and rdma.
function(lockstep_rdma_tests target label)
    add_dependencies(tests_${label} ${target})
    lockstep_flags(${target})
    set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests UNITY_BUILD OFF)
    target_link_libraries(${target} PRIVATE GTest::gtest GTest::gmock GTest::gtest_main)
    foreach(name ${ARGN})
        add_test(NAME ${target}.${name} COMMAND ${target} --gtest_filter=*${name}*)
        set_tests_properties(${target}.${name} PROPERTIES LABELS "${label};rdma" TIMEOUT 1800 RUN_SERIAL ON
                             SKIP_REGULAR_EXPRESSION "no active RDMA port here")
    endforeach()
endfunction()

# A GoogleTest program whose tests ctest runs one by one: lockstep_test(NAME LABEL SOURCES...). Integration tests start
# processes and measure time: nothing else runs beside them. The target tests_LABEL builds all of a label.
function(lockstep_test name label)
    add_executable(${name} ${ARGN})
    add_dependencies(tests_${label} ${name})
    lockstep_flags(${name})
    # Test files are not bundled: each is a world of its own.
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests UNITY_BUILD OFF)
    target_link_libraries(${name} PRIVATE GTest::gtest GTest::gmock GTest::gtest_main)
    gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 NO_PRETTY_VALUES
                         PROPERTIES LABELS ${label} TIMEOUT 300 RUN_SERIAL $<STREQUAL:${label},integration>)
endfunction()
