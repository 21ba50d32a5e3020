// Published runs and numbers as data: plan/published/*.toml, compiled in, each file read once, when it is first asked for.
//   systems.toml                     what the software of a run does (SystemTraits), by name
//   megatron, eager, tuned.toml      runs; [GROUP] has what its [[GROUP.run]] share
//   calibration.toml                 runs that others are predicted with, by name
//   arithmetic, memory, decoding.toml  numbers whose prediction is code: [ID.KEY], and what those of an ID share in [ID]
#pragma once

#include "brrr/base/toml_entry.h"
#include "brrr/plan/published/published_run.h"

namespace brrr::plan {

// A run as it is written. What it takes of others is still a name.
struct WrittenRun {
  std::string name;  // for those that take something of it
  PublishedRun run;
  std::string software_from, goodput_from;
};
const std::vector<WrittenRun>& written_runs(std::string_view file);  // "eager"

// The number "A1.step" of a file, with what this library says of it.
PublishedCase number_case(std::string_view file, std::string_view key, double predicted);

// A whole file, for tables of another form.
const toml::table& published_file(std::string_view name);

}  // namespace brrr::plan
