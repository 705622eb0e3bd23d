# The installed library: one target, made of the parts' objects.
get_property(lockstep_parts GLOBAL PROPERTY LOCKSTEP_PARTS)
set(lockstep_objects ${lockstep_parts})
list(TRANSFORM lockstep_objects PREPEND "$<TARGET_OBJECTS:")
list(TRANSFORM lockstep_objects APPEND ">")

add_library(lockstep ${lockstep_objects})
add_library(lockstep::lockstep ALIAS lockstep)
set_target_properties(lockstep PROPERTIES LINKER_LANGUAGE CXX VERSION ${PROJECT_VERSION}
                      SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
target_compile_features(lockstep PUBLIC cxx_std_20)
target_include_directories(lockstep PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                           $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(lockstep PRIVATE protobuf::libprotobuf spdlog::spdlog PkgConfig::xxhash PUBLIC Threads::Threads)
if(LOCKSTEP_HAS_RDMA)
    target_link_libraries(lockstep PRIVATE PkgConfig::ibverbs)
endif()
if(LOCKSTEP_HAS_URING)
    target_link_libraries(lockstep PRIVATE PkgConfig::liburing)
endif()
if(LOCKSTEP_SANITIZE)
    target_link_options(lockstep PUBLIC $<BUILD_INTERFACE:-fsanitize=${LOCKSTEP_SANITIZE}>)
endif()
