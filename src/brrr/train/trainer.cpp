#include "brrr/train/trainer.h"

#include <fmt/format.h>

#include <cmath>

#include "brrr/base/error.h"
#include "brrr/data/prefetch.h"
#include "brrr/device/default_device.h"
#include "brrr/device/ledger.h"
#include "brrr/io/atomic_file.h"
#include "brrr/kernels/cuda/gemm/gemm_cuda.h"
#include "brrr/run/checkpoint.h"
#include "brrr/run/tensorboard.h"
#include "brrr/text/tokenizer_file.h"
#include "brrr/train/run_batches.h"
#include "brrr/train/run_facts.h"
#include "brrr/train/sampler.h"
#include "brrr/train/saved_tensors.h"
#include "brrr/train/setup.h"
#include "brrr/train/state.h"
#include "brrr/train/step_queue.h"

namespace brrr::training {
namespace fs = std::filesystem;
namespace {

// The algorithms of its matrix products, for other runs that must have the same bits (--algorithms).
const fs::path kAlgorithmsFile = "algorithms.txt";

bool is_due_after(int64_t steps_done, int64_t every) {
  return every > 0 && steps_done % every == 0;
}

}  // namespace

struct Trainer::State {
  ResolvedRun settled;
  Corpus corpus;
  TrainPlan plan;
  TrainerOptions options;
  TrainObserver observer;

  runs::TrainConfig& config = settled.config;
  TrainingParts parts;
  SpikeGuard guard;
  StepQueue queue;
  Batches batches;
  std::unique_ptr<BatchLoss> train_loss, validation_loss;
  std::unique_ptr<Sampler> sampler;  // null: texts cannot be written
  std::unique_ptr<runs::CheckpointWriter> checkpoints;
  std::unique_ptr<runs::RunLogWriter> log;
  std::unique_ptr<runs::TensorBoardWriter> board;
  runs::RunFacts facts;

  TrainingState at;  // where the run stands
  int64_t saved_step = -1;

  State(ResolvedRun run, Corpus data, TrainPlan planned, TrainerOptions given, TrainObserver watch)
      : settled(std::move(run)),
        corpus(std::move(data)),
        plan(std::move(planned)),
        options(std::move(given)),
        observer(std::move(watch)),
        parts(make_parts(config, settled.model)),
        guard(config.guard),
        queue(*parts.step, guard),
        batches(training_batches(config, corpus)) {
    at.config = config;
    at.brrr_version = options.brrr_version;
    at.tokenizer_hash = corpus.tokenizer_hash;
    train_loss = make_evaluation(config, corpus, corpus.train, *parts.model);
    validation_loss = make_evaluation(config, corpus, corpus.validation, *parts.model);
    if (corpus.tokenizer && corpus.tokenizer->end_of_text())
      sampler =
          std::make_unique<Sampler>(*parts.model, corpus.tokenizer,
                                    SamplerOptions{.temperature = config.report.temperature,
                                                   .seed = config.seed_of(config.seed.sampling)});
    checkpoints = std::make_unique<runs::CheckpointWriter>(
        options.folder, runs::CheckpointOptions{.keep = static_cast<int>(config.checkpoint.keep)});
    facts = facts_of_run(settled, corpus, plan);
    facts.brrr_version = options.brrr_version;
    facts.name = fs::absolute(options.folder).lexically_normal().filename().string();
    facts.peak_flops = options.peak_flops.value();
  }

  void note(const std::string& text) const {
    if (observer.on_note) observer.on_note(text);
  }

  // ---- checkpoints -------------------------------------------------------------------------------
  // Behind the last step nothing changes the tensors while they are written: those in host memory are
  // written from where they are.
  runs::Snapshot snapshot(bool is_best, bool is_last) {
    at.guard = guard.history();
    at.algorithms = kernels::algorithms_of_run(default_device());
    SavedTensors tensors = tensors_to_save(parts, batches.at(0));
    if (!is_last || default_device() != Device::cpu()) tensors = copy_of(tensors);
    return {.step = at.step,
            .model_json = to_json(settled.model),
            .state_json = to_json(at),
            .tokenizer_json = corpus.tokenizer ? text::to_brrr_json(corpus.tokenizer->definition())
                                               : std::string(),
            .model = std::move(tensors.model),
            .optimizer = std::move(tensors.optimizer),
            .is_best = is_best};
  }

  void save(bool is_best, bool is_last) {
    if (saved_step == at.step) return;
    tell_failure();
    log->sync();
    if (const kernels::AlgorithmChoices chosen = kernels::algorithms_of_run(default_device());
        !chosen.lines.empty())
      write_file_atomically(options.folder / kAlgorithmsFile, chosen.lines);
    checkpoints->begin(snapshot(is_best, is_last));
    saved_step = at.step;
  }

  std::string last_good() const {
    const fs::path last = runs::find_checkpoint(options.folder).path;
    return last.empty() ? "there is no checkpoint yet"
                        : fmt::format("the last good one is {}", last.string());
  }

