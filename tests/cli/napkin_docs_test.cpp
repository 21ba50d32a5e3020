// Every answer that docs/napkin.md shows is what its command prints today. Measured blocks (verify, ladder) are
// of one machine and one day, and are left out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "brrr/base/error.h"
#include "support/run_program.h"

namespace brrr {
namespace {

using testing::AllOf;
using testing::HasSubstr;

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

// The words of a file, a blank between each two.
std::string words_of(const std::string& path) {
  std::ifstream file(path);
  std::string words;
  for (std::string word; file >> word;) words += words.empty() ? word : " " + word;
  return words;
}

TEST(NapkinDocs, CountPublishedNumbersAsTheCheckDoes) {
  const Outcome result = run("napkin check --json");
  ASSERT_EQ(result.status, 0);
  std::map<std::string, int> inside;  // by class
  std::set<std::string> runs;
  int all = 0, wider = 0, bounds = 0, calibrated = 0;
  for (const nlohmann::json& row : nlohmann::json::parse(result.output)) {
    ++all;
    runs.insert(row["id"].get<std::string>());
    if (row["verdict"] == "inside") ++inside[row["class"].get<std::string>()];
    if (row["verdict"] == "wider band") ++wider;
    if (row["verdict"] == "bound") ++bounds;
    if (!row["calibration"].get<std::string>().empty()) ++calibrated;
  }
  const int predicted = inside["predicted"], exact = inside["exact"], formula = inside["formula"];
  EXPECT_THAT(words_of(BRRR_SOURCE_DIR "/docs/napkin.md"),
              AllOf(HasSubstr(join_text("holds ", all, " numbers of ", runs.size(),
                                        " published runs against")),
                    HasSubstr(join_text("**inside**, ", exact + formula + predicted,
                                        " numbers: arithmetic to 1 % (", exact,
                                        "), formulas and memory to 3 % (", formula,
                                        "), speeds predicted to 15 % (", predicted, ").")),
                    HasSubstr(join_text(predicted - calibrated, " of the predictions are made")),
                    HasSubstr(join_text("; ", calibrated, " take one number from")),
                    HasSubstr(join_text("**wider band**, ", wider, " numbers")),
                    HasSubstr(join_text("**bound**, ", bounds, " numbers"))));
  EXPECT_THAT(words_of(BRRR_SOURCE_DIR "/README.md"),
              HasSubstr(join_text(runs.size(), " published runs check it: ", predicted,
                                  " speeds and times predicted to 15 %, ", calibrated,
                                  " of them with a number or two from")));
}

}  // namespace
}  // namespace brrr
