#include "brrr/napkin/published.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace brrr {

std::string_view to_text(CaseClass c) {
  constexpr std::array<std::string_view, 4> names = {"exact", "formula", "predicted", "bound"};
  return names[static_cast<size_t>(c)];
}

bool PublishedCase::holds() const {
  if (kind == CaseClass::bound) return published <= predicted;
  return std::abs(error()) <= band;
}

std::vector<PublishedCase> published_cases() {
  std::vector<PublishedCase> all = exact_cases();
  for (PublishedCase& each : predicted_cases()) all.push_back(std::move(each));
  const auto number = [](const PublishedCase& c) { return std::stoi(c.id.substr(1)); };
  std::stable_sort(all.begin(), all.end(), [&](const PublishedCase& a, const PublishedCase& b) {
    return number(a) < number(b);
  });
  return all;
}

}  // namespace brrr
