#include "brrr/plan/published/published_toml.h"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>

#include "brrr/base/embedded_text.h"

namespace brrr::plan {
namespace {

std::string origin_of(std::string_view file) { return join_text("plan/published/", file, ".toml"); }

// What `base` says unless `own` says it; of tables key by key.
toml::table merged(const toml::table& base, const toml::table& own) {
  toml::table result = base;
  for (const auto& [key, value] : own) {
    const toml::table *inner = value.as_table(), *below = base[key.str()].as_table();
    if (inner && below)
      result.insert_or_assign(key, merged(*below, *inner));
    else
      result.insert_or_assign(key, value);
  }
  return result;
}

Gpt2Config read_gpt(TomlEntry entry) {
  const auto of = [&](std::string_view key) { return static_cast<int64_t>(entry.required(key)); };
  Gpt2Config config = gpt_shape(of("width"), of("layers"), of("heads"), of("vocab"), of("context"));
  entry.require_all_used();
  return config;
}

// The share of the layers' matmuls that the named ones are.
double share_of_matmuls(const ModelConfig& model, const std::vector<std::string>& names,
                        const std::string& where) {
  const auto* config = model.get_if<LlamaConfig>();
  check(config, where, ": matmuls are named of Llama's layers alone");
  const auto width = static_cast<double>(config->width),
             hidden = static_cast<double>(config->hidden),
             keys =
                 width * static_cast<double>(config->kv_heads) / static_cast<double>(config->heads);
  const std::map<std::string, double> sizes = {{"q", width},    {"k", keys},      {"v", keys},
                                               {"o", width},    {"gate", hidden}, {"up", hidden},
                                               {"down", hidden}};
  double named = 0, all = 0;
  for (const auto& [name, size] : sizes) all += size;
  for (const std::string& name : names) {
    check(sizes.contains(name), where, ": a layer has no matmul \"", name, "\"");
    named += sizes.at(name);
  }
  return named / all;
}

ParallelLayout read_layout(TomlEntry entry) {
  ParallelLayout layout;
  layout.tp = entry.integer_or("tp", 1);
  layout.pp = entry.integer_or("pp", 1);
  layout.cp = entry.integer_or("cp", 1);
  layout.zero = static_cast<int>(entry.integer_or("zero", 0));
  layout.interleave = entry.integer_or("interleave", 1);
  layout.sequence_parallel = entry.flag_or("sequence_parallel", true);
  entry.require_all_used();
  return layout;
}

// One of the units, and its value.
void read_claim(TomlEntry entry, WrittenRun& read) {
  constexpr std::array<std::string_view, 4> kUnits = {"seconds", "tflops", "tokens_per_second",
                                                      "gpu_hours"};  // in the order of Shown
  Claim& claim = read.run.claim;
  int units = 0;
  for (size_t i = 0; i < kUnits.size(); ++i) {
    if (const auto value = entry.number(kUnits[i])) {
      claim.shown = static_cast<Shown>(i);
      claim.value = *value;
      ++units;
    }
  }
  check(units == 1, entry.where(), " needs one of seconds, tflops, tokens_per_second, gpu_hours");
  if (entry.flag_or("bound", false)) claim.kind = CaseClass::bound;
  claim.tokens = entry.number("tokens").value_or(claim.tokens);
  claim.reason = entry.text_or("reason", "");
  claim.calibration = entry.text_or("calibration", "");
  read.software_from = entry.text_or("software_from", "");
  read.goodput_from = entry.text_or("goodput_from", "");
  entry.require_all_used();
}

WrittenRun read_run(TomlEntry entry) {
  WrittenRun read;
  read.name = entry.text_or("name", "");
  PublishedRun& run = read.run;
  run.id = entry.text_or("id", "");
  run.what = entry.text("what");
  run.source = entry.text("source");
  if (const auto gpt = entry.entry("gpt"))
    run.model = read_gpt(*gpt);
  else
    run.model = model_preset(entry.text("model"));
  run.gpu = entry.text("gpu");
  run.count = static_cast<int64_t>(entry.required("count"));
  run.seq = static_cast<int64_t>(entry.required("seq"));
  run.global_batch = static_cast<int64_t>(entry.required("global_batch"));
  run.micro_batch = static_cast<int64_t>(entry.required("micro_batch"));
  if (const auto layout = entry.entry("layout")) run.layout = read_layout(*layout);
  run.recompute = compiler::parse_policy(entry.text_or("recompute", "none"));
  run.precision = compiler::parse_precision(entry.text_or("precision", "bf16"));
  run.node_size = entry.integer_or("node_size", run.node_size);
  if (entry.contains("system")) run.system = published_system(entry.text("system"));
  const std::vector<std::string> again = entry.texts("matmuls_again"),
                                 kept = entry.texts("matmuls_kept");
  if (!again.empty()) run.system.products_again = share_of_matmuls(run.model, again, entry.where());
  if (!kept.empty()) run.system.products_again = -share_of_matmuls(run.model, kept, entry.where());
  const auto claim = entry.entry("claim");
  check(claim.has_value(), entry.where(), " needs a claim");
  read_claim(*claim, read);
  entry.require_all_used();
  return read;
}

std::vector<WrittenRun> read_runs(std::string_view file) {
  std::vector<WrittenRun> all;
  for (const NamedTable& group : tables_in_order(published_file(file))) {
    const toml::array* runs = (*group.table)["run"].as_array();
    if (!runs) continue;  // a table of another form
    toml::table shared = *group.table;
    shared.erase("run");
    for (const toml::node& run : *runs) {
      const toml::table whole = merged(shared, *run.as_table());
      all.push_back(read_run({whole, join_text(origin_of(file), ": [[", group.name, ".run]], line ",
                                               run.source().begin.line)}));
    }
  }
  return all;
}

// What was read of each file. References stay good: a map's elements do not move.
template <typename Content, typename Read>
const Content& read_once(std::string_view file, const Read& read) {
  static std::map<std::string, Content, std::less<>> known;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  auto at = known.find(file);
  if (at == known.end()) at = known.emplace(std::string(file), read(file)).first;
  return at->second;
}

}  // namespace

const toml::table& published_file(std::string_view name) {
  return read_once<toml::table>(name, [](std::string_view file) {
    const std::string path = origin_of(file);
    return parse_toml(embedded_text(path), path);
  });
}

const std::vector<WrittenRun>& written_runs(std::string_view file) {
  return read_once<std::vector<WrittenRun>>(file, read_runs);
}

SystemTraits published_system(std::string_view name) {
  const toml::table* table = published_file("systems")[name].as_table();
  check(table, origin_of("systems"), " has no system \"", name, "\"");
  TomlEntry entry(*table, join_text(origin_of("systems"), ": [", name, "]"));
  SystemTraits system;
  system.framework = parse_framework(entry.text_or("framework", to_text(system.framework)));
  system.attention = parse_attention_kernel(entry.text_or("attention", to_text(system.attention)));
  system.hides_data = entry.flag_or("hides_data", system.hides_data);
  system.hides_pipeline = entry.flag_or("hides_pipeline", system.hides_pipeline);
  system.gather_bytes = entry.number("gather_bytes").value_or(system.gather_bytes);
  system.gathers_of_layer = entry.number("gathers_of_layer").value_or(system.gathers_of_layer);
  system.autocast = entry.flag_or("autocast", system.autocast);
  system.flat_parameters = entry.flag_or("flat_parameters", system.flat_parameters);
  system.node_rings = entry.flag_or("node_rings", system.node_rings);
  entry.require_all_used();
  return system;
}

PublishedCase number_case(std::string_view file, std::string_view key, double predicted) {
  const size_t dot = key.find('.');
  const std::string_view id = key.substr(0, dot), rest = key.substr(std::min(dot + 1, key.size()));
  const toml::table* group = published_file(file)[id].as_table();
  const toml::table* own = group ? (*group)[rest].as_table() : nullptr;
  check(own, origin_of(file), " has no [", key, "]");
  toml::table shared;  // what is not another number
  for (const auto& [name, value] : *group)
    if (!value.is_table()) shared.insert(name, value);
  const toml::table whole = merged(shared, *own);
  TomlEntry entry(whole, join_text(origin_of(file), ": [", key, "]"));
  PublishedCase result{.id = std::string(id),
                       .what = entry.text("what"),
                       .unit = entry.text("unit"),
                       .published = entry.required("published"),
                       .predicted = predicted,
                       .kind = parse_case_class(entry.text_or("class", "exact"))};
  result.band = entry.number("band").value_or(usual_band(result.kind));
  result.source = entry.text("source");
  result.reason = entry.text_or("reason", "");
  result.calibration = entry.text_or("calibration", "");
  if (entry.flag_or("least", false)) result.side = Side::least;
  entry.require_all_used();
  return result;
}

}  // namespace brrr::plan
