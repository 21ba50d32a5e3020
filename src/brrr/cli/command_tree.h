// The parser as a tree of commands with names. CLI11 keeps groups of options as commands without one; here
// their options are those of the command that has the group.
#pragma once

#include <CLI/CLI.hpp>
#include <vector>

namespace brrr::cli {

std::vector<const CLI::App*> named_commands(const CLI::App& command);
std::vector<const CLI::Option*> options_of(const CLI::App& command);

}  // namespace brrr::cli
