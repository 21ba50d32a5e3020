// A published training run as a question, and what was said of its speed. Predicted from the hardware table alone:
// the model's own graph, cut as the run was, priced kernel by kernel, with what is known of its software
// (SystemTraits). Shared by the files that list runs.
#pragma once

#include "brrr/napkin/published.h"
#include "brrr/napkin/run_question.h"

namespace brrr {

enum class Shown : uint8_t {
  seconds,  // of a step
  tflops,   // of a device, recomputation counted where there is some
  tokens,   // a second and device
  hours     // of all devices, for Claim::tokens
};

struct Claim {
  Shown shown = Shown::seconds;
  double value = 0;
  CaseClass kind = CaseClass::predicted;  // or bound
  const char* reason = "";
  double tokens = 1e9;
  double software = 1;  // share of today's speed that the software of its time had
  double goodput = 1;   // share of the hours in which steps were made
};

struct PublishedRun {
  const char *id, *what, *source;
  ModelConfig model;
  const char* gpu;
  int64_t count;
  int64_t seq, global_batch, micro_batch;
  ParallelLayout layout = {};
  RematPolicy recompute = RematPolicy::none;
  SystemTraits system = {};
  Claim claim = {};
  Precision precision = Precision::bf16_mixed;
  int64_t node_size = 8;
};

// All runs, by kind of system.
std::vector<PublishedRun> megatron_runs();
std::vector<PublishedRun> eager_runs();
std::vector<PublishedRun> tuned_runs();

RunAnswer answer_of(const PublishedRun& run);
PublishedCase case_of(const PublishedRun& run);
std::vector<PublishedCase> cases_of(const std::vector<PublishedRun>& runs);

// Steps' share of the hours of BLOOM, the one large run of which both the step and all hours are public (A17).
double bloom_goodput();

// GPT as papers write it: width, layers, heads.
Gpt2Config gpt_shape(int64_t width, int64_t layers, int64_t heads, int64_t vocab = 51200,
                     int64_t context = 4096);

}  // namespace brrr
