// Step records and facts as JSON. A field is named once, in a list that writing and reading share.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "brrr/base/error.h"
#include "brrr/run/run_log.h"

namespace brrr::runs {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormat = 1;

template <typename Record, typename Visitor>
void visit_required(Record& record, Visitor&& visit) {
  visit("step", record.step);
  visit("loss", record.loss);
  visit("lr", record.lr);
  visit("grad_norm", record.grad_norm);
  visit("tokens_per_second", record.tokens_per_second);
  visit("ms", record.ms);
}

template <typename Record, typename Visitor>
void visit_optional(Record& record, Visitor&& visit) {
  visit("mfu", record.mfu);
  visit("memory_bytes", record.memory_bytes);
  visit("train_loss", record.train_loss);
  visit("validation_loss", record.validation_loss);
}

template <typename Kernel, typename Visitor>
void visit_kernel(Kernel& kernel, Visitor&& visit) {
  visit("name", kernel.name);
  visit("calls", kernel.calls);
  visit("flops", kernel.flops);
  visit("bytes", kernel.bytes);
  visit("seconds", kernel.seconds);
  visit("regime", kernel.regime);
}

template <typename Moment, typename Visitor>
void visit_moment(Moment& moment, Visitor&& visit) {
  visit("phase", moment.phase);
  visit("bytes", moment.bytes);
}

template <typename Facts, typename Visitor>
void visit_facts(Facts& facts, Visitor&& visit) {
  visit("brrr_version", facts.brrr_version);
  visit("name", facts.name);
  visit("status", facts.status);
  visit("reason", facts.reason);
  visit("started", facts.started);
  visit("data", facts.data);
  visit("tokenizer", facts.tokenizer);
  visit("precision", facts.precision);
  visit("optimizer", facts.optimizer);
  visit("device", facts.device);
  visit("parameters", facts.parameters);
  visit("train_tokens", facts.train_tokens);
  visit("validation_tokens", facts.validation_tokens);
  visit("batch", facts.batch);
  visit("context", facts.context);
  visit("accumulate", facts.accumulate);
  visit("steps", facts.steps);
  visit("vocab", facts.vocab);
  visit("seed", facts.seed);
  visit("dropout", facts.dropout);
  visit("weight_decay", facts.weight_decay);
  visit("flops_per_token", facts.flops_per_token);
  visit("peak_flops", facts.peak_flops);
  visit("peak_bandwidth", facts.peak_bandwidth);
  visit("predicted_step_seconds", facts.predicted_step_seconds);
  visit("predicted_memory_bytes", facts.predicted_memory);
  visit("threads", facts.threads);
  visit("mfu_convention", facts.mfu_convention);
  visit("speed_regime", facts.speed_regime);
  visit("speed_advice", facts.speed_advice);
  visit("best_step", facts.best_step);
  visit("seconds", facts.seconds);
}

Json number_json(double value) { return std::isfinite(value) ? Json(value) : Json(); }

// Puts values into an object.
struct Writer {
  Json object = Json::object();

  void operator()(const char* name, const std::string& value) { object[name] = value; }
  void operator()(const char* name, double value) { object[name] = number_json(value); }
  void operator()(const char* name, Bytes value) { object[name] = value.value(); }
  template <std::integral Integer>
  void operator()(const char* name, Integer value) {
    object[name] = value;
  }
  void operator()(const char* name, const std::optional<double>& value) {
    if (value) object[name] = number_json(*value);
  }
};

// Takes values out of an object and says what is wrong with them.
struct Reader {
  const Json& object;
  const std::string& origin;
  bool required;  // else a field that is absent keeps its default

