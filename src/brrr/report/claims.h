// Claims and what came of them: the value that a text derives beside the one the program found.
//   Claims claims("Linear model");
//   claims.equal("FLOPs of y = x @ w", counter.total().flops, 33'554'432);
//   std::fputs(claims.text().c_str(), stdout);
//   return claims.all_hold() ? 0 : 1;
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "brrr/base/units.h"
#include "brrr/report/table.h"

namespace brrr::report {

class Claims {
 public:
  explicit Claims(std::string title);

  // Exactly this.
  void equal(const std::string& what, int64_t found, int64_t derived);
  void equal(const std::string& what, Bytes found, Bytes derived);
  void equal(const std::string& what, const std::string& found, const std::string& derived);
  // Within a part of the derived value; the default is the rounding of four printed digits.
  void near(const std::string& what, double found, double derived, double tolerance = 1e-3);
  void near(const std::string& what, Seconds found, Seconds derived, double tolerance = 1e-3);
  void near(const std::string& what, Flops found, Flops derived, double tolerance = 1e-3);
  // Anything else, with what was found in words.
  void holds(const std::string& what, const std::string& found, bool true_as_claimed);

  bool all_hold() const { return broken_ == 0; }
  int broken() const { return broken_; }
  std::string text() const;  // a table; what does not hold is marked and counted below it

 private:
  void add(const std::string& what, const std::string& derived, const std::string& found,
           bool good);

  Table table_;
  int broken_ = 0;
};

}  // namespace brrr::report
