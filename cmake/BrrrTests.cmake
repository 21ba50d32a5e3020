# Everything ctest runs:
#   <folder>.<Suite>.<Case>   unit tests, one program per folder of tests/
#   example.<name>            each example runs and exits with 0
#   readme.example            the first C++ block of README.md compiles and runs
#   demo.stories              as `make demo` trains, in minutes; only where asked for: ctest -C demo -L demo
#   demo.nanogpt              nanoGPT's small settings for a CPU reach the loss that its README reports, likewise
#   house.*                   the rules of the tree, and the installed package

find_package(GTest REQUIRED)
include(GoogleTest)

# ---- unit tests ----------------------------------------------------------------------------------
file(GLOB_RECURSE test_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/*_test.cpp")
if(BRRR_HAS_CUDA)  # ops of users with CUDA code
  file(GLOB_RECURSE cuda_test_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/*_test.cu")
  list(APPEND test_sources ${cuda_test_sources})
endif()
set(test_folders "")
foreach(source IN LISTS test_sources)
  if(NOT source MATCHES "/tests/([^/]+)/(.*/)?[^/]+_test\\.(cpp|cu)$")
    message(FATAL_ERROR "${source}: a test belongs in a folder of tests/, as its source in src/brrr/")
  endif()
  set(folder ${CMAKE_MATCH_1})
  list(APPEND test_folders ${folder})
  list(APPEND test_sources_${folder} "${source}")
endforeach()
list(REMOVE_DUPLICATES test_folders)

