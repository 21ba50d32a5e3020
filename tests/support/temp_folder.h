// A folder of its own for a test, gone with everything in it at the end.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>  // NOLINT: mkdtemp is POSIX

#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/read_file.h"

namespace brrr {

class TempFolder {
 public:
  TempFolder() {
    std::string pattern = testing::TempDir() + "brrr-XXXXXX";
    path_ = mkdtemp(pattern.data());
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

  std::filesystem::path write(std::string_view name, std::string_view bytes) const {
    std::ofstream(path_ / name, std::ios::binary) << bytes;
    return path_ / name;
  }
  template <typename T>
  std::filesystem::path write_values(std::string_view name, std::span<const T> values) const {
    return write(name, {reinterpret_cast<const char*>(values.data()), values.size_bytes()});
  }

 private:
  std::filesystem::path path_;
};

}  // namespace brrr