  template <typename... Parts>
  void require(bool holds, const char* name, const Parts&... parts) const {
    check(holds, origin, ": \"", name, "\" ", parts...);
  }
  const Json* find(const char* name) const {
    const auto found = object.find(name);
    if (found != object.end()) return &*found;
    require(!required, name, "is missing");
    return nullptr;
  }
  void operator()(const char* name, std::string& value) const {
    const Json* found = find(name);
    if (!found) return;
    require(found->is_string(), name, "is not a text");
    value = found->get<std::string>();
  }
  void operator()(const char* name, double& value) const {
    const Json* found = find(name);
    if (!found) return;
    require(found->is_number() || found->is_null(), name, "is not a number");
    value = found->is_null() ? std::numeric_limits<double>::quiet_NaN() : found->get<double>();
  }
  void operator()(const char* name, std::optional<double>& value) const {
    if (object.contains(name)) (*this)(name, value.emplace());
  }
  void operator()(const char* name, Bytes& value) const {
    int64_t bytes = value.value();
    (*this)(name, bytes);
    value = Bytes(bytes);
  }
  // Counts: all are zero or more.
  template <std::integral Integer>
  void operator()(const char* name, Integer& value) const {
    const Json* found = find(name);
    if (!found) return;
    require(found->is_number_integer(), name, "is not an integer");
    // A negative number is not unsigned, and a large one must not turn negative.
    require(
        found->is_number_unsigned() &&
            found->get<uint64_t>() <= static_cast<uint64_t>(std::numeric_limits<Integer>::max()),
        name, "is ", found->dump(), ", which is not between 0 and ",
        std::numeric_limits<Integer>::max());
    value = found->get<Integer>();
  }
};

// Samples and names may be cut inside a character; what is no UTF-8 shows as U+FFFD.
std::string dump(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

Json parse_object(std::string_view text, const std::string& origin) {
  Json json = Json::parse(text, nullptr, false);
  check(!json.is_discarded(), origin, " is not JSON, or not all of it");
  check(json.is_object(), origin, " is not an object but ", json.type_name());
  return json;
}

void read_activations(const Json& object, const std::string& origin, StepRecord& record) {
  const auto found = object.find("activations");
  if (found == object.end()) return;
  check(found->is_object(), origin, ": \"activations\" is not an object");
  const Reader read{.object = *found, .origin = origin, .required = true};
  for (const auto& item : found->items()) read(item.key().c_str(), record.activations[item.key()]);
}

// A list of objects; absent: empty.
template <typename Item, typename VisitItem>
void read_list(const Json& object, const char* name, const std::string& origin,
               std::vector<Item>& items, const VisitItem& visit_item) {
  const auto found = object.find(name);
  if (found == object.end()) return;
  check(found->is_array(), origin, ": \"", name, "\" is not a list");
  for (const Json& entry : *found) {
    check(entry.is_object(), origin, ": \"", name, "\" has an entry that is not an object");
    visit_item(items.emplace_back(), Reader{.object = entry, .origin = origin, .required = true});
  }
}

template <typename Item, typename VisitItem>
Json list_json(const std::vector<Item>& items, const VisitItem& visit_item) {
  Json list = Json::array();
  for (const Item& item : items) {
    Writer write;
    visit_item(item, write);
    list.push_back(std::move(write.object));
  }
  return list;
}

}  // namespace

std::string to_json(const StepRecord& record) {
  Writer write;
  visit_required(record, write);
  visit_optional(record, write);
  for (const auto& [part, largest] : record.activations)
    write.object["activations"][part] = number_json(largest);
  if (!record.guard.empty()) write("guard", record.guard);
  if (!record.sample.empty()) write("sample", record.sample);
  return dump(write.object, -1);
}

StepRecord parse_step_record(std::string_view line, const std::string& origin) {
  const Json object = parse_object(line, origin);
  StepRecord record;
  visit_required(record, Reader{.object = object, .origin = origin, .required = true});
  const Reader read{.object = object, .origin = origin, .required = false};
  visit_optional(record, read);
  read("guard", record.guard);
  read("sample", record.sample);
  read_activations(object, origin, record);
  check(record.step >= 1, origin, ": \"step\" is 0; the first step is 1");
  return record;
}

std::string to_json(const RunFacts& facts) {
  Writer write;
  write("format", kFormat);
  visit_facts(facts, write);
  write.object["model"] = parse_object(facts.model_json, "the model of a run");
  write.object["kernels"] =
      list_json(facts.kernels, [](auto& kernel, auto& visit) { visit_kernel(kernel, visit); });
  write.object["memory_timeline"] = list_json(
      facts.memory_timeline, [](auto& moment, auto& visit) { visit_moment(moment, visit); });
  return dump(write.object, 1) + "\n";
}

RunFacts parse_run_facts(std::string_view text, const std::string& origin) {
  const Json object = parse_object(text, origin);
  RunFacts facts;
  int format = 0;
  std::string status;
  const Reader must{.object = object, .origin = origin, .required = true};
  must("format", format);
  check(format == kFormat, origin, " has format ", format, "; this brrr reads format ", kFormat);
  must("status", status);
  constexpr std::array kStatuses{"running", "finished", "stopped", "failed"};
  check(std::find(kStatuses.begin(), kStatuses.end(), status) != kStatuses.end(), origin,
        ": \"status\" is \"", status, "\"; it is one of running, finished, stopped, failed");
  visit_facts(facts, Reader{.object = object, .origin = origin, .required = false});
  if (object.contains("model")) facts.model_json = dump(object["model"], -1);
  read_list(object, "kernels", origin, facts.kernels,
            [](auto& kernel, const Reader& read) { visit_kernel(kernel, read); });
  read_list(object, "memory_timeline", origin, facts.memory_timeline,
            [](auto& moment, const Reader& read) { visit_moment(moment, read); });
  return facts;
}

}  // namespace brrr::runs
