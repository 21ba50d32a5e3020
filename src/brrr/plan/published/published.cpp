#include "brrr/plan/published/published.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "brrr/base/join_names.h"

namespace brrr::plan {

namespace {
constexpr std::array<std::string_view, 4> kNames = {"exact", "formula", "predicted", "bound"};
}  // namespace

std::string_view to_text(CaseClass c) { return kNames[static_cast<size_t>(c)]; }

CaseClass parse_case_class(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<CaseClass>(i);
  }
  fail("there is no class of cases \"", name, "\"; use one of ", join_names(kNames));
}

double usual_band(CaseClass c) {
  switch (c) {
    case CaseClass::exact: return 0.01;
    case CaseClass::formula: return 0.03;
    case CaseClass::predicted: return 0.15;
    case CaseClass::bound: break;
  }
  return 0;
}

bool PublishedCase::holds() const {
  if (kind == CaseClass::bound)
    return side == Side::most ? published <= predicted : published >= predicted;
  return std::abs(error()) <= band;
}

CaseCounts count(const std::vector<PublishedCase>& cases) {
  CaseCounts counts;
  for (const PublishedCase& c : cases) {
    if (!c.holds()) {
      ++counts.outside;
    } else if (c.kind == CaseClass::bound) {
      ++counts.bounds;
    } else if (c.band > usual_band(c.kind)) {
      ++counts.wider;
    } else {
      ++(c.kind == CaseClass::exact     ? counts.exact
         : c.kind == CaseClass::formula ? counts.formula
                                        : counts.predicted);
      if (!c.calibration.empty()) ++counts.calibrated;
    }
  }
  return counts;
}

std::vector<PublishedCase> published_cases() {
  std::vector<PublishedCase> all;
  for (const auto& part :
       {exact_cases, megatron_cases, eager_cases, tuned_cases, memory_cases, decoding_cases}) {
    for (PublishedCase& each : part()) all.push_back(std::move(each));
  }
  const auto number = [](const PublishedCase& c) { return std::stoi(c.id.substr(1)); };
  std::stable_sort(all.begin(), all.end(), [&](const PublishedCase& a, const PublishedCase& b) {
    return number(a) < number(b);
  });
  return all;
}

}  // namespace brrr::plan
