// brrr eval: how well a model predicts text.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "brrr/base/units.h"
#include "brrr/cli/commands.h"
#include "brrr/cli/device_option.h"
#include "brrr/data/stories.h"
#include "brrr/infer/evaluate.h"
#include "brrr/infer/load_model.h"
#include "brrr/report/table.h"
#include "brrr/text/stream.h"

namespace brrr::cli {
namespace {

struct Arguments {
  std::string model, data, split = "validation", tokenizer;
  std::vector<std::string> files;
  int64_t stories = 0;
  uint64_t seed = 0;
  bool json = false;
  EvaluateOptions options;
  DeviceOption device;
};

const text::Tokenizer& tokenizer_of(const LoadedModel& loaded) {
  check(
      loaded.tokenizer != nullptr, loaded.source.string(),
      ": the folder has no tokenizer for text; name one with --tokenizer FILE, or give tokens with "
      "--data FOLDER");
  return *loaded.tokenizer;
}

// Each file is one document.
TokenSet tokens_of_files(const std::vector<std::string>& files, const text::Tokenizer& tokenizer) {
  TokenSet tokens{.name = files.size() == 1 ? files[0] : join_text(files.size(), " files"),
                  .ranges = {}};
  for (const std::string& path : files) {
    TokensInMemory memory{
        .name = path, .tokens = {}, .document_starts = {}, .vocab_size = tokenizer.vocab_size()};
    text::encode_file(tokenizer, path, text::Specials::as_text, [&](std::span<const int32_t> ids) {
      memory.tokens.insert(memory.tokens.end(), ids.begin(), ids.end());
    });
    check(memory.tokens.size() >= 2, path, ": has ", memory.tokens.size(),
          " tokens; at least two are needed, one to see and one to predict");
    tokens.ranges.push_back(whole_file(TokenFile::from_memory(std::move(memory))).ranges[0]);
  }
  return tokens;
}

// Stories of the validation split, each a document, ended by the end-of-text token where there is one.
TokenSet tokens_of_stories(int64_t count, uint64_t seed, const text::Tokenizer& tokenizer) {
  TokensInMemory memory{.name = join_text(count, " stories"),
                        .tokens = {},
                        .document_starts = {},
                        .vocab_size = tokenizer.vocab_size()};
  for (int64_t i = 0; i < count; ++i) {
    memory.document_starts.push_back(memory.tokens.size());
    const std::vector<int32_t> ids =
        tokenizer.encode(story(i, {.seed = seed, .split = StorySplit::validation}));
    memory.tokens.insert(memory.tokens.end(), ids.begin(), ids.end());
    if (const auto end = tokenizer.end_of_text()) memory.tokens.push_back(*end);
  }
  return whole_file(TokenFile::from_memory(std::move(memory)));
}

// The tokens that a run prepared for itself; nothing where the model is no checkpoint of such a run.
std::optional<TokenSet> tokens_of_run(const std::filesystem::path& checkpoint,
                                      const std::string& split) {
  const std::filesystem::path checkpoints = checkpoint.parent_path(),
                              data = checkpoints.parent_path() / "data";
  if (checkpoints.filename() != "checkpoints" || !std::filesystem::is_directory(data) ||
      find_shards(data, split).empty())
    return {};
  return open_tokens(data, split);
}

TokenSet tokens_of(const Arguments& arguments, const LoadedModel& loaded) {
  const int ways = !arguments.files.empty() + !arguments.data.empty() + (arguments.stories != 0);
  if (ways == 0) {
    if (const auto own = tokens_of_run(loaded.source, arguments.split)) return *own;
  }
  check(ways == 1,
        "eval: name what to predict, and one thing only: text FILES, --data FOLDER, or "
        "--stories");
  if (!arguments.data.empty()) return open_tokens(arguments.data, arguments.split);
  if (!arguments.files.empty()) return tokens_of_files(arguments.files, tokenizer_of(loaded));
  check(arguments.stories > 0, "--stories ", arguments.stories, ": use 1 or more");
  return tokens_of_stories(arguments.stories, arguments.seed, tokenizer_of(loaded));
}

void run_eval(const Arguments& arguments) {
  const DeviceScope scope(arguments.device.device());
  const LoadedModel loaded = load_model(arguments.model, {.tokenizer = arguments.tokenizer});
  const TokenSet tokens = tokens_of(arguments, loaded);
  Evaluator evaluator(*loaded.model, tokens, arguments.options, loaded.tokenizer.get());
  const Evaluation result = evaluator.run();
  if (arguments.json) {
    nlohmann::ordered_json report{{"model", loaded.source.string()},
                                  {"text", tokens.name},
                                  {"loss", result.loss},
                                  {"perplexity", result.perplexity},
                                  {"bits_per_byte", nullptr},
                                  {"tokens", result.tokens},
                                  {"bytes", result.bytes}};
    if (result.bits_per_byte) report["bits_per_byte"] = *result.bits_per_byte;
    std::puts(report.dump(1).c_str());
    return;
  }
  Table table({"text", "tokens", "loss", "perplexity", "bits per byte"});
  table.row(tokens.name, with_commas(result.tokens), fmt::format("{:.4f}", result.loss),
            fmt::format("{:.4g}", result.perplexity),
            result.bits_per_byte ? fmt::format("{:.4f}", *result.bits_per_byte) : "");
  std::fputs(table.text().c_str(), stdout);
  if (!result.bits_per_byte) std::puts("\nbits per byte need a tokenizer: --tokenizer FILE");
}

}  // namespace

void add_eval(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("eval", "Measure how well a model predicts text: loss, perplexity, bits");
  const auto arguments = std::make_shared<Arguments>();
  command
      ->add_option("model", arguments->model,
                   "A run of brrr train, one of its checkpoints, or a Hugging Face folder")
      ->required();
  command->add_option("files", arguments->files, "Text files, each one document");
  command->add_option("--data", arguments->data, "A token file, or a folder of brrr data prepare");
  command
      ->add_option("--split", arguments->split,
                   "Which part of a folder or run: train or validation")
      ->capture_default_str();
  command
      ->add_option("--stories", arguments->stories,
                   "So many of the embedded stories that no model was trained on")
      ->expected(0, 1)
      ->default_str("1000");
  command->add_option("--seed", arguments->seed, "Chooses the stories")->capture_default_str();
  command->add_option("--batch", arguments->options.batch, "Windows at a time")
      ->capture_default_str();
  command->add_option("--context", arguments->options.context,
                      "Tokens of a window; what the model takes when not given");
  command->add_option("--max-batches", arguments->options.max_batches,
                      "At most so many batches, spread over the text");
  command->add_flag("--document-mask,!--no-document-mask", arguments->options.documents,
                    "A token sees its own document only (the default), or all of its window");
  command->add_flag("--whole-documents,!--no-whole-documents", arguments->options.whole_documents,
                    "Windows begin where documents do (the default), or are cut evenly");
  command->add_option("--tokenizer", arguments->tokenizer, "Instead of the one beside the model");
  command->add_flag("--json", arguments->json, "Print JSON");
  command->footer(
      "Examples:\n"
      "  brrr eval runs/mine                   what the run itself held out\n"
      "  brrr eval runs/stories --stories\n"
      "  brrr eval runs/mine chapter12.txt --json\n"
      "  brrr eval runs/mine --data corpus --split validation");
  add_device_option(*command, arguments->device);
  command->callback([arguments] { run_eval(*arguments); });
}

}  // namespace brrr::cli
