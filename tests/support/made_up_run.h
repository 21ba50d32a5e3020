// A run that never was, with everything a run can have: for tests of reports and commands.
#pragma once

#include <cmath>
#include <random>
#include <string>

#include "brrr/run/run_log.h"

namespace brrr {

// 600 steps; the validation loss turns at 40 % of the steps where it overfits, else it settles.
inline runs::RunLog made_up_run(const std::string& name, bool overfits) {
  runs::RunLog run;
  runs::RunFacts& facts = run.facts;
  facts.brrr_version = "0.1.0";
  facts.name = name;
  facts.status = "finished";
  facts.started = "2026-01-31 12:00:00 UTC";
  facts.model_json = R"({"family":"gpt2","layers":4,"width":128})";
  facts.data = "embedded stories";
  facts.tokenizer = "byte-level BPE, 1024 tokens";
  facts.precision = "f32";
  facts.optimizer = "adamw";
  facts.device = "cpu, 2 threads";
  facts.parameters = overfits ? 2'000'000 : 800'000;
  facts.train_tokens = 400'000;
  facts.validation_tokens = 40'000;
  facts.batch = 16;
  facts.context = 128;
  facts.steps = 600;
  facts.vocab = 1024;
  facts.peak_flops = 2.4e11;
  facts.peak_bandwidth = 2.0e10;
  facts.predicted_step_seconds = 0.15;
  facts.predicted_memory = 220_MiB;
  facts.threads = 2;
  facts.mfu_convention = "products and attention counted exactly, over the measured f32 peak";
  facts.speed_regime = "compute-bound: 71 % of a step is spent where arithmetic is the limit";
  facts.speed_advice = "a lower precision or more cores would help; more memory speed would not";
  facts.seconds = 96;
  facts.kernels = {{.name = "matmul",
                    .calls = 48,
                    .flops = 1.6e10,
                    .bytes = 3.1e8,
                    .seconds = 0.09,
                    .regime = "compute"},
                   {.name = "attention",
                    .calls = 8,
                    .flops = 1.2e9,
                    .bytes = 6e7,
                    .seconds = 0.02,
                    .regime = "compute"},
                   {.name = "adamw",
                    .calls = 1,
                    .flops = 3e7,
                    .bytes = 5.6e7,
                    .seconds = 0.012,
                    .regime = "bandwidth"},
                   {.name = "layer_norm",
                    .calls = 18,
                    .flops = 4e7,
                    .bytes = 9e7,
                    .seconds = 0.011,
                    .regime = "bandwidth"},
                   {.name = "sum",
                    .calls = 40,
                    .flops = 1e5,
                    .bytes = 2e5,
                    .seconds = 0.002,
                    .regime = "overhead"}};
  for (int i = 0; i < 120; ++i)
    facts.memory_timeline.push_back({.phase = i < 45    ? "forward"
                                              : i < 105 ? "backward"
                                                        : "update",
                                     .bytes = int64_t{1000000} * (i < 60 ? i + 5 : 125 - i)});
  std::mt19937 random(7);
  std::normal_distribution<double> noise(0, 1);
  for (int64_t step = 1; step <= facts.steps; ++step) {
    const double part = static_cast<double>(step) / static_cast<double>(facts.steps);
    const double loss = 1.3 + 5.5 * std::exp(-part * 6) - (overfits ? 0.5 * part : 0);
    runs::StepRecord record{.step = step,
                            .loss = loss + 0.06 * noise(random),
                            .lr = 1e-3 * std::min(1.0, part * 10) * (1 - 0.9 * part),
                            .grad_norm = std::exp(0.3 * noise(random) - part),
                            .tokens_per_second = 12800 + 300 * noise(random),
                            .ms = 160};
    if (step % 25 == 0) {
      record.train_loss = loss + 0.004 * noise(random);
      record.validation_loss =
          loss + 0.03 + 0.004 * noise(random) + (overfits && part > 0.4 ? 1.6 * (part - 0.4) : 0);
      record.mfu = 0.31;
      record.memory_bytes = 2.5e8;
      record.activations = {
          {"wte", 3 + part}, {"h.0", 6 + 4 * part}, {"h.1", 9 + 9 * part}, {"logits", 12}};
    }
    if (step == 300) record.guard = "spike: skipped";
    if (step % 200 == 0)
      record.sample = "Once there was a cat <script>alert('no')</script> & a \"dog\".";
    run.steps.push_back(record);
  }
  return run;
}

// Writes it as a folder that commands can read.
inline void write_run(const std::filesystem::path& folder, const runs::RunLog& run) {
  std::filesystem::create_directories(folder);
  runs::write_run_facts(folder, run.facts);
  runs::RunLogWriter log(folder, 0);
  for (const runs::StepRecord& record : run.steps) log.add(record);
}

}  // namespace brrr
