// Every op under every check of the sweep on a GPU.
#include "brrr/sweep/sweep.h"

#include <random>

#include "brrr/device/gpu_info.h"
#include "brrr/sweep/cuda.h"
#include "cuda/gpu.h"

namespace brrr {
namespace {

using SweepCase = std::tuple<const OpDef*, sweep::Check>;

class CudaSweep : public testing::TestWithParam<SweepCase> {};

TEST_P(CudaSweep, Holds) {
  BRRR_NEEDS_GPU();
  const uint64_t seed = std::random_device{}();
  sweep::set_cuda_seed(seed);
  const auto& [op, check] = GetParam();
  try {
    check.run(*op);
  } catch (const std::exception& error) {
    FAIL() << error.what() << " (seed " << seed << ")";
  }
}

// Without a GPU one op stands for all, to say that it was skipped.
std::vector<const OpDef*> ops() {
  std::vector<const OpDef*> all = all_ops();
  if (list_gpus().gpus.empty()) all.resize(1);
  return all;
}

INSTANTIATE_TEST_SUITE_P(AllOps, CudaSweep,
                         testing::Combine(testing::ValuesIn(ops()),
                                          testing::ValuesIn(sweep::cuda_checks().begin(),
                                                            sweep::cuda_checks().end())),
                         [](const testing::TestParamInfo<SweepCase>& test) {
                           return std::string(std::get<0>(test.param)->name) + "_" +
                                  std::string(std::get<1>(test.param).name);
                         });

}  // namespace
}  // namespace brrr
