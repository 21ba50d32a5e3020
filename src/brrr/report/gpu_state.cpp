#include "brrr/report/gpu_state.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "brrr/base/error.h"
#include "brrr/report/table.h"

namespace brrr::report {
namespace {

const std::string kUnknown = "not available";

template <typename Value>
std::string with_unit(const std::optional<Value>& value, std::string_view unit) {
  return value ? fmt::format("{:.4g} {}", static_cast<double>(*value), unit) : kUnknown;
}

// "1980 MHz of 1980 MHz"
template <typename Value>
std::string of_limit(const std::string& value, const std::optional<Value>& limit,
                     std::string_view unit) {
  return value == kUnknown || !limit ? value : join_text(value, " of ", with_unit(limit, unit));
}

std::string reasons_text(const std::optional<uint64_t>& bits) {
  if (!bits) return kUnknown;
  const std::vector<std::string> names = throttle_reasons(*bits);
  if (names.empty()) return "none";
  const std::string listed = fmt::format("{}", fmt::join(names, ", "));
  return troubling_reasons(*bits) != 0 ? listed : join_text(listed, " (nothing slows it down)");
}

std::string processes_text(const std::vector<GpuProcess>& processes) {
  if (processes.empty()) return "none seen";
  std::vector<std::string> words;
  for (const GpuProcess& process : processes)
    words.push_back(join_text("process ", process.pid, " holds ",
                              process.used ? to_text(*process.used) : "an unknown amount"));
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string unknown_text(const std::string& problem) {
  return join_text("clocks, power and throttle reasons are not available: ", problem, "\n");
}

nlohmann::json reasons_json(const std::optional<uint64_t>& bits) {
  return bits ? nlohmann::json(throttle_reasons(*bits)) : nlohmann::json();
}

template <typename Value>
nlohmann::json number(const std::optional<Value>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json();
}

nlohmann::json processes_json(const std::vector<GpuProcess>& processes) {
  nlohmann::json list = nlohmann::json::array();
  for (const GpuProcess& process : processes)
    list.push_back(
        {{"pid", process.pid},
         {"bytes", process.used ? nlohmann::json(process.used->value()) : nlohmann::json()}});
  return list;
}

}  // namespace

std::string gpu_state_text(const GpuState& state) {
  if (!state.problem.empty()) return unknown_text(state.problem);
  Table table({"now", ""});
  table.row("multiprocessor clock",
            of_limit(with_unit(state.sm_clock_mhz, "MHz"), state.max_sm_clock_mhz, "MHz"));
  table.row("memory clock", with_unit(state.memory_clock_mhz, "MHz"));
  table.row("power", of_limit(with_unit(state.watts, "W"), state.limit_watts, "W"));
  table.row("temperature", with_unit(state.celsius, "C"));
  table.row("clocks held down by", reasons_text(state.throttle_bits));
  table.row("memory of others", processes_text(state.other_processes));
  return table.text();
}

std::string gpu_load_text(const GpuLoad& load) {
  if (!load.problem.empty()) return unknown_text(load.problem);
  Table table({join_text("while it ran, ", load.looks, " looks"), ""});
  table.row("multiprocessor clock, lowest", with_unit(load.lowest_sm_clock_mhz, "MHz"));
  table.row("multiprocessor clock, highest",
            of_limit(with_unit(load.highest_sm_clock_mhz, "MHz"), load.max_sm_clock_mhz, "MHz"));
  table.row("memory clock", with_unit(load.memory_clock_mhz, "MHz"));
  table.row("power, mean", of_limit(with_unit(load.mean_watts, "W"), load.limit_watts, "W"));
  table.row("power, highest", with_unit(load.highest_watts, "W"));
  table.row("temperature, highest", with_unit(load.highest_celsius, "C"));
  table.row("clocks held down by", reasons_text(load.throttle_bits));
  table.row("memory of others", processes_text(load.other_processes));
  return table.text();
}

nlohmann::json gpu_state_json(const GpuState& state) {
  if (!state.problem.empty()) return {{"not_available_because", state.problem}};
  return {{"sm_clock_mhz", number(state.sm_clock_mhz)},
          {"max_sm_clock_mhz", number(state.max_sm_clock_mhz)},
          {"memory_clock_mhz", number(state.memory_clock_mhz)},
          {"watts", number(state.watts)},
          {"limit_watts", number(state.limit_watts)},
          {"celsius", number(state.celsius)},
          {"throttle_reasons", reasons_json(state.throttle_bits)},
          {"other_processes", processes_json(state.other_processes)}};
}

nlohmann::json gpu_load_json(const GpuLoad& load) {
  if (!load.problem.empty()) return {{"not_available_because", load.problem}};
  return {{"looks", load.looks},
          {"lowest_sm_clock_mhz", number(load.lowest_sm_clock_mhz)},
          {"highest_sm_clock_mhz", number(load.highest_sm_clock_mhz)},
          {"max_sm_clock_mhz", number(load.max_sm_clock_mhz)},
          {"memory_clock_mhz", number(load.memory_clock_mhz)},
          {"mean_watts", number(load.mean_watts)},
          {"highest_watts", number(load.highest_watts)},
          {"limit_watts", number(load.limit_watts)},
          {"highest_celsius", number(load.highest_celsius)},
          {"throttle_reasons", reasons_json(load.throttle_bits)},
          {"other_processes", processes_json(load.other_processes)}};
}

}  // namespace brrr::report
