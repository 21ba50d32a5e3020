// Runs the program brrr as a person or a script would.
#pragma once

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

namespace brrr {

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
