// Where the settings of runs differ.
#pragma once

#include <string>
#include <vector>

namespace brrr::report {

struct ConfigDifference {
  std::string key;                  // "model.width"
  std::vector<std::string> values;  // one for each configuration; "" where it has no such key
};

// Of TOML texts: every key that is not the same in all of them, by name. Throws Error, with the name of
// the file, for what is not TOML.
struct NamedConfig {
  std::string name, text;
};
std::vector<ConfigDifference> config_differences(const std::vector<NamedConfig>& configs);

}  // namespace brrr::report
