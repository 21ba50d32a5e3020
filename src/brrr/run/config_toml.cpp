// Configuration files: reading TOML into settings and writing settings as TOML.
#include <toml++/toml.h>

#include <fstream>
#include <sstream>

#include "brrr/base/error.h"
#include "brrr/base/join_names.h"
#include "brrr/run/config.h"
#include "brrr/run/config_settings.h"

namespace brrr::runs {
namespace {

std::string quoted(const std::string& text) {
  std::ostringstream out;
  out << toml::value<std::string>(text);  // as a node it writes its quotes and escapes
  return out.str();
}

template <typename Field>
constexpr bool kIsNumber = std::is_arithmetic_v<Field>;
template <typename Value>
constexpr bool kIsNumber<std::optional<Value>> = kIsNumber<Value>;

template <typename Field>
std::string toml_of(const TrainConfig& config, std::string_view key, const Field& field) {
  if constexpr (std::is_same_v<Field, std::vector<std::string>>) {
    return join_text("[", join_names(field, [](const auto& each) { return quoted(each); }), "]");
  } else if constexpr (std::is_same_v<Field, std::vector<double>>) {
    return join_text("[", get_setting(config, key), "]");
  } else {
    const std::string text = get_setting(config, key);
    return kIsNumber<Field> ? text : quoted(text);
  }
}

// A value of the file as the text that set_setting takes.
std::string text_of(const toml::node& node, const std::string& key, std::string_view origin) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* whole = node.as_integer()) return std::to_string(whole->get());
  if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
  if (const auto* number = node.as_floating_point()) {
    std::ostringstream out;
    out.precision(17);
    out << number->get();
    return out.str();
  }
  fail(origin, ": ", key, " is neither a text, a number, true or false, nor a list of them");
}

void read_value(TrainConfig& config, const toml::node& node, const std::string& key,
                std::string_view origin) {
  const auto* list = node.as_array();
  if (list && key == "data.files") {  // names may have commas in them
    for (const toml::node& each : *list) config.data.files.push_back(text_of(each, key, origin));
    return;
  }
  std::string text;
  if (list && (key == "data.weights" || key == "train.precision_of")) {
    for (const toml::node& each : *list)
      text += join_text(text.empty() ? "" : ",", text_of(each, key, origin));
  } else {
    text = text_of(node, key, origin);
  }
  try {
    set_setting(config, key, text);
  } catch (const Error& error) {
    fail(origin, ", line ", node.source().begin.line, ": ", error.what());
  }
}

void read_table(TrainConfig& config, const toml::table& table, const std::string& prefix,
                std::string_view origin) {
  for (const auto& [name, node] : table) {
    const std::string key =
        prefix.empty() ? std::string(name.str()) : join_text(prefix, ".", name.str());
    if (const auto* below = node.as_table()) {
      read_table(config, *below, key, origin);
    } else {
      read_value(config, node, key, origin);
    }
  }
}

}  // namespace

TrainConfig parse_config(std::string_view text, std::string_view origin) {
  toml::table table;
  try {
    table = toml::parse(text, origin);
  } catch (const toml::parse_error& error) {
    fail(origin, ", line ", error.source().begin.line, ": ", error.description());
  }
  TrainConfig config;
  read_table(config, table, "", origin);
  return config;
}

TrainConfig read_config(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  check(file.good(), "configuration ", path.string(), ": cannot be read");
  std::ostringstream text;
  text << file.rdbuf();
  return parse_config(text.str(), path.string());
}

std::string to_toml(const TrainConfig& config) {
  std::string text, section;
  for_each_setting(config, [&](std::string_view key, std::string_view, std::string_view help,
                               const auto& field) {
    const size_t dot = key.find('.');
    if (section != key.substr(0, dot)) {
      section = key.substr(0, dot);
      text += join_text(text.empty() ? "" : "\n", "[", section, "]\n");
    }
    const bool is_open = [&] {
      if constexpr (requires { field.has_value(); }) {
        return !field.has_value();
      } else {
        return false;
      }
    }();
    if (is_open) return;
    text += join_text(key.substr(dot + 1), " = ", toml_of(config, key, field), "  # ", help, "\n");
  });
  return text;
}

}  // namespace brrr::runs
