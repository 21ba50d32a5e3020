// brrr generate, eval, models and completion, as a person or a script meets them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <numbers>
#include <sstream>

#include "brrr/text/utf8.h"
#include "support/counter_values.h"
#include "support/run_program.h"
#include "support/temp_folder.h"
#include "support/write_checkpoint.h"

namespace brrr {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

// A run with one checkpoint of a model of bytes; zeros know nothing and find all tokens equally likely.
enum class Weights : uint8_t { hashed, zeros };
std::string write_run(const TempFolder& folder, Weights weights) {
  const Gpt2Config config{.vocab = 257, .context = 64, .layers = 1, .heads = 2, .width = 16};
  Random random(1);
  Gpt2 model(config, random);
  for (const NamedTensor& parameter : model.named_parameters()) {
    NoGrad writing;
    weights == Weights::zeros ? parameter.tensor.fill(0) : fill_by_name(parameter);
  }
  write_checkpoint(folder.path(), "step-00000001", model, config);
  return folder.path().string();
}

Json json_of(const std::string& arguments) {
  const Outcome outcome = run(arguments + " --json");
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  return Json::parse(outcome.output);
}

TEST(Generate, WritesTheSameTextForTheSameSeed) {
  const TempFolder folder;
  const std::string base = "generate " + write_run(folder, Weights::hashed) +
                           " --prompt 'Once upon' --tokens 40 --no-stop ";
  const Json first = json_of(base + "--seed 3"), again = json_of(base + "--seed 3"),
             other = json_of(base + "--seed 4"), greedy = json_of(base + "--temperature 0"),
             greedy_too = json_of(base + "--temperature 0 --seed 9");
  EXPECT_EQ(first["samples"][0]["ids"].size(), 40U);
  EXPECT_EQ(first["samples"], again["samples"]);
  EXPECT_NE(first["samples"], other["samples"]);
  EXPECT_EQ(greedy["samples"], greedy_too["samples"]);
  EXPECT_EQ(first["prompt_ids"].size(), 9U);
  EXPECT_GT(first["tokens_per_second"], 0);
}

// Sample k is the same text however many there are; 10 are more than go side by side.
TEST(Generate, SamplesDoNotDependOnHowManyThereAre) {
  const TempFolder folder;
  const std::string base =
      "generate " + write_run(folder, Weights::hashed) + " --prompt a --tokens 12 ";
  const Json ten = json_of(base + "--samples 10"), two = json_of(base + "--samples 2");
  ASSERT_EQ(ten["samples"].size(), 10U);
  EXPECT_EQ(ten["samples"][1], two["samples"][1]);
  EXPECT_NE(ten["samples"][0], ten["samples"][9]);
}

// A model of bytes that knows nothing writes any bytes; the terminal gets characters.
TEST(Generate, ShowsWholeCharactersAndTheSpeed) {
  const TempFolder folder;
  const Outcome outcome = run("generate " + write_run(folder, Weights::zeros) +
                              " --prompt 'Caf\u00e9' --tokens 200 --no-stop --samples 2");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_TRUE(text::is_utf8(outcome.output));
  EXPECT_THAT(outcome.output, HasSubstr("--- 1 ---\nCaf\u00e9"));
  EXPECT_THAT(outcome.output, HasSubstr("--- 2 ---\nCaf\u00e9"));
  EXPECT_THAT(outcome.output, HasSubstr("400 tokens, the first after"));
  EXPECT_THAT(outcome.output, HasSubstr("tokens/s"));
}

TEST(Generate, StopsAtTheEndOfText) {
  const TempFolder folder;
  const std::string base = "generate " + write_run(folder, Weights::zeros) +
                           " --prompt a --tokens 2000 --temperature 1 ";
  const Json stopped = json_of(base)["samples"][0],
             endless = json_of(base + "--no-stop")["samples"][0];
  EXPECT_TRUE(stopped["stopped"].get<bool>());
  EXPECT_LT(stopped["ids"].size(), 2000U);
  EXPECT_EQ(endless["ids"].size(), 2000U);
  EXPECT_EQ(endless["ids"][stopped["ids"].size()], 256);
}

TEST(Generate, SaysWhatIsWrong) {
  const TempFolder folder;
  const std::string model = write_run(folder, Weights::zeros);
  const auto failure = [](const std::string& arguments) {
    const Outcome outcome = run("generate " + arguments);
    EXPECT_EQ(outcome.status, 2) << outcome.output;
    return outcome.output;
  };
  EXPECT_THAT(failure(""), HasSubstr("model is required"));
  EXPECT_THAT(failure("nowhere --prompt a"), HasSubstr("no such file or folder"));
  EXPECT_THAT(failure(model + " --temperature -1"), HasSubstr("temperature -1"));
  EXPECT_THAT(failure(model + " --top-p 0"), HasSubstr("top_p 0"));
  EXPECT_THAT(failure(model + " --samples 0"), HasSubstr("--samples 0"));
  EXPECT_THAT(failure(model + " --tempratur 1"), HasSubstr("did you mean --temperature?"));
  EXPECT_EQ(run("generate " + model + " --tokens 3").status, 0) << "behind the end of another text";
}

// Zeros give every token 1 / 257: the loss is ln 257, and a byte of text is a token.
TEST(Eval, MeasuresWhatIsKnown) {
  const TempFolder folder, data;
  const std::string model = write_run(folder, Weights::zeros);
  const std::string file = data.write("a.txt", "Some text that is no story at all.\n").string();
  const Json text = json_of("eval " + model + " " + file);
  EXPECT_NEAR(text["loss"], std::log(257.0), 1e-5);
  EXPECT_NEAR(text["perplexity"], 257, 1e-2);
  EXPECT_NEAR(text["bits_per_byte"], std::log2(257.0), 1e-5);
  EXPECT_EQ(text["tokens"], 34);
  const Json stories = json_of("eval " + model + " --stories 3");
  EXPECT_NEAR(stories["loss"], std::log(257.0), 1e-5);
  EXPECT_GT(stories["bits_per_byte"], text["bits_per_byte"]) << "ends of texts are no bytes";
  EXPECT_EQ(json_of("eval " + model + " --max-batches 1 --stories")["text"], "1000 stories");

  ASSERT_EQ(run("data prepare " + file + " --tokenizer byte --validation 0 --out " +
                (data / "tokens").string())
                .status,
            0);
  const Json tokens =
      json_of("eval " + model + " --split train --data " + (data / "tokens").string());
  EXPECT_EQ(tokens["tokens"], 35) << "the file and its end";
  EXPECT_THAT(run("eval " + model + " " + file).output, HasSubstr("5.5491"));

  ASSERT_EQ(
      run("data prepare " + file + " --tokenizer byte --validation 0.5 --out " + model + "/data")
          .status,
      0);
  const Json own = json_of("eval " + model);
  EXPECT_GT(own["tokens"], 5) << "what the run held out";
  EXPECT_LT(own["tokens"], 34);
}

// Windows are cut and seen as they were in training, unless something else is asked for.
TEST(Eval, TakesTheMaskOfTheRun) {
  const TempFolder folder;
  const std::string model = write_run(folder, Weights::zeros);
  const Json plain = json_of("eval " + model + " --stories 3");
  EXPECT_EQ(plain["document_mask"], true);
  write_text(model + "/config.toml", "[data]\ndocument_mask = false\n");
  const Json trained = json_of("eval " + model + " --stories 3");
  EXPECT_EQ(trained["document_mask"], false);
  EXPECT_EQ(trained["whole_documents"], true);
  EXPECT_EQ(json_of("eval " + model + " --document-mask --stories 3")["document_mask"], true);
  EXPECT_EQ(json_of("eval " + model + " --no-whole-documents --stories 3")["whole_documents"],
            false);
}

// Fresh stories are put together as those that training held out: the two are predicted alike.
TEST(Eval, StoriesAreWrittenAsInTraining) {
  const TempFolder folder;
  const std::string model = (folder.path() / "run").string();
  ASSERT_EQ(
      run("train --stories 1000 --layers 1 --heads 2 --width 32 --batch 16 --steps 40 --lr 0.01 "
          "--sample-every 0 --json --out " +
          model)
          .status,
      0);
  const double held_out = json_of("eval " + model)["loss"],
               fresh = json_of("eval " + model + " --stories 100")["loss"];
  EXPECT_NEAR(fresh, held_out, 0.05);  // a misplaced end of text costs 0.1 and more
}

TEST(Eval, SaysWhatIsWrong) {
  const TempFolder folder, data;
  const std::string model = "eval " + write_run(folder, Weights::zeros);
  const auto failure = [&](const std::string& arguments) {
    const Outcome outcome = run(model + arguments);
    EXPECT_EQ(outcome.status, 2) << outcome.output;
    return outcome.output;
  };
  EXPECT_THAT(failure(""), HasSubstr("name what to predict"));
  EXPECT_THAT(failure(join_text(" ", data.write("empty.txt", "").string())), HasSubstr("0 tokens"));
  EXPECT_THAT(failure(" /nonexistent.txt"), HasSubstr("/nonexistent.txt"));
  EXPECT_THAT(failure(" --stories 2 --context 65"), HasSubstr("the model takes 1 to 64"));
}

TEST(Models, ListsPresetsWithExactCounts) {
  const Json models = json_of("models");
  ASSERT_EQ(models.size(), model_presets().size());
  for (const Json& model : models) {
    const ModelConfig config = model_preset(model["name"].get<std::string>());
    EXPECT_EQ(model["parameters"], parameter_count(config));
    EXPECT_EQ(to_json(model_from_json(model["config"].dump())), to_json(config));
  }
  EXPECT_THAT(run("models").output, HasSubstr("124,439,808"));
}

// ---- completion --------------------------------------------------------------------------------------

std::string output_of(const std::string& command) {
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  std::string output;
  std::array<char, 4096> buffer{};
  while (pipe && fgets(buffer.data(), buffer.size(), pipe)) output += buffer.data();
  if (pipe) pclose(pipe);
  return output;
}

// What bash offers for `word` behind these words.
std::string bash(const std::string& words, const std::string& word) {
  std::istringstream all(words);
  const auto count = std::distance(std::istream_iterator<std::string>(all), {});
  return output_of("bash -c 'source <(" + std::string(BRRR_PROGRAM) +
                   " completion bash); COMP_WORDS=(" + words + " \"$1\"); COMP_CWORD=" +
                   std::to_string(count) + "; _brrr; echo ${COMPREPLY[@]}' bash '" + word + "'");
}

TEST(Completion, BashKnowsCommandsOptionsAndValues) {
  EXPECT_EQ(bash("brrr", "gen"), "generate\n");
  EXPECT_EQ(bash("brrr data", ""), "prepare info\n");
  EXPECT_EQ(bash("brrr generate run", "--top"), "--top-k --top-p\n");
  EXPECT_EQ(bash("brrr data prepare x", "--sep"), "--separator\n");
  EXPECT_EQ(bash("brrr tokenize train --kind", ""), "bpe char byte\n");
  EXPECT_EQ(bash("brrr explain", "--mod"), "--model\n") << "options in groups, too";
  EXPECT_EQ(bash("brrr completion", ""), "bash zsh fish\n");
}

// Where the other shells are there: zsh reads its script without a fault, fish offers the same as bash.
TEST(Completion, OtherShellsTakeTheirScripts) {
  const std::string program = BRRR_PROGRAM;
  if (output_of("zsh -c 'echo here'") != "here\n" || output_of("fish -c 'echo here'") != "here\n")
    GTEST_SKIP() << "no zsh and fish";
  EXPECT_EQ(output_of(program + " completion zsh | zsh -n /dev/stdin"), "");
  const auto fish = [&](const std::string& line) {
    return output_of("fish -c '" + program + " completion fish | source; complete -C \"" + line +
                     "\" | string split -f 1 \\t'");
  };
  EXPECT_EQ(fish("brrr gen"), "generate\n");
  EXPECT_EQ(fish("brrr data "), "info\nprepare\n");
  EXPECT_EQ(fish("brrr generate run --top"), "--top-k\n--top-p\n");
  EXPECT_EQ(fish("brrr tokenize train --kind "), "bpe\nbyte\nchar\n");
  EXPECT_EQ(fish("brrr completion "), "bash\nfish\nzsh\n");
}

// Every command and option that help shows, in all three shells.
TEST(Completion, LacksNothing) {
  const std::string help = run("--help").output;
  std::istringstream lines(help.substr(help.find("Subcommands:")));
  std::string line, command;
  std::getline(lines, line);
  const std::string shells[] = {run("completion bash").output, run("completion zsh").output,
                                run("completion fish").output};
  int commands = 0;
  while (std::getline(lines, line) && line.starts_with("  ")) {
    std::istringstream(line) >> command;
    if (!line.starts_with("   ")) ++commands;
    for (const std::string& shell : shells) EXPECT_THAT(shell, HasSubstr(command));
  }
  EXPECT_GT(commands, 12);
  EXPECT_THAT(shells[1], HasSubstr("'--repetition-penalty:"));
  EXPECT_THAT(shells[2], HasSubstr("-l repetition-penalty"));
  EXPECT_EQ(run("completion tcsh").status, 2);
}

}  // namespace
}  // namespace brrr
