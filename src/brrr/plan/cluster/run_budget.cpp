// Recomputation within the memory of a device: the least of it that fits.
#include <fmt/format.h>

#include "brrr/plan/cluster/run_question.h"

namespace brrr::plan {

RunAnswer answer_within_memory(const RunQuestion& question) {
  const auto device = static_cast<double>(hardware::find_gpu(question.gpu).memory.value());
  std::string needs;  // of what was tried
  RunAnswer leanest;
  // From the least to the most that runs again.
  for (const compiler::RematPolicy policy :
       {compiler::RematPolicy::none, compiler::RematPolicy::selective,
        compiler::RematPolicy::full}) {
    RunQuestion tried = question;
    tried.recompute = policy;
    RunAnswer a = answer(tried);
    const double bytes = a.memory.total();
    needs += fmt::format("{}{} needs {:.2f} GB", needs.empty() ? "" : ", ",
                         compiler::policy_name(policy), bytes / 1e9);
    if (policy == compiler::RematPolicy::none || bytes < leanest.memory.total())
      leanest = std::move(a);
    if (leanest.fits) break;
  }
  leanest.assumptions.push_back(
      fmt::format("--recompute budget: {} {}; {}, of {:.2f} GB that the device has",
                  compiler::policy_name(leanest.question.recompute),
                  leanest.fits ? "recomputes least of what fits" : "needs least, and nothing fits",
                  needs, device / 1e9));
  return leanest;
}

}  // namespace brrr::plan
