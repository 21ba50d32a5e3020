#include "brrr/train/trainer.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <ctime>

#include "brrr/base/error.h"
#include "brrr/base/thread_pool.h"
#include "brrr/data/prefetch.h"
#include "brrr/device/ledger.h"
#include "brrr/text/tokenizer_file.h"
#include "brrr/train/batch_loss.h"
#include "brrr/train/checkpoint.h"
#include "brrr/train/parts.h"
#include "brrr/train/sampler.h"
#include "brrr/train/state.h"

namespace brrr {
namespace fs = std::filesystem;
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

BatchOptions batch_options(const TrainConfig& config, const Corpus& corpus, WindowOrder order) {
  return {.batch = rows_per_step(config),
          .context = *config.model.context,
          .seed = config.seed_of(config.seed.data),
          .order = order,
          .cut = *config.data.whole_documents ? WindowCut::whole_documents : WindowCut::even,
          .documents = *config.data.document_mask,
          .vocab_size = corpus.vocab};
}

// The same rows at every evaluation, whatever the seed of the order.
std::unique_ptr<BatchLoss> make_evaluation(const TrainConfig& config, const Corpus& corpus,
                                           const TokenSet& tokens, const LanguageModel& model) {
  BatchOptions options = batch_options(config, corpus, WindowOrder::shuffled);
  options.seed = 0;
  options.batch = *config.train.batch;
  options.context = std::min(options.context, tokens.token_count() - 1);
  CrossEntropyOptions loss = loss_options(config);
  loss.z_loss = loss.label_smoothing = 0;  // what is reported is the plain loss
  return std::make_unique<BatchLoss>(model, Batches({{.tokens = tokens}}, options),
                                     BatchLossOptions{.batches = config.report.eval_batches,
                                                      .document_mask = *config.data.document_mask,
                                                      .loss = loss});
}

std::string now_text() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &parts);
  return text;
}

// The values whose names begin with `prefix`, under the rest of their names.
std::vector<NamedTensor> below(const std::vector<NamedTensor>& values, std::string_view prefix) {
  std::vector<NamedTensor> found;
  for (const NamedTensor& each : values) {
    if (each.name.starts_with(prefix))
      found.push_back({each.name.substr(prefix.size()), each.tensor});
  }
  return found;
}

std::vector<NamedTensor> with_prefix(std::string_view prefix, std::vector<NamedTensor> tensors) {
  for (NamedTensor& each : tensors) each.name = join_text(prefix, each.name);
  return tensors;
}

void append(std::vector<NamedTensor>& to, const std::vector<NamedTensor>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

}  // namespace

struct Trainer::State {
  ResolvedRun resolved;
  Corpus corpus;
  TrainPlan plan;
  TrainerOptions options;
  TrainObserver observer;

  TrainConfig& config = resolved.config;
  TrainingParts parts;
  SpikeGuard guard;
  Batches batches;
  std::unique_ptr<BatchLoss> train_loss, validation_loss;
  std::unique_ptr<Sampler> sampler;  // null: texts cannot be written
  std::unique_ptr<CheckpointWriter> checkpoints;
  std::unique_ptr<RunLogWriter> log;
  RunFacts facts;

  TrainingState at;  // where the run stands
  int64_t saved_step = -1;

  State(ResolvedRun run, Corpus data, TrainPlan planned, TrainerOptions given, TrainObserver watch)
      : resolved(std::move(run)),
        corpus(std::move(data)),
        plan(std::move(planned)),
        options(std::move(given)),
        observer(std::move(watch)),
        parts(make_parts(config, resolved.model)),
        guard(config.guard),
        batches({{.tokens = corpus.train}}, batch_options(config, corpus, WindowOrder::shuffled)) {
    at.config = config;
    at.brrr_version = options.brrr_version;
    at.tokenizer_hash = corpus.tokenizer_hash;
    train_loss = make_evaluation(config, corpus, corpus.train, *parts.model);
    if (corpus.validation.token_count() > 1)
      validation_loss = make_evaluation(config, corpus, corpus.validation, *parts.model);
    if (corpus.tokenizer && corpus.tokenizer->end_of_text())
      sampler =
          std::make_unique<Sampler>(*parts.model, corpus.tokenizer,
                                    SamplerOptions{.temperature = config.report.temperature,
                                                   .seed = config.seed_of(config.seed.sampling)});
    checkpoints = std::make_unique<CheckpointWriter>(
        options.folder, CheckpointOptions{.keep = static_cast<int>(config.checkpoint.keep)});
    fill_facts();
  }

  void note(const std::string& text) const {
    if (observer.on_note) observer.on_note(text);
  }

