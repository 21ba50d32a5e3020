// brrr tokenize as a person or a script meets it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/run_program.h"
#include "support/temp_folder.h"

namespace brrr {
namespace {

using testing::HasSubstr;

class Tokenize : public testing::Test {
 protected:
  Tokenize() {
    std::ofstream file(folder_ + "text.txt");
    for (int i = 0; i < 40; ++i) file << "the cat sat on the mat, the hat.<|endoftext|>\n";
  }

  std::string train(const std::string& more, const std::string& name = "t.json") {
    const Outcome outcome =
        run("tokenize train " + folder_ + "text.txt --out " + folder_ + name + " " + more);
    EXPECT_EQ(outcome.status, 0) << outcome.output;
    return folder_ + name;
  }

  TempFolder temporary_;
  std::string folder_ = temporary_.path().string() + "/";
};

TEST_F(Tokenize, TrainsEncodesAndDecodes) {
  for (const char* name : {"t.json", "tokenizer.json", "t.tiktoken", "gpt2/"}) {
    const std::string file = train("--vocab 280", name);
    const auto encoded =
        nlohmann::json::parse(run("tokenize encode --json -t " + file + " 'the cat sat'").output);
    EXPECT_EQ(encoded["vocab_size"], 271) << "the text has no more pairs";
    EXPECT_EQ(encoded["ids"].size(), 3u) << "every word is a token";
    EXPECT_EQ(encoded["hash"].get<std::string>().size(), 16u);
    std::string ids;
    for (int id : encoded["ids"]) ids += " " + std::to_string(id);
    EXPECT_EQ(run("tokenize decode -t " + file + ids).output, "the cat sat") << name;
  }
}

TEST_F(Tokenize, CountsFilesWithAndWithoutSpecialTokens) {
  const std::string file = train("--kind byte");
  const std::string count = "tokenize count --json -t " + file + " " + folder_ + "text.txt";
  const auto plain = nlohmann::json::parse(run(count).output)["files"][0];
  EXPECT_EQ(plain["tokens"], plain["bytes"]);
  const auto special = nlohmann::json::parse(run(count + " --specials").output)["files"][0];
  EXPECT_EQ(special["tokens"], plain["tokens"].get<int>() - 40 * 12) << "13 characters become one";
  EXPECT_THAT(run("tokenize count -t " + file + " " + folder_ + "text.txt").output,
              HasSubstr("bytes/token"));
}

TEST_F(Tokenize, ReadsStandardInput) {
  const std::string file = train("--kind byte");
  EXPECT_THAT(run("tokenize encode -t " + file + " --file - < " + folder_ + "text.txt").output,
              testing::StartsWith("116 104 101 32 "));
}

TEST_F(Tokenize, MakesCharTokenizers) {
  const auto facts =
      nlohmann::json::parse(run("tokenize train " + folder_ + "text.txt --kind char" +
                                " --no-bytes --json --out " + folder_ + "c.json")
                                .output);
  EXPECT_EQ(facts["vocab_size"], 19 + 1) << "the characters of the text and <|endoftext|>";
  EXPECT_THAT(run("tokenize encode -t " + folder_ + "c.json xyz").output,
              HasSubstr("character \"y\" is not among"));
}

TEST_F(Tokenize, SaysWhatIsWrong) {
  const Outcome absent = run("tokenize encode -t /nowhere/t.json hello");
  EXPECT_NE(absent.status, 0);
  EXPECT_THAT(absent.output, HasSubstr("there is no tokenizer at \"/nowhere/t.json\""));
  EXPECT_THAT(run("tokenize train /nowhere.txt --out /tmp/x.json").output,
              HasSubstr("\"/nowhere.txt\" cannot be opened"));
  EXPECT_NE(run("tokenize").status, 0);
  const std::string file = train("--kind byte");
  EXPECT_THAT(run("tokenize decode -t " + file + " 999").output, HasSubstr("stands for nothing"));
}

TEST_F(Tokenize, HelpsWithExamples) {
  for (const char* command : {"", "train", "encode", "decode", "count"}) {
    EXPECT_THAT(run(std::string("tokenize ") + command + " --help").output,
                HasSubstr("Examples:\n  brrr tokenize"));
  }
}

}  // namespace
}  // namespace brrr
