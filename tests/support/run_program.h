// Runs the program brrr as a person or a script would.
#pragma once

#include <stdlib.h>  // NOLINT: setenv is POSIX
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <string>

namespace brrr {

// What the program measures of this machine goes next to the tests, not into the cache of whoever runs them.
inline const bool kHasOwnCache = [] {
  const auto cache = std::filesystem::path(BRRR_PROGRAM).parent_path() / "tests" / "cache";
  return setenv("XDG_CACHE_HOME", cache.c_str(), 1) == 0;
}();

struct Outcome {
  int status;
  std::string output;  // of both streams
};

inline Outcome run(const std::string& arguments) {
  const std::string command = std::string(BRRR_PROGRAM) + " " + arguments + " 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  Outcome result{-1, ""};
  std::array<char, 4096> buffer{};
  while (pipe && fgets(buffer.data(), buffer.size(), pipe)) result.output += buffer.data();
  if (pipe) result.status = WEXITSTATUS(pclose(pipe));
  return result;
}

}  // namespace brrr
