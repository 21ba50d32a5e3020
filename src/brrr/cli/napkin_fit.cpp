// brrr napkin fit: the largest model, the longest context, the fewest devices, the cheapest plan.
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "brrr/base/units.h"
#include "brrr/cli/napkin.h"
#include "brrr/cli/run_options.h"
#include "brrr/napkin/fit.h"

namespace brrr::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  RunOptions run;
  std::string find = "model";
  double days = 0;
  bool json = false;
};

std::string layout_text(const RunAnswer& a) {
  const ParallelLayout& l = a.question.layout;
  return fmt::format("tp {} pp {} cp {} ep {} dp {}, ZeRO {}, recompute {}", l.tp, l.pp, l.cp, l.ep,
                     a.dp, l.zero, policy_name(a.question.recompute));
}

struct Question {
  const char *name, *unit, *title;
};
constexpr Question kQuestions[] = {{"model", "parameters", "Largest model"},
                                   {"context", "tokens", "Longest context"},
                                   {"batch", "sequences of a micro-batch", "Largest batch"},
                                   {"gpus", "devices", "Fewest devices"},
                                   {"plan", "dollars", "Cheapest plan"}};
const Question& question_of(std::string_view find) {
  for (const Question& each : kQuestions) {
    if (find == each.name) return each;
  }
  fail("there is no question \"", find, "\"");
}

FitResult solve(const Options& options, const RunQuestion& q) {
  if (options.find == "context") return longest_context(q);
  if (options.find == "batch") return largest_batch(q);
  if (options.find == "gpus") return fewest_devices(q);
  check(q.tokens > 0 && options.days > 0,
        "the cheapest plan needs --tokens and --days, both above 0");
  return cheapest_plan(q, options.days);
}

std::string whole(double value) { return with_commas(std::llround(value)); }

void print(const Options& options, const RunQuestion& q, const FitResult& result) {
  const bool is_without_price = options.find == "plan" && q.price_per_hour == 0;
  const char* unit = is_without_price ? "GPU-hours" : question_of(options.find).unit;
  if (!result.best) fail("nothing fits: ", result.binding, " (", result.tried, " plans tried)");
  const FitPlan& best = *result.best;
  if (options.json) {
    Json json = Json::parse(to_json(best.answer));
    json["find"] = options.find;
    json["value"] = best.value;
    json["unit"] = unit;
    json["layout"] = layout_text(best.answer);
    json["limit"] = result.binding;
    if (result.runner_up)
      json["runner_up"] = {{"value", result.runner_up->value},
                           {"layout", layout_text(result.runner_up->answer)},
                           {"step_seconds", result.runner_up->answer.step_seconds}};
    json["tried"] = result.tried;
    std::puts(json.dump(1).c_str());
    return;
  }
  Table table = napkin_table(
      fmt::format("{} of {} on {}", question_of(options.find).title, q.model_name, q.gpu));
  table.row(options.find, fmt::format("{} {}", whole(best.value), unit), layout_text(best.answer));
  table.row("step", to_text(Seconds(best.answer.step_seconds)),
            fmt::format("MFU {:.1f} %", 100 * best.answer.mfu));
  table.row("memory of a device", gb_text(best.answer.memory.total()),
            fmt::format("of {}", to_text_decimal(find_gpu(q.gpu).memory)));
  table.row("devices", best.answer.question.count,
            best.answer.days > 0 ? fmt::format("{:.2f} days", best.answer.days) : "");
  if (result.runner_up)
    table.row("runner-up", fmt::format("{} {}", whole(result.runner_up->value), unit),
              fmt::format("{}; step {}", layout_text(result.runner_up->answer),
                          to_text(Seconds(result.runner_up->answer.step_seconds))));
  print_table(table);
  std::puts("");
  print_paragraph(fmt::format("What binds: {} ({} plans tried)",
                              result.binding.empty() ? best.answer.binding : result.binding,
                              result.tried));
}

