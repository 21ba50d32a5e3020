// libFuzzer on the files of a run: a line or run.json is read into values that can be written again, or an
// Error is thrown.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "brrr/base/error.h"
#include "brrr/run/run_log.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const std::string line =
        brrr::runs::to_json(brrr::runs::parse_step_record(text, "log.jsonl:1"));
    (void)brrr::runs::parse_step_record(line, "log.jsonl:1");  // what we write we can read
  } catch (const brrr::Error&) {                               // what a damaged line should do
  }
  try {
    (void)brrr::runs::to_json(brrr::runs::parse_run_facts(text, "run.json"));
  } catch (const brrr::Error&) {
  }
  return 0;
}
