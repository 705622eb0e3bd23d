# What `cmake --install` puts where: headers, library, package files for find_package and pkg-config, programs, sample
# config, documents.
include(CMakePackageConfigHelpers)

install(DIRECTORY include/lockstep DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(TARGETS lockstep EXPORT lockstep-targets)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/lockstep)
get_target_property(lockstep_type lockstep TYPE)
if(lockstep_type STREQUAL STATIC_LIBRARY)
    set(LOCKSTEP_IS_STATIC TRUE)
else()
    set(LOCKSTEP_IS_STATIC FALSE)
endif()
install(EXPORT lockstep-targets NAMESPACE lockstep:: DESTINATION ${package_folder})
configure_package_config_file(cmake/lockstep-config.cmake.in ${PROJECT_BINARY_DIR}/lockstep-config.cmake
                              INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/lockstep-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/lockstep-config.cmake ${PROJECT_BINARY_DIR}/lockstep-config-version.cmake
        DESTINATION ${package_folder})

# A static library brings what it needs to every link; a shared one has it inside.
set(LOCKSTEP_PC_REQUIRES "libxxhash protobuf spdlog")
if(LOCKSTEP_HAS_RDMA)
    string(APPEND LOCKSTEP_PC_REQUIRES " libibverbs")
endif()
if(LOCKSTEP_HAS_URING)
    string(APPEND LOCKSTEP_PC_REQUIRES " liburing")
endif()
if(LOCKSTEP_IS_STATIC)
    set(LOCKSTEP_PC_DEPENDENCIES "Requires: ${LOCKSTEP_PC_REQUIRES}\nLibs: -L\${libdir} -llockstep -pthread")
else()
    set(LOCKSTEP_PC_DEPENDENCIES "Requires.private: ${LOCKSTEP_PC_REQUIRES}\nLibs: -L\${libdir} -llockstep")
endif()
file(RELATIVE_PATH LOCKSTEP_PC_UP /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/lockstep.pc.in ${PROJECT_BINARY_DIR}/lockstep.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/lockstep.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

get_property(lockstep_programs GLOBAL PROPERTY LOCKSTEP_PROGRAMS)
if(lockstep_programs)
    install(TARGETS ${lockstep_programs} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(DIRECTORY configs/ DESTINATION ${CMAKE_INSTALL_DATADIR}/lockstep FILES_MATCHING PATTERN "*.textproto")
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.md")
install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
