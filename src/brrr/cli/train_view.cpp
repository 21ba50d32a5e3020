#include "brrr/cli/train_view.h"

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "brrr/base/thread_pool.h"
#include "brrr/cli/kernel_view.h"
#include "brrr/report/run_report.h"
#include "brrr/report/table.h"
#include "brrr/run/learning_regime.h"
#include "brrr/run/speed_regime.h"

namespace brrr::cli {
namespace {

constexpr int kTextsAtTheEnd = 3;

std::string model_words(const training::ResolvedRun& run) {
  const runs::ModelSettings& model = run.config.model;
  return fmt::format("{}, {} layers of width {}, {} parameters", family_of(run.model),
                     runs::resolved(model.layers), runs::resolved(model.width),
                     with_commas(parameter_count(run.model)));
}

nlohmann::json data_json(const training::CorpusFacts& data) {
  nlohmann::json sources = nlohmann::json::array();
  for (const training::SourceFacts& source : data.sources)
    sources.push_back(
        {{"name", source.name}, {"share", source.share}, {"train_tokens", source.train_tokens}});
  return {{"train_tokens", data.train_tokens},
          {"validation_tokens", data.validation_tokens},
          {"is_estimate", data.is_estimate},
          {"bytes", data.data_bytes.value()},
          {"sources", sources}};
}

nlohmann::json rates_json(const training::TrainPlan& plan) {
  return {{"kind", hardware::to_text(plan.rates_kind)}, {"source", plan.rates_source}};
}

nlohmann::json plan_json(const training::PlannedRun& planned, bool with_kernels) {
  const training::TrainPlan& plan = planned.plan;
  const auto steps = static_cast<double>(runs::resolved(planned.run.config.train.steps));
  nlohmann::json json = {{"model", nlohmann::json::parse(to_json(planned.run.model))},
                         {"target", plan.target.name},
                         {"data", data_json(planned.data)},
                         {"parameters", plan.parameters},
                         {"steps", runs::resolved(planned.run.config.train.steps)},
                         {"memory_bytes", plan.memory().value()},
                         {"memory_available", planned.memory.value()},
                         {"disk_bytes", plan.disk.value()},
                         {"checkpoint_bytes", plan.checkpoint.value()},
                         {"fits", planned.lack.empty()},
                         {"lack", planned.lack},
                         {"step_seconds", plan.step_seconds},
                         {"seconds", plan.step_seconds * steps},
                         {"calibrated", plan.rates_kind != hardware::RatesKind::assumed},
                         {"rates", rates_json(plan)},
                         {"flops_per_token", plan.model_flops_per_token.value()},
                         {"speed_regime", plan.speed_regime},
                         {"reasons", planned.run.reasons},
                         {"config", runs::to_toml(planned.run.config)}};
  if (with_kernels) json["kernels"] = kernels_json(plan.launches);
  return json;
}

// "loss 2.31  12,345 tok/s  MFU 31 %  210 MiB"
std::string detail_of(const runs::StepRecord& record) {
  std::string text = fmt::format("loss {:.4f}  {} tok/s", record.loss,
                                 with_commas(static_cast<int64_t>(record.tokens_per_second)));
  if (record.mfu) text += fmt::format("  MFU {:.0f} %", 100 * *record.mfu);
  if (record.memory_bytes)
    text += fmt::format("  {}", to_text(Bytes(static_cast<int64_t>(*record.memory_bytes))));
  return text;
}

}  // namespace

void TrainView::say(const std::string& text) {
  if (options_.json) return;
  if (progress_) progress_->finish();
  fmt::print("{}\n", text);
  std::fflush(stdout);
}

// A script that reads JSON from stdout still learns what went wrong.
void TrainView::warn(const std::string& text) {
  if (options_.json) {
    fmt::print(stderr, "brrr: {}\n", text);
  } else {
    say(text);
  }
}

MeasureNotes TrainView::measure_notes() {
  return {.progress = [this](const std::string& text) { say(text); },
          .warning = [this](const std::string& text) { warn(text); }};
}

void TrainView::show_plan(const training::PlannedRun& planned) const {
  if (options_.json) {
    std::puts(plan_json(planned, options_.kernels).dump(1).c_str());
    return;
  }
  const training::TrainPlan& plan = planned.plan;
  const auto steps = static_cast<double>(runs::resolved(planned.run.config.train.steps));
  report::Table table({"", "needed", "", "there is"});
  table.row("parameters and optimizer", plan.states, "", "");
  table.row("a step at its fullest", plan.arena, "", "");
  table.row("copy for a checkpoint", plan.snapshot, "", "");
  table.row("batches, evaluation, program", plan.other, "", "");
  table.rule();
  table.row("memory", plan.memory(), "", planned.memory);
  table.row("disk", plan.disk, fmt::format("{} a checkpoint", to_text(plan.checkpoint)),
            training::available_disk(options_.folder));
  table.row("time", Seconds(plan.step_seconds * steps),
            fmt::format("{} a step{}", to_text(Seconds(plan.step_seconds)),
                        plan.rates_kind == hardware::RatesKind::assumed ? ", uncalibrated" : ""),
            "");
  const training::CorpusFacts& data = planned.data;
  fmt::print("target {}\ndata   {}, {}{} training tokens\nmodel  {}\n", plan.target.name,
             data.words, data.is_estimate ? "about " : "", with_commas(data.train_tokens),
             model_words(planned.run));
  for (const std::string& reason : planned.run.reasons) fmt::print("       {}\n", reason);
  fmt::print("\n{}\n{}; {}\n", table.text(), plan.speed_regime, plan.speed_advice);
  if (!planned.lack.empty()) fmt::print("\nit would be refused: {}\n", planned.lack);
  if (options_.kernels) print_kernels(plan.launches);
}

void TrainView::show_start(const training::PlannedRun& planned) {
  plan_ = planned.plan;
  const training::CorpusFacts& data = planned.data;
  say(fmt::format("data       {}: {} tokens to train on, {} held out", data.words,
                  with_commas(data.train_tokens), with_commas(data.validation_tokens)));
  if (!data.tokenizer.empty())
    say(fmt::format("tokenizer  {} ({})", data.tokenizer, data.tokenizer_reason));
  say(fmt::format("model      {}", model_words(planned.run)));
  for (const std::string& reason : planned.run.reasons) say(fmt::format("           {}", reason));
  say(fmt::format("machine    {} thread{}, {} free of which {} are needed", planned.machine.cores,
                  planned.machine.cores == 1 ? "" : "s", to_text(planned.memory),
                  to_text(planned.plan.memory())));
  say(fmt::format("MFU        {}: {}", to_text(planned.machine.peak_flops),
                  training::kMfuConvention));
  say(fmt::format("run        {}\n", options_.folder.string()));
  if (!options_.json)
    progress_ =
        std::make_unique<report::Progress>(runs::resolved(planned.run.config.train.steps), stdout);
}

training::TrainObserver TrainView::observer() {
  training::TrainObserver observer;
  observer.on_note = [this](const std::string& text) { warn(text); };
  if (options_.json) return observer;
  observer.on_sample = [this](int64_t step, const std::string& text) {
    say(fmt::format("\nat step {} it writes:\n  {}\n", step, text));
  };
  observer.on_step = [this, first = true](const runs::StepRecord& record) mutable {
    if (first) progress_->start_at(record.step - 1);
    first = false;
    if (record.validation_loss)
      say(fmt::format("step {}: validation loss {:.4f}, training loss {:.4f}", record.step,
                      *record.validation_loss, *record.train_loss));
    if (progress_->is_due(record.step)) progress_->update(record.step, detail_of(record));
  };
  return observer;
}

void TrainView::show_summary(const training::TrainOutcome& outcome) {
  const runs::RunLog log = runs::read_run_log(options_.folder);
  say(fmt::format("\n{} after {} steps and {} of training{}", outcome.status, outcome.step,
                  to_text(Seconds(outcome.seconds)),
                  outcome.reason.empty() ? "" : join_text(": ", outcome.reason)));
  say(fmt::format("\n{}\n\n{}", runs::to_text(runs::judge_learning(log)),
                  runs::to_text(runs::judge_speed(log))));
}

void TrainView::show_texts(const TextWriter& write) {
  for (int64_t number = 0; number < kTextsAtTheEnd; ++number) {
    const std::optional<std::string> text = write(number);
    if (number == 0)
      say(text ? "\nit writes:"
               : "\nit writes no text: the tokens came without a tokenizer that ends texts; name "
                 "one with --tokenizer");
    if (!text) return;
    say(fmt::format("\n  {}", *text));
  }
}

void TrainView::show_end(const training::TrainOutcome& outcome, const TextWriter& write) {
  report::write_run_report(options_.folder);
  if (options_.json) {
    const nlohmann::json report{{"run", options_.folder.string()},
                                {"status", outcome.status},
                                {"reason", outcome.reason},
                                {"steps", outcome.step},
                                {"loss", outcome.loss},
                                {"seconds", outcome.seconds},
                                {"predicted_step_seconds", plan_.step_seconds},
                                {"rates", rates_json(plan_)},
                                {"checkpoint", outcome.checkpoint.string()},
                                {"report", (options_.folder / "report.html").string()}};
    std::puts(report.dump(1).c_str());
    return;
  }
  show_summary(outcome);
  if (outcome.status == "finished") show_texts(write);
  const std::string folder = options_.folder.string();
  say(fmt::format("\nmodel      {}\nreport     {}\nmore       brrr generate {}",
                  outcome.checkpoint.string(), (options_.folder / "report.html").string(), folder));
  if (outcome.status != "finished")
    say(fmt::format("go on      brrr train --out {} --resume", folder));
}

}  // namespace brrr::cli
