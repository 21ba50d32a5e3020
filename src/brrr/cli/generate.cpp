// brrr generate: text from a model, shown as it is written.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "brrr/base/units.h"
#include "brrr/cli/commands.h"
#include "brrr/cli/device_option.h"
#include "brrr/cli/model_options.h"
#include "brrr/infer/character_stream.h"
#include "brrr/infer/generator.h"
#include "brrr/infer/load_model.h"

namespace brrr::cli {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int64_t kRowsAtOnce = 8;  // samples written side by side

struct Arguments {
  std::string model, prompt, prompt_file, tokenizer;
  int64_t samples = 1;
  bool stop = true, json = false;
  infer::GenerateOptions options{.tokens = 256, .sampling = {.temperature = 0.8}};
  DeviceOption device;
};

struct Prompt {
  std::string text;
  std::vector<int32_t> ids;
};

Prompt read_prompt(const Arguments& arguments, const text::Tokenizer& tokenizer) {
  Prompt prompt{.text = arguments.prompt, .ids = {}};
  if (!arguments.prompt_file.empty()) prompt.text = read_file(arguments.prompt_file);
  prompt.ids = tokenizer.encode(prompt.text);
  if (!prompt.ids.empty()) return prompt;
  const std::optional<int32_t> end = tokenizer.end_of_text();
  if (!end) {
    fail(
        "generate: without a prompt a text begins behind the end of another one, and this "
        "tokenizer "
        "has no token for that; give --prompt TEXT");
  }
  prompt.ids = {*end};
  return prompt;
}

infer::LoadedModel load(const Arguments& arguments) {
  infer::LoadedModel loaded =
      infer::load_model(arguments.model, {.tokenizer = arguments.tokenizer});
  check(loaded.tokenizer != nullptr, arguments.model,
        ": the folder has no tokenizer; name one with --tokenizer FILE");
  return loaded;
}

// When tokens came: the first one waits for the prompt and for compiling, the others show the speed.
struct Pace {
  Clock::time_point start = Clock::now(), first, last;
  int64_t tokens = 0;

  void add() {
    last = Clock::now();
    if (tokens++ == 0) first = last;
  }
  double seconds_to_first() const { return std::chrono::duration<double>(first - start).count(); }
  double tokens_per_second(int64_t of_first_step) const {
    const double seconds = std::chrono::duration<double>(last - first).count();
    return seconds > 0 ? static_cast<double>(tokens - of_first_step) / seconds : 0;
  }
};

// Shows texts, unless they go into JSON: a heading for each where there are several, then prompt and text.
class Page {
 public:
  Page(const Arguments& arguments, const Prompt& prompt) : arguments_(arguments), prompt_(prompt) {}

  void begin(int64_t number) {
    characters_ = {};
    if (arguments_.samples > 1)
      show(fmt::format("{}--- {} ---\n", number > 0 ? "\n" : "", number + 1));
    show(prompt_.text);
  }
  void add(std::string_view bytes) {
    show(characters_.add(bytes));
    std::fflush(stdout);
  }
  void end() { show(characters_.finish() + "\n"); }

