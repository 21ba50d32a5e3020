// From a request to a run that is ready to start: settings, data, sizes, and the plan, with everything that
// could be refused refused before training begins.
//
//   PreparedRun prepared = prepare_run({.config = config, .folder = "runs/mine", .rates = find});
//   Trainer trainer(prepared.run, prepared.corpus, prepared.plan, ...);
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "brrr/device/default_device.h"
#include "brrr/train/auto_size.h"
#include "brrr/train/corpus.h"
#include "brrr/train/plan.h"

namespace brrr::training {

struct RunRequest {
  runs::TrainConfig config;  // open settings are chosen
  std::filesystem::path folder;
  compiler::Target target = compiler::target_of(default_device());  // what the run is planned for
  std::function<hardware::Rates()> rates;  // asked for once there is something to plan
  bool resume = false;
};

struct PlannedRun {
  ResolvedRun run;
  CorpusFacts data;
  MachineFacts machine;
  TrainPlan plan;
  Bytes memory;      // that the target has free
  std::string lack;  // of memory or disk, with settings that would fit; empty: there is room
};
struct PreparedRun : PlannedRun {
  Corpus corpus;
};
// Makes RUN/data, RUN/tokenizer.json and RUN/config.toml. Throws Error for settings, data, memory or disk
// that will not do.
PreparedRun prepare_run(const RunRequest& request);
// The same for looking only: nothing is written, texts are judged by a part of them, and a lack of memory or
// disk is told and not refused.
PlannedRun plan_run(const RunRequest& request);

// The settings that a run has been started with, and the ones given now on top of them. Throws Error where
// the folder holds no run.
runs::TrainConfig settings_of_run(const std::filesystem::path& folder);
bool holds_run(const std::filesystem::path& folder);

// "runs/stories", or with a number behind it the first that is free.
std::filesystem::path free_run_folder(const runs::DataConfig& data);

}  // namespace brrr::training
