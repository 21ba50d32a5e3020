// What a run leaves behind for people and programs: run.json with its facts, and log.jsonl with one object
// for each optimizer step. Both are read as if a stranger had written them.
//
//   RunLogWriter log("runs/first", 0);                 // a new run; 400 would go on after step 400
//   log.add({.step = 1, .loss = 6.9, .lr = 1e-4});
//   const RunLog run = read_run_log("runs/first");     // also while the run goes on
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "brrr/base/units.h"

namespace brrr::runs {

// One line of log.jsonl. JSON has no NaN and no infinity: both are written as null and read as NaN.
struct StepRecord {
  int64_t step = 0;  // updates made, this one included: 1 is the first
  double loss = 0, lr = 0, grad_norm = 0, tokens_per_second = 0, ms = 0;
  std::optional<double> mfu = {}, memory_bytes = {};
  // By evaluation, over the same number of batches.
  std::optional<double> train_loss = {}, validation_loss = {};
  std::map<std::string, double> activations = {};  // largest |x| by part of the model
  std::string guard = {};   // "", or what the guard saw and did: "spike: skipped"
  std::string sample = {};  // text that the model wrote at this step
};

// Kernels of one name in a step, for the chart of what bounds the speed.
struct KernelFact {
  std::string name = {};
  int64_t calls = 0;
  double flops = 0, bytes = 0;  // of all calls
  double seconds = 0;           // of all calls, as predicted
  std::string regime = {};      // compute, bandwidth or overhead
};

// What the arena holds while one kernel of a step runs, in the order of the kernels.
struct MemoryMoment {
  std::string phase = {};  // forward, backward or update
  int64_t bytes = 0;
};

struct RunFacts {
  std::string brrr_version = {}, name = {};
  std::string status = "running";  // running, finished, stopped or failed
  std::string reason = {};         // why it stopped or failed
  std::string started = {};        // "2026-01-31 12:00:00 UTC"
  std::string model_json = "{}";   // as nn/models.h writes it
  std::string data = {}, tokenizer = {}, precision = {}, optimizer = {}, device = {};  // in words
  int64_t parameters = 0, train_tokens = 0, validation_tokens = 0;
  int64_t batch = 0, context = 0, accumulate = 1, steps = 0, vocab = 0, seed = 0;
  double dropout = 0, weight_decay = 0;
  double flops_per_token = 0, peak_flops = 0, peak_bandwidth = 0;
  double predicted_step_seconds = 0;
  Bytes predicted_memory = {};
  int threads = 0;
  std::string mfu_convention = {};
  std::string speed_regime = {};                   // a sentence: what bounds the speed
  std::string speed_advice = {};                   // a sentence: what would make it faster
  std::vector<KernelFact> kernels = {};            // the longest first
  std::vector<MemoryMoment> memory_timeline = {};  // train/memory_moments.h makes it from a plan
  int64_t best_step = 0;                           // of the best checkpoint; 0 where there is none
  double seconds = 0;                              // spent in steps, over all sessions

  int64_t tokens_per_step() const { return batch * context * accumulate; }
};

struct RunLog {
  RunFacts facts;
  std::vector<StepRecord> steps;  // by step, each once
};

std::string to_json(const StepRecord& record);  // one line, without its end
std::string to_json(const RunFacts& facts);
// `origin` names the place in messages: "runs/a/log.jsonl:17".
StepRecord parse_step_record(std::string_view line, const std::string& origin);
RunFacts parse_run_facts(std::string_view text, const std::string& origin);

void write_run_facts(const std::filesystem::path& folder, const RunFacts& facts);  // atomically
RunFacts read_run_facts(const std::filesystem::path& folder);
// A last line without its end is one that is being written, or one that a crash tore: it is left out.
// Throws Error naming file and line for anything else that is not as it should be.
RunLog read_run_log(const std::filesystem::path& folder);

// Appends to log.jsonl. Each line goes to the system in one call, so a process that is killed leaves whole
// lines, or a torn last one, which the next writer drops.
class RunLogWriter {
 public:
  // Keeps the lines of steps up to `keep_through_step` and drops the others: a run that is resumed writes
  // those anew. Throws Error while another process writes the same log.
  RunLogWriter(const std::filesystem::path& folder, int64_t keep_through_step);
  ~RunLogWriter();
  RunLogWriter(const RunLogWriter&) = delete;
  RunLogWriter& operator=(const RunLogWriter&) = delete;

  void add(const StepRecord& record);  // a step after all before it
  void sync();  // before a checkpoint is sealed, so that the log is never behind it
  int64_t last_step() const { return last_step_; }
  int64_t dropped_lines() const { return dropped_lines_; }

 private:
  void keep_through(int64_t step);

  std::filesystem::path path_;
  int file_ = -1;
  int64_t size_ = 0;  // bytes of whole lines
  int64_t last_step_ = 0, dropped_lines_ = 0;
};

}  // namespace brrr::runs