// The lecture's question first: states alone, cut evenly over all devices.
void run_largest_model(const Options& options, const RunQuestion& q) {
  const StateRecipe recipe = state_recipe(q.precision, q.optimizer, q.grads);
  const double by_states = largest_model_by_states(q);
  const FitResult real = largest_model(q);
  const std::vector<std::string> assumptions{
      "states alone, cut evenly over all devices; activations are not counted in the first number",
      "bf16 with f32 master weights is 2 + 2 + 4 + 8 = 16 B a parameter with AdamW, as f32 is: "
      "speed, not memory",
      "the second number is a model of Llama's proportions with activations, logits and overhead"};
  if (options.json) {
    Json json{{"find", "model"},
              {"gpu", q.gpu},
              {"count", q.count},
              {"params", by_states},
              {"bytes_per_param", recipe.total()},
              {"binding", "memory"}};
    if (real.best)
      json["with_activations"] = {{"params", real.best->value},
                                  {"layout", layout_text(real.best->answer)},
                                  {"limit", real.binding}};
    json["assumptions"] = assumptions;
    std::puts(json.dump(1).c_str());
    return;
  }
  Table table = napkin_table(fmt::format("Largest model on {} x {}", q.count, q.gpu));
  table.row("by states alone", fmt::format("{:.4g} parameters", by_states),
            fmt::format("{} x {} / ({:g} + {:g} + {:g} + {:g} B)", q.count,
                        to_text_decimal(find_gpu(q.gpu).memory), recipe.params, recipe.grads,
                        recipe.master, recipe.optimizer));
  if (real.best) {
    table.row("with activations", fmt::format("{:.4g} parameters", real.best->value),
              layout_text(real.best->answer));
    if (real.runner_up)
      table.row("runner-up", "the same model",
                fmt::format("{}; a step takes {} for {}", layout_text(real.runner_up->answer),
                            to_text(Seconds(real.runner_up->answer.step_seconds)),
                            to_text(Seconds(real.best->answer.step_seconds))));
  }
  print_table(table);
  std::puts("");
  print_paragraph(join_text("What binds: ", real.binding.empty() ? "memory" : real.binding));
  print_assumptions(assumptions);
}

// A layout that is given and then not used would look like an answer about it.
void refuse_searched(const CLI::App& command) {
  for (const char* name : {"--tp", "--pp", "--cp", "--ep", "--zero", "--interleave", "--recompute",
                           "--no-sequence-parallel"})
    check(command.count(name) == 0, "napkin fit searches layouts and recomputation, so ", name,
          " is not taken; `brrr napkin train` prices one layout");
}

void run(const Options& options) {
  RunQuestion q = options.run.without_model();
  if (q.tokens == 0 && options.find != "plan") q.tokens = 1e9;  // sizes do not depend on it
  if (options.find == "model") return run_largest_model(options, q);
  set_model(q, options.run.model);
  print(options, q, solve(options, q));
}

}  // namespace

void add_napkin_fit(CLI::App& napkin) {
  CLI::App* command =
      napkin.add_subcommand("fit", "Largest model, longest context, fewest devices, cheapest plan");
  const auto options = std::make_shared<Options>();
  add_run_options(*command, options->run);
  command->add_option("--find", options->find, "model, context, batch, gpus or plan")
      ->check(CLI::IsMember({"model", "context", "batch", "gpus", "plan"}))
      ->capture_default_str();
  command->add_option("--tokens", options->run.tokens, "Of the run, for --find plan");
  command->add_option("--days", options->days, "The deadline of --find plan");
  command->add_flag("--json", options->json, "Print JSON");
  command->footer(
      "Layouts and recomputation are searched; --tp and the like are not taken.\n"
      "Examples:\n"
      "  brrr napkin fit --gpu h100 --count 8 --precision f32\n"
      "  brrr napkin fit --find context --model llama3-8b --gpu h100 --count 8\n"
      "  brrr napkin fit --find plan --model llama3-8b --tokens 1e12 --days 30 --gpu h100 --price "
      "2");
  command->callback([options, command] {
    refuse_searched(*command);
    run(*options);
  });
}

}  // namespace brrr::cli
