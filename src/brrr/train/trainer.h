// The training loop: batches made ahead, the compiled step, guard, evaluation, samples, log and
// checkpoints. It prints nothing; what happens goes to an observer and to the folder of the run.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "brrr/run/run_log.h"
#include "brrr/train/auto_size.h"
#include "brrr/train/corpus.h"
#include "brrr/train/plan.h"

namespace brrr::training {

struct TrainObserver {
  std::function<void(const runs::StepRecord&)> on_step = {};
  std::function<void(const std::string& text)> on_note = {};  // what a person should know
  std::function<void(int64_t step, const std::string& text)> on_sample = {};
};

struct TrainerOptions {
  std::filesystem::path folder;  // of the run
  std::string brrr_version;
  FlopsPerSecond peak_flops;                // for MFU
  const std::atomic<bool>* stop = nullptr;  // set from a signal: finish the step, save, end
  std::optional<int64_t>
      steps_ahead;  // started before results are seen; default: as the device likes
};

struct TrainOutcome {
  std::string status;  // "finished" or "stopped"
  std::string reason;  // why it stopped
  int64_t step = 0;
  double loss = 0;                   // of the last step
  double seconds = 0;                // in steps, over all sessions
  std::filesystem::path checkpoint;  // the last one
};

class Trainer {
 public:
  Trainer(ResolvedRun run, Corpus corpus, TrainPlan plan, TrainerOptions options,
          TrainObserver observer);
  ~Trainer();

  // Goes on from the newest whole checkpoint of the folder.
  void resume();
  TrainOutcome run();

  // A text by the model as it is now; nothing where there is no tokenizer. `number` tells texts apart.
  std::optional<std::string> write_sample(int64_t number, int64_t tokens);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace brrr::training
