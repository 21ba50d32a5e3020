// brrr data, as a person or a script meets it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "support/temp_folder.h"

namespace brrr {
namespace {

using testing::HasSubstr;

struct Outcome {
  int status;
  std::string output;
};

Outcome run(const std::string& arguments) {
  const std::string command = std::string(BRRR_PROGRAM) + " data " + arguments + " 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  Outcome result{-1, ""};
  std::array<char, 4096> buffer{};
  while (pipe && fgets(buffer.data(), buffer.size(), pipe)) result.output += buffer.data();
  if (pipe) result.status = WEXITSTATUS(pclose(pipe));
  return result;
}

TEST(DataCommand, PreparesAndInspects) {
  const TempFolder folder;
  const std::string text = folder.write("a.txt", "one|two|three|four").string();
  const std::string out = (folder / "out").string();
  const std::string arguments =
      text + " --tokenizer byte --separator '|' --validation 0.4 --out " + out;
  const Outcome prepared = run("prepare --json " + arguments);
  ASSERT_EQ(prepared.status, 0) << prepared.output;
  const auto report = nlohmann::json::parse(prepared.output);
  EXPECT_EQ(report["train"]["documents"].get<int>() + report["validation"]["documents"].get<int>(),
            4);
  EXPECT_EQ(report["train"]["tokens"].get<int>() + report["validation"]["tokens"].get<int>(),
            15 + 4);
  EXPECT_EQ(report["vocab_size"], 257);

  const auto info = nlohmann::json::parse(run("info --json --verify " + out).output);
  EXPECT_EQ(info["tokens"], 19);
  EXPECT_EQ(info["verified"], true);
  EXPECT_EQ(info["files"][0]["format"], "brrr");
  EXPECT_EQ(info["files"][0]["tokenizer_hash"], report["tokenizer_hash"]);
  EXPECT_THAT(run("info --verify " + out).output, HasSubstr("19 tokens; every checksum holds"));
  EXPECT_THAT(run("prepare " + arguments).output, HasSubstr("stands there already"));
  EXPECT_THAT(run("prepare --force " + arguments).output, HasSubstr("18 B of text are now tokens"));
}

TEST(DataCommand, NamesTheFormatsOfOthers) {
  const TempFolder folder;
  const std::vector<uint16_t> tokens = {1, 2, 3};
  const std::string nano = folder.write_values<uint16_t>("train.bin", tokens).string();
  const auto info = nlohmann::json::parse(run("info --json " + nano).output);
  EXPECT_EQ(info["files"][0]["format"], "raw");
  EXPECT_EQ(info["files"][0]["dtype"], "u16");
  EXPECT_EQ(info["tokens"], 3);
  EXPECT_EQ(nlohmann::json::parse(run("info --json --raw u8 " + nano).output)["tokens"], 6);
}

TEST(DataCommand, SaysWhatIsWrong) {
  const TempFolder folder;
  const Outcome missing = run("info " + (folder / "missing").string());
  EXPECT_NE(missing.status, 0);
  EXPECT_THAT(missing.output, HasSubstr("missing: no such file or folder"));
  EXPECT_THAT(run("info " + folder.write("a.txt", "text").string()).output,
              HasSubstr("brrr data prepare"));
  EXPECT_NE(run("").status, 0) << "prepare or info";
}

}  // namespace
}  // namespace brrr
