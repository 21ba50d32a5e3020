# Sets BRRR_HAS_CUDA and defines brrr_add_cuda(target).
#
# .cu files are compiled only when a CUDA compiler is there; code asks `#if BRRR_HAS_CUDA`.
# The runtime is linked statically and libcuda not at all (driver functions are looked up at run
# time), so a CUDA build starts on a machine without a GPU or a driver.

# sm_80 A100, sm_89 L4 and RTX 40, sm_90a H100/H200 ("a": wgmma and setmaxnreg). The last entry is
# PTX that newer GPUs translate; it is plain 90, since PTX for 90a runs on Hopper alone.
set(BRRR_CUDA_ARCHITECTURES "80-real;89-real;90a-real;90-virtual"
    CACHE STRING "GPU architectures to compile for, as CMAKE_CUDA_ARCHITECTURES")

set(brrr_cuda_found FALSE)
if(NOT BRRR_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "BRRR_CUDA is '${BRRR_CUDA}'; use AUTO, ON or OFF")
elseif(NOT BRRR_CUDA STREQUAL "OFF")
  # NVIDIA's installer does not put nvcc on PATH, so its own standard places are tried too.
  find_program(BRRR_NVCC nvcc HINTS ENV CUDACXX ENV CUDA_PATH ENV CUDA_HOME /usr/local/cuda
               PATH_SUFFIXES bin DOC "The CUDA compiler")
  if(CMAKE_CUDA_COMPILER OR BRRR_NVCC)
    set(brrr_cuda_found TRUE)
  elseif(BRRR_CUDA STREQUAL "ON")
    message(FATAL_ERROR "BRRR_CUDA=ON, but there is no nvcc on PATH or in /usr/local/cuda. "
      "Set CUDACXX to it, or use BRRR_CUDA=OFF for a build without GPU kernels.")
  endif()
endif()
set(BRRR_HAS_CUDA ${brrr_cuda_found} CACHE INTERNAL "Whether this build compiles CUDA code")

if(NOT BRRR_HAS_CUDA)
  message(STATUS "brrr: CUDA off (BRRR_CUDA=${BRRR_CUDA})")
  return()
endif()

if(NOT CMAKE_CUDA_COMPILER)
  set(CMAKE_CUDA_COMPILER "${BRRR_NVCC}")
endif()
set(CMAKE_CUDA_ARCHITECTURES "${BRRR_CUDA_ARCHITECTURES}")  # before enable_language, which tests them
enable_language(CUDA)
if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # nvcc has known C++20 since 12.0, CMake since 3.26
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
endif()
find_package(CUDAToolkit 12.4 REQUIRED)
message(STATUS "brrr: CUDA ${CUDAToolkit_VERSION} for ${BRRR_CUDA_ARCHITECTURES}")

# --fmad=false: as on the CPU, fma only where an op says fma.
# --expt-relaxed-constexpr: device code may call the constexpr functions of base/ (float formats).
target_compile_options(brrr_flags INTERFACE
  "$<$<COMPILE_LANGUAGE:CUDA>:--fmad=false;--expt-relaxed-constexpr;-Xcompiler=-Wall,-Wextra,-Wno-missing-field-initializers>")
# Line info lets profilers show source lines. It costs nothing at run time and leaves the machine code as
# it is, but it carries the PTX as text: two thirds of the bytes of a kernel, once for each architecture.
option(BRRR_CUDA_LINEINFO "Keep source lines in CUDA kernels, for profilers" OFF)
if(BRRR_CUDA_LINEINFO)
  target_compile_options(brrr_flags INTERFACE "$<$<COMPILE_LANGUAGE:CUDA>:-lineinfo>")
endif()
if(BRRR_WERROR)
  target_compile_options(brrr_flags INTERFACE "$<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>")
endif()

function(brrr_add_cuda target)
  file(GLOB_RECURSE cuda_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/brrr/*.cu")
  target_sources(${target} PRIVATE ${cuda_sources})
  # Only the sources that ask for BRRR_HAS_CUDA see it and CUDA's headers, so that all others are compiled alike with
  # and without CUDA: a compiler cache serves both.
  get_target_property(sources ${target} SOURCES)
  set(asking ${cuda_sources})
  foreach(source IN LISTS sources)
    if(source MATCHES "\\.cpp$" AND EXISTS "${source}")
      file(STRINGS "${source}" found REGEX "BRRR_HAS_CUDA|BRRR_CUDA_KERNEL|gemm_description.h")
      if(found)
        list(APPEND asking "${source}")
      endif()
    endif()
  endforeach()
  set_property(SOURCE ${asking} APPEND PROPERTY COMPILE_DEFINITIONS BRRR_HAS_CUDA=1)
  set_property(SOURCE ${asking} APPEND PROPERTY INCLUDE_DIRECTORIES ${CUDAToolkit_INCLUDE_DIRS})
  target_compile_definitions(${target} INTERFACE $<INSTALL_INTERFACE:BRRR_HAS_CUDA=1>)
  target_link_libraries(${target} PRIVATE $<LINK_ONLY:CUDA::cudart_static>)
  set_target_properties(${target} PROPERTIES
    CUDA_STANDARD 20 CUDA_STANDARD_REQUIRED ON CUDA_EXTENSIONS OFF
    CUDA_RUNTIME_LIBRARY Static)
endfunction()
