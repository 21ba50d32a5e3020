#include "brrr/run/config.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "brrr/base/error.h"
#include "brrr/base/nearest_word.h"
#include "brrr/compiler/head/vocab_padding.h"
#include "brrr/nn/model_family.h"
#include "brrr/optim/registry.h"
#include "brrr/run/config_settings.h"

namespace brrr::runs {
namespace {

constexpr std::string_view kGuardActions[] = {"warn", "skip", "stop"};

// ---- a value as text, and back -------------------------------------------------------------------
std::string text_of(const std::string& value) { return value; }
std::string text_of(bool value) { return value ? "true" : "false"; }
std::string text_of(int64_t value) { return std::to_string(value); }
std::string text_of(uint64_t value) { return std::to_string(value); }
std::string text_of(double value) {
  char digits[32];
  const auto end = std::to_chars(std::begin(digits), std::end(digits), value).ptr;  // reads back
  return {digits, end};
}
std::string text_of(compiler::Precision value) {
  return std::string(compiler::precision_name(value));
}
std::string text_of(compiler::MatmulPrecision value) {
  return std::string(compiler::matmul_precision_name(value));
}
std::string text_of(compiler::RematPolicy value) {
  return std::string(compiler::policy_name(value));
}
std::string text_of(ScheduleShape value) { return std::string(schedule_name(value)); }
std::string text_of(GuardAction value) {
  return std::string(kGuardActions[static_cast<size_t>(value)]);
}
std::string text_of(const std::vector<std::string>& values) {
  std::string text;
  for (const std::string& value : values) text += join_text(text.empty() ? "" : ",", value);
  return text;
}

std::string text_of(const std::vector<double>& values) {
  std::string text;
  for (double value : values) text += join_text(text.empty() ? "" : ",", text_of(value));
  return text;
}

template <typename Number>
void parse_number(std::string_view key, std::string_view text, Number& value) {
  const auto [stop, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = failure == std::errc() && stop == text.data() + text.size() && !text.empty();
  constexpr std::string_view kKind = std::is_floating_point_v<Number> ? "a number"
                                     : std::is_signed_v<Number>       ? "a whole number"
                                                                      : "a whole number from 0 on";
  check(whole, key, " = ", text, ": ", kKind, " is needed");
}

void parse_value(std::string_view, std::string_view text, std::string& value) { value = text; }
void parse_value(std::string_view key, std::string_view text, int64_t& value) {
  parse_number(key, text, value);
}
void parse_value(std::string_view key, std::string_view text, uint64_t& value) {
  parse_number(key, text, value);
  check(value <= INT64_MAX, key, " = ", text, ": at most ", INT64_MAX, ", as TOML has it");
}
void parse_value(std::string_view key, std::string_view text, double& value) {
  parse_number(key, text, value);
}
void parse_value(std::string_view key, std::string_view text, bool& value) {
  check(text == "true" || text == "false", key, " = ", text, ": true or false is needed");
  value = text == "true";
}
void parse_value(std::string_view, std::string_view text, compiler::Precision& value) {
  value = compiler::parse_precision(text);
}
void parse_value(std::string_view, std::string_view text, compiler::MatmulPrecision& value) {
  value = compiler::parse_matmul_precision(text);
}
void parse_value(std::string_view, std::string_view text, compiler::RematPolicy& value) {
  value = compiler::parse_policy(text);
}
void parse_value(std::string_view, std::string_view text, ScheduleShape& value) {
  value = parse_schedule(text);
}
void parse_value(std::string_view key, std::string_view text, GuardAction& value) {
  const auto found = std::find(std::begin(kGuardActions), std::end(kGuardActions), text);
  check(found != std::end(kGuardActions), key, " = ", text, ": use warn, skip or stop");
  value = static_cast<GuardAction>(found - std::begin(kGuardActions));
}
void parse_value(std::string_view, std::string_view text, std::vector<std::string>& values) {
  values.clear();
  while (!text.empty()) {
    const size_t end = std::min(text.find(','), text.size());
    values.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}
void parse_value(std::string_view key, std::string_view text, std::vector<double>& values) {
  std::vector<std::string> words;
  parse_value(key, text, words);
  values.clear();
  for (const std::string& word : words) parse_value(key, word, values.emplace_back());
}
template <typename Value>
std::string text_of(const std::optional<Value>& value) {
  return value ? text_of(*value) : std::string();
}
template <typename Value>
void parse_value(std::string_view key, std::string_view text, std::optional<Value>& value) {
  if (text.empty() || text == "auto") {
    value.reset();
    return;
  }
  Value parsed{};
  parse_value(key, text, parsed);
  value = parsed;
}

// The setting that somebody meant, also where the section is wrong or missing; empty when none is near.
std::string_view nearest_setting(std::string_view word, const std::vector<SettingInfo>& settings) {
  const auto name = [](std::string_view key) { return key.substr(key.rfind('.') + 1); };
  std::string_view nearest;
  int least = std::max(2, static_cast<int>(word.size() / 2)) + 1;
  for (const SettingInfo& setting : settings) {
    const int edits = std::min(edit_distance(word, setting.key),
                               edit_distance(name(word), name(setting.key)) + 1);
    if (edits < least) least = edits, nearest = setting.key;
  }
  return nearest;
}

}  // namespace

std::string_view optimizer_setting_help() {
  static const std::string names = optimizer_names();
  return names;
}

std::vector<SettingInfo> config_settings() {
  std::vector<SettingInfo> settings;
  TrainConfig config;
  for_each_setting(
      config, [&](std::string_view key, std::string_view flag, std::string_view help, const auto&) {
        settings.push_back({key, flag, help});
      });
  return settings;
}

void set_setting(TrainConfig& config, std::string_view key, std::string_view value) {
  bool found = false;
  for_each_setting(config,
                   [&](std::string_view name, std::string_view, std::string_view, auto& field) {
                     if (name != key) return;
                     parse_value(key, value, field);
                     found = true;
                   });
  if (found) return;
  const std::string_view nearest = nearest_setting(key, config_settings());
  check(!nearest.empty(), "there is no setting \"", key, "\"; `brrr train --help` has the list");
  fail("there is no setting \"", key, "\"; did you mean ", nearest, "?");
}

std::string get_setting(const TrainConfig& config, std::string_view key) {
  std::string value;
  for_each_setting(
      config, [&](std::string_view name, std::string_view, std::string_view, const auto& field) {
        if (name == key) value = text_of(field);
      });
  return value;
}

void check_config(const TrainConfig& config) {
  const auto positive = [](std::string_view key, const std::optional<int64_t>& value) {
    check(!value || *value > 0, key, " = ", value.value_or(0), ": at least 1 is needed");
  };
  const auto part = [](std::string_view key, double value) {
    check(value >= 0 && value < 1, key, " = ", value, ": at least 0 and below 1 is needed");
  };
  const auto not_negative = [](std::string_view key, double value) {
    check(std::isfinite(value) && value >= 0, key, " = ", value, ": 0 or more is needed");
  };
  const auto at_most = [](std::string_view key, int64_t value, int64_t most) {
    check(value <= most, key, " = ", value, ": at most ", most, " is possible");
  };
  const DataConfig& data = config.data;
  check(data.weights.empty() || data.weights.size() == data.files.size(), "data.weights has ",
        data.weights.size(), " numbers for ", data.files.size(),
        " files; give one for each, or none");
  for (const double weight : data.weights)
    check(std::isfinite(weight) && weight > 0,
          "data.weights = ", get_setting(config, "data.weights"), ": positive numbers are needed");
  const ModelSettings& model = config.model;
  const LoopConfig& train = config.train;
  const OptimizerConfig& optimizer = config.optimizer;
  positive("train.steps", train.steps), positive("train.batch", train.batch);
  positive("train.accumulate", train.accumulate), positive("data.vocab", data.vocab);
  positive("model.layers", model.layers), positive("model.heads", model.heads);
  positive("model.width", model.width), positive("model.context", model.context);
  positive("report.eval_every", config.report.eval_every);
  positive("report.eval_batches", config.report.eval_batches);
  positive("report.sample_tokens", config.report.sample_tokens);
  positive("checkpoint.every", config.checkpoint.every);
  positive("checkpoint.keep", config.checkpoint.keep);
  positive("guard.window", config.guard.window), positive("data.stories", data.stories);
  positive("train.memory_budget_mib", train.memory_budget_mib);
  check(!train.memory_budget_mib || train.recompute == compiler::RematPolicy::budget,
        "train.memory_budget_mib = ", train.memory_budget_mib.value_or(0),
        " is for --recompute budget, not for ", compiler::policy_name(train.recompute));
  for (const std::string& text : train.precision_of) compiler::parse_precision_override(text);
  at_most("model.layers", model.layers.value_or(1), kMostLayers);
  at_most("train.accumulate", train.accumulate, kMostMicroBatches);
  not_negative("report.activations_every", static_cast<double>(config.report.activations_every));
  not_negative("report.sample_every", static_cast<double>(config.report.sample_every.value_or(0)));
  not_negative("optimizer.weight_decay", optimizer.weight_decay);
  not_negative("optimizer.eps", optimizer.eps.value_or(0));
  part("data.validation", data.validation), part("model.dropout", model.dropout);
  part("optimizer.average", optimizer.average);
  part("optimizer.beta1", optimizer.beta1.value_or(0));
  part("optimizer.beta2", optimizer.beta2.value_or(0));
  check(std::isfinite(train.minutes) && train.minutes > 0, "train.minutes = ", train.minutes,
        ": a positive number is needed");
  const double rate = optimizer.lr.value_or(1);
  check(std::isfinite(rate) && rate > 0, "optimizer.lr = ", rate, ": a positive rate is needed");
  check(optimizer.clip >= 0, "optimizer.clip = ", optimizer.clip,
        ": a positive norm is needed, or 0 for none");
  compiler::parse_pad_vocab(config.train.pad_vocab);
  check(config.guard.z > 0, "guard.z = ", config.guard.z, ": a positive number is needed");
  check(config.report.temperature >= 0, "report.temperature = ", config.report.temperature,
        ": 0 or more is needed");
}

}  // namespace brrr::runs
