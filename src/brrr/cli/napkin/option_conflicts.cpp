// Options of a run that another one takes the effect from. What contradicts is refused; what only changes nothing at
// this size of a run is said among the assumptions.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "brrr/cli/napkin/run_options.h"
#include "brrr/plan/model/model_limits.h"

namespace brrr::cli {
namespace {

bool is_given(const CLI::App& command, const char* name) { return command.count(name) > 0; }

void refuse_all(const CLI::App& command, std::initializer_list<const char*> names,
                std::string_view rule) {
  for (const char* name : names)
    check(!is_given(command, name), name, " would change nothing: ", rule);
}

void check_bare_number(const CLI::App& command, const RunOptions& options) {
  check(!is_given(command, "--convention") || options.convention == "6n", "--convention ",
        options.convention,
        ": of a bare number of parameters nothing is known but 6 N; use 6n, or give --model");
  check(options.recompute == "auto" || options.recompute == "none" || options.recompute == "full",
        "--recompute ", options.recompute,
        ": of a bare number of parameters only all can run again; use none or full, or give "
        "--model");
  refuse_all(command,
             {"--unfused", "--framework", "--attention", "--rates", "--network", "--node-size",
              "--interleave", "--no-sequence-parallel"},
             "a bare number of parameters has no graph and no traffic; give --model");
}

// With a given MFU nothing is predicted; memory and traffic still are.
void check_given_mfu(const CLI::App& command, const RunOptions& options) {
  refuse_all(command, {"--rates", "--framework"},
             "it prices a prediction, and --mfu gives the speed; leave one of them out");
  check(options.attention == "current" || options.attention == "unfused", "--attention ",
        options.attention,
        " would change nothing: it prices a prediction, and --mfu gives the speed; leave one of "
        "them out");
}

void check_states(const CLI::App& command, const RunOptions& options) {
  if (!is_given(command, "--grads")) return;
  check(options.precision != "f32" || options.grads == "f32", "--grads ", options.grads,
        " belongs to mixed precision; with --precision f32 gradients are f32");
  check(options.base.optimizer != "adamw-bf16" || options.grads == "bf16", "--grads ",
        options.grads, ": adamw-bf16 keeps all in bf16, gradients too");
}

}  // namespace

void check_run_sizes(const RunOptions& options) {
  const plan::RunQuestion& q = options.base;
  const double tokens =
      static_cast<double>(q.micro_batch) * static_cast<double>(std::max<int64_t>(q.seq, 1));
  check(tokens <= plan::kMostTokens, "a micro-batch of ", q.micro_batch, " sequences",
        q.seq > 0 ? join_text(" of ", q.seq, " tokens") : "", " has ", tokens,
        " tokens or more; use ", plan::kMostTokens, " at most");
  // Beyond these an answer is no number that anybody could read; signs and units are checked with the question.
  struct Bound {
    const char* name;
    double value, least, most;
  };
  constexpr double kNone = std::numeric_limits<double>::infinity();
  const Bound bounds[] = {{"--mfu", options.mfu.value_or(1), 1e-6, kNone},
                          {"--goodput", q.goodput, 1e-6, kNone},
                          {"--pue", q.pue, 0, 100},
                          {"--price", q.price_per_hour, 0, 1e6},
                          {"--watts", q.watts, 0, 1e6},
                          {"--network", q.network_gb_s, 0, 1e6}};
  for (const Bound& bound : bounds)
    check((bound.value <= 0 || bound.value >= bound.least) && bound.value <= bound.most, bound.name,
          " ", bound.value, " makes no sense; use ",
          bound.least > 0 ? join_text(bound.least, " or more") : join_text(bound.most, " at most"));
  const plan::ParallelLayout& l = q.layout;
  const double cut =
      static_cast<double>(l.tp) * static_cast<double>(l.pp) * static_cast<double>(l.cp);
  check(cut <= static_cast<double>(options.gpu.count), "tp ", l.tp, " x pp ", l.pp, " x cp ", l.cp,
        " = ", cut, " devices are more than the ", options.gpu.count, " there are");
  check(l.ep <= options.gpu.count, "ep ", l.ep, " is more than the ", options.gpu.count,
        " devices there are");
  check(l.interleave <= kMostLayers, "--interleave ", l.interleave, " makes no sense; use 1 to ",
        kMostLayers);
  check(q.node_size <= plan::kMostDevices, "a node of ", q.node_size,
        " devices makes no sense; use 1 to ", plan::kMostDevices);
}

void check_effects(const CLI::App& command, const RunOptions& options) {
  const plan::RunQuestion& q = options.base;
  check(options.tokens == std::floor(options.tokens), "--tokens ", options.tokens,
        " is no whole number");
  if (options.model.params) check_bare_number(command, options);
  if (options.mfu) check_given_mfu(command, options);
  check_states(command, options);
  check(!is_given(command, "--rates") || options.attention == "current", "--attention ",
        options.attention, " is another rate than that of --rates; leave one of them out");
  check(q.layout.interleave == 1 || q.layout.pp > 1, "--interleave ", q.layout.interleave,
        " is of a pipeline; give --pp as well");
  check(!options.no_sequence_parallel || q.layout.tp > 1,
        "--no-sequence-parallel is of tensor parallelism; give --tp as well");
  check(!is_given(command, "--watts") || q.watts != 0, "--watts ", q.watts,
        ": a device takes more than 0 W; leave it out for the board's limit");
}

std::vector<std::string> notes_on_effects(const CLI::App& command, const plan::RunAnswer& a) {
  const plan::RunQuestion& q = a.question;
  std::vector<std::string> notes;
  if (q.layout.zero > 0 && a.dp * q.layout.cp == 1)
    notes.push_back(fmt::format(
        "ZeRO {} changes nothing here: it cuts over data-parallel devices, and there is one",
        q.layout.zero));
  if (a.is_predicted && q.peak_tflops)
    notes.emplace_back(
        "--peak changes what MFU and HFU are shares of; the step is predicted from the table's "
        "rates");
  if (is_given(command, "--pue") && a.energy_kwh == 0)
    notes.emplace_back("--pue changes nothing here: no power of the device is known (--watts)");
  if (is_given(command, "--attention") && q.model && shape_of(*q.model).heads == 0)
    notes.emplace_back("--attention changes nothing here: a recurrent model has none");
  if (!q.model || q.count > q.node_size) return notes;
  if (is_given(command, "--network"))
    notes.push_back(
        fmt::format("--network changes nothing here: all {} devices are in one node of {}", q.count,
                    q.node_size));
  if (is_given(command, "--node-size") && q.count == 1)
    notes.emplace_back("--node-size changes nothing here: there is one device");
  return notes;
}

}  // namespace brrr::cli
