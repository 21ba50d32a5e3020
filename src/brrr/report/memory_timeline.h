// A memory plan over time: which bytes of the arena are taken while each kernel runs, as bars for a
// terminal and as a drawing.
#pragma once

#include <string>

#include "brrr/compiler/lower/arena_timeline.h"

namespace brrr::report {

struct TimelineOptions {
  int rows = 24;   // kernels are put together to fit
  int width = 50;  // characters of the longest bar
};
std::string memory_timeline_text(const compiler::KernelList& list, const compiler::MemoryPlan& plan,
                                 const TimelineOptions& options = {});
// Time to the right, the arena upwards, one rectangle a buffer with its name and size as a tooltip.
std::string memory_timeline_svg(const compiler::KernelList& list, const compiler::MemoryPlan& plan);

}  // namespace brrr::report
