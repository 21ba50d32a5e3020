// Real files that are not part of the tree: looked for under $BRRR_DATA, else ../shared/data beside it.
//   const auto path = shared_data("text/dickens.txt");
//   if (!path) GTEST_SKIP() << "no text/dickens.txt";
#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include "support/read_file.h"

namespace brrr {

inline std::optional<std::string> shared_data(const std::string& name) {
  const char* given = std::getenv("BRRR_DATA");
  const std::string folder = given ? given : std::string(BRRR_SOURCE_DIR) + "/../shared/data";
  const std::string path = folder + "/" + name;
  if (!std::filesystem::exists(path)) return std::nullopt;
  return path;
}

}  // namespace brrr
