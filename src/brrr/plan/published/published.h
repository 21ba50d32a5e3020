// Published runs, and what this library says of them. A case is a number with a band, and outside its band a formula,
// a table or a prediction is wrong; or it is a bound, a limit that no run may pass, with the reason why this one
// stays away from it. Bounds are counted apart: they hold for any slow system and say less.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace brrr::plan {

enum class CaseClass : uint8_t {
  exact,      // arithmetic: 1 %
  formula,    // memory and formulas: 3 %
  predicted,  // from the hardware table: 15 %
  bound       // what was published must not pass it
};
std::string_view to_text(CaseClass c);
CaseClass parse_case_class(std::string_view name);  // throws Error with the list on any other

enum class Side : uint8_t {
  most,  // published is at most ours: speeds
  least  // published is at least ours: times, hours, bytes
};

struct PublishedCase {
  std::string id, what, unit;
  double published = 0, predicted = 0;
  CaseClass kind = CaseClass::exact;
  double band = 0.01;
  std::string source;
  std::string reason = {};  // why the band is not that of the class, or why a bound is not reached
  Side side = Side::most;   // of a bound
  std::string calibration = {};  // of a prediction: the number that it takes from another run

  double error() const { return predicted / published - 1; }
  bool holds() const;
  // Of a bound: the share of the ideal that the published run has.
  double reached() const {
    return side == Side::most ? published / predicted : predicted / published;
  }
};

struct CaseCounts {
  int exact = 0, formula = 0, predicted = 0;  // inside the band of their class
  int calibrated = 0;                         // of the predictions those that know another run
  int wider = 0;                              // inside a wider one that names its reason
  int bounds = 0, outside = 0;
};
CaseCounts count(const std::vector<PublishedCase>& cases);
// 1, 3 and 15 per cent; 0 for a bound.
double usual_band(CaseClass c);

// Bytes that torchtitan has reserved on a device for Llama-3.1-8B, 2 x 8192 tokens of it at a time, sharded over so
// many ranks, every other product of a layer kept: counted from its source, no number fitted.
struct TorchtitanMemory {
  double states = 0, kept = 0, ends = 0, logits = 0, gathered = 0, working = 0;
  double total() const;
};
TorchtitanMemory torchtitan_memory(int64_t ranks, bool compiled);

std::vector<PublishedCase> published_cases();  // all of them, in order
// Arithmetic and formulas; speeds of training by kind of system; memory; decoding.
std::vector<PublishedCase> exact_cases();
std::vector<PublishedCase> megatron_cases();
std::vector<PublishedCase> eager_cases();
std::vector<PublishedCase> tuned_cases();
std::vector<PublishedCase> memory_cases();
std::vector<PublishedCase> decoding_cases();

}  // namespace brrr::plan
