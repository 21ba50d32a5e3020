// Texts for quantities. The care is in the rounding: 999.96 ns must not print as "1000 ns",
// nor 59.999 s as "60 s", so every function rounds first and chooses the unit of what is then left.
#include "brrr/base/units.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <string_view>

namespace brrr {
namespace {

constexpr std::array<std::string_view, 9> kSiPrefixes{"", "k", "M", "G", "T", "P", "E", "Z", "Y"};
constexpr std::array<std::string_view, 6> kBinaryUnits{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};

// Would `{:.4g}` print `magnitude` as `limit` or more?
bool rounds_to(double magnitude, double limit) {
  double half_last_digit = limit / 2e4;  // numbers just below 1000 print in steps of 0.1
  return magnitude >= limit - half_last_digit;
}

std::string four_digits(double number) { return fmt::format("{:.4g}", number); }

std::string si_text(double number, std::string_view unit) {
  double scaled = number;
  std::size_t prefix = 0;
  while (std::isfinite(scaled) && rounds_to(std::abs(scaled), 1000) &&
         prefix + 1 < kSiPrefixes.size()) {
    scaled /= 1000;
    ++prefix;
  }
  return fmt::format("{:.4g} {}{}", scaled, kSiPrefixes[prefix], unit);
}

std::string binary_text(std::uint64_t bytes) {
  constexpr std::uint64_t kMostPrinted = 9999;
  const std::size_t last = kBinaryUnits.size() - 1;
  for (std::size_t i = last + 1;
       i-- > 0;) {  // the largest unit of which this is a whole or half number
    std::uint64_t unit = std::uint64_t{1} << (10 * i);
    std::uint64_t whole = bytes / unit, rest = bytes % unit;
    if (whole == 0 || whole > kMostPrinted) continue;
    if (rest == 0) return fmt::format("{} {}", whole, kBinaryUnits[i]);
    if (rest * 2 == unit && whole < 1000) return fmt::format("{}.5 {}", whole, kBinaryUnits[i]);
  }
  double scaled = static_cast<double>(bytes);
  std::size_t i = 0;
  for (; scaled >= 1023.5 && i < last; ++i) scaled /= 1024;  // 1023.5 would print as 1024
  return fmt::format("{:.4g} {}", scaled, kBinaryUnits[i]);
}

// "2 h 03 min": `total` counts the small unit.
std::string two_units(double total, int small_per_large, std::string_view large,
                      std::string_view small) {
  auto count = static_cast<std::int64_t>(total);
  return fmt::format("{} {} {:02} {}", count / small_per_large, large, count % small_per_large,
                     small);
}

std::string short_time_text(double seconds) {
  if (seconds == 0 || !std::isfinite(seconds)) return four_digits(seconds) + " s";
  if (!rounds_to(seconds, 1e-6)) return four_digits(seconds * 1e9) + " ns";
  if (!rounds_to(seconds, 1e-3)) return four_digits(seconds * 1e6) + " \u00b5s";
  if (!rounds_to(seconds, 1)) return four_digits(seconds * 1e3) + " ms";
  return four_digits(seconds) + " s";
}

std::string long_time_text(double seconds) {
  constexpr double kMinute = 60, kHour = 3600, kDay = 24 * kHour, kYear = 365.25 * kDay;
  double whole_seconds = std::round(seconds);
  if (whole_seconds < kHour) return two_units(whole_seconds, 60, "min", "s");
  double whole_minutes = std::round(seconds / kMinute);
  if (whole_minutes * kMinute < kDay) return two_units(whole_minutes, 60, "h", "min");
  double whole_hours = std::round(seconds / kHour);
  if (whole_hours * kHour < 1000 * kDay) return two_units(whole_hours, 24, "d", "h");
  return four_digits(seconds / kYear) + " years";
}

std::uint64_t magnitude_of(std::int64_t number) {  // also right for the least int64
  return number < 0 ? -static_cast<std::uint64_t>(number) : static_cast<std::uint64_t>(number);
}

}  // namespace

std::string to_text(Bytes size) {
  std::string_view sign = size < Bytes(0) ? "-" : "";
  return fmt::format("{}{}", sign, binary_text(magnitude_of(size.value())));
}

std::string to_text_decimal(Bytes size) { return si_text(static_cast<double>(size.value()), "B"); }

std::string to_text(Flops work) { return si_text(work.value(), "FLOP"); }

std::string to_text(FlopsPerSecond rate) { return si_text(rate.value(), "FLOP/s"); }

std::string to_text(BytesPerSecond rate) { return si_text(rate.value(), "B/s"); }

std::string to_text(Seconds time) {
  constexpr double kPrintsAsMinute = 59.995;  // of seconds with four digits
  double seconds = std::abs(time.value());
  std::string_view sign = time < Seconds(0) ? "-" : "";
  bool is_short = !std::isfinite(seconds) || seconds < kPrintsAsMinute;
  return fmt::format("{}{}", sign, is_short ? short_time_text(seconds) : long_time_text(seconds));
}

std::string with_commas(std::int64_t number) {
  std::string digits = fmt::format("{}", magnitude_of(number));
  for (std::size_t end = digits.size(); end > 3; end -= 3) digits.insert(end - 3, 1, ',');
  return fmt::format("{}{}", number < 0 ? "-" : "", digits);
}

}  // namespace brrr