  // A save that failed costs nothing that was saved before; the run goes on and tries again.
  void tell_failure() const {
    if (const auto failure = checkpoints->take_failure())
      note(fmt::format("a checkpoint could not be written: {}; {}", *failure, last_good()));
  }

  void resume() {
    const runs::FoundCheckpoint found = runs::find_checkpoint(options.folder);
    for (const std::string& damage : found.damaged) note(damage);
    if (found.path.empty()) {
      check(found.damaged.empty(), options.folder.string(),
            ": every checkpoint is damaged; start a new run with --out");
      note("there is no checkpoint yet, so the run starts from the beginning");
      return;
    }
    const runs::Snapshot saved = runs::read_checkpoint(found.path);
    at = parse_training_state(saved.state_json, (found.path / "state.json").string());
    check(model_from_json(saved.model_json) == settled.model, found.path.string(),
          " holds another model: ", saved.model_json, ", and the run is of ",
          to_json(settled.model));
    check(at.tokenizer_hash == corpus.tokenizer_hash, found.path.string(),
          " was trained on ids of the tokenizer ", at.tokenizer_hash,
          ", and the data has those of ", corpus.tokenizer_hash);
    for (const std::string& change : describe_changes(at.config, config)) note(change);
    const std::string differing =
        kernels::restore_choices(kernels::gemm_choices(), at.algorithms,
                                 kernels::algorithms_of_run(default_device()).library);
    if (!differing.empty()) note(differing);
    load_saved(parts, {.model = saved.model, .optimizer = saved.optimizer}, batches.at(0),
               {.optimizer = at.config.optimizer.name == config.optimizer.name});
    guard.restore(at.guard);
    at.config = config;
    at.brrr_version = options.brrr_version;
    saved_step = at.step;
    runs::set_aside_damaged(options.folder, at.step);
    if (at.best_step == at.step) runs::mark_best(options.folder, at.step);
    note(fmt::format("goes on after step {} of {}", at.step, found.path.string()));
  }

  // ---- looking at the model ----------------------------------------------------------------------
  // Calls look() with the weights that others would use.
  template <typename Look>
  void with_averages(const Look& look) {
    if (parts.average) parts.average->swap();
    look();
    if (parts.average) parts.average->swap();
  }

  std::string sample(int64_t number, int64_t tokens) {
    std::string text;
    if (sampler)
      with_averages([&] { text = sampler->write(static_cast<uint32_t>(number), tokens); });
    return text;
  }

  // Fills in what an evaluation finds; true where it is the best so far.
  bool evaluate(runs::StepRecord& record) {
    double loss = 0;  // what the best is chosen by
    with_averages([&] {
      record.train_loss = loss = train_loss->run();
      if (validation_loss) record.validation_loss = loss = validation_loss->run();
    });
    if (at.best_loss && !(loss < *at.best_loss)) return false;
    at.best_loss = loss;
    at.best_step = at.step;
    return true;
  }

  // ---- the loop ----------------------------------------------------------------------------------
  bool is_due(int64_t every) const { return is_due_after(at.step, every); }
  // Whether an evaluation, a sample or a checkpoint follows when so many steps are done.
  bool is_looked_at(int64_t steps_done) const {
    return is_due_after(steps_done, runs::resolved(config.report.eval_every)) ||
           is_due_after(steps_done, runs::resolved(config.report.sample_every)) ||
           is_due_after(steps_done, runs::resolved(config.checkpoint.every));
  }

  // A GPU works while the host prepares; the cpu is the host.
  int64_t steps_ahead() const {
    return options.steps_ahead.value_or(default_device() == Device::cpu() ? 0 : kStepsAhead);
  }

  // Steps may be started ahead, but not behind one after which somebody looks at the model.
  bool may_start(int64_t steps) const {
    const int64_t done_before = at.step + queue.size();
    if (done_before >= steps) return false;
    if (queue.empty()) return true;
    return queue.size() <= steps_ahead() && !is_looked_at(done_before);
  }

  struct Stepped {
    runs::StepRecord record;
    bool stops = false;
  };

  Stepped finish_oldest() {
    const auto [batch, spikes, result, seconds] = queue.finish();
    const double rate = Schedule(schedule_options(config)).at(at.step);
    at.step += 1;
    at.seconds += seconds;
    const double per_second = static_cast<double>(batch.inputs.numel()) / seconds;
    Stepped stepped{.record = {.step = at.step,
                               .loss = result.loss,
                               .lr = rate,
                               .grad_norm = result.grad_norm,
                               .tokens_per_second = per_second,
                               .ms = seconds * 1e3}};
    runs::StepRecord& record = stepped.record;
    record.mfu = plan.model_flops_per_token.value() * per_second / options.peak_flops.value();
    record.memory_bytes = static_cast<double>(ledger().peak().value());
    const int64_t every = config.report.activations_every;
    if (every > 0 && (at.step == 1 || at.step % every == 0)) {
      for (size_t i = 0; i < result.activations.size(); ++i)
        record.activations[parts.step->activation_names()[i]] = result.activations[i];
    }
    const GuardVerdict verdict = guard.judge(result, spikes);
    if (verdict.is_notable()) {
      const fs::path folder =
          save_bad_step(options.folder, {.step = at.step,
                                         .batch = batch,
                                         .result = result,
                                         .limits = spikes,
                                         .parameters = parts.optimizer->named_parameters(),
                                         .activation_names = parts.step->activation_names(),
                                         .words = verdict.words});
      record.guard = verdict.words;
      note(fmt::format("step {}: {}; {} has the batch and the norms", at.step, verdict.words,
                       folder.string()));
    }
    stepped.stops = verdict.stops;
    return stepped;
  }

