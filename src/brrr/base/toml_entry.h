// A table of a TOML file whose keys are taken one by one, with errors that name the place. What nobody took is a slip of
// the pen, and require_all_used says so.
#pragma once

#include <toml++/toml.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace brrr {

// Throws Error with `origin` and the line.
toml::table parse_toml(std::string_view text, std::string_view origin);

class TomlEntry {
 public:
  // `where` comes first in messages: "cards.toml: [gpu.my-card]". The table must outlive the entry.
  TomlEntry(const toml::table& table, std::string where)
      : table_(table), where_(std::move(where)) {}

  bool contains(std::string_view key) const { return table_.contains(key); }
  std::string text(std::string_view key);
  std::string text_or(std::string_view key, std::string_view otherwise);
  std::vector<std::string> texts(std::string_view key);         // none: empty
  std::optional<double> number(std::string_view key);           // positive
  double required(std::string_view key);                        // positive
  int64_t integer_or(std::string_view key, int64_t otherwise);  // positive
  bool flag_or(std::string_view key, bool otherwise);
  std::optional<TomlEntry> entry(std::string_view key);  // the table under `key`

  void require_all_used() const;
  const std::string& where() const { return where_; }

 private:
  const toml::table& table_;
  std::string where_;
  std::vector<std::string> used_;
};

// The tables directly inside `table`, in the order of the file; toml++ sorts them by name.
struct NamedTable {
  std::string name;
  const toml::table* table = nullptr;
};
std::vector<NamedTable> tables_in_order(const toml::table& table);

}  // namespace brrr
