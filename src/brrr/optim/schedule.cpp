#include "brrr/optim/schedule.h"

#include <numbers>

#include "brrr/base/join_names.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"

namespace brrr {
namespace {

constexpr std::string_view kNames[] = {"constant", "linear", "cosine", "warmup-stable-decay"};

// How much of the way from `start`, `length` steps long, is behind step t: 0 to 1.
Tensor progress(const Tensor& step, int64_t start, int64_t length) {
  return clamp(
      (step - static_cast<double>(start)) / static_cast<double>(std::max<int64_t>(length, 1)),
      {.low = 0, .high = 1});
}

}  // namespace

std::string_view schedule_name(ScheduleShape shape) { return kNames[static_cast<size_t>(shape)]; }

ScheduleShape parse_schedule(std::string_view name) {
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (kNames[i] == name) return static_cast<ScheduleShape>(i);
  }
  fail("there is no schedule \"", name, "\"; use one of ", join_names(kNames));
}

Schedule::Schedule(const ScheduleOptions& options) : options_(options) {
  check(options.rate > 0, "schedule: the rate must be positive, not ", options.rate);
  check(options.steps > 0 && options.warmup >= 0 && options.warmup <= options.steps,
        "schedule: a warmup of ", options.warmup, " does not fit into ", options.steps, " steps");
  check(options.final_share >= 0 && options.final_share <= 1, "schedule: the final share ",
        options.final_share, " must be between 0 and 1");
  if (options_.decay_steps == 0) options_.decay_steps = std::max<int64_t>(options.steps / 5, 1);
  check(options_.shape != ScheduleShape::warmup_stable_decay ||
            (options_.decay_steps > 0 && options_.warmup + options_.decay_steps <= options_.steps),
        "schedule: a warmup of ", options.warmup, " and a decay of ", options_.decay_steps,
        " steps do not fit into ", options.steps);
}

// The way to the last step, steps - 1, so that the last step has the final share.
Tensor Schedule::share_behind_warmup(const Tensor& step) const {
  const int64_t last = options_.steps - 1;
  const double fall = 1 - options_.final_share;
  switch (options_.shape) {
    case ScheduleShape::constant: return step * 0.0 + 1.0;
    case ScheduleShape::linear:
      return 1.0 - progress(step, options_.warmup, last - options_.warmup) * fall;
    case ScheduleShape::cosine: {
      const Tensor angle =
          progress(step, options_.warmup, last - options_.warmup) * std::numbers::pi;
      return (cos(angle) + 1.0) * (fall / 2) + options_.final_share;
    }
    case ScheduleShape::warmup_stable_decay:
      return 1.0 - progress(step, last - options_.decay_steps, options_.decay_steps) * fall;
  }
  fail("schedule: an unknown shape");
}

Tensor Schedule::at(const Tensor& step) const {
  NoGrad numbers_only;
  check(step.numel() == 1, "schedule: the step is one number, not ", describe(step));
  const Tensor t = cast(step, DType::f64);
  Tensor share = share_behind_warmup(t);
  if (options_.warmup > 0) {
    const auto warmup = static_cast<double>(options_.warmup);
    share = where(less(t, warmup), (t + 1.0) / warmup, share);
  }
  return share * options_.rate;
}

double Schedule::at(int64_t step) const {
  return at(full({}, static_cast<double>(step), {.dtype = DType::f64, .device = Device::cpu()}))
      .item<double>();
}

}  // namespace brrr
