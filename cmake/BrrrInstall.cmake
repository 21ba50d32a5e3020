# `cmake --install`: the library, its headers, the program, and a package so that
#   find_package(brrr)  +  target_link_libraries(app brrr::brrr)
# works elsewhere. tests/consumer is such a project, and the test house.consumer builds it.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/brrr")

install(TARGETS brrr EXPORT brrrTargets)
if(TARGET brrr_cli)
  install(TARGETS brrr_cli)
endif()
install(DIRECTORY "${PROJECT_SOURCE_DIR}/src/brrr" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
        FILES_MATCHING PATTERN "*.h" PATTERN "*.cuh" PATTERN "cli" EXCLUDE)
install(EXPORT brrrTargets NAMESPACE brrr:: DESTINATION "${package_dir}")

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/brrrConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/brrrConfig.cmake" INSTALL_DESTINATION "${package_dir}")
# Before 1.0 a minor version may break its users.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/brrrConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
# The find modules travel along: the installed static library names the targets they define.
install(FILES "${PROJECT_BINARY_DIR}/brrrConfig.cmake"
              "${PROJECT_BINARY_DIR}/brrrConfigVersion.cmake"
              "${PROJECT_SOURCE_DIR}/cmake/Findhwy.cmake"
              "${PROJECT_SOURCE_DIR}/cmake/Findpcre2.cmake"
        DESTINATION "${package_dir}")
