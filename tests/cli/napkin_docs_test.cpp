// Every answer that docs/napkin.md shows is what its command prints today. Measured blocks (verify, ladder) are
// of one machine and one day, and are left out.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "support/run_program.h"

namespace brrr {
namespace {

struct Block {
  std::string command;  // behind "$ brrr "
  std::vector<std::string> lines;
};

std::vector<Block> shown_commands(const std::string& path) {
  std::ifstream file(path);
  std::vector<Block> blocks;
  bool is_open = false;
  constexpr std::string_view kPrompt = "$ brrr ";
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("```")) {
      is_open = false;
    } else if (line.starts_with(kPrompt)) {
      blocks.push_back({line.substr(kPrompt.size()), {}});
      is_open = true;
    } else if (is_open && !line.empty()) {
      blocks.back().lines.push_back(line);
    }
  }
  return blocks;
}

TEST(NapkinDocs, ShowWhatTheCommandsPrint) {
  unsetenv("COLUMNS");  // tables of 120 columns, as in a pipe
  int checked = 0;
  for (const Block& block : shown_commands(BRRR_SOURCE_DIR "/docs/napkin.md")) {
    if (block.command.starts_with("napkin verify") || block.command.starts_with("ladder")) continue;
    const Outcome result = run(block.command);
    EXPECT_EQ(result.status, 0) << block.command;
    size_t at = 0;  // lines come in this order; some may be left out
    for (const std::string& line : block.lines) {
      const size_t found = result.output.find(line + "\n", at);
      EXPECT_NE(found, std::string::npos) << "brrr " << block.command << " does not print\n"
                                          << line;
      if (found != std::string::npos) at = found;
    }
    ++checked;
  }
  EXPECT_GE(checked, 4);
}

}  // namespace
}  // namespace brrr
