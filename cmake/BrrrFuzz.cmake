# Fuzzers: build/fuzz/bin/*_fuzz, one for each tests/fuzz/*_fuzz.cpp, with only the sources that are
# fuzzed, compiled for coverage and under the address and undefined-behaviour sanitizers.
#   cmake --preset fuzz && cmake --build --preset fuzz && build/fuzz/bin/einops_fuzz -max_total_time=60

include(CheckCXXSourceCompiles)
set(CMAKE_REQUIRED_FLAGS -fsanitize=fuzzer)
check_cxx_source_compiles("extern \"C\" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long)
                           { return 0; }" BRRR_HAS_FUZZER)
unset(CMAKE_REQUIRED_FLAGS)
if(NOT BRRR_HAS_FUZZER)
  message(FATAL_ERROR "BRRR_FUZZ: ${CMAKE_CXX_COMPILER} has no -fsanitize=fuzzer; use a clang 16 or "
                      "newer that comes with libclang_rt (Debian: clang-19 libclang-rt-19-dev)")
endif()

add_custom_target(fuzzers)

function(brrr_add_fuzzer name)  # brrr_add_fuzzer(<name> <source of src/brrr>...)
  list(TRANSFORM ARGN PREPEND "${PROJECT_SOURCE_DIR}/src/brrr/")
  add_executable(${name} "${PROJECT_SOURCE_DIR}/tests/fuzz/${name}.cpp" ${ARGN})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/src")
  target_compile_features(${name} PRIVATE cxx_std_20)
  target_compile_options(${name} PRIVATE -fsanitize=fuzzer,address,undefined
                                         -fno-sanitize-recover=undefined -g -O1)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer,address,undefined)
  target_link_libraries(${name} PRIVATE fmt::fmt Threads::Threads pcre2::pcre2
                                        ZLIB::ZLIB nlohmann_json::nlohmann_json)
  add_dependencies(fuzzers ${name})
endfunction()

brrr_add_fuzzer(einops_fuzz ops/einops/einops_parse.cpp base/error.cpp)
brrr_add_fuzzer(shape_spec_fuzz)

set(words_sources text/splitter.cpp text/scan_words.cpp text/char_class.cpp text/regex.cpp text/utf8.cpp
                  base/error.cpp)
brrr_add_fuzzer(splitter_fuzz ${words_sources})
file(GLOB text_sources RELATIVE "${PROJECT_SOURCE_DIR}/src/brrr" CONFIGURE_DEPENDS
     "${PROJECT_SOURCE_DIR}/src/brrr/text/*.cpp")
list(FILTER text_sources EXCLUDE REGEX "train_bpe|count_words|stream|char_set|file_bytes|/tokenizer_file")
brrr_add_fuzzer(tokenizer_file_fuzz ${text_sources} base/error.cpp base/thread_pool.cpp base/cgroup.cpp)
brrr_add_fuzzer(npy_fuzz io/npy_header.cpp base/error.cpp)
brrr_add_fuzzer(token_file_fuzz data/token_layout.cpp data/shard_format.cpp io/crc32c.cpp
                io/npy_header.cpp tensor/dtype.cpp base/error.cpp)
brrr_add_fuzzer(gzip_fuzz io/gzip.cpp base/error.cpp base/units.cpp)
brrr_add_fuzzer(run_log_fuzz run/run_log_json.cpp base/error.cpp base/units.cpp)
# Families are read by their own files, which hold the modules as well: the parsers are instrumented, the rest is linked.
# That builds the whole library, so it is on request.
option(BRRR_FUZZ_MODELS "Also build model_config_fuzz, which links the whole library" OFF)
if(BRRR_FUZZ_MODELS)
  file(GLOB family_sources RELATIVE "${PROJECT_SOURCE_DIR}/src/brrr" CONFIGURE_DEPENDS
       "${PROJECT_SOURCE_DIR}/src/brrr/nn/families/*.cpp")
  brrr_add_fuzzer(model_config_fuzz infer/huggingface_config.cpp nn/huggingface_fields.cpp
                  ${family_sources} plan/model/model_limits.cpp)
  target_link_libraries(model_config_fuzz PRIVATE brrr::brrr)
endif()
