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
  double software = 1;           // share of today's speed that the software of its time had
  double goodput = 1;            // share of the hours in which steps were made
  const char* calibration = "";  // where either is from
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

// Runs that others are calibrated on or checked with: published beside them, by the same people on the same machines.
// None is a case.
struct SisterRuns {
  PublishedRun mpt_a100, mpt_h100;     // MPT-1B at 65,536 tokens: most of it is attention
  PublishedRun mpt_2023;               // MPT-3B at 512 tokens on H100s: hardly any attention
  PublishedRun pythia_7b, maxtext_8b;  // of GPT-NeoX on A100-40, and of MaxText on v6e
  PublishedRun llama2_13b;             // in the layout that is assumed of the 7B
  PublishedRun mpt_pure;               // MPT-7B on eight A100-40: not enough for the 13B
  PublishedRun mpt_full;               // MPT-13B on them at 512 tokens: memory as full as at 2048
};
SisterRuns sister_runs();
// How runs of one kind are put as questions, whatever their size. Hours are of 2T tokens and of 299.9B.
SystemTraits mosaic_system();
PublishedRun llama2_run(const char* what, const char* preset, double hours);
PublishedRun pythia_run(const char* what, const Gpt2Config& model, int64_t count, int64_t tp,
                        int64_t micro, double hours);
// Inputs of layers, queries, keys and values go to the host and come back, of the smaller model what attention gives
// the next product, too; all else of a layer runs again.
PublishedRun maxtext_run(const char* what, const LlamaConfig& model, int64_t micro,
                         bool keeps_output);

// The share of its predicted speed that a run had: what it takes to predict others like it.
double reached_share(const PublishedRun& run);

// Steps' share of the hours of BLOOM, the one large run of which both the step and all hours are public (A17).
double bloom_goodput();

// GPT as papers write it: width, layers, heads.
Gpt2Config gpt_shape(int64_t width, int64_t layers, int64_t heads, int64_t vocab = 51200,
                     int64_t context = 4096);

}  // namespace brrr
