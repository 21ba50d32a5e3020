// brrr napkin fit: the largest model, the longest context, the fewest devices, the cheapest plan.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "brrr/base/units.h"
#include "brrr/cli/napkin/napkin.h"
#include "brrr/cli/napkin/run_options.h"
#include "brrr/plan/fit/fit.h"
#include "brrr/plan/fit/fit_space.h"

namespace brrr::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  RunOptions run;
  std::string find = "model";
  double days = 0;
  bool json = false;
  const CLI::App* command = nullptr;
  bool has(const std::string& name) const { return command->count(name) > 0; }
};

std::string layout_text(const plan::RunAnswer& a) {
  return plan::plan_text(a.question.layout, a.dp, a.question.recompute);
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

plan::FitResult solve(const Options& options, const plan::RunQuestion& q) {
  const int64_t most = options.has("--count") ? q.count : plan::kMostFitDevices;
  if (options.find == "context") return plan::longest_context(q);
  if (options.find == "batch") return plan::largest_batch(q);
  if (options.find == "gpus") return plan::fewest_devices(q, most);
  check(q.tokens > 0 && options.days > 0,
        "the cheapest plan needs --tokens and --days, both above 0");
  return plan::cheapest_plan(q, options.days, most);
}

std::string whole(double value) { return with_commas(std::llround(value)); }

// What `brrr napkin train` takes to give the same answer: what was given, what was found, and the layout.
std::string train_command(const Options& options, const plan::RunAnswer& a) {
  constexpr std::array kFound = {"--find",        "--days",   "--json", "--count",       "--seq",
                                 "--micro-batch", "--tokens", "--help", "--global-batch"};
  std::string text = "brrr napkin train";
  for (const CLI::Option* option : options.command->get_options()) {
    const std::string name = option->get_name();
    if (option->count() == 0 || std::find(kFound.begin(), kFound.end(), name) != kFound.end())
      continue;
    text += join_text(" ", name);
    if (option->get_items_expected_max() > 0) text += join_text(" ", option->results().back());
  }
  const plan::RunQuestion& q = a.question;
  if (options.find == "model") {
    const ModelShape shape = shape_of(plan::fit_model(q));
    text += fmt::format(
        " --family {} --layers {} --hidden {} --heads {} --kv-heads {} --ffn {} --vocab {}",
        family_of(plan::fit_model(q)), shape.layers, shape.width, shape.heads, shape.kv_heads,
        shape.hidden, shape.vocab);
  }
  const plan::ParallelLayout& l = q.layout;
  text += fmt::format(" --count {} --tokens {:.17g} --seq {} --global-batch {} --micro-batch {}",
                      q.count, q.tokens, q.seq, q.global_batch, q.micro_batch);
  const std::pair<const char*, int64_t> degrees[] = {
      {"tp", l.tp}, {"pp", l.pp}, {"interleave", l.interleave}, {"cp", l.cp}, {"ep", l.ep}};
  for (const auto& [name, degree] : degrees) {
    if (degree > 1) text += fmt::format(" --{} {}", name, degree);
  }
  return text +
         fmt::format(" --zero {} --recompute {}", l.zero, compiler::policy_name(q.recompute));
}

// What depends on the number of tokens has no meaning where none was given.
Json json_of(const Options& options, const plan::RunAnswer& a) {
  Json json = Json::parse(plan::to_json(a));
  if (!options.has("--tokens")) {
    for (const char* key : {"days", "gpu_hours", "cost_usd", "energy_kwh", "total_flops"})
      json.erase(key);
  }
  const plan::ParallelLayout& l = a.question.layout;
  json["layout"] = layout_text(a);
  json["degrees"] = {{"tp", l.tp},
                     {"pp", l.pp},
                     {"interleave", l.interleave},
                     {"cp", l.cp},
                     {"ep", l.ep},
                     {"dp", a.dp},
                     {"zero", l.zero},
                     {"recompute", compiler::policy_name(a.question.recompute)}};
  json["train"] = train_command(options, a);
  return json;
}

void print_json(const Options& options, const plan::FitResult& result, const plan::FitPlan& best,
                const char* unit) {
  Json json = json_of(options, best.answer);
  json["find"] = options.find;
  json["value"] = best.value;
  json["unit"] = unit;
  json["limit"] = result.binding.empty() ? best.answer.binding : result.binding;
  if (result.runner_up)
    json["runner_up"] = {{"value", result.runner_up->value},
                         {"layout", layout_text(result.runner_up->answer)},
                         {"step_seconds", result.runner_up->answer.step_seconds},
                         {"train", train_command(options, result.runner_up->answer)}};
  json["searched"] = plan::fit_space_text();
  json["step"] = result.step;
  json["tried"] = result.tried;
  std::puts(json.dump(1).c_str());
}

// The step of a plan, its memory and, where tokens are given, its days and its cost.
void add_plan(report::Table& table, const Options& options, const plan::RunAnswer& a) {
  const plan::RunQuestion& q = a.question;
  table.row("devices", with_commas(q.count), "");
  table.row("sequence", fmt::format("{} tokens", with_commas(q.seq)),
            fmt::format("{} of them a step: {} x {} on each of {} copies",
                        with_commas(q.global_batch), a.micro_batches, q.micro_batch, a.dp));
  table.row("step", to_text(Seconds(a.step_seconds)), fmt::format("MFU {:.1f} %", 100 * a.mfu));
  table.row("memory of a device", gb_text(a.memory.total()),
            fmt::format("of {}", to_text_decimal(hardware::find_gpu(q.gpu).memory)));
  if (!options.has("--tokens")) return;
  table.row("days", fmt::format("{:.2f} d", a.days), fmt::format("for {:.4g} tokens", q.tokens));
  table.row("GPU-hours", fmt::format("{} h", whole(a.gpu_hours)),
            a.cost_usd > 0 ? join_text("$", whole(a.cost_usd)) : "");
}

void print_ends(const Options& options, const plan::FitResult& result, const plan::RunAnswer& a) {
  std::puts("");
  print_paragraph(join_text("What binds: ", result.binding.empty() ? a.binding : result.binding));
  print_paragraph(fmt::format("Searched: {}. To the nearest: {} ({} plans).",
                              plan::fit_space_text(), result.step, with_commas(result.tried)));
  print_paragraph(join_text("The same by: ", train_command(options, a)));
}

void print(const Options& options, const plan::RunQuestion& q, const plan::FitResult& result) {
  const bool is_without_price = options.find == "plan" && q.price_per_hour == 0;
  const char* unit = is_without_price ? "GPU-hours" : question_of(options.find).unit;
  if (!result.best)
    fail("nothing fits: ", result.binding, "; ", with_commas(result.tried),
         " plans tried: ", plan::fit_space_text());
  const plan::FitPlan& best = *result.best;
  if (options.json) return print_json(options, result, best, unit);
  report::Table table = napkin_table(
      fmt::format("{} of {} on {}", question_of(options.find).title, q.model_name, q.gpu));
  table.row(options.find, fmt::format("{} {}", whole(best.value), unit), layout_text(best.answer));
  add_plan(table, options, best.answer);
  if (result.runner_up)
    table.row("runner-up", fmt::format("{} {}", whole(result.runner_up->value), unit),
              fmt::format("{}; step {}, {} devices", layout_text(result.runner_up->answer),
                          to_text(Seconds(result.runner_up->answer.step_seconds)),
                          with_commas(result.runner_up->answer.question.count)));
  print_table(table);
  print_ends(options, result, best.answer);
  print_assumptions(best.answer.assumptions);
}

// The lecture's question first: states alone, cut evenly over all devices.
void run_largest_model(const Options& options, const plan::RunQuestion& q) {
  const plan::StateRecipe recipe = plan::state_recipe(q.precision, q.optimizer, q.grads);
  const double by_states = plan::largest_model_by_states(q);
  const plan::FitResult real = plan::largest_model(q);
  std::vector<std::string> assumptions{
      "states alone, cut evenly over all devices; activations are not counted in the first number",
      "bf16 with f32 master weights is 2 + 2 + 4 + 8 = 16 B a parameter with AdamW, as f32 is: "
      "speed, not memory",
      "the second number is a model of Llama's proportions (width 128 x layers, heads of 128, keys "
      "of their own) with activations, logits and overhead"};
  if (options.json) {
    Json json{{"find", "model"},
              {"gpu", q.gpu},
              {"count", q.count},
              {"params", by_states},
              {"bytes_per_param", recipe.total()},
              {"binding", "memory"}};
    if (real.best) {
      json["with_activations"] = json_of(options, real.best->answer);
      json["with_activations"]["limit"] = real.binding;
      json["searched"] = plan::fit_space_text();
      json["step"] = real.step;
    }
    json["assumptions"] = assumptions;
    std::puts(json.dump(1).c_str());
    return;
  }
  report::Table table = napkin_table(fmt::format("Largest model on {} x {}", q.count, q.gpu));
  table.row("by states alone", fmt::format("{:.4g} parameters", by_states),
            fmt::format("{} x {} / ({:g} + {:g} + {:g} + {:g} B)", q.count,
                        to_text_decimal(hardware::find_gpu(q.gpu).memory), recipe.params,
                        recipe.grads, recipe.master, recipe.optimizer));
  if (real.best) {
    const plan::RunAnswer& a = real.best->answer;
    table.row("with activations", fmt::format("{:.4g} parameters", real.best->value),
              fmt::format("{}: {}", a.question.model_name, layout_text(a)));
    add_plan(table, options, a);
    if (real.runner_up)
      table.row("runner-up", "the same model",
                fmt::format("{}; a step takes {}", layout_text(real.runner_up->answer),
                            to_text(Seconds(real.runner_up->answer.step_seconds))));
  }
  print_table(table);
  if (real.best) {
    print_ends(options, real, real.best->answer);
    assumptions.insert(assumptions.end(), real.best->answer.assumptions.begin(),
                       real.best->answer.assumptions.end());
  } else {
    std::puts("");
    print_paragraph(join_text("What binds: with activations none fits: ", real.binding));
  }
  print_assumptions(assumptions);
}

// What is given and then not used would look like an answer about it.
void refuse_unused(const Options& options) {
  for (const char* name : {"--tp", "--pp", "--cp", "--ep", "--zero", "--interleave", "--recompute",
                           "--no-sequence-parallel"})
    check(!options.has(name), "napkin fit searches layouts and recomputation, so ", name,
          " is not taken; `brrr napkin train` prices one layout");
  struct Rule {
    const char *find, *option, *reason;
  };
  constexpr Rule kRules[] = {{"context", "--seq", "the length of a sequence is what is looked for"},
                             {"batch", "--micro-batch", "it is what is looked for"}};
  for (const Rule& rule : kRules)
    check(options.find != rule.find || !options.has(rule.option), "--find ", rule.find,
          " does not take ", rule.option, ": ", rule.reason);
  check(options.find == "plan" || !options.has("--days"),
        "--days is the deadline of --find plan; --find ", options.find, " has none");
  const ModelChoice& model = options.run.model;
  check(options.find != "model" || (model.model.empty() && !model.params && !model.shape.any()),
        "--find model looks for a model itself, of Llama's proportions, so --model, --params and "
        "sizes are not taken; --find gpus tells what a model of yours needs");
}

void run(const Options& options) {
  refuse_unused(options);
  plan::RunQuestion q = options.run.without_model();
  check(!options.has("--tokens") || q.tokens >= 1, "a run over ", q.tokens,
        " tokens makes no sense; use 1 to 1e18");
  // Sizes do not depend on tokens, and what does is not told.
  if (!options.has("--tokens") && options.find != "plan") q.tokens = 1e9;
  if (options.find == "model") return run_largest_model(options, q);
  set_model(q, options.run.model);
  print(options, q, solve(options, q));
}

}  // namespace

