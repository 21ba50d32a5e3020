# Defines OpenBLAS::OpenBLAS.
#
# Newer OpenBLAS packages define this target themselves; Debian 12's only sets two variables, and
# some systems ship a bare library and header. All three end as the same target here.
# OpenBLAS by name, not find_package(BLAS): brrr calls openblas_set_num_threads.
find_package(OpenBLAS CONFIG QUIET)

if(NOT TARGET OpenBLAS::OpenBLAS)
  find_path(OpenBLAS_CBLAS_INCLUDE_DIR cblas.h
            HINTS ${OpenBLAS_INCLUDE_DIRS} PATH_SUFFIXES openblas openblas-pthread)
  find_library(OpenBLAS_LIBRARY NAMES openblas openblasp HINTS ${OpenBLAS_LIBRARIES}
               PATH_SUFFIXES openblas-pthread openblas)
endif()

include(FindPackageHandleStandardArgs)
if(TARGET OpenBLAS::OpenBLAS)
  set(OpenBLAS_FOUND TRUE)
else()
  find_package_handle_standard_args(OpenBLAS
    REQUIRED_VARS OpenBLAS_LIBRARY OpenBLAS_CBLAS_INCLUDE_DIR VERSION_VAR OpenBLAS_VERSION
    REASON_FAILURE_MESSAGE "On Debian and Ubuntu: apt-get install libopenblas-dev")
endif()

if(OpenBLAS_FOUND AND NOT TARGET OpenBLAS::OpenBLAS)
  add_library(OpenBLAS::OpenBLAS UNKNOWN IMPORTED)
  set_target_properties(OpenBLAS::OpenBLAS PROPERTIES
    IMPORTED_LOCATION "${OpenBLAS_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${OpenBLAS_CBLAS_INCLUDE_DIR}")
endif()
mark_as_advanced(OpenBLAS_CBLAS_INCLUDE_DIR OpenBLAS_LIBRARY)
