#include "brrr/report/config_differences.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <map>
#include <sstream>

#include "brrr/base/error.h"

namespace brrr::report {
namespace {

using Flat = std::map<std::string, std::string>;

std::string value_text(const toml::node& node) {
  if (const auto* number = node.as_floating_point())
    return fmt::format("{}", number->get());  // 0.1, not 0.10000000000000001
  std::ostringstream text;
  node.visit([&](const auto& value) { text << value; });
  return text.str();
}

void flatten(const toml::table& table, const std::string& prefix, Flat& flat) {
  for (const auto& [key, node] : table) {
    const std::string name = prefix + std::string(key.str());
    if (const toml::table* inner = node.as_table()) {
      flatten(*inner, name + ".", flat);
    } else {
      flat[name] = value_text(node);
    }
  }
}

Flat parse(const NamedConfig& config) {
  try {
    Flat flat;
    flatten(toml::parse(config.text), "", flat);
    return flat;
  } catch (const toml::parse_error& error) {
    fail(config.name, ":", error.source().begin.line, " is not TOML: ", error.description());
  }
}

}  // namespace

std::vector<ConfigDifference> config_differences(const std::vector<NamedConfig>& configs) {
  std::map<std::string, std::vector<std::string>> by_key;
  for (size_t i = 0; i < configs.size(); ++i) {
    for (const auto& [key, value] : parse(configs[i])) {
      std::vector<std::string>& values = by_key[key];
      values.resize(configs.size());
      values[i] = value;
    }
  }
  std::vector<ConfigDifference> differences;
  for (const auto& [key, values] : by_key) {
    bool differs = false;
    for (const std::string& value : values) differs = differs || value != values.front();
    if (differs) differences.push_back({.key = key, .values = values});
  }
  return differences;
}

}  // namespace brrr::report
