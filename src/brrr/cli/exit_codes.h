// What the program tells its caller by the number it ends with.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace brrr::cli {

inline constexpr int kSuccess = 0;
inline constexpr int kFailure =
    1;  // ours: a bug, a check that did not hold, a machine that gave up
inline constexpr int kUserError = 2;  // theirs: a wrong flag, file or setting, named in the message

// Something that was asked for and did not come out: an op that does not hold its promises, say.
class CheckFailed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Prints help or version where they were asked for, else what is wrong with the arguments, with the
// nearest command or option there is. Returns the exit code.
int report_parse_error(const CLI::App& app, const CLI::ParseError& error);

}  // namespace brrr::cli
