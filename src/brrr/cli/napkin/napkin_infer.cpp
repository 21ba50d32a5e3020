// brrr napkin infer: cache, prefill and decode of a model against the bounds of a device.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "brrr/cli/napkin/napkin.h"
#include "brrr/plan/inference.h"
#include "brrr/plan/model/model_limits.h"

namespace brrr::cli {
namespace {

struct Options {
  ModelChoice model;
  GpuChoice gpu;
  plan::InferQuestion question;
  std::string weights = "bf16", kv = "bf16";
  bool json = false;
};

void print_json(const std::string& name, const plan::InferQuestion& q, const plan::InferAnswer& a,
                const std::optional<plan::InferPrediction>& predicted) {
  nlohmann::ordered_json json{{"model", name},
                              {"gpu", q.gpu},
                              {"count", q.count},
                              {"batch", q.batch},
                              {"context", q.context},
                              {"params", a.params},
                              {"active_params", a.active_params},
                              {"weight_bytes", a.weight_bytes},
                              {"touched_bytes", a.touched_bytes},
                              {"kv_bytes_per_token", a.kv_bytes_per_token},
                              {"kv_bytes_per_sequence", a.kv_bytes_per_sequence},
                              {"kv_bytes", a.kv_bytes},
                              {"kv_devices", a.kv_devices},
                              {"kv_device_bytes", a.kv_device_bytes},
                              {"cached_tokens", a.cached_tokens},
                              {"products_in", hardware::to_text(a.products)},
                              {"attention_in", hardware::to_text(a.attention)},
                              {"products_peak_flops_per_second", a.products_peak},
                              {"attention_peak_flops_per_second", a.attention_peak},
                              {"memory_bytes", a.memory_bytes},
                              {"fits", a.fits},
                              {"largest_batch", a.largest_batch},
                              {"prefill_seconds", a.prefill_seconds},
                              {"decode_seconds", a.decode_seconds},
                              {"decode_bandwidth_seconds", a.decode_bandwidth_seconds},
                              {"decode_compute_seconds", a.decode_compute_seconds},
                              {"tokens_per_second", a.tokens_per_second},
                              {"binding", a.binding}};
  if (predicted) {
    json["predicted_prefill_seconds"] = predicted->prefill_seconds;
    json["predicted_decode_seconds"] = predicted->decode_seconds;
  }
  std::puts(json.dump(1).c_str());
}

// Why the bounds take this peak for values of a format.
std::string peak_reason(const std::string& format, hardware::Arithmetic wanted,
                        hardware::Arithmetic used, const std::string& gpu) {
  if (used != wanted && wanted != hardware::Arithmetic::bf16)
    return fmt::format("the {} has no rate of {}", gpu, hardware::to_text(wanted));
  if (format == "int4") return "int4 is spread out to 16 bits before it is multiplied";
  if (format == "f32") return "f32 can be rounded to 16 bits";
  return join_text("stored in ", format);
}

std::vector<std::string> assumptions_of(const Options& options, const plan::InferQuestion& q,
                                        const plan::InferAnswer& a) {
  const auto line = [&](const char* what, const std::string& format, hardware::Arithmetic wanted,
                        hardware::Arithmetic used, double peak) {
    return fmt::format("{} at the dense peak of {}, {}: {}", what, hardware::to_text(used),
                       to_text(FlopsPerSecond(peak)), peak_reason(format, wanted, used, q.gpu));
  };
  std::vector<std::string> lines{
      line("products", options.weights, q.products, a.products, a.products_peak),
      line("attention", options.kv, q.attention, a.attention, a.attention_peak)};
  if (a.kv_devices < q.count)
    lines.push_back(fmt::format(
        "caches are shared out by key heads over {} of {} devices, the others have copies; latent "
        "attention has one vector for all heads",
        a.kv_devices, q.count));
  if (a.cached_tokens < q.context)
    lines.push_back(fmt::format("a sliding window: {} of {} tokens are kept, read and attended to",
                                a.cached_tokens, q.context));
  lines.emplace_back(
      "bounds: peak and bandwidth of the data sheet, no overhead, no communication; systems reach "
      "60 to 85 % of the bandwidth bound at batch 1");
  return lines;
}

void check_cached_tokens(const plan::InferQuestion& q) {
  const double tokens = static_cast<double>(q.batch) * static_cast<double>(q.context);
  check(tokens <= plan::kMostTokens, "a batch of ", q.batch, " sequences of ", q.context,
        " tokens has ", tokens, " tokens; use ", plan::kMostTokens, " at most");
}

void run(const Options& options) {
  plan::InferQuestion q = options.question;
  q.gpu = chosen_gpu(options.gpu);
  q.count = options.gpu.count;
  q.weight_bytes = plan::weight_bytes_of(options.weights);
  q.kv_bytes = plan::weight_bytes_of(options.kv);
  q.products = plan::product_arithmetic(options.weights);
  q.attention = plan::product_arithmetic(options.kv);
  const plan::NamedModel model = chosen_model(options.model, q.context);
  q.model = model.config;
  check_cached_tokens(q);
  const plan::InferAnswer a = plan::answer(q);
  const std::optional<plan::InferPrediction> predicted = plan::predict(q);
  if (options.json) return print_json(model.name, q, a, predicted);
  report::Table table = napkin_table(fmt::format("{} on {} x {}, batch {}, context {}", model.name,
                                                 q.count, q.gpu, q.batch, q.context));
  table.row("parameters", count_text(a.params), "");
  if (a.active_params != a.params) table.row("of a token", count_text(a.active_params), "");
  table.row("weights", gb_text(a.weight_bytes),
            fmt::format("{} B a parameter ({})", q.weight_bytes, options.weights));
  table.row("cache of a token", fmt::format("{:.0f} B", a.kv_bytes_per_token),
            "2 L k d x bytes; latent attention L (r_kv + d_r) x bytes");
  table.row("cache of a sequence", gb_text(a.kv_bytes_per_sequence),
            a.cached_tokens < q.context ? fmt::format("x a window of {} tokens", a.cached_tokens)
                                        : fmt::format("x {} tokens", q.context));
  table.row("memory", gb_text(a.memory_bytes),
            fmt::format("weights + {} caches{}; {}", q.batch,
                        a.kv_devices < q.count ? ", with their copies" : "",
                        a.fits ? "fits" : "does NOT fit"));
  table.row("largest batch", a.largest_batch, "(memory - weights) / cache of a sequence");
  table.rule();
  table.row("prefill, at least", to_text(Seconds(a.prefill_seconds)),
            fmt::format("2 N_products T / peak of {} + attention / peak of {}",
                        hardware::to_text(a.products), hardware::to_text(a.attention)));
  table.row("decode, bandwidth", to_text(Seconds(a.decode_bandwidth_seconds)),
            fmt::format("({} touched / {} + {} of caches on a device) / bandwidth",
                        gb_text(a.touched_bytes), q.count, gb_text(a.kv_device_bytes)));
  table.row("decode, compute", to_text(Seconds(a.decode_compute_seconds)),
            "(2 N_products + attention) batch / the same peaks");
  table.row("tokens a second, at most", fmt::format("{:.1f}", a.tokens_per_second),
            "batch / the larger of the two");
  if (predicted) {
    table.rule();
    table.row("prefill, predicted", to_text(Seconds(predicted->prefill_seconds)),
              "kernels of the forward graph in 16 bits, uncalibrated: +-15 %");
    table.row("decode, predicted", to_text(Seconds(predicted->decode_seconds)),
              "the same over one token, and the caches");
  }
  print_table(table);
  std::puts("");
  print_paragraph(join_text("What binds: ", a.binding));
  std::vector<std::string> assumptions = assumptions_of(options, q, a);
  if (!predicted)
    assumptions.push_back(fmt::format(
        "no prediction: tensor parallelism does not split the model over {} devices", q.count));
  if (q.whole_table) {
    plan::InferQuestion without = q;
    without.whole_table = false;
    if (plan::answer(without).touched_bytes == a.touched_bytes)
      assumptions.emplace_back(
          "--whole-table changes nothing here: the head is the table, which is read in any case");
  }
  print_assumptions(assumptions);
}

}  // namespace

void add_napkin_infer(CLI::App& napkin) {
  CLI::App* command =
      napkin.add_subcommand("infer", "Cache, prefill and decode of a model against bounds");
  const auto options = std::make_shared<Options>();
  add_model_choice(*command, options->model, false);
  add_gpu_choice(*command, options->gpu);
  command->add_option("--batch", options->question.batch, "Sequences side by side")
      ->capture_default_str();
  command->add_option("--context", options->question.context, "Tokens in the cache of each")
      ->capture_default_str();
  command->add_option("--weights", options->weights, "f32, bf16, f16, fp8, int8 or int4")
      ->capture_default_str();
  command->add_option("--kv", options->kv, "Format of the cache")->capture_default_str();
  command->add_flag("--whole-table", options->question.whole_table,
                    "Count the input table as read for every token, as the lecture does");
  command->add_flag("--json", options->json, "Print JSON");
  command->footer(
      "Examples:\n  brrr napkin infer --model llama2-13b --gpu h100 --batch 64\n"
      "  brrr napkin infer --model deepseek-v3 --gpu h200 --count 8 --batch 32 --weights fp8");
  command->callback([options] { run(*options); });
}

}  // namespace brrr::cli
