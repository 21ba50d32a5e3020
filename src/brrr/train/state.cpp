#include "brrr/train/state.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "brrr/base/error.h"

namespace brrr::training {
namespace {

using Json = nlohmann::ordered_json;

// What a change of the settings below a key means for a run that goes on.
struct Consequence {
  std::string_view key;  // a whole key, or the beginning of several
  std::string_view meaning;
  bool is_allowed = true;
};
constexpr std::string_view kUpdatesDiffer =
    "weights, optimizer state and order of the data go on exactly; updates from here on differ";
constexpr std::string_view kBitsDiffer =
    "weights, optimizer state and order of the data go on exactly; bits of later losses differ";
constexpr std::string_view kLooksOnly = "training itself goes on exactly";
constexpr std::string_view kRowsDiffer =
    "weights and optimizer state go on exactly; steps count rows anew, so some rows come again and "
    "others not";
constexpr std::string_view kDataDiffers =
    "weights and optimizer state go on exactly; the data is other data, read from its step on, and "
    "losses cannot be compared with those before";
constexpr Consequence kConsequences[] = {
    {"data.files", kDataDiffers},
    {"data.weights",
     "weights and optimizer state go on exactly; rows come by the new shares, so of each source "
     "some come again and others not"},
    {"data.stories", kDataDiffers},
    {"data.separator", kDataDiffers},
    {"data.validation", kDataDiffers},
    {"data.tokenizer", "the weights belong to the ids of the tokenizer of this run", false},
    {"data.vocab", "the weights belong to the ids of the tokenizer of this run", false},
    {"data.whole_documents", kRowsDiffer},
    {"data.document_mask", kUpdatesDiffer},
    {"model.dropout", kUpdatesDiffer},
    {"model.preset", kLooksOnly},
    {"model.", "the weights have the sizes of the model that they were trained in", false},
    {"train.minutes", kLooksOnly},
    {"train.steps",
     "weights, optimizer state and order of the data go on exactly; the schedule is that of the "
     "new "
     "number of steps, so rates from here on are not those of one run of either length"},
    {"train.batch", kRowsDiffer},
    {"train.accumulate", kRowsDiffer},
    {"train.precision", kBitsDiffer},
    {"train.matmul_precision", kBitsDiffer},
    {"train.precision_of", kBitsDiffer},
    {"train.recompute", kLooksOnly},
    {"train.memory_budget_mib", kLooksOnly},
    {"train.pad_vocab", kLooksOnly},
    {"train.without", kBitsDiffer},
    {"optimizer.name",
     "weights and order of the data go on exactly; the optimizer starts without a memory"},
    {"optimizer.average",
     "weights, optimizer state and order of the data go on exactly; the average starts anew where "
     "it "
     "was not kept before"},
    {"report.activations_every", kLooksOnly},
    {"report.", kLooksOnly},
    {"checkpoint.", kLooksOnly},
    {"guard.", kUpdatesDiffer},
    {"seed.init", "the weights are those of the checkpoint: it changes nothing"},
    {"seed.data", "weights and optimizer state go on exactly; the order of the data is another"},
    {"seed.sampling", kLooksOnly},
    {"seed.all", "weights and optimizer state go on exactly; order of the data and dropout do not"},
    {"", kUpdatesDiffer},
};

const Consequence& consequence_of(std::string_view key) {
  for (const Consequence& each : kConsequences) {
    if (key.starts_with(each.key)) return each;
  }
  fail_invariant("the empty key is a beginning of all", std::source_location::current());
}

template <typename Value>
Value field(const Json& json, const char* name, const std::string& origin) {
  check(json.contains(name), origin, " is damaged: it has no ", name);
  try {
    return json[name].get<Value>();
  } catch (const nlohmann::json::exception&) {
    fail(origin, " is damaged: ", name, " is ", json[name].dump());
  }
}

// Pairs of loss and norm; null is no limit, which JSON has no number for.
Json limits_json(const std::deque<StepLimits>& limits) {
  const auto number = [](double limit) { return std::isfinite(limit) ? Json(limit) : Json(); };
  Json pairs = Json::array();
  for (const StepLimits& each : limits)
    pairs.push_back({number(each.loss), number(each.grad_norm)});
  return pairs;
}

std::deque<StepLimits> parse_limits(const Json& guard, const std::string& origin) {
  std::deque<StepLimits> limits;
  for (const Json& pair : field<Json>(guard, "limits", origin)) {
    check(pair.is_array() && pair.size() == 2, origin, " is damaged: a limit is ", pair.dump());
    StepLimits& added = limits.emplace_back();
    if (pair[0].is_number()) added.loss = pair[0].get<double>();
    if (pair[1].is_number()) added.grad_norm = pair[1].get<double>();
  }
  return limits;
}

}  // namespace

std::string to_json(const TrainingState& state) {
  Json json{{"format", "brrr training state"},
            {"version", TrainingState::kVersion},
            {"brrr_version", state.brrr_version},
            {"step", state.step},
            {"data_position", state.step},
            {"seeds",
             {{"init", state.config.seed_of(state.config.seed.init)},
              {"data", state.config.seed_of(state.config.seed.data)},
              {"dropout", state.config.seed_of(state.config.seed.dropout)},
              {"sampling", state.config.seed_of(state.config.seed.sampling)}}},
            {"tokenizer_hash", state.tokenizer_hash},
            {"choices",
             {{"precision", runs::get_setting(state.config, "train.precision")},
              {"recompute", runs::get_setting(state.config, "train.recompute")},
              {"without", state.config.train.without}}},
            {"config", runs::to_toml(state.config)},
            {"guard",
             {{"losses", state.guard.losses},
              {"grad_norms", state.guard.grad_norms},
              {"limits", limits_json(state.guard.limits)},
              {"skipped_in_a_row", state.guard.skipped_in_a_row}}},
            {"best_step", state.best_step},
            {"seconds", state.seconds}};
  if (state.best_loss) json["best_loss"] = *state.best_loss;
  if (!state.algorithms.library.empty())
    json["algorithms"] = {{"library", state.algorithms.library},
                          {"products", state.algorithms.lines}};
  return json.dump(1);
}

TrainingState parse_training_state(std::string_view text, const std::string& origin) {
  const Json json = Json::parse(text, nullptr, false);
  check(json.is_object() && json.value("format", "") == "brrr training state", origin,
        " is damaged: it is no state of a training run");
  const int version = field<int>(json, "version", origin);
  check(version == TrainingState::kVersion, origin, " has version ", version,
        "; this program reads ", TrainingState::kVersion);
  TrainingState state{
      .step = field<int64_t>(json, "step", origin),
      .brrr_version = field<std::string>(json, "brrr_version", origin),
      .config = runs::parse_config(field<std::string>(json, "config", origin), origin),
      .tokenizer_hash = field<std::string>(json, "tokenizer_hash", origin),
      .best_step = field<int64_t>(json, "best_step", origin),
      .seconds = field<double>(json, "seconds", origin)};
  const Json guard = field<Json>(json, "guard", origin);
  check(guard.is_object(), origin, " is damaged: guard is ", guard.dump());
  state.guard = {.losses = field<std::deque<double>>(guard, "losses", origin),
                 .grad_norms = field<std::deque<double>>(guard, "grad_norms", origin),
                 .limits = parse_limits(guard, origin),
                 .skipped_in_a_row = field<int64_t>(guard, "skipped_in_a_row", origin)};
  if (json.contains("best_loss")) state.best_loss = field<double>(json, "best_loss", origin);
  if (json.contains("algorithms")) {  // a run on the cpu has none
    const Json algorithms = field<Json>(json, "algorithms", origin);
    check(algorithms.is_object(), origin, " is damaged: algorithms is ", algorithms.dump());
    state.algorithms = {.library = field<std::string>(algorithms, "library", origin),
                        .lines = field<std::string>(algorithms, "products", origin)};
  }
  return state;
}

std::vector<std::string> describe_changes(const runs::TrainConfig& before,
                                          const runs::TrainConfig& now) {
  std::vector<std::string> sentences;
  for (const runs::SettingInfo& setting : runs::config_settings()) {
    const std::string old_value = runs::get_setting(before, setting.key),
                      new_value = runs::get_setting(now, setting.key);
    if (old_value == new_value) continue;
    const Consequence& consequence = consequence_of(setting.key);
    check(consequence.is_allowed, setting.key, " cannot change from ", old_value, " to ", new_value,
          " in a run that goes on: ", consequence.meaning, "; start a new run with --out");
    sentences.push_back(fmt::format("{} is {} now, and was {}: {}", setting.key,
                                    new_value.empty() ? "none" : new_value,
                                    old_value.empty() ? "none" : old_value, consequence.meaning));
  }
  return sentences;
}

}  // namespace brrr::training