foreach(folder IN LISTS test_folders)
  add_executable(test_${folder} ${test_sources_${folder}})
  set_target_properties(test_${folder} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin/tests"
    CUDA_STANDARD 20 CUDA_STANDARD_REQUIRED ON CUDA_EXTENSIONS OFF)
  target_include_directories(test_${folder} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  target_link_libraries(test_${folder} PRIVATE
    brrr::brrr GTest::gtest_main GTest::gmock nlohmann_json::nlohmann_json brrr_flags brrr_glue_flags)
  target_compile_definitions(test_${folder} PRIVATE BRRR_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  if(BRRR_HAS_CUDA AND folder STREQUAL "cuda")
    target_compile_definitions(test_${folder} PRIVATE BRRR_HAS_CUDA=1)
  endif()
  if(TARGET brrr_cli)  # tests/cli runs the program itself
    target_compile_definitions(test_${folder} PRIVATE BRRR_PROGRAM="$<TARGET_FILE:brrr_cli>")
    add_dependencies(test_${folder} brrr_cli)
  endif()
  # PRE_TEST asks the program for its cases when ctest starts, so a crash in start-up is a failed
  # test and not a failed build. The limits leave room for sanitizers on a busy machine.
  # Those of train take longest, so they begin first.
  set(cost 0)
  if(folder STREQUAL "train")
    set(cost 10)
  endif()
  gtest_discover_tests(test_${folder} TEST_PREFIX "${folder}." DISCOVERY_MODE PRE_TEST
    DISCOVERY_TIMEOUT 120 PROPERTIES TIMEOUT 900 LABELS ${folder} COST ${cost})
endforeach()

add_test(NAME demo.stories CONFIGURATIONS demo COMMAND test_train --gtest_filter=Demo.*Stories*)
add_test(NAME demo.nanogpt CONFIGURATIONS demo COMMAND test_train --gtest_filter=Demo.*NanoGpt)
set_tests_properties(demo.stories demo.nanogpt PROPERTIES
  TIMEOUT 900 LABELS demo ENVIRONMENT BRRR_DEMO=1)

target_link_libraries(test_base PRIVATE tomlplusplus::tomlplusplus)  # tests toml_entry.h, which includes it

# The header's other face: this folder is compiled as in a build with BRRR_SHAPE_CHECKS=OFF. The library
# it links never checks a named shape of its own, so both may meet in one program.
target_compile_options(test_no_shape_checks PRIVATE -UBRRR_SHAPE_CHECKS -DBRRR_SHAPE_CHECKS=0)

# ---- every public header in one source ---------------------------------------------------------------
# all_headers.h includes them all, a new one by itself, so that no two may define one name differently.
# Left out: what needs CUDA's headers or its compiler, and what Highway includes once for each target.
file(GLOB_RECURSE headers RELATIVE "${PROJECT_SOURCE_DIR}/src" CONFIGURE_DEPENDS
     "${PROJECT_SOURCE_DIR}/src/brrr/*.h")
list(FILTER headers EXCLUDE REGEX "^brrr/cli/|-inl\\.h$|^brrr/kernels/cuda/(codegen/(element_access|block_reduce)|gemm/gemm_description)\\.h$")
list(FILTER headers EXCLUDE REGEX "^brrr/device/cuda/(check|cublaslt|rtc_std)\\.h$")
list(TRANSFORM headers REPLACE "(.+)" "#include \"\\1\"")
list(JOIN headers "\n" header_lines)
file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/generated/all_headers.h" @ONLY CONTENT
     "// Made by cmake/BrrrTests.cmake.\n#pragma once\n@header_lines@\n")
target_include_directories(test_headers PRIVATE "${PROJECT_BINARY_DIR}/generated")
target_compile_definitions(test_headers PRIVATE BRRR_BINARY_DIR="${PROJECT_BINARY_DIR}")

# ---- examples: run where they may leave files ------------------------------------------------------
set(example_run_dir "${PROJECT_BINARY_DIR}/example_runs")
file(MAKE_DIRECTORY "${example_run_dir}")
foreach(target IN LISTS brrr_example_targets)
  string(REGEX REPLACE "^example_" "example." test_name ${target})
  add_test(NAME ${test_name} COMMAND ${target} WORKING_DIRECTORY "${example_run_dir}")
  set_tests_properties(${test_name} PROPERTIES TIMEOUT 900 LABELS examples)
endforeach()

# ---- readme.example ----------------------------------------------------------------------------------
# Taken out while configuring, so that it is an ordinary source: built with the rest, with our flags.
set(readme "${PROJECT_SOURCE_DIR}/README.md")
if(EXISTS "${readme}")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${readme}")
  file(READ "${readme}" readme_text)
  if(readme_text MATCHES "```cpp[ \t]*\n([^`]*)```")
    set(readme_source "${PROJECT_BINARY_DIR}/readme_example.cpp")
    set(readme_code "${CMAKE_MATCH_1}")
    set(readme_old "")
    if(EXISTS "${readme_source}")
      file(READ "${readme_source}" readme_old)
    endif()
    if(NOT readme_code STREQUAL readme_old)  # an unchanged file keeps its time: no rebuild
      file(WRITE "${readme_source}" "${readme_code}")
    endif()
    add_executable(readme_example "${readme_source}")
    set_target_properties(readme_example PROPERTIES
      RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin/tests")
    target_link_libraries(readme_example PRIVATE brrr::brrr brrr_flags brrr_glue_flags)
    add_test(NAME readme.example COMMAND readme_example WORKING_DIRECTORY "${example_run_dir}")
    set_tests_properties(readme.example PROPERTIES TIMEOUT 300 LABELS examples)
  else()
    message(WARNING "README.md has no ```cpp block, so readme.example does not exist")
  endif()
endif()

# ---- the house ---------------------------------------------------------------------------------------
add_test(NAME house.layers COMMAND "${PROJECT_SOURCE_DIR}/tools/check_layers.sh")
add_test(NAME house.layers_self_test
         COMMAND "${PROJECT_SOURCE_DIR}/tools/check_layers.sh" --self-test)
add_test(NAME house.architecture COMMAND "${PROJECT_SOURCE_DIR}/tools/check_architecture.sh")
set_tests_properties(house.layers house.layers_self_test house.architecture
                     PROPERTIES TIMEOUT 60 LABELS house)

if(BRRR_INSTALL)
  list(JOIN brrr_sanitizer_flags " " consumer_flags)  # a sanitized library needs a sanitized program
  add_test(NAME house.consumer
    COMMAND ${CMAKE_COMMAND}
      "-Dbuild_dir=${PROJECT_BINARY_DIR}"
      "-Dsource_dir=${PROJECT_SOURCE_DIR}/tests/consumer"
      "-Dwork_dir=${PROJECT_BINARY_DIR}/consumer"
      "-Dgenerator=${CMAKE_GENERATOR}"
      "-Dcompiler=${CMAKE_CXX_COMPILER}"
      "-Dflags=${consumer_flags}"
      "-Dconfig=$<CONFIG>"
      -P "${PROJECT_SOURCE_DIR}/cmake/run_consumer.cmake")
  set_tests_properties(house.consumer PROPERTIES TIMEOUT 600 LABELS house)
endif()
