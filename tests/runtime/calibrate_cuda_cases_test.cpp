// What a GPU is calibrated on, without one: every case must be a kernel that a prediction finds under the name and
// at the point at which it is stored.
#include "brrr/cost/calibrate_cuda_cases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "brrr/cost/kernel_family.h"
#include "brrr/cost/predict.h"
#include "brrr/cost/standalone_kernel.h"
#include "brrr/cost/tensor_core_use.h"
#include "brrr/ops/op_list.h"
#include "support/synthetic_rates.h"

namespace brrr {
namespace {

using testing::Contains;
using testing::StartsWith;

std::string family_of(const cost::FamilyWork& work) {
  const std::string& first = work.own.empty() ? work.family : work.own;
  return work.arithmetic.empty() ? first : join_text(first, ".", work.arithmetic);
}

void expect_found_where_stored(const std::vector<cost::CudaFamily>& families,
                               std::set<std::string>& names) {
  for (const cost::CudaFamily& family : families) {
    EXPECT_TRUE(names.insert(family.name).second) << family.name << " is there twice";
    for (size_t i = 0; i < family.grid.points(); ++i) {
      const std::vector<double> point = family.point(i);
      const compiler::Kernel kernel = family.make(point);
      const cost::FamilyWork work = cost::work_of(kernel).parts.back();
      EXPECT_EQ(family_of(work), family.name);
      ASSERT_EQ(work.where.size(), static_cast<int>(point.size())) << family.name;
      // The FLOPs of an epilogue count into k.
      for (size_t a = 0; a < point.size(); ++a)
        EXPECT_NEAR(work.where[static_cast<int>(a)] / point[a], 1, 0.03)
            << family.name << " axis " << family.grid.axes[a].name;
      EXPECT_GT(work.amount, 0) << family.name;
      EXPECT_NE(kernel.op->infer, nullptr);
    }
  }
}

TEST(CudaFamilies, AreFoundWhereTheyAreStored) {
  std::set<std::string> names;
  expect_found_where_stored(cost::cuda_families(65536), names);
  for (const char* name :
       {"matmul.nn", "matmul.nt.bf16", "matmul.tn.fp8", "matmul.nt.tf32", "matmul.nn.f16",
        "matmul_gelu.bf16", "matmul_sums.bf16", "attention.bf16", "attention_backward.f16",
        "attention", "layer_norm_backward.bf16", "rms_norm", "cross_entropy.bf16",
        "embedding_grad"})
    EXPECT_THAT(names, Contains(std::string(name)));
}

// Each case waits 10 ms for the clock to settle, and products choose their algorithm first.
TEST(CudaFamilies, OfAQuickCalibrationAreFewAndBeginWithProducts) {
  const std::vector<cost::CudaFamily> families = cost::quick_cuda_families();
  std::set<std::string> names;
  expect_found_where_stored(families, names);
  EXPECT_EQ(families.front().name, "matmul.nn") << "without it there are no rates";
  for (const char* name : {"matmul.tn.bf16", "attention_backward.bf16", "layer_norm.bf16",
                           "cross_entropy_backward", "embedding_grad.bf16"})
    EXPECT_THAT(names, Contains(std::string(name)));
  size_t cases = 0;
  for (const cost::CudaFamily& family : families) {
    cases += family.grid.points();
    for (size_t i = 0; i < family.grid.points(); ++i) {
      const compiler::Kernel kernel = family.make(family.point(i));
      EXPECT_LT(kernel.cost.bytes_read + kernel.cost.bytes_written, int64_t{512} << 20)
          << family.name;
    }
  }
  EXPECT_LE(cases, 60U);
}

TEST(CudaFamilies, PointsRunWithTheLastAxisFastest) {
  const cost::CudaFamily family{
      .name = "x", .grid = {.unit = "s", .axes = {{"m", {1, 2}}, {"n", {3, 4, 5}}}}, .make = {}};
  EXPECT_EQ(family.point(0), (std::vector<double>{1, 3}));
  EXPECT_EQ(family.point(2), (std::vector<double>{1, 5}));
  EXPECT_EQ(family.point(3), (std::vector<double>{2, 3}));
}

TEST(CudaFamilies, FitASmallerGpu) {
  for (const cost::CudaFamily& family : cost::cuda_families(8192)) {
    for (size_t i = 0; i < family.grid.points(); ++i) {
      const compiler::Kernel kernel = family.make(family.point(i));
      EXPECT_LT(kernel.cost.bytes_read + kernel.cost.bytes_written, int64_t{2} << 30)
          << family.name;
    }
  }
}

// The kernels that 16-bit training spends its time in are calibrated on tensor cores.
TEST(CudaFamilies, MultiplyOnTensorCoresInSixteenBits) {
  for (const cost::CudaFamily& family : cost::cuda_families(65536)) {
    const std::optional<kernels::TensorCoreUse> use =
        cost::tensor_cores_of(family.make(family.point(0)), kernels::GpuGeneration{9, 0});
    if (!use) continue;
    const bool is_low = family.name.ends_with("16");
    EXPECT_EQ(use->how == kernels::TensorCores::full,
              is_low || family.name.ends_with(".tf32") || family.name == "matmul.nt.fp8")
        << family.name << ": " << use->reason;
  }
}

compiler::Kernel product(DType dtype, int64_t m) {
  return cost::make_kernel(
      matmul_op, {cost::operand(dtype, Shape{m, 1000}), cost::operand(dtype, Shape{1000, 1000})});
}

double price(const compiler::Kernel& kernel, const hardware::Rates& rates) {
  compiler::KernelList list;
  list.buffers.resize(3);
  list.kernels = {kernel};
  for (size_t i = 0; i < 2; ++i) list.kernels[0].inputs[i].buffer = compiler::BufferId(i);
  list.kernels[0].outputs[0].buffer = compiler::BufferId(size_t{2});
  compiler::MemoryPlan plan;
  plan.offsets = {-1, -1, -1};
  return cost::predict(list, plan, rates).kernels[0].compute;
}

TEST(Predict, TakesTheRateOfTheArithmetic) {
  hardware::Rates rates = synthetic_rates();  // 100 GFLOP/s
  EXPECT_DOUBLE_EQ(price(product(DType::f32, 1000), rates), 2e9 / 100e9);
  rates.grids["scale.matmul.bf16"] = hardware::constant_rate("ratio", 4);
  EXPECT_DOUBLE_EQ(price(product(DType::bf16, 1000), rates), 2e9 / 400e9);
  rates.grids["matmul.nn.bf16"] = {
      .unit = "flop/s", .axes = {{"m", {1}}, {"n", {1}}, {"k", {1}}}, .values = {800e9}};
  EXPECT_DOUBLE_EQ(price(product(DType::bf16, 1000), rates), 2e9 / 800e9)
      << "its own grid goes first";
  EXPECT_DOUBLE_EQ(price(product(DType::f32, 1000), rates), 2e9 / 100e9);
  EXPECT_DOUBLE_EQ(price(product(DType::f16, 1000), rates), 2e9 / 100e9)
      << "nothing is known of it";
}

TEST(Predict, TakesTheTimeOfAKernelThatWasMeasured) {
  hardware::Rates rates = synthetic_rates();
  const compiler::Kernel known = product(DType::bf16, 1000), other = product(DType::bf16, 1008);
  EXPECT_THAT(cost::kernel_signature(known), StartsWith("kernel.matmul bf16[1000, 1000]"));
  EXPECT_NE(cost::kernel_signature(known), cost::kernel_signature(other));
  rates.grids[cost::kernel_signature(known)] = hardware::constant_rate("s", 0.25);
  EXPECT_DOUBLE_EQ(price(known, rates), 0.25);
  EXPECT_LT(price(other, rates), 0.1);
  const compiler::Kernel norm = cost::make_kernel(
      rms_norm_op, {cost::operand(DType::f32, Shape{4, 8}), cost::operand(DType::f32, Shape{8})},
      {{"eps", 1e-5}});
  EXPECT_EQ(cost::kernel_signature(norm), "") << "families price what is no product";
}

TEST(Rates, OfKernelsSurviveTheirFile) {
  hardware::Rates rates = synthetic_rates();
  const std::string signature = cost::kernel_signature(product(DType::bf16, 1000));
  rates.grids[signature] = hardware::constant_rate("s", 0.25);
  const hardware::Rates read = hardware::parse_rates(hardware::to_json(rates), "r");
  ASSERT_NE(read.find(signature), nullptr);
  EXPECT_EQ(read.number(signature), 0.25);
}

}  // namespace
}  // namespace brrr
