# The brrr program, the examples and the benchmarks.

set(brrr_bin_dir "${PROJECT_BINARY_DIR}/bin")

# ---- build/bin/brrr ----------------------------------------------------------------------------
file(GLOB_RECURSE brrr_cli_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/brrr/cli/*.cpp")
if(brrr_cli_sources)
  find_package(CLI11 REQUIRED)
  add_executable(brrr_cli ${brrr_cli_sources})  # the name brrr is taken by the library
  set_target_properties(brrr_cli PROPERTIES OUTPUT_NAME brrr
                                            RUNTIME_OUTPUT_DIRECTORY "${brrr_bin_dir}")
  target_compile_definitions(brrr_cli PRIVATE BRRR_VERSION="${PROJECT_VERSION}")
  target_link_libraries(brrr_cli PRIVATE brrr::brrr CLI11::CLI11 nlohmann_json::nlohmann_json hwy::hwy
                                         brrr_flags brrr_glue_flags)
endif()

# ---- build/bin/examples/*: examples/lecture/cruncher.cpp becomes lecture_cruncher ---------------
set(brrr_example_targets "")
if(BRRR_EXAMPLES)
  file(GLOB_RECURSE example_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/examples/*.cpp")
  foreach(source IN LISTS example_sources)
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY "${PROJECT_SOURCE_DIR}/examples"
               OUTPUT_VARIABLE name)
    string(REGEX REPLACE "\\.cpp$" "" name "${name}")
    string(REPLACE "/" "_" name "${name}")
    # The target has a prefix so that an example may have any name, "test" or "bench" included.
    add_executable(example_${name} "${source}")
    set_target_properties(example_${name} PROPERTIES
      OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY "${brrr_bin_dir}/examples")
    target_link_libraries(example_${name} PRIVATE brrr::brrr brrr_flags brrr_glue_flags)
    list(APPEND brrr_example_targets example_${name})
  endforeach()
endif()

# ---- build/bin/bench/* ---------------------------------------------------------------------------
add_custom_target(brrr_benchmarks)  # so that `make bench` can build them all by one name
if(BRRR_BENCH)
  find_package(benchmark QUIET)
  if(NOT benchmark_FOUND)
    message(STATUS "brrr: no benchmarks (Google Benchmark was not found)")
  else()
    file(GLOB bench_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/bench/*_bench.cpp")
    foreach(source IN LISTS bench_sources)
      cmake_path(GET source STEM name)
      add_executable(${name} "${source}")
      set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${brrr_bin_dir}/bench")
      target_link_libraries(${name} PRIVATE brrr::brrr benchmark::benchmark_main brrr_flags)
      add_dependencies(brrr_benchmarks ${name})
    endforeach()
  endif()
endif()
