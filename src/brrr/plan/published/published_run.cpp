#include "brrr/plan/published/published_run.h"

#include <map>

#include "brrr/base/join_names.h"
#include "brrr/plan/published/published_toml.h"

namespace brrr::plan {
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

// The share of its speed that a run has from another: of a calibration run, of one that stands in the same file, or of
// what Megatron had in 2021.
double software_share(const std::vector<WrittenRun>& same_file, const std::string& from) {
  if (from.empty()) return 1;
  if (from == "megatron_2021") return megatron_2021_share();
  for (const WrittenRun& each : same_file)
    if (each.name == from) return reached_share(each.run);
  return reached_share(calibration_run(from));
}

double goodput_share(const std::string& from) {
  if (from.empty()) return 1;
  check(from == "bloom", "published runs: goodput is known of bloom, not of \"", from, "\"");
  return bloom_goodput();
}

// The runs of a file with what they take of others.
std::vector<PublishedRun> resolved(std::string_view file) {
  const std::vector<WrittenRun>& written = written_runs(file);
  std::map<std::string, double> shares;  // each is a prediction, so it is made once
  std::vector<PublishedRun> runs;
  for (const WrittenRun& each : written) {
    const auto [share, is_new] = shares.try_emplace(each.software_from, 1);
    if (is_new) share->second = software_share(written, each.software_from);
    PublishedRun& run = runs.emplace_back(each.run);
    run.claim.software = share->second;
    run.claim.goodput = goodput_share(each.goodput_from);
  }
  return runs;
}

}  // namespace

const PublishedRun& calibration_run(std::string_view name) {
  static const std::vector<PublishedRun> runs = resolved("calibration");
  const std::vector<WrittenRun>& written = written_runs("calibration");
  for (size_t i = 0; i < written.size(); ++i) {
    if (written[i].name == name) return runs[i];
  }
  fail("there is no calibration run \"", name, "\"; known are ",
       join_names(written, &WrittenRun::name));
}

const std::vector<PublishedRun>& megatron_runs() {
  static const std::vector<PublishedRun> runs = resolved("megatron");
  return runs;
}
const std::vector<PublishedRun>& eager_runs() {
  static const std::vector<PublishedRun> runs = resolved("eager");
  return runs;
}
const std::vector<PublishedRun>& tuned_runs() {
  static const std::vector<PublishedRun> runs = resolved("tuned");
  return runs;
}

std::vector<PublishedCase> eager_cases() { return cases_of(eager_runs()); }
std::vector<PublishedCase> tuned_cases() { return cases_of(tuned_runs()); }

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

}  // namespace brrr::plan
