// Published runs, and what this library says of them. Every case has a band; a case outside its band means that
// a formula, a table or a prediction is wrong.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace brrr {

enum class CaseClass : uint8_t {
  exact,      // arithmetic: 1 %
  formula,    // memory and formulas: 3 %
  predicted,  // from the hardware table: 15 %
  bound       // what was published must not beat it
};
std::string_view to_text(CaseClass c);

struct PublishedCase {
  std::string id, what, unit;
  double published = 0, predicted = 0;
  CaseClass kind = CaseClass::exact;
  double band = 0.01;
  std::string source;
  std::string reason = {};  // why the band is not that of the class

  double error() const { return predicted / published - 1; }
  bool holds() const;
};

std::vector<PublishedCase> published_cases();  // all of them, in order
// Arithmetic and formulas alone; and those that price a program.
std::vector<PublishedCase> exact_cases();
std::vector<PublishedCase> predicted_cases();
std::vector<PublishedCase> published_speeds();  // of those the speeds of training

}  // namespace brrr
