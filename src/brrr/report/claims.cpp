#include "brrr/report/claims.h"

#include <fmt/format.h>

#include <cmath>

namespace brrr::report {
namespace {

bool is_near(double found, double derived, double tolerance) {
  return std::abs(found - derived) <= tolerance * std::abs(derived);  // false for NaN
}

std::string digits(double value) {
  return value == std::floor(value) && std::abs(value) < 1e15
             ? with_commas(static_cast<int64_t>(value))
             : fmt::format("{:.7g}", value);
}

}  // namespace

Claims::Claims(std::string title) : table_({"", "derived", "found", ""}, std::move(title)) {}

void Claims::add(const std::string& what, const std::string& derived, const std::string& found,
                 bool good) {
  table_.row(what, derived, found, good ? "✓" : "✗ differs");
  if (!good) ++broken_;
}

void Claims::equal(const std::string& what, int64_t found, int64_t derived) {
  add(what, with_commas(derived), with_commas(found), found == derived);
}

void Claims::equal(const std::string& what, Bytes found, Bytes derived) {
  add(what, with_commas(derived.value()) + " B", with_commas(found.value()) + " B",
      found == derived);
}

void Claims::equal(const std::string& what, const std::string& found, const std::string& derived) {
  add(what, derived, found, found == derived);
}

void Claims::near(const std::string& what, double found, double derived, double tolerance) {
  add(what, digits(derived), digits(found), is_near(found, derived, tolerance));
}

void Claims::near(const std::string& what, Seconds found, Seconds derived, double tolerance) {
  add(what, to_text(derived), to_text(found), is_near(found.value(), derived.value(), tolerance));
}

void Claims::near(const std::string& what, Flops found, Flops derived, double tolerance) {
  add(what, fmt::format("{:.6e}", derived.value()), fmt::format("{:.6e}", found.value()),
      is_near(found.value(), derived.value(), tolerance));
}

void Claims::holds(const std::string& what, const std::string& found, bool true_as_claimed) {
  add(what, "", found, true_as_claimed);
}

std::string Claims::text() const {
  std::string out = table_.text();
  if (broken_ > 0) out += fmt::format("  {} of these did not come out as derived\n", broken_);
  return out;
}

}  // namespace brrr::report
