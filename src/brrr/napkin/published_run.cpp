#include "brrr/napkin/published_run.h"

namespace brrr {
namespace {

constexpr double kTera = 1e12;

double shown_value(const PublishedRun& run) {
  const RunAnswer a = answer_of(run);
  const double step = a.step_seconds / run.claim.software;
  const auto devices = static_cast<double>(run.count);
  switch (run.claim.shown) {
    case Shown::seconds: return step;
    case Shown::tokens: return a.step_tokens / step / devices;
    case Shown::hours:
      return run.claim.tokens / a.step_tokens * step * devices / 3600 / run.claim.goodput;
    case Shown::tflops: {
      const double hardware = flops_per_token(Convention::megatron, a.facts) +
                              recomputed_per_token(Convention::megatron, a.facts, run.recompute);
      return hardware * a.step_tokens / step / devices / kTera;
    }
  }
  fail("a claim of no kind");
}

std::string_view unit_of(Shown shown) {
  constexpr std::string_view units[] = {"s", "TFLOP/s", "tok/s", "GPU-h"};
  return units[static_cast<size_t>(shown)];
}

}  // namespace

Gpt2Config gpt_shape(int64_t width, int64_t layers, int64_t heads, int64_t vocab, int64_t context) {
  return {.vocab = vocab, .context = context, .layers = layers, .heads = heads, .width = width};
}

RunAnswer answer_of(const PublishedRun& run) {
  RunQuestion q;
  q.model_name = run.what;
  q.model = run.model;
  q.tokens = run.claim.tokens;
  q.gpu = run.gpu;
  q.count = run.count;
  q.seq = run.seq;
  q.global_batch = run.global_batch;
  q.micro_batch = run.micro_batch;
  q.layout = run.layout;
  q.recompute = run.recompute;
  q.system = run.system;
  q.precision = run.precision;
  q.node_size = run.node_size;
  return answer(q);
}

PublishedCase case_of(const PublishedRun& run) {
  const bool is_time = run.claim.shown == Shown::seconds || run.claim.shown == Shown::hours;
  return {.id = run.id,
          .what = run.what,
          .unit = std::string(unit_of(run.claim.shown)),
          .published = run.claim.value,
          .predicted = shown_value(run),
          .kind = run.claim.kind,
          .band = usual_band(run.claim.kind),
          .source = run.source,
          .reason = run.claim.reason,
          .side = is_time ? Side::least : Side::most,
          .calibration = run.claim.calibration};
}

double reached_share(const PublishedRun& run) {
  const PublishedCase c = case_of(run);
  return c.side == Side::most ? c.published / c.predicted : c.predicted / c.published;
}

std::vector<PublishedCase> cases_of(const std::vector<PublishedRun>& runs) {
  std::vector<PublishedCase> cases;
  cases.reserve(runs.size());
  for (const PublishedRun& run : runs) cases.push_back(case_of(run));
  return cases;
}

}  // namespace brrr
