// Rates as a file: written whole or not at all, and read as if a stranger had written it.
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "brrr/base/error.h"
#include "brrr/hardware/rates.h"

namespace brrr::hardware {
namespace {

using nlohmann::json;

constexpr size_t kMaxFileBytes = size_t{16} << 20;
constexpr size_t kMaxAxes = 3, kMaxPoints = 64;

json grid_json(const RateGrid& grid) {
  json axes = json::array();
  for (const RateAxis& axis : grid.axes)
    axes.push_back({{"name", axis.name}, {"points", axis.points}});
  return {{"unit", grid.unit}, {"axes", axes}, {"values", grid.values}};
}

// Reads fields of one file and says what is wrong with them.
class Reader {
 public:
  explicit Reader(std::string_view origin) : origin_(origin) {}

  template <typename... Parts>
  void require(bool holds, const Parts&... parts) const {
    check(holds, origin_, ": ", parts..., "; run `brrr calibrate` to write the file anew");
  }

  const json& field(const json& object, const char* name) const {
    require(object.is_object() && object.contains(name), "there is no field \"", name, "\"");
    return object[name];
  }
  std::string text(const json& object, const char* name) const {
    const json& value = field(object, name);
    require(value.is_string(), "\"", name, "\" is not a text");
    return value.get<std::string>();
  }
  int64_t integer(const json& object, const char* name) const {
    const json& value = field(object, name);
    require(value.is_number_integer(), "\"", name, "\" is not an integer");
    return value.get<int64_t>();
  }
  bool flag(const json& object, const char* name) const {
    const json& value = field(object, name);
    require(value.is_boolean(), "\"", name, "\" is neither true nor false");
    return value.get<bool>();
  }
  // Positive and finite: every rate, size and time is.
  std::vector<double> numbers(const json& object, const char* name) const {
    const json& value = field(object, name);
    require(
        value.is_array() && !value.empty() && value.size() <= kMaxPoints * kMaxPoints * kMaxPoints,
        "\"", name, "\" is not a list of numbers");
    std::vector<double> all;
    for (const json& item : value) {
      require(item.is_number(), "\"", name, "\" has an entry that is not a number");
      all.push_back(item.get<double>());
      require(std::isfinite(all.back()) && all.back() > 0, "\"", name, "\" has the entry ",
              all.back(), ", which is not a positive number");
    }
    return all;
  }

  RateGrid grid(const json& object, std::string_view name) const {
    RateGrid grid{.unit = text(object, "unit"), .axes = {}, .values = numbers(object, "values")};
    const json& axes = field(object, "axes");
    require(axes.is_array() && axes.size() <= kMaxAxes, "\"", name, "\" has more than ", kMaxAxes,
            " axes");
    for (const json& axis : axes) {
      grid.axes.push_back({.name = text(axis, "name"), .points = numbers(axis, "points")});
      const std::vector<double>& points = grid.axes.back().points;
      require(points.size() <= kMaxPoints &&
                  std::adjacent_find(points.begin(), points.end(), std::greater_equal<>()) ==
                      points.end(),
              "the points of an axis of \"", name, "\" do not ascend");
    }
    require(grid.values.size() == grid.points(), "\"", name, "\" has ", grid.values.size(),
            " values for ", grid.points(), " points");
    return grid;
  }

 private:
  std::string_view origin_;
};

// What predictions ask for without looking whether it is there.
constexpr std::string_view kRequired[] = {
    "launch",    "fork_join", "peak.f32",  "bandwidth",          "optimizer",  "matmul.nn",
    "matmul.nt", "matmul.tn", "attention", "attention_backward", "tile.other", "scale.matmul.bf16"};

size_t axes_of(std::string_view family) {
  if (family.starts_with("matmul.")) return 3;
  if (family.starts_with("attention")) return 2;
  return family == "bandwidth" || family == "optimizer" ? 1 : 0;
}

}  // namespace

std::string to_json(const Rates& rates) {
  json grids = json::object();
  for (const auto& [name, grid] : rates.grids) grids[name] = grid_json(grid);
  const json file{{"format", "brrr rates"},
                  {"version", Rates::kVersion},
                  {"machine", rates.machine},
                  {"threads", rates.threads},
                  {"calibrated", rates.calibrated},
                  {"quick", rates.quick},
                  {"source", rates.source},
                  {"packs_operands", rates.packs_operands},
                  {"grids", grids}};
  return file.dump(1) + "\n";
}

Rates parse_rates(std::string_view text, std::string_view origin) {
  const Reader reader(origin);
  reader.require(text.size() <= kMaxFileBytes, "is larger than a file of rates can be");
  const json file = json::parse(text, nullptr, false);
  reader.require(!file.is_discarded(), "is not JSON, or was cut off");
  reader.require(reader.text(file, "format") == "brrr rates", "is not a file of rates");
  const int64_t version = reader.integer(file, "version");
  reader.require(version == Rates::kVersion, "has version ", version, ", and this program reads ",
                 Rates::kVersion);
  Rates rates{.machine = reader.text(file, "machine"), .source = reader.text(file, "source")};
  const int64_t threads = reader.integer(file, "threads");
  reader.require(threads >= 1 && threads <= 4096, "\"threads\" is ", threads);
  rates.threads = static_cast<int>(threads);
  rates.calibrated = reader.flag(file, "calibrated");
  // Files of before there were quick rates lack the field: they are full.
  rates.quick = file.contains("quick") && reader.flag(file, "quick");
  rates.packs_operands = reader.flag(file, "packs_operands");
  const json& grids = reader.field(file, "grids");
  reader.require(grids.is_object(), "\"grids\" is not an object");
  for (const auto& [name, grid] : grids.items()) rates.grids[name] = reader.grid(grid, name);
  for (std::string_view family : kRequired) {
    const RateGrid* grid = rates.find(family);
    reader.require(grid != nullptr, "lacks the family \"", family, "\"");
    reader.require(grid->axes.size() == axes_of(family), "\"", family, "\" has ", grid->axes.size(),
                   " axes instead of ", axes_of(family));
  }
  return rates;
}

void save_rates(const Rates& rates, const std::string& path) {
  const std::filesystem::path target(path);
  std::error_code error;
  if (target.has_parent_path()) std::filesystem::create_directories(target.parent_path(), error);
  // Two programs may measure the same machine at the same time.
  const std::string beside = join_text(path, ".new", getpid());
  std::ofstream file(beside, std::ios::binary);
  file << to_json(rates);
  file.close();
  const bool is_written = file.good();
  if (is_written) std::filesystem::rename(beside, target, error);
  if (is_written && !error) return;
  std::error_code ignored;
  std::filesystem::remove(beside, ignored);
  check(is_written, "cannot write ", beside, "; is the folder there and writable?");
  fail("cannot rename ", beside, " to ", path, ": ", error.message());
}

Rates load_rates(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  check(file.good(), "cannot read ", path, "; run `brrr calibrate` to write it");
  std::ostringstream text;
  text << file.rdbuf();
  return parse_rates(text.str(), path);
}

}  // namespace brrr::hardware
