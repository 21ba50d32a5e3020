// What `brrr train` shows: the choices at the start, a line of progress, notes, and the summary.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include "brrr/cli/machine_rates.h"
#include "brrr/report/progress.h"
#include "brrr/train/session.h"
#include "brrr/train/trainer.h"

namespace brrr::cli {

struct TrainViewOptions {
  std::filesystem::path folder;
  bool json = false;     // one object at the end, and nothing before it
  bool kernels = false;  // a plan lists the kernels of its step
};

class TrainView {
 public:
  explicit TrainView(const TrainViewOptions& options) : options_(options) {}

  MeasureNotes measure_notes();
  void show_plan(const training::PlannedRun& planned) const;
  void show_start(const training::PlannedRun& planned);
  training::TrainObserver observer();
  // Makes the text of a number; nothing where no tokenizer can.
  using TextWriter = std::function<std::optional<std::string>(int64_t number)>;
  void show_end(const training::TrainOutcome& outcome, const TextWriter& write);

 private:
  void say(const std::string& text);
  void warn(const std::string& text);
  void show_summary(const training::TrainOutcome& outcome);
  void show_texts(const TextWriter& write);

  TrainViewOptions options_;
  std::unique_ptr<report::Progress> progress_;
  training::TrainPlan plan_;  // of the run that was started
};

}  // namespace brrr::cli
