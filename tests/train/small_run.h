// A run that takes well under a second: a text of some kilobytes, characters, one narrow layer.
#pragma once

#include <atomic>
#include <filesystem>
#include <string>
#include <vector>

#include "brrr/data/stories.h"
#include "brrr/run/checkpoint.h"
#include "brrr/train/session.h"
#include "brrr/train/trainer.h"
#include "support/temp_folder.h"

namespace brrr {

inline std::string small_text(int64_t stories = 40) {
  std::string text;
  for (int64_t i = 0; i < stories; ++i) text += story(i) + "\n";
  return text;
}

struct SmallRunOptions {
  bool resume = false;
  training::TrainObserver observer = {};
  const std::atomic<bool>* stop = nullptr;
  int64_t steps_ahead = 0;  // as a GPU would be
};

class SmallRun {
 public:
  SmallRun() {
    const std::filesystem::path text = folder_.write("text.txt", small_text());
    config.data.files = {text.string()};
    config.model = {.layers = 1, .heads = 2, .width = 16, .context = 16, .dropout = 0.1};
    config.train.steps = 12;
    config.train.batch = 4;
    config.optimizer.lr = 1e-2;
    config.optimizer.warmup = 2;
    config.report = {.eval_every = 5, .eval_batches = 2, .sample_every = 0};
    config.checkpoint = {.every = 4, .keep = 3};
  }

  std::filesystem::path folder(const std::string& name) const { return folder_ / name; }

  training::TrainOutcome train(const std::string& name, const SmallRunOptions& extra = {}) const {
    const hardware::Rates rates = hardware::rates_from_peaks(
        "a test", {.flops_per_second = 1e10, .bytes_per_second = 1e10, .launch_seconds = 1e-6});
    const training::PreparedRun prepared = training::prepare_run({.config = config,
                                                                  .folder = folder(name),
                                                                  .rates = [&] { return rates; },
                                                                  .resume = extra.resume});
    training::Trainer trainer(prepared.run, prepared.corpus, prepared.plan,
                              {.folder = folder(name),
                               .brrr_version = "test",
                               .peak_flops = prepared.machine.peak_flops,
                               .stop = extra.stop,
                               .steps_ahead = extra.steps_ahead},
                              extra.observer);
    if (extra.resume) trainer.resume();
    return trainer.run();
  }

  // Trains until `step` and ends there as a signal would end it.
  training::TrainOutcome train_until(const std::string& name, int64_t step,
                                     SmallRunOptions extra = {}) const {
    std::atomic<bool> stop = false;
    extra.stop = &stop;
    extra.observer.on_step = [&](const runs::StepRecord& record) {
      if (record.step == step - 1) stop = true;  // seen behind the next step
    };
    return train(name, extra);
  }

  std::vector<double> losses(const std::string& name) const {
    std::vector<double> all;
    for (const runs::StepRecord& record : runs::read_run_log(folder(name)).steps)
      all.push_back(record.loss);
    return all;
  }

  runs::TrainConfig config;

 private:
  TempFolder folder_;
};

// All tensors of a checkpoint, byte for byte.
inline std::string weights_of(const std::filesystem::path& checkpoint) {
  return read_file(checkpoint / "model.safetensors") +
         read_file(checkpoint / "optimizer.safetensors");
}

}  // namespace brrr
