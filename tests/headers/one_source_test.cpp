// Every public header in one source: two that gave one name two meanings would not compile here, and a
// program that includes both would have undefined behaviour without a word from the linker.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "all_headers.h"

namespace brrr {
namespace {

// Headers that this source cannot include, each for its reason. cli/ is a program and not the library.
const std::set<std::string> kLeftOut = {"kernels/cpu/attention/attention_query-inl.h",
                                        "kernels/cpu/attention/attention_tiles-inl.h",
                                        "kernels/cpu/rows/row_loops-inl.h",  // Highway
                                        "device/cuda/check.h",
                                        "device/cuda/cublaslt.h",
                                        "kernels/cuda/gemm/gemm_description.h",  // CUDA's headers
                                        "kernels/cuda/codegen/element_access.h",
                                        "kernels/cuda/codegen/block_reduce.h",
                                        "device/cuda/rtc_std.h"};  // its compiler

TEST(PublicHeaders, CompileInOneSource) {
  std::ifstream file(std::string(BRRR_BINARY_DIR) + "/generated/all_headers.h");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::filesystem::path root = std::string(BRRR_SOURCE_DIR) + "/src/brrr";
  int headers = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    const std::string path = std::filesystem::relative(entry.path(), root);
    if (entry.path().extension() != ".h" || path.starts_with("cli/")) continue;
    ++headers;
    const bool is_included = text.find("#include \"brrr/" + path + "\"") != std::string::npos;
    EXPECT_NE(is_included, kLeftOut.contains(path)) << path;
  }
  EXPECT_GT(headers, 300);
}

}  // namespace
}  // namespace brrr
