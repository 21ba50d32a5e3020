// The learning rate as a function of the step, computed by ops, so that a compiled step takes the number
// of the step as an input and makes its rate itself:
//   const Schedule schedule({.shape = ScheduleShape::cosine, .rate = 3e-4, .steps = 2000, .warmup = 100});
//   optimizer.update(grads, schedule.at(step));
//
// Steps count from 0. Step t of a warmup of w has (t + 1) / w of the rate; behind it, with s the share
// of the steps gone since the warmup and f the final share:
//   constant             1
//   linear               1 - (1 - f) s
//   cosine               f + (1 - f) (1 + cos(pi s)) / 2
//   warmup_stable_decay  1 until the last `decay_steps`, then linear down to f
// Past the last step the rate stays where it ended.
#pragma once

#include <string_view>

#include "brrr/tensor/tensor.h"

namespace brrr {

enum class ScheduleShape : uint8_t { constant, linear, cosine, warmup_stable_decay };
std::string_view schedule_name(ScheduleShape shape);  // "warmup-stable-decay"
ScheduleShape parse_schedule(std::string_view name);  // the inverse; throws Error on anything else

struct ScheduleOptions {
  ScheduleShape shape = ScheduleShape::cosine;
  double rate = 3e-4;    // at its highest
  int64_t steps = 1000;  // in all, warmup included
  int64_t warmup = 0;
  double final_share = 0.1;  // of the rate, at the last step
  int64_t decay_steps = 0;   // of warmup_stable_decay; 0: a fifth of the steps
};

class Schedule {
 public:
  explicit Schedule(const ScheduleOptions& options);
  const ScheduleOptions& options() const { return options_; }

  Tensor at(const Tensor& step) const;  // a number in a tensor [] of any dtype -> f64 []
  double at(int64_t step) const;        // the same, for people and plots

 private:
  Tensor share_behind_warmup(const Tensor& step) const;
  ScheduleOptions options_;
};

}  // namespace brrr
