#include "brrr/base/toml_entry.h"

#include <algorithm>

#include "brrr/base/error.h"
#include "brrr/base/join_names.h"

namespace brrr {

toml::table parse_toml(std::string_view text, std::string_view origin) {
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    fail(origin, ", line ", error.source().begin.line, ": ", error.description());
  }
}

std::string TomlEntry::text(std::string_view key) {
  used_.emplace_back(key);
  const auto value = table_[key].value<std::string>();
  if (!value) fail(where_, " needs ", key, " = \"...\"");
  return *value;
}

std::string TomlEntry::text_or(std::string_view key, std::string_view otherwise) {
  used_.emplace_back(key);
  return contains(key) ? text(key) : std::string(otherwise);
}

std::vector<std::string> TomlEntry::texts(std::string_view key) {
  used_.emplace_back(key);
  std::vector<std::string> all;
  if (!contains(key)) return all;
  const toml::array* list = table_[key].as_array();
  check(list, where_, ": ", key, " must be a list of texts");
  for (const toml::node& each : *list) {
    const auto value = each.value<std::string>();
    if (!value) fail(where_, ": ", key, " must be a list of texts");
    all.push_back(*value);
  }
  return all;
}

std::optional<double> TomlEntry::number(std::string_view key) {
  used_.emplace_back(key);
  if (!contains(key)) return std::nullopt;
  const auto value = table_[key].value<double>();
  check(value.has_value() && *value > 0, where_, ": ", key, " must be a positive number");
  return value;
}

double TomlEntry::required(std::string_view key) {
  const std::optional<double> value = number(key);
  if (!value) fail(where_, " needs ", key);
  return *value;
}

int64_t TomlEntry::integer_or(std::string_view key, int64_t otherwise) {
  used_.emplace_back(key);
  if (!contains(key)) return otherwise;
  const auto value = table_[key].value_exact<int64_t>();
  if (!value || *value <= 0) fail(where_, ": ", key, " must be a positive integer");
  return *value;
}

bool TomlEntry::flag_or(std::string_view key, bool otherwise) {
  used_.emplace_back(key);
  if (!contains(key)) return otherwise;
  const auto value = table_[key].value_exact<bool>();
  if (!value) fail(where_, ": ", key, " must be true or false");
  return *value;
}

std::optional<TomlEntry> TomlEntry::entry(std::string_view key) {
  used_.emplace_back(key);
  const toml::table* inner = table_[key].as_table();
  if (!inner) return std::nullopt;
  return TomlEntry(*inner, where_ + " " + std::string(key));
}

void TomlEntry::require_all_used() const {
  const auto is_used = [&](std::string_view key) {
    return std::find(used_.begin(), used_.end(), key) != used_.end();
  };
  for (const auto& [key, value] : table_) {
    if (is_used(key.str())) continue;
    std::vector<std::string> settings;  // each once
    for (const std::string& each : used_)
      if (std::find(settings.begin(), settings.end(), each) == settings.end())
        settings.push_back(each);
    fail(where_, ": there is no setting \"", key.str(), "\"; the settings are ",
         join_names(settings));
  }
}

std::vector<NamedTable> tables_in_order(const toml::table& table) {
  std::vector<NamedTable> all;
  for (const auto& [name, node] : table)
    if (const toml::table* inner = node.as_table()) all.push_back({std::string(name.str()), inner});
  std::sort(all.begin(), all.end(), [](const NamedTable& a, const NamedTable& b) {
    return a.table->source().begin.line < b.table->source().begin.line;
  });
  return all;
}

}  // namespace brrr
