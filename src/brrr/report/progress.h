// How far a loop is: step, what the caller wants seen, speed and time left.
// On a terminal one line rewrites itself; in a file or a pipe a new line appears now and then.
//   Progress progress(steps);
//   for (...) { ...; progress.update(step + 1, fmt::format("loss {:.4f}", loss)); }
//   progress.finish();
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "brrr/base/units.h"

namespace brrr::report {

struct ProgressState {
  int64_t done = 0, total = 0;
  Seconds elapsed;
  int64_t before = 0;  // of those done, how many were before the clock started
};
// "step  40/100  [████░░░░░░]  loss 0.5  20 steps/s  3.0 s left", in at most `columns` columns: the
// bar takes what is left, and goes where that is too little. Columns of 0: no bar, no limit.
std::string progress_text(const ProgressState& state, std::string_view detail, int columns);

enum class ProgressStyle : uint8_t {
  automatic,  // live on a terminal, else lines
  live,
  lines,
};

class Progress {
 public:
  explicit Progress(int64_t total, std::FILE* out = stdout,
                    ProgressStyle style = ProgressStyle::automatic);
  ~Progress();  // finishes
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // The loop goes on after so many steps, which took no time here.
  void start_at(int64_t done) { before_ = done; }
  // True when update would print: spares the caller making a detail that nobody sees.
  bool is_due(int64_t done) const;
  // `done` steps of the total are over. Prints at most 20 times a second live, once a second in
  // lines, and always the last step.
  void update(int64_t done, std::string_view detail);
  void finish();  // ends the live line; the next update begins another
  Seconds elapsed() const;

 private:
  using Clock = std::chrono::steady_clock;
  int64_t total_;
  std::FILE* out_;
  bool live_;
  bool line_open_ = false;
  int64_t last_done_ = -1, before_ = 0;
  Clock::time_point start_, last_print_;
};

}  // namespace brrr::report
