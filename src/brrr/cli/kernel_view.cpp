#include "brrr/cli/kernel_view.h"

#include <fmt/format.h>

#include "brrr/base/units.h"
#include "brrr/report/table.h"

namespace brrr::cli {

nlohmann::json kernels_json(const std::vector<cost::KernelLine>& kernels) {
  nlohmann::json all = nlohmann::json::array();
  for (const cost::KernelLine& kernel : kernels)
    all.push_back({{"name", kernel.name},
                   {"phase", kernel.phase},
                   {"dtype", kernel.dtype},
                   {"shape", kernel.shape},
                   {"count", kernel.count},
                   {"flops", kernel.flops},
                   {"bytes", kernel.bytes},
                   {"seconds", kernel.seconds},
                   {"regime", kernel.regime}});
  return all;
}

namespace {

// Groups of many members have long names; --json has them whole.
std::string shortened(const std::string& name) {
  constexpr size_t kLongest = 44;
  return name.size() <= kLongest ? name : name.substr(0, kLongest - 3) + "...";
}

}  // namespace

void print_kernels(const std::vector<cost::KernelLine>& kernels) {
  report::Table table({"kernel", "result", "phase", "count", "time", "FLOPs", "bytes", "bound by"});
  int64_t launches = 0;
  for (const cost::KernelLine& kernel : kernels) {
    table.row(shortened(kernel.name), kernel.dtype + kernel.shape, kernel.phase, kernel.count,
              Seconds(kernel.seconds), fmt::format("{:.3g}", kernel.flops),
              Bytes(static_cast<int64_t>(kernel.bytes)), kernel.regime);
    launches += kernel.count;
  }
  fmt::print("\n{}\n{} launches in a step, in this order\n", table.text(), launches);
}

}  // namespace brrr::cli