 private:
  void show(const std::string& text) const {
    if (!arguments_.json) std::fputs(text.c_str(), stdout);
  }
  const Arguments& arguments_;
  const Prompt& prompt_;
  infer::CharacterStream characters_;
};

// Texts [first, first + rows) side by side. The first of them appears as it is written, the others when
// all are done.
std::vector<infer::Generation> write_rows(infer::Generator& generator, const Prompt& prompt,
                                          const text::Tokenizer& tokenizer,
                                          const infer::GenerateOptions& options, int64_t rows,
                                          Page& page, Pace& pace) {
  const int64_t first = options.first_sample;
  page.begin(first);
  std::vector<infer::Generation> results = generator.generate_all(
      std::vector<std::vector<int32_t>>(static_cast<size_t>(rows), prompt.ids), options,
      [&](int64_t row, int32_t token) {
        pace.add();
        if (row == 0) page.add(tokenizer.bytes_of(token));
      });
  page.end();
  for (int64_t row = 1; row < rows; ++row) {
    page.begin(first + row);
    page.add(tokenizer.decode(results[static_cast<size_t>(row)].ids));
    page.end();
  }
  return results;
}

std::vector<infer::Generation> write_samples(infer::Generator& generator, const Prompt& prompt,
                                             const text::Tokenizer& tokenizer,
                                             const Arguments& arguments, Pace& pace) {
  std::vector<infer::Generation> samples;
  Page page(arguments, prompt);
  infer::GenerateOptions options = arguments.options;
  if (arguments.stop) options.stop = tokenizer.end_of_text();
  while (static_cast<int64_t>(samples.size()) < arguments.samples) {
    options.first_sample = static_cast<uint32_t>(samples.size());
    const int64_t rows =
        std::min(kRowsAtOnce, arguments.samples - static_cast<int64_t>(samples.size()));
    for (infer::Generation& sample :
         write_rows(generator, prompt, tokenizer, options, rows, page, pace))
      samples.push_back(std::move(sample));
  }
  return samples;
}

void print_json(const Arguments& arguments, const infer::LoadedModel& loaded, const Prompt& prompt,
                const std::vector<infer::Generation>& samples, double tokens_per_second,
                const Pace& pace) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const infer::Generation& sample : samples)
    rows.push_back({{"text", loaded.tokenizer->decode(sample.ids)},
                    {"ids", sample.ids},
                    {"stopped", sample.stopped}});
  const nlohmann::ordered_json report{{"model", loaded.source.string()},
                                      {"prompt", prompt.text},
                                      {"prompt_ids", prompt.ids},
                                      {"seed", arguments.options.sampling.seed},
                                      {"samples", rows},
                                      {"seconds_to_first_token", pace.seconds_to_first()},
                                      {"tokens_per_second", tokens_per_second}};
  // A text may hold bytes of no character.
  std::puts(report.dump(1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}

void run_generate(const Arguments& arguments) {
  const DeviceScope scope(arguments.device.device());
  check(arguments.samples > 0 && arguments.samples <= 1'000'000, "--samples ", arguments.samples,
        ": use 1 to 1,000,000");
  check_sampling(arguments.options.sampling);
  const infer::LoadedModel loaded = load(arguments);
  const Prompt prompt = read_prompt(arguments, *loaded.tokenizer);
  infer::Generator generator(*loaded.model);
  Pace pace;
  const std::vector<infer::Generation> samples =
      write_samples(generator, prompt, *loaded.tokenizer, arguments, pace);
  const double speed = pace.tokens_per_second(std::min(kRowsAtOnce, arguments.samples));
  if (arguments.json) {
    print_json(arguments, loaded, prompt, samples, speed, pace);
    return;
  }
  if (pace.tokens == 0) return;
  std::fprintf(stderr, "%s tokens, the first after %s, then %.1f tokens/s%s\n",
               with_commas(pace.tokens).c_str(), to_text(Seconds(pace.seconds_to_first())).c_str(),
               speed, loaded.model->supports_cache() ? "" : " (the model has no cache)");
}

}  // namespace

void add_generate(CLI::App& app) {
  CLI::App* command = app.add_subcommand("generate", "Write text with a model");
  const auto arguments = std::make_shared<Arguments>();
  SamplingOptions& sampling = arguments->options.sampling;
  command
      ->add_option("model", arguments->model,
                   "A run of brrr train, one of its checkpoints, or a Hugging Face folder")
      ->required();
  CLI::Option* prompt = command->add_option("--prompt", arguments->prompt, "How the text begins");
  command->add_option("--prompt-file", arguments->prompt_file, "The same, from a file")
      ->excludes(prompt);
  command->add_option("--tokens", arguments->options.tokens, "At most so many new tokens")
      ->capture_default_str();
  command->add_option("--samples", arguments->samples, "How many texts")->capture_default_str();
  command
      ->add_option("--temperature", sampling.temperature,
                   "Below 1 likelier tokens get likelier still; 0: always the likeliest")
      ->capture_default_str();
  command->add_option("--top-k", sampling.top_k, "Draw from the k likeliest tokens; 0: from all")
      ->capture_default_str();
  command
      ->add_option("--top-p", sampling.top_p,
                   "Draw from the likeliest tokens that have this share together")
      ->capture_default_str();
  command
      ->add_option("--min-p", sampling.min_p,
                   "Leave out tokens less likely than this share of the likeliest")
      ->capture_default_str();
  command
      ->add_option("--repetition-penalty", sampling.repetition_penalty,
                   "Above 1 tokens that stand in the text already get less likely")
      ->capture_default_str();
  command->add_option("--seed", sampling.seed, "The same seed writes the same text")
      ->capture_default_str();
  command->add_flag("--stop,!--no-stop", arguments->stop,
                    "End a text at the end-of-text token (the default), or go on behind it");
  command->add_option("--tokenizer", arguments->tokenizer, "Instead of the one beside the model");
  command->add_flag("--json", arguments->json, "Print JSON when all texts are written");
  command->footer(
      "Examples:\n"
      "  brrr generate runs/stories --prompt 'Once upon a time'\n"
      "  brrr generate runs/stories --samples 5 --temperature 1 --top-p 0.95 --seed 7\n"
      "  brrr generate ./Qwen2.5-0.5B --prompt 'The capital of France is' --temperature 0");
  add_device_option(*command, arguments->device);
  command->callback([arguments] { run_generate(*arguments); });
}

}  // namespace brrr::cli
