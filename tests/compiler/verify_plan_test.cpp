// A memory plan with a fault is refused, and the plans that the compiler makes are legal.
#include "brrr/compiler/lower/verify_plan.h"

#include <gtest/gtest.h>

#include "brrr/compiler/pipeline.h"
#include "brrr/graph/print.h"

namespace brrr {
namespace {

// Three products whose operands live side by side, then two elementwise steps kept apart.
compiler::KernelProgram program_of(const compiler::PipelineOptions& options) {
  return compiler::run_pipeline(graph::parse_graph(R"(input %0: f32[16, 16] "x"
%1: f32[16, 16] = matmul %0 %0
%2: f32[16, 16] = matmul %1 %0
%3: f32[16, 16] = matmul %2 %1
%4: f32[16, 16] = exp %3
%5: f32[16, 16] = matmul %4 %4
return %5
)"),
                                options, thread_pool())
      .kernels;
}

std::string fault_in(const compiler::KernelProgram& program) {
  try {
    compiler::verify_plan(program);
  } catch (const InternalError& error) {
    return error.what();
  }
  return "not noticed";
}

compiler::BufferId output_of(const compiler::KernelProgram& program, size_t kernel) {
  return program.list.kernels[kernel].outputs[0].buffer;
}

TEST(VerifyPlan, AcceptsWhatThePlannerMakes) {
  EXPECT_EQ(fault_in(program_of({})), "not noticed");
  EXPECT_EQ(fault_in(program_of({.without = {"plan_memory"}})), "not noticed");
}

TEST(VerifyPlan, FindsPlantedFaults) {
  const compiler::KernelProgram good = program_of({.without = {"fuse"}});
  const auto fault = [&](const auto& plant) {
    compiler::KernelProgram bad = good;
    plant(bad);
    return fault_in(bad);
  };
  const auto expect = [](const std::string& message, const char* part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  const auto offset = [](compiler::KernelProgram& program, size_t kernel) -> int64_t& {
    return program.plan.offsets[output_of(program, kernel).index()];
  };
  // The second product on the first, which the third reads.
  expect(fault([&](compiler::KernelProgram& bad) { offset(bad, 1) = offset(bad, 0); }),
         "read later");
  // The third on an operand of its own: a product reads rows and columns again and again.
  expect(fault([&](compiler::KernelProgram& bad) { offset(bad, 2) = offset(bad, 1); }),
         "another order");
  expect(fault([&](compiler::KernelProgram& bad) { offset(bad, 2) = offset(bad, 1) + 64; }),
         "still reads");
  expect(fault([&](compiler::KernelProgram& bad) { offset(bad, 0) = bad.plan.arena_bytes; }),
         "of an arena of");
  expect(fault([&](compiler::KernelProgram& bad) { offset(bad, 0) += 4; }), "of an arena of");
  expect(fault([&](compiler::KernelProgram& bad) { bad.plan.offsets.pop_back(); }), "places for");
  // The elementwise step may take the place of what it reads, and does.
  compiler::KernelProgram same = good;
  EXPECT_EQ(offset(same, 3), offset(same, 2));
}

}  // namespace
}  // namespace brrr
