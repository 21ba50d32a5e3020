// A published training run as a question, and what was said of its speed. Predicted from the hardware table alone:
// the model's own graph, cut as the run was, priced kernel by kernel, with what is known of its software
// (SystemTraits). The runs are data: plan/published/published_toml.h.
#pragma once

#include "brrr/plan/cluster/run_question.h"
#include "brrr/plan/published/published.h"

namespace brrr::plan {

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
  std::string reason = {};
  double tokens = 1e9;
  double software = 1;           // share of today's speed that the software of its time had
  double goodput = 1;            // share of the hours in which steps were made
  std::string calibration = {};  // where either is from
};

struct PublishedRun {
  std::string id, what, source;
  ModelConfig model;
  std::string gpu;
  int64_t count = 1;
  int64_t seq = 0, global_batch = 0, micro_batch = 1;
  ParallelLayout layout = {};
  compiler::RematPolicy recompute = compiler::RematPolicy::none;
  SystemTraits system = {};
  Claim claim = {};
  compiler::Precision precision = compiler::Precision::bf16_mixed;
  int64_t node_size = 8;
};

// All runs, by kind of system: those of plan/published/*.toml.
const std::vector<PublishedRun>& megatron_runs();
const std::vector<PublishedRun>& eager_runs();
const std::vector<PublishedRun>& tuned_runs();
// A run that others are calibrated on or checked with, by its name in calibration.toml: published next to them, by the
// same people on the same machines. None is a case.
const PublishedRun& calibration_run(std::string_view name);
// What the software of runs does, by its name in systems.toml.
SystemTraits published_system(std::string_view name);

RunAnswer answer_of(const PublishedRun& run);
PublishedCase case_of(const PublishedRun& run);
std::vector<PublishedCase> cases_of(const std::vector<PublishedRun>& runs);

// The share of its predicted speed that a run had: what it takes to predict others like it.
double reached_share(const PublishedRun& run);

// What software of 2021 had of the speed of 2022 (published_megatron.cpp).
double megatron_2021_share();

// Steps' share of the hours of BLOOM, the one large run of which both the step and all hours are public (A17).
double bloom_goodput();

// GPT as papers write it: width, layers, heads.
Gpt2Config gpt_shape(int64_t width, int64_t layers, int64_t heads, int64_t vocab = 51200,
                     int64_t context = 4096);

}  // namespace brrr::plan