  // Evaluation, sample, log and checkpoint behind a step.
  void finish_step(runs::StepRecord& record, bool is_last) {
    const bool evaluates = is_due(runs::resolved(config.report.eval_every)) || is_last;
    const bool is_best = evaluates && evaluate(record);
    if (sampler && is_due(runs::resolved(config.report.sample_every)) && !is_last) {
      record.sample = sample(at.step, config.report.sample_tokens);
      if (observer.on_sample) observer.on_sample(at.step, record.sample);
    }
    log->add(record);
    show_on_board(record);
    if (observer.on_step) observer.on_step(record);
    tell_failure();
    if (is_best || is_due(runs::resolved(config.checkpoint.every)) || is_last)
      save(is_best, is_last);
  }

  void show_on_board(const runs::StepRecord& record) {
    board->scalar("loss/step", record.step, record.loss);
    board->scalar("lr", record.step, record.lr);
    board->scalar("grad_norm", record.step, record.grad_norm);
    board->scalar("tokens_per_second", record.step, record.tokens_per_second);
    if (record.train_loss) board->scalar("loss/train", record.step, *record.train_loss);
    if (record.validation_loss)
      board->scalar("loss/validation", record.step, *record.validation_loss);
    for (const auto& [part, largest] : record.activations)
      board->scalar(join_text("largest_activation/", part), record.step, largest);
    if (!record.sample.empty()) board->text("sample", record.step, record.sample);
  }

  TrainOutcome loop() {
    const int64_t steps = runs::resolved(config.train.steps);
    TrainOutcome outcome{.status = "finished"};
    Prefetcher prefetch([this](int64_t step) { return batches.at(step); }, {.first_step = at.step});
    while (at.step < steps) {
      while (outcome.reason.empty() && may_start(steps))
        queue.start(prefetch.next(), at.step + queue.size());
      Stepped stepped = finish_oldest();
      const bool asked = options.stop && options.stop->load();
      if (outcome.reason.empty() && (asked || stepped.stops))
        outcome.reason = stepped.stops ? stepped.record.guard : "by a signal";
      // Those behind a halt changed nothing; behind any other end they count, and the run ends after them.
      if (stepped.stops && guard.halts()) queue.drop();
      const bool ends = !outcome.reason.empty() && queue.empty();
      finish_step(stepped.record, ends || at.step == steps);
      outcome.loss = stepped.record.loss;
      if (ends && at.step < steps) break;
    }
    if (at.step < steps) outcome.status = "stopped";
    if (outcome.status == "finished") outcome.reason.clear();
    outcome.step = at.step;
    outcome.seconds = at.seconds;
    return outcome;
  }

  TrainOutcome run() {
    fs::create_directories(options.folder);
    log = std::make_unique<runs::RunLogWriter>(options.folder, at.step);
    board = std::make_unique<runs::TensorBoardWriter>(
        options.folder, runs::TensorBoardOptions{.resumed_after_step = at.step});
    ledger().reset_peak();  // what was measured before is no part of the run
    runs::write_run_facts(options.folder, facts);
    TrainOutcome outcome;
    try {
      outcome = loop();
      checkpoints->finish();
    } catch (const Error& error) {
      const std::string words = fmt::format("{}; of the checkpoints {}", error.what(), last_good());
      try {
        end("failed", words);
      } catch (const Error& second) {  // a full disk has no room for the reason either
        note(second.what());
      }
      throw Error(words);
    }
    outcome.checkpoint = runs::checkpoints_of(options.folder) / runs::checkpoint_name(saved_step);
    end(outcome.status, outcome.reason);
    return outcome;
  }

  void end(const std::string& status, const std::string& reason) {
    facts.status = status;
    facts.reason = reason;
    facts.best_step = at.best_step;
    facts.seconds = at.seconds;
    runs::write_run_facts(options.folder, facts);
  }
};

Trainer::Trainer(ResolvedRun run, Corpus corpus, TrainPlan plan, TrainerOptions options,
                 TrainObserver observer)
    : state_(std::make_unique<State>(std::move(run), std::move(corpus), std::move(plan),
                                     std::move(options), std::move(observer))) {}
Trainer::~Trainer() = default;

void Trainer::resume() { state_->resume(); }
TrainOutcome Trainer::run() { return state_->run(); }

std::optional<std::string> Trainer::write_sample(int64_t number, int64_t tokens) {
  if (!state_->sampler) return {};
  return state_->sample(number, tokens);
}

}  // namespace brrr::training