  void fill_facts() {
    facts.brrr_version = options.brrr_version;
    facts.name = fs::absolute(options.folder).lexically_normal().filename().string();
    facts.started = now_text();
    facts.model_json = to_json(resolved.model);
    facts.data = corpus.words;
    facts.tokenizer = corpus.tokenizer ? corpus.tokenizer->description() : "not known";
    facts.precision = get_setting(config, "train.precision");
    facts.optimizer = config.optimizer.name;
    facts.device = "cpu";
    facts.parameters = plan.parameters;
    facts.train_tokens = corpus.train.token_count();
    facts.validation_tokens = corpus.validation.token_count();
    facts.batch = *config.train.batch;
    facts.context = *config.model.context;
    facts.accumulate = config.train.accumulate;
    facts.steps = *config.train.steps;
    facts.vocab = corpus.vocab;
    facts.seed = static_cast<int64_t>(config.seed.all);
    facts.dropout = config.model.dropout;
    facts.weight_decay = config.optimizer.weight_decay;
    facts.flops_per_token = plan.model_flops_per_token.value();
    facts.peak_flops = options.peak_flops.value();
    facts.predicted_step_seconds = plan.step_seconds;
    facts.predicted_memory = plan.memory();
    facts.threads = thread_pool().threads();
    facts.mfu_convention = kMfuConvention;
    facts.speed_regime = plan.speed_regime;
    facts.speed_advice = plan.speed_advice;
    facts.kernels = plan.kernels;
  }

  // ---- checkpoints -------------------------------------------------------------------------------
  // What the model is for others goes into model.safetensors: the averages, where they are kept. The live
  // weights are then part of what going on needs.
  Snapshot snapshot(bool is_best) {
    Snapshot taken{.step = at.step,
                   .model_json = to_json(resolved.model),
                   .tokenizer_json = corpus.tokenizer
                                         ? text::to_brrr_json(corpus.tokenizer->definition())
                                         : std::string("{}"),
                   .optimizer = copy_tensors(with_prefix("optimizer.", parts.optimizer->states())),
                   .is_best = is_best};
    const std::vector<NamedTensor> live = parts.model->named_parameters();
    if (parts.average) {
      taken.model = copy_tensors(below(parts.average->states(), "average."));
      taken.model.pop_back();  // its count of steps, the last
      append(taken.optimizer, copy_tensors(with_prefix("live.", live)));
      append(taken.optimizer, copy_tensors({parts.average->states().back()}));
    } else {
      taken.model = copy_tensors(live);
    }
    append(taken.optimizer, copy_tensors(parts.step->program_states(batches.at(0))));
    at.guard = guard.history();
    taken.state_json = to_json(at);
    return taken;
  }

  void save(bool is_best) {
    if (saved_step == at.step) return;
    tell_failure();
    log->sync();
    checkpoints->begin(snapshot(is_best));
    saved_step = at.step;
  }

  // A save that failed costs nothing that was saved before; the run goes on and tries again.
  void tell_failure() {
    if (const auto failure = checkpoints->take_failure()) {
      const FoundCheckpoint last = find_checkpoint(options.folder);
      note(fmt::format("a checkpoint could not be written: {}. {}", *failure,
                       last.path.empty()
                           ? "There is none yet"
                           : fmt::format("The last good one is {}", last.path.string())));
    }
  }

  void load(const Snapshot& saved) {
    parts.step->executable(batches.at(0));  // its own states are there before they get their values
    const std::vector<NamedTensor> live = below(saved.optimizer, "live.");
    parts.model->load_state_dict(live.empty() ? saved.model : live);
    const bool same_rule = at.config.optimizer.name == config.optimizer.name;
    if (same_rule) parts.optimizer->load_states(below(saved.optimizer, "optimizer."));
    if (parts.average && !live.empty()) {
      std::vector<NamedTensor> averages = with_prefix("average.", saved.model);
      for (const NamedTensor& each : saved.optimizer) {
        if (each.name == "average.step") averages.push_back(each);
      }
      parts.average->load_states(averages);
    } else if (parts.average) {
      parts.average->load_states(with_prefix("average.", saved.model), {.allow_missing = true});
    }
    load_tensors(parts.step->program_states(batches.at(0)),
                 with_prefix("program.", below(saved.optimizer, "program.")),
                 {.allow_missing = true, .allow_unexpected = true});
  }

