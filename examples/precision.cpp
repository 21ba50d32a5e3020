// One model trained in seven precisions: what the loss does, how many numbers fall out of the range of their
// type, and which of the usual claims hold. The cpu computes with the same roundings as a GPU's types.
//   precision                   half a minute on a cpu
//   precision --full            longer; the table and the SVG of docs/from-scratch.md
//   precision --device cuda     the same on a GPU
#include <fmt/format.h>

#include <cmath>
#include <string>
#include <string_view>

#include "brrr/brrr.h"
#include "brrr/compiler/precision/range_loss.h"
#include "brrr/device/default_device.h"
#include "brrr/io/atomic_file.h"
#include "brrr/report/claims.h"
#include "brrr/report/plot.h"
#include "brrr/report/progress.h"
#include "brrr/report/svg_plot.h"
#include "brrr/report/table.h"
#include "story_characters.h"

using namespace brrr;
using namespace examples;

namespace {

struct Mode {
  std::string name;
  PrecisionOptions precision;
  DType parameters = DType::f32;
};

std::vector<Mode> modes() {
  return {{"f32", {}},
          {"tf32", {.matmul = MatmulPrecision::tf32}},
          {"bf16 mixed", {.policy = Precision::bf16_mixed}},
          {"bf16 pure", {}, DType::bf16},  // parameters, gradients and moments too
          {"f16, scaled", {.policy = Precision::f16_mixed}},
          {"f16, unscaled",
           {.policy = Precision::f16_mixed, .loss_scale = {.kind = LossScaling::none}}},
          {"fp8 mixed", {.policy = Precision::fp8_mixed}}};
}

struct Outcome {
  std::string name;
  std::vector<double> losses;
  double unseen_loss = 0;
  compiler::RangeLosses lost;  // summed over the steps that were looked at
  int64_t skipped_steps = 0;   // by the loss scale
  int64_t bad_steps = 0;       // with a loss that is no number
  double bytes_per_parameter = 0;
};

Gpt2Config config_of(const Sizes& sizes) {
  return {.vocab = kVocab,
          .context = sizes.context,
          .layers = sizes.layers,
          .heads = sizes.heads,
          .width = sizes.width};
}

// With the weights as they are, in f32.
double unseen_loss(const Gpt2& trained, const Tensor& text, const Sizes& sizes) {
  NoGrad no_tape;
  Random random(2);
  Gpt2 model(config_of(sizes), random);
  model.load_state_dict(trained.state_dict());
  constexpr int kBatches = 20;
  double loss = 0;
  for (int i = 0; i < kBatches; ++i)
    loss += loss_of(model, draw_rows(text, sizes, random.stream("test"))).item<double>() / kBatches;
  return loss;
}

double loss_scale_of(const graph::Graph& graph) {
  for (const graph::StateSlot& state : graph.states) {
    if (state.name == "loss_scale") return state.tensor.item<double>();
  }
  return 1;
}

bool is_looked_at(int64_t step, const Sizes& sizes) {
  return step == 0 || step == sizes.steps / 2 || step == sizes.steps - 1;
}

// Everything that is random is the same in all modes: first weights, rows, their order.
Outcome train(const Mode& mode, const Tensor& text, const Tensor& unseen, const Sizes& sizes) {
  Random random(1);
  const ParameterScope dtype({.dtype = mode.parameters});
  Gpt2 model(config_of(sizes), random);
  AdamW optimizer(model.trainable_parameters(), {.beta2 = 0.99, .weight_decay = 0.1});
  const Schedule schedule({.rate = 2e-3, .steps = sizes.steps, .warmup = sizes.steps / 20});
  auto step = compile(
      [&](const Tensor& rows, const Tensor& number) {
        const Tensor loss = loss_of(model, rows);
        std::vector<Tensor> grads = grad(loss, optimizer.parameters());
        clip_global_norm(grads, 1.0);
        optimizer.update(grads, schedule.at(number));
        return loss;
      },
      {.precision = mode.precision});
  Outcome outcome{.name = mode.name};
  report::Progress progress(sizes.steps);
  double scale = 0;
  for (int64_t n = 0; n < sizes.steps; ++n) {
    const Tensor inputs[] = {draw_rows(text, sizes, random.stream("data")),
                             full({}, static_cast<double>(n))};
    const Executable& program = step.function().executable(inputs);
    if (n == 0) scale = loss_scale_of(program.graph());
    if (is_looked_at(n, sizes)) {
      const compiler::RangeLosses lost = compiler::count_range_losses(program.graph(), inputs);
      outcome.lost.forward += lost.forward;
      outcome.lost.backward += lost.backward;
      outcome.lost.update += lost.update;
    }
    outcome.losses.push_back(step(inputs[0], inputs[1]).item<double>());
    outcome.bad_steps += !std::isfinite(outcome.losses.back());
    const double scale_before = std::exchange(scale, loss_scale_of(program.graph()));
    outcome.skipped_steps += scale < scale_before;
    outcome.bytes_per_parameter = static_cast<double>(program.memory().states.value()) /
                                  static_cast<double>(model.parameter_count());
    if (progress.is_due(n + 1))
      progress.update(n + 1, fmt::format("{}: loss {:.3f}", mode.name, outcome.losses.back()));
  }
  const ParameterScope wide({.dtype = DType::f32});
  outcome.unseen_loss = unseen_loss(model, unseen, sizes);
  return outcome;
}

// Means over 20 steps: single batches differ more than precisions do.
report::SvgCurve smooth_curve(const Outcome& outcome) {
  constexpr size_t kMean = 20;
  report::SvgCurve curve{outcome.name, {}};
  for (size_t first = 0; first + kMean <= outcome.losses.size(); first += kMean) {
    double sum = 0;
    for (size_t i = first; i < first + kMean; ++i) sum += outcome.losses[i];
    if (std::isfinite(sum)) curve.points.emplace_back(first + kMean / 2.0, sum / kMean);
  }
  return curve;
}

std::string share(int64_t part, int64_t all) {
  return all == 0 ? std::string("-") : fmt::format("{:.3f} %", 100.0 * part / all);
}

std::string results_table(const std::vector<Outcome>& outcomes) {
  report::Table table({"precision", "unseen loss", "against f32", "bytes a parameter",
                       "underflows, forward", "backward", "overflows", "skipped steps"},
                      "Under- and overflows: of the values stored in 16 or 8 bits, in three steps");
  for (const Outcome& o : outcomes)
    table.row(o.name, fmt::format("{:.4f}", o.unseen_loss),
              fmt::format("{:+.2f} %", 100 * (o.unseen_loss / outcomes[0].unseen_loss - 1)),
              fmt::format("{:.1f}", o.bytes_per_parameter),
              share(o.lost.forward.underflows, o.lost.forward.stored),
              share(o.lost.backward.underflows, o.lost.backward.stored),
              with_commas(o.lost.all().overflows), o.skipped_steps);
  return table.text();
}

// What must hold for any sizes; what the lecture warns of and depends on them is told and not demanded.
struct Findings {
  report::Claims must{"What must hold"},
      warnings{"Warnings, and whether they came true in this run"};
};

Findings look_into(const std::vector<Outcome>& all) {
  const Outcome &f32 = all[0], &tf32 = all[1], &bf16 = all[2], &pure = all[3], &scaled = all[4],
                &unscaled = all[5], &fp8 = all[6];
  const auto above = [&](const Outcome& o) { return o.unseen_loss / f32.unseen_loss - 1; };
  const auto percent = [&](const Outcome& o) { return fmt::format("{:+.2f} %", 100 * above(o)); };
  const auto rate = [](const compiler::RangeLoss& lost) {
    return lost.stored == 0 ? 0.0 : static_cast<double>(lost.underflows) / lost.stored;
  };
  const double lost_unscaled = rate(unscaled.lost.backward),
               lost_scaled = rate(scaled.lost.backward);
  Findings findings;
  findings.must.holds("tf32 trains like f32", percent(tf32), std::abs(above(tf32)) < 0.02);
  findings.must.holds("bf16 with f32 masters trains like f32", percent(bf16),
                      std::abs(above(bf16)) < 0.02);
  findings.must.holds(
      "bf16 has the range of f32: nothing overflows, no scale is needed",
      fmt::format("{} overflows, {} of the gradients lost", bf16.lost.all().overflows,
                  share(bf16.lost.backward.underflows, bf16.lost.backward.stored)),
      bf16.lost.all().overflows == 0 && rate(bf16.lost.backward) < 1e-4);
  findings.must.holds(
      "f16 loses small gradients, bf16 does not",
      fmt::format("{:.3g} % and {:.3g} %", 100 * lost_unscaled, 100 * rate(bf16.lost.backward)),
      lost_unscaled > 10 * rate(bf16.lost.backward) && lost_unscaled > 1e-3);
  findings.must.holds(
      "loss scaling brings them back",
      fmt::format("{:.3g} % instead of {:.3g} %", 100 * lost_scaled, 100 * lost_unscaled),
      lost_scaled < 0.2 * lost_unscaled);
  findings.must.holds("f16 with loss scaling trains like f32", percent(scaled),
                      std::abs(above(scaled)) < 0.02);
  findings.must.holds("fp8 products with a scale a tensor train", percent(fp8), above(fp8) < 0.1);
  findings.must.holds("mixed precision saves no memory of parameters",
                      fmt::format("{:.1f} bytes instead of {:.1f}", bf16.bytes_per_parameter,
                                  f32.bytes_per_parameter),
                      bf16.bytes_per_parameter >= f32.bytes_per_parameter);
  findings.must.holds("pure bf16 halves it",
                      fmt::format("{:.1f} bytes instead of {:.1f}", pure.bytes_per_parameter,
                                  f32.bytes_per_parameter),
                      pure.bytes_per_parameter < 0.51 * f32.bytes_per_parameter);
  findings.warnings.holds("training in pure bf16 is worse: small updates are rounded away",
                          percent(pure), above(pure) > 0.005);
  findings.warnings.holds(
      "f16 without loss scaling is worse, or breaks",
      fmt::format("{}, {} steps without a number", percent(unscaled), unscaled.bad_steps),
      above(unscaled) > 0.005 || unscaled.bad_steps > 0);
  return findings;
}

Device device_from(int argc, char** argv) {
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::string_view(argv[i]) == "--device") return parse_device(argv[i + 1]);
  }
  return Device::cpu();
}

