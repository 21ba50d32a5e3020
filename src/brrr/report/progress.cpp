#include "brrr/report/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "brrr/base/error.h"
#include "brrr/report/table.h"
#include "brrr/report/terminal.h"

namespace brrr::report {
namespace {

constexpr int kSmallestBar = 8, kLargestBar = 30;
constexpr int kDefaultColumns = 80;
constexpr auto kLiveInterval = std::chrono::milliseconds(50);
constexpr auto kLinesInterval = std::chrono::seconds(1);

// Steps a second with three digits: "0.0421", "3.14", "2,345".
std::string speed_text(double per_second) {
  return per_second >= 1000 ? with_commas(std::llround(per_second))
                            : fmt::format("{:.3g}", per_second);
}

std::string bar_text(double part, int width) {
  const int full = static_cast<int>(part * width);
  std::string text = "[";
  for (int i = 0; i < width; ++i) text += i < full ? "█" : "░";
  return text + "]";
}

// Ends of texts are cut by code points, never inside one.
std::string cut(std::string text, int columns) {
  while (display_width(text) > columns) {
    while ((static_cast<unsigned char>(text.back()) & 0xC0U) == 0x80U) text.pop_back();
    text.pop_back();
  }
  return text;
}

// Seconds left to a tenth: more digits would flicker.
std::string left_text(Seconds left) {
  return left < Seconds(59.95) ? fmt::format("{:.1f} s left", left.value())
                               : to_text(left) + " left";
}

}  // namespace

std::string progress_text(const ProgressState& state, std::string_view detail, int columns) {
  const double elapsed = state.elapsed.value();
  const double part =
      state.total > 0
          ? std::clamp(static_cast<double>(state.done) / static_cast<double>(state.total), 0.0, 1.0)
          : 1;
  const std::string total = with_commas(state.total);
  const std::string head =
      fmt::format("step {:>{}}/{}", with_commas(state.done), total.size(), total);
  std::string tail;
  if (!detail.empty()) tail += fmt::format("  {}", detail);
  if (elapsed > 0 && state.done > state.before) {
    const double per_second = static_cast<double>(state.done - state.before) / elapsed;
    const Seconds left(static_cast<double>(state.total - state.done) / per_second);
    tail += fmt::format("  {} steps/s  ", speed_text(per_second));
    tail +=
        state.done < state.total ? left_text(left) : fmt::format("in {}", to_text(state.elapsed));
  }
  if (columns <= 0) return head + tail;
  const int bar = std::min(columns - display_width(head) - display_width(tail) - 4, kLargestBar);
  if (bar < kSmallestBar) return cut(head + tail, columns);
  return fmt::format("{}  {}{}", head, bar_text(part, bar), tail);
}

Progress::Progress(int64_t total, std::FILE* out, ProgressStyle style)
    : total_(total),
      out_(out),
      live_(style == ProgressStyle::live ||
            (style == ProgressStyle::automatic && isatty(fileno(out)) != 0)),
      start_(Clock::now()),
      last_print_(start_) {
  check(total >= 0, "progress: a loop of ", total, " steps; the number cannot be negative");
}

Progress::~Progress() { finish(); }

bool Progress::is_due(int64_t done) const {
  if (done == last_done_) return false;
  const auto interval = live_ ? Clock::duration(kLiveInterval) : Clock::duration(kLinesInterval);
  return done >= total_ || Clock::now() - last_print_ >= interval;
}

void Progress::update(int64_t done, std::string_view detail) {
  if (!is_due(done)) return;
  last_done_ = done;
  last_print_ = Clock::now();
  const ProgressState state{.done = done, .total = total_, .elapsed = elapsed(), .before = before_};
  if (live_) {
    // Back to the start and clear the line; one column stays free, or some terminals wrap.
    fmt::print(out_, "\r\x1b[K{}",
               progress_text(state, detail, terminal_columns(out_, kDefaultColumns) - 1));
    line_open_ = true;
  } else {
    fmt::print(out_, "{}\n", progress_text(state, detail, 0));
  }
  std::fflush(out_);
}

void Progress::finish() {
  if (!line_open_) return;
  std::fputc('\n', out_);
  std::fflush(out_);
  line_open_ = false;
}

Seconds Progress::elapsed() const {
  return Seconds(std::chrono::duration<double>(Clock::now() - start_).count());
}

}  // namespace brrr::report
