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
#include "brrr/train/session.h"

namespace brrr::cli {
namespace {

struct Arguments {
  std::string model, data, split = "validation", tokenizer;
  std::vector<std::string> files;
  int64_t stories = 0;
  uint64_t seed = 0;
  bool json = false;
  std::optional<bool> document_mask, whole_documents;  // not given: as the run was trained
  infer::EvaluateOptions options;
  DeviceOption device;
};

const text::Tokenizer& tokenizer_of(const infer::LoadedModel& loaded) {
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

// Stories of the validation split, each a document, begun by the end-of-text token where there is one, as
// in token files (data/shard_format.h).
TokenSet tokens_of_stories(int64_t count, uint64_t seed, const text::Tokenizer& tokenizer) {
  TokensInMemory memory{.name = join_text(count, " stories"),
                        .tokens = {},
                        .document_starts = {},
                        .vocab_size = tokenizer.vocab_size()};
  for (int64_t i = 0; i < count; ++i) {
    memory.document_starts.push_back(memory.tokens.size());
    if (const auto edge = tokenizer.end_of_text()) memory.tokens.push_back(*edge);
    const std::vector<int32_t> ids =
        tokenizer.encode(story(i, {.seed = seed, .split = StorySplit::validation}));
    memory.tokens.insert(memory.tokens.end(), ids.begin(), ids.end());
  }
  return whole_file(TokenFile::from_memory(std::move(memory)));
}

// The run that a checkpoint belongs to; empty where the model is no checkpoint of one.
std::filesystem::path run_of(const infer::LoadedModel& loaded) {
  const std::filesystem::path checkpoints = loaded.source.parent_path();
  return checkpoints.filename() == "checkpoints" ? checkpoints.parent_path()
                                                 : std::filesystem::path();
}

// How windows are cut and seen: as asked for, else as the model was trained, else by documents.
infer::EvaluateOptions options_of(const Arguments& arguments, const std::filesystem::path& run) {
  infer::EvaluateOptions options = arguments.options;
  if (!run.empty() && training::holds_run(run)) {
    const runs::DataConfig trained = runs::read_config(run / "config.toml").data;
    options.documents = trained.document_mask.value_or(options.documents);
    options.whole_documents = trained.whole_documents.value_or(options.whole_documents);
  }
  options.documents = arguments.document_mask.value_or(options.documents);
  options.whole_documents = arguments.whole_documents.value_or(options.whole_documents);
  return options;
}

TokenSet tokens_of(const Arguments& arguments, const infer::LoadedModel& loaded) {
  const int ways = !arguments.files.empty() + !arguments.data.empty() + (arguments.stories != 0);
  const std::filesystem::path run = run_of(loaded);
  if (ways == 0 && !run.empty()) {
    if (const auto own = training::open_run_tokens(run, arguments.split)) return *own;
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
  const infer::LoadedModel loaded =
      infer::load_model(arguments.model, {.tokenizer = arguments.tokenizer});
  const TokenSet tokens = tokens_of(arguments, loaded);
  const infer::EvaluateOptions options = options_of(arguments, run_of(loaded));
  infer::Evaluator evaluator(*loaded.model, tokens, options, loaded.tokenizer.get());
  const infer::Evaluation result = evaluator.run();
  if (arguments.json) {
    nlohmann::ordered_json report{{"model", loaded.source.string()},
                                  {"text", tokens.name},
                                  {"loss", result.loss},
                                  {"perplexity", result.perplexity},
                                  {"bits_per_byte", nullptr},
                                  {"tokens", result.tokens},
                                  {"bytes", result.bytes},
                                  {"document_mask", options.documents},
                                  {"whole_documents", options.whole_documents}};
    if (result.bits_per_byte) report["bits_per_byte"] = *result.bits_per_byte;
    std::puts(report.dump(1).c_str());
    return;
  }
  report::Table table({"text", "tokens", "loss", "perplexity", "bits per byte"});
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
  // Not add_flag of the optional itself: that counts from 0 and would always be given.
  const auto add_choice = [&](const std::string& name, std::optional<bool>& choice,
                              const std::string& help) {
    command->add_flag_function(
        join_text("--", name, ",!--no-", name), [&choice](int64_t count) { choice = count > 0; },
        help);
  };
  add_choice("document-mask", arguments->document_mask,
             "A token sees its own document only, or all of its window (as the run was trained; "
             "else its own document)");
  add_choice("whole-documents", arguments->whole_documents,
             "Windows begin where documents do, or are cut evenly (as the run was trained; else "
             "where documents do)");
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
