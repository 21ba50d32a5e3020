#include "brrr/train/run_facts.h"

#include <ctime>

#include "brrr/base/thread_pool.h"
#include "brrr/device/default_device.h"

namespace brrr::training {
namespace {

std::string now_text() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &parts);
  return text;
}

}  // namespace

runs::RunFacts facts_of_run(const ResolvedRun& run, const Corpus& corpus, const TrainPlan& plan) {
  const runs::TrainConfig& config = run.config;
  runs::RunFacts facts;
  facts.started = now_text();
  facts.model_json = to_json(run.model);
  facts.data = corpus.facts.words;
  facts.tokenizer = corpus.tokenizer ? corpus.facts.tokenizer : "not known";
  facts.precision = runs::get_setting(config, "train.precision");
  facts.optimizer = config.optimizer.name;
  facts.device = to_text(default_device());
  facts.parameters = plan.parameters;
  facts.train_tokens = corpus.facts.train_tokens;
  facts.validation_tokens = corpus.facts.validation_tokens;
  facts.batch = runs::resolved(config.train.batch);
  facts.context = runs::resolved(config.model.context);
  facts.accumulate = config.train.accumulate;
  facts.steps = runs::resolved(config.train.steps);
  facts.vocab = corpus.facts.vocab;
  facts.seed = static_cast<int64_t>(config.seed.all);
  facts.dropout = config.model.dropout;
  facts.weight_decay = config.optimizer.weight_decay;
  facts.flops_per_token = plan.model_flops_per_token.value();
  facts.peak_bandwidth = plan.memory_bandwidth.value();
  facts.predicted_step_seconds = plan.step_seconds;
  facts.predicted_memory = plan.memory();
  facts.threads = thread_pool().threads();
  facts.mfu_convention = kMfuConvention;
  facts.speed_regime = plan.speed_regime;
  facts.speed_advice = plan.speed_advice;
  facts.kernels = plan.kernels;
  facts.memory_timeline = plan.memory_timeline;
  return facts;
}

}  // namespace brrr::training
