// The facts of a run in words, for pages and terminals, and those of several runs beside each other.
#pragma once

#include <string>
#include <vector>

#include "brrr/report/run_charts.h"
#include "brrr/run/run_log.h"

namespace brrr::report {

struct RunFact {
  std::string name, value;
};
// What a person asks first: how far, how good, how large, how fast.
std::vector<RunFact> headline_facts(const runs::RunLog& run);

struct ComparedFact {
  std::string name;
  std::vector<std::string> values;  // one for each run; "" where a run does not say
};
// Results and facts of all runs, in one order.
std::vector<ComparedFact> compared_facts(const std::vector<NamedRun>& runs);

}  // namespace brrr::report
