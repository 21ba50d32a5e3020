// Every setting of a training run, in one struct. One list of them (config_settings.h) serves the
// configuration file, the flags of the command line, and the file that a run writes of itself:
//
//   TrainConfig config = read_config("run.toml");
//   set_setting(config, "optimizer.lr", "3e-4");
//   write(to_toml(config));                          // every setting, resolved
//
// A setting that is left open (std::optional) is chosen from the data and the machine (auto_size.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "brrr/base/error.h"
#include "brrr/compiler/precision/precision.h"
#include "brrr/compiler/remat/rematerialize.h"
#include "brrr/optim/schedule.h"

namespace brrr::runs {

inline constexpr int64_t kMostMicroBatches = 65'536;  // no run has had so many

enum class GuardAction : uint8_t {
  warn,  // tell, and go on; what is not a number is never applied
  skip,  // leave this update out
  stop   // leave it out, save, and end the run
};

struct DataConfig {
  std::vector<std::string> files;  // text, token files or folders of them; none: embedded stories
  std::vector<double> weights;     // shares of the rows, one for each file; none: by their tokens
  std::string tokenizer = "auto";  // "auto", "bpe", "char", "byte", or a file
  std::optional<int64_t> vocab;    // of a BPE tokenizer that is trained
  std::string separator;           // text between documents
  double validation = 0.05;        // part that is held out
  int64_t stories = 30000;         // how many of the embedded ones
  std::optional<bool> whole_documents;  // rows hold whole documents and are filled up
  std::optional<bool> document_mask;    // tokens attend to their own document only
};

struct ModelSettings {
  std::string preset;           // "gpt2-124m", "llama-tiny", ...; empty: the sizes below
  std::string family = "gpt2";  // of model_families()
  std::optional<int64_t> layers, heads, width, context;
  double dropout = 0;
};

struct LoopConfig {
  std::optional<int64_t> steps, batch;
  double minutes = 5;      // what sizes and steps are chosen for, where they are left open
  int64_t accumulate = 1;  // micro-batches of `batch` rows in a step
  compiler::Precision precision = compiler::Precision::f32;
  std::optional<compiler::MatmulPrecision> matmul_precision;  // open: tf32 on a GPU, else ieee
  std::vector<std::string> precision_of;  // "h.*.attn=f32": parts that have another
  compiler::RematPolicy recompute = compiler::RematPolicy::selective;
  std::optional<int64_t> memory_budget_mib;  // of temporaries, for RematPolicy::budget
  std::string pad_vocab = "auto";            // "auto", "off" or a number (vocab_padding.h)
  std::string without;  // compiler passes to leave out, for looking into a wrong result
  double z_loss = 0, soft_cap = 0, label_smoothing = 0;
};

struct OptimizerConfig {
  std::string name = "adamw";
  std::optional<double> lr;
  ScheduleShape schedule = ScheduleShape::cosine;
  std::optional<int64_t> warmup;
  double final_share = 0;
  double weight_decay = 0.1;                // of matrices; norms and biases do not decay
  std::optional<double> beta1, beta2, eps;  // open: as the optimizer has them
  double clip = 1;                          // largest norm of all gradients together; 0: none
  double average = 0;                       // decay of the average of the weights; 0: none
  bool bf16_state = false;
};

struct ReportConfig {
  std::optional<int64_t> eval_every;  // steps
  int64_t eval_batches = 8;
  std::optional<int64_t> sample_every;  // 0: never
  int64_t sample_tokens = 120;
  double temperature = 0.6;        // of samples
  int64_t activations_every = 10;  // steps between largest activations in the log; 0: none
};

struct GuardConfig {
  GuardAction action = GuardAction::skip;
  double z = 8;  // standard deviations above the mean of the last `window` steps
  int64_t window = 100;
};

struct SaveConfig {
  std::optional<int64_t> every;  // steps
  int64_t keep = 2;              // the newest so many, and the best
};

struct SeedConfig {
  uint64_t all = 0;
  std::optional<uint64_t> init, data, dropout, sampling;  // in place of `all`
};

struct TrainConfig {
  DataConfig data;
  ModelSettings model;
  LoopConfig train;
  OptimizerConfig optimizer;
  ReportConfig report;
  GuardConfig guard;
  SaveConfig checkpoint;
  SeedConfig seed;

  uint64_t seed_of(const std::optional<uint64_t>& own) const { return own.value_or(seed.all); }
};

struct SettingInfo {
  std::string_view key;   // "optimizer.lr"
  std::string_view flag;  // "--lr"; empty: none
  std::string_view help;
};
// All of them, in the order of the file.
std::vector<SettingInfo> config_settings();

// Throws Error on an unknown key, with the nearest known one, and on a value that does not fit.
void set_setting(TrainConfig& config, std::string_view key, std::string_view value);
// The value as set_setting takes it; empty where it is left open.
std::string get_setting(const TrainConfig& config, std::string_view key);

TrainConfig read_config(const std::filesystem::path& path);
// `origin` names the text in messages.
TrainConfig parse_config(std::string_view toml, std::string_view origin);
// Every setting that has a value, with what it means; parse_config gives the same back.
std::string to_toml(const TrainConfig& config);

// A setting that is left open in files and has a value once a run is resolved.
template <typename Value>
const Value& resolved(const std::optional<Value>& setting) {
  if (!setting) throw InternalError("a setting of a resolved run is open");
  return *setting;
}

// Throws Error naming the first setting whose value makes no sense by itself.
void check_config(const TrainConfig& config);

}  // namespace brrr::runs
