# Defines hwy::hwy (Highway, portable SIMD), from its own CMake package where there is one and from
# pkg-config where a distribution ships only that.
find_package(hwy CONFIG QUIET)

if(NOT TARGET hwy::hwy)
  find_package(PkgConfig QUIET)
  if(PkgConfig_FOUND)
    pkg_check_modules(libhwy QUIET IMPORTED_TARGET libhwy)
  endif()
  if(TARGET PkgConfig::libhwy)
    add_library(hwy::hwy INTERFACE IMPORTED)
    target_link_libraries(hwy::hwy INTERFACE PkgConfig::libhwy)
  endif()
endif()

if(TARGET hwy::hwy)
  set(hwy_FOUND TRUE)
else()
  set(hwy_FOUND FALSE)
  if(hwy_FIND_REQUIRED)
    message(FATAL_ERROR "Highway (hwy) was not found. On Debian and Ubuntu: apt-get install libhwy-dev")
  endif()
endif()