  void resume() {
    const FoundCheckpoint found = find_checkpoint(options.folder);
    for (const std::string& damage : found.damaged) note(damage);
    if (found.path.empty()) {
      check(found.damaged.empty(), options.folder.string(),
            ": every checkpoint is damaged; start a new run with --out");
      note("there is no checkpoint yet, so the run starts from the beginning");
      return;
    }
    const Snapshot saved = read_checkpoint(found.path);
    at = parse_training_state(saved.state_json, (found.path / "state.json").string());
    check(model_from_json(saved.model_json) == resolved.model, found.path.string(),
          " holds another model: ", saved.model_json, ", and the run is of ",
          to_json(resolved.model));
    check(at.tokenizer_hash == corpus.tokenizer_hash, found.path.string(),
          " was trained on ids of the tokenizer ", at.tokenizer_hash,
          ", and the data has those of ", corpus.tokenizer_hash);
    for (const std::string& change : describe_changes(at.config, config)) note(change);
    load(saved);
    guard.restore(at.guard);
    at.config = config;
    at.brrr_version = options.brrr_version;
    saved_step = at.step;
    set_aside_damaged(options.folder, at.step);
    if (at.best_step == at.step) mark_best(options.folder, at.step);
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
  bool evaluate(StepRecord& record) {
    with_averages([&] {
      record.train_loss = train_loss->run();
      if (validation_loss) record.validation_loss = validation_loss->run();
    });
    const double loss = record.validation_loss.value_or(*record.train_loss);
    if (at.best_loss && !(loss < *at.best_loss)) return false;
    at.best_loss = loss;
    at.best_step = at.step;
    return true;
  }

  // ---- the loop ----------------------------------------------------------------------------------
  struct Stepped {
    StepRecord record;
    bool stops = false;
  };

  Stepped step_once(const Batch& batch) {
    const auto start = Clock::now();
    const StepLimits limits = guard.step_limits();
    const StepResult result = parts.step->run(batch, at.step, limits);
    const double seconds = seconds_since(start);
    const double rate = make_schedule(config).at(at.step);
    at.step += 1;
    at.seconds += seconds;
    const auto tokens = static_cast<double>(batch.inputs.numel());
    Stepped stepped{.record = {.step = at.step,
                               .loss = result.loss,
                               .lr = rate,
                               .grad_norm = result.grad_norm,
                               .tokens_per_second = tokens / seconds,
                               .ms = seconds * 1e3}};
    StepRecord& record = stepped.record;
    record.mfu =
        plan.model_flops_per_token.value() * record.tokens_per_second / options.peak_flops.value();
    record.memory_bytes = static_cast<double>(ledger().peak().value());
    const int64_t every = config.report.activations_every;
    if (every > 0 && (at.step == 1 || at.step % every == 0)) {
      for (size_t i = 0; i < result.activations.size(); ++i)
        record.activations[parts.step->activation_names()[i]] = result.activations[i];
    }
    const StepLimits spikes = guard.spike_limits();
    const GuardVerdict verdict = guard.judge(result);
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

  bool is_due(int64_t every) const { return every > 0 && at.step % every == 0; }

  // Evaluation, sample, log and checkpoint behind a step.
  void finish_step(StepRecord& record, bool is_last) {
    const bool evaluates = is_due(*config.report.eval_every) || is_last;
    const bool is_best = evaluates && evaluate(record);
    if (sampler && is_due(*config.report.sample_every) && !is_last) {
      record.sample = sample(at.step, config.report.sample_tokens);
      if (observer.on_sample) observer.on_sample(at.step, record.sample);
    }
    log->add(record);
    if (observer.on_step) observer.on_step(record);
    tell_failure();
    if (is_best || is_due(*config.checkpoint.every) || is_last) save(is_best);
  }

  TrainOutcome loop() {
    const int64_t steps = *config.train.steps;
    TrainOutcome outcome{.status = "finished"};
    Prefetcher prefetch([this](int64_t step) { return batches.at(step); }, {.first_step = at.step});
    while (at.step < steps) {
      Stepped stepped = step_once(prefetch.next());
      const bool asked = options.stop && options.stop->load();
      const bool ends = asked || stepped.stops;
      finish_step(stepped.record, ends || at.step == steps);
      outcome.loss = stepped.record.loss;
      if (!ends || at.step == steps) continue;
      outcome.status = "stopped";
      outcome.reason = stepped.stops ? stepped.record.guard : "by a signal";
      break;
    }
    outcome.step = at.step;
    outcome.seconds = at.seconds;
    return outcome;
  }

  TrainOutcome run() {
    fs::create_directories(options.folder);
    log = std::make_unique<RunLogWriter>(options.folder, at.step);
    write_run_facts(options.folder, facts);
    TrainOutcome outcome;
    try {
      outcome = loop();
      checkpoints->finish();
    } catch (const std::exception& error) {
      end("failed", error.what());
      throw;
    }
    outcome.checkpoint = checkpoints_of(options.folder) / checkpoint_name(saved_step);
    end(outcome.status, outcome.reason);
    return outcome;
  }

  void end(const std::string& status, const std::string& reason) {
    facts.status = status;
    facts.reason = reason;
    facts.best_step = at.best_step;
    facts.seconds = at.seconds;
    write_run_facts(options.folder, facts);
  }
};

Trainer::Trainer(ResolvedRun run, Corpus corpus, TrainPlan plan, TrainerOptions options,
                 TrainObserver observer)
    : state_(std::make_unique<State>(std::move(run), std::move(corpus), std::move(plan),
                                     std::move(options), std::move(observer))) {}
Trainer::~Trainer() = default;

void Trainer::resume() { state_->resume(); }
TrainOutcome Trainer::run() { return state_->run(); }

std::string Trainer::write_sample(int64_t number, int64_t tokens) {
  return state_->sample(number, tokens);
}

}  // namespace brrr
