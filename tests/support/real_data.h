// Files that others made, for tests that skip where they are absent: under $BRRR_DATA, or in shared/data
// beside the repository.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

namespace brrr {

inline std::optional<std::filesystem::path> real_file(const std::string& name) {
  const char* given = std::getenv("BRRR_DATA");
  const std::filesystem::path folder =
      given ? std::filesystem::path(given)
            : std::filesystem::path(BRRR_SOURCE_DIR) / ".." / "shared" / "data";
  const std::filesystem::path path = folder / name;
  if (!std::filesystem::exists(path)) return std::nullopt;
  return path;
}

inline std::string read_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace brrr