void add_napkin_fit(CLI::App& napkin) {
  CLI::App* command =
      napkin.add_subcommand("fit", "Largest model, longest context, fewest devices, cheapest plan");
  const auto options = std::make_shared<Options>();
  options->command = command;
  add_run_options(*command, options->run);
  command->get_option("--count")->description(
      "How many of them; of --find gpus and plan the most, 65536 by default");
  command->add_option("--find", options->find, "model, context, batch, gpus or plan")
      ->check(CLI::IsMember({"model", "context", "batch", "gpus", "plan"}))
      ->capture_default_str();
  command->add_option("--tokens", options->run.tokens,
                      "Of the run, for --find plan; others tell days and cost with it");
  command->add_option("--days", options->days, "The deadline of --find plan");
  command->add_flag("--json", options->json, "Print JSON");
  command->footer(
      "Layouts and recomputation are searched; --tp and the like are not taken.\n"
      "Examples:\n"
      "  brrr napkin fit --gpu h100 --count 8 --precision f32\n"
      "  brrr napkin fit --find context --model llama3-8b --gpu h100 --count 8\n"
      "  brrr napkin fit --find plan --model llama3-8b --tokens 1e12 --days 30 --gpu h100 --price "
      "2");
  command->callback([options] { run(*options); });
}

}  // namespace brrr::cli
