#include "brrr/report/run_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "brrr/base/error.h"
#include "brrr/run/learning_regime.h"
#include "brrr/run/speed_regime.h"

namespace brrr::report {
namespace {

std::string loss_text(double loss) {
  return std::isfinite(loss) ? fmt::format("{:.4f}", loss) : "no number";
}

// "1.23 M" for cards, where the exact number takes too much room.
std::string short_count(double count) {
  if (count >= 1e9) return fmt::format("{:.3g} G", count / 1e9);
  if (count >= 1e6) return fmt::format("{:.3g} M", count / 1e6);
  if (count >= 1e4) return fmt::format("{:.3g} k", count / 1e3);
  return with_commas(std::llround(count));
}

std::string count_or_nothing(int64_t count) { return count > 0 ? with_commas(count) : ""; }

// The lowest validation loss that was measured, unlike the smoothed one of a regime.
struct Best {
  double loss = NAN;
  int64_t step = 0;
};
Best best_validation(const runs::RunLog& run) {
  Best best;
  for (const runs::EvaluationPoint& point : runs::evaluation_points(run)) {
    if (best.step == 0 || point.validation < best.loss) best = {point.validation, point.step};
  }
  return best;
}

double final_loss(const runs::RunLog& run) {
  std::vector<double> losses;
  for (const runs::StepRecord& record : run.steps) losses.push_back(record.loss);
  if (losses.empty()) return NAN;
  return runs::running_mean(losses, std::max(1.0, 0.02 * static_cast<double>(losses.size())))
      .back();
}

double peak_memory(const runs::RunLog& run) {
  double peak = 0;
  for (const runs::StepRecord& record : run.steps) {
    if (record.memory_bytes && std::isfinite(*record.memory_bytes))
      peak = std::max(peak, *record.memory_bytes);
  }
  return peak;
}

int64_t last_step(const runs::RunLog& run) { return run.steps.empty() ? 0 : run.steps.back().step; }

std::string speed_text(const runs::SpeedRegime& speed) {
  return std::isfinite(speed.step_seconds)
             ? with_commas(std::llround(speed.tokens_per_second)) + " tokens/s"
             : "";
}

// One row of a comparison, by a function of the run.
struct Row {
  const char* name;
  std::string (*value)(const runs::RunLog&);
};

std::string memory_text(const runs::RunLog& run) {
  const double peak = peak_memory(run);
  return peak > 0 ? to_text(Bytes(std::llround(peak))) : "";
}

constexpr Row kRows[] = {
    {"status", [](const runs::RunLog& run) { return run.facts.status; }},
    {"steps",
     [](const runs::RunLog& run) {
       return with_commas(last_step(run)) + " of " + with_commas(run.facts.steps);
     }},
    {"training loss, last", [](const runs::RunLog& run) { return loss_text(final_loss(run)); }},
    {"validation loss, last",
     [](const runs::RunLog& run) {
       const auto points = runs::evaluation_points(run);
       return points.empty() ? "" : loss_text(points.back().validation);
     }},
    {"validation loss, best",
     [](const runs::RunLog& run) {
       const Best best = best_validation(run);
       return best.step == 0 ? "" : loss_text(best.loss) + " at step " + with_commas(best.step);
     }},
    {"perplexity, best",
     [](const runs::RunLog& run) {
       const Best best = best_validation(run);
       return best.step == 0 ? "" : fmt::format("{:.4g}", std::exp(best.loss));
     }},
    {"learning",
     [](const runs::RunLog& run) {
       return std::string(runs::learning_name(runs::judge_learning(run).kind));
     }},
    {"parameters", [](const runs::RunLog& run) { return count_or_nothing(run.facts.parameters); }},
    {"tokens a step",
     [](const runs::RunLog& run) { return count_or_nothing(run.facts.tokens_per_step()); }},
    {"training tokens",
     [](const runs::RunLog& run) { return count_or_nothing(run.facts.train_tokens); }},
    {"vocabulary", [](const runs::RunLog& run) { return count_or_nothing(run.facts.vocab); }},
    {"speed", [](const runs::RunLog& run) { return speed_text(runs::judge_speed(run)); }},
    {"MFU",
     [](const runs::RunLog& run) {
       const double mfu = runs::judge_speed(run).mfu;
       return mfu > 0 ? fmt::format("{:.1f} %", 100 * mfu) : "";
     }},
    {"time in steps",
     [](const runs::RunLog& run) {
       return run.facts.seconds > 0 ? to_text(Seconds(run.facts.seconds)) : "";
     }},
    {"memory, largest", memory_text},
    {"device", [](const runs::RunLog& run) { return run.facts.device; }},
    {"threads", [](const runs::RunLog& run) { return count_or_nothing(run.facts.threads); }},
    {"optimizer", [](const runs::RunLog& run) { return run.facts.optimizer; }},
    {"precision", [](const runs::RunLog& run) { return run.facts.precision; }},
    {"data", [](const runs::RunLog& run) { return run.facts.data; }},
    {"tokenizer", [](const runs::RunLog& run) { return run.facts.tokenizer; }},
};

}  // namespace

std::vector<RunFact> headline_facts(const runs::RunLog& run) {
  const runs::SpeedRegime speed = runs::judge_speed(run);
  const Best best = best_validation(run);
  std::vector<RunFact> facts;
  const auto add = [&](const std::string& name, const std::string& value) {
    if (!value.empty()) facts.push_back({.name = name, .value = value});
  };
  add("steps of " + with_commas(run.facts.steps), with_commas(last_step(run)));
  if (!run.steps.empty()) add("training loss, smoothed", loss_text(final_loss(run)));
  if (best.step > 0) {
    add("best validation loss, step " + with_commas(best.step), loss_text(best.loss));
    add("perplexity of it", fmt::format("{:.4g}", std::exp(best.loss)));
  }
  if (run.facts.parameters > 0)
    add("parameters", short_count(static_cast<double>(run.facts.parameters)));
  const auto seen = static_cast<double>(last_step(run) * run.facts.tokens_per_step());
  if (run.facts.train_tokens > 0)
    add("tokens seen, of " + short_count(static_cast<double>(run.facts.train_tokens)),
        short_count(seen));
  if (std::isfinite(speed.step_seconds)) {
    add("tokens a second", short_count(speed.tokens_per_second));
    add("a step", to_text(Seconds(speed.step_seconds)));
  }
  if (speed.mfu > 0) add("MFU", fmt::format("{:.1f} %", 100 * speed.mfu));
  if (run.facts.seconds > 0) add("in steps", to_text(Seconds(run.facts.seconds)));
  add("memory, largest", memory_text(run));
  if (run.facts.predicted_memory > 0_B)
    add("memory, predicted", to_text(run.facts.predicted_memory));
  if (run.facts.threads > 0)
    add(run.facts.threads == 1 ? "thread" : "threads", join_text(run.facts.threads));
  return facts;
}

std::vector<ComparedFact> compared_facts(const std::vector<NamedRun>& runs) {
  std::vector<ComparedFact> facts;
  for (const Row& row : kRows) {
    ComparedFact fact{.name = row.name, .values = {}};
    bool known = false;
    for (const NamedRun& named : runs) {
      fact.values.push_back(row.value(named.run));
      known = known || !fact.values.back().empty();
    }
    if (known) facts.push_back(std::move(fact));
  }
  return facts;
}

}  // namespace brrr::report