bool has_flag(int argc, char** argv, std::string_view name) {
  return std::any_of(argv + 1, argv + argc, [&](const char* word) { return word == name; });
}

}  // namespace

int main(int argc, char** argv) {
  const Sizes sizes{.layers = 2,
                    .heads = 2,
                    .width = 64,
                    .context = 64,
                    .batch = 8,
                    .steps = has_flag(argc, argv, "--full") ? 400 : 150};
  const DeviceScope scope(device_from(argc, argv));
  const Tensor text = story_characters(5000, StorySplit::train),
               unseen = story_characters(100, StorySplit::validation);
  std::vector<Outcome> outcomes;
  std::vector<report::SvgCurve> curves;
  std::vector<std::string> plots;
  for (const Mode& mode : modes()) {
    outcomes.push_back(train(mode, text, unseen, sizes));
    curves.push_back(smooth_curve(outcomes.back()));
    plots.push_back(
        report::line_plot(outcomes.back().losses,
                          {.width = 34, .height = 6, .title = mode.name, .y_range = {{0.8, 5.0}}}));
  }
  for (size_t i = 0; i < plots.size(); i += 2)
    fmt::print("{}\n", report::side_by_side({plots.begin() + static_cast<ptrdiff_t>(i),
                                             plots.begin() + static_cast<ptrdiff_t>(
                                                                 std::min(i + 2, plots.size()))}));
  fmt::print("{}\n", results_table(outcomes));
  write_file_atomically(
      "precision.svg",
      report::svg_plot(
          curves, {.title = "One model, seven precisions", .x_label = "step", .y_label = "loss"}));
  fmt::print("drawn: precision.svg\n\n");
  const Findings findings = look_into(outcomes);
  fmt::print("{}\n{}", findings.must.text(), findings.warnings.text());
  return findings.must.all_hold() ? 0 : 1;
}
