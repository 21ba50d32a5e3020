#include "brrr/kernels/cuda/elementwise/elementwise_cuda.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <mutex>
#include <numeric>

#include "brrr/device/cuda/generated.h"
#include "brrr/device/cuda/runtime.h"
#include "brrr/kernels/cpu/elementwise/loop_nest.h"
#include "brrr/kernels/cpu/elementwise/unary_tiles.h"
#include "brrr/kernels/cuda/codegen/elementwise_text.h"
#include "brrr/kernels/cuda/elementwise/elementwise_builtin.h"
#include "brrr/kernels/scalar/unary_settings.h"

namespace brrr::kernels {
namespace {

// Compiling takes a tenth of a second or two: worth it where a call moves megabytes.
constexpr int64_t kWorthCompiling = int64_t{1} << 20;

ComputeType choose_type(const CudaCall& call) {
  SmallVector<TypeRef, 4> types;
  for (const Operand& input : call.inputs) types.push_back({&input.shape(), input.dtype, false});
  return elementwise_type(call.output(0).dtype, types);
}

void require_no_packed(const CudaCall& call) {
  for (const std::span<const Operand> all : {call.inputs, call.outputs}) {
    for (const Operand& operand : all)
      check(!is_packed(operand.dtype), call.op.name, ": ", to_text(operand.dtype),
            " packs two values a byte, which no GPU kernel reads; cast it on the cpu");
  }
}

// ---- the built-in kernel ---------------------------------------------------------------------------
#if BRRR_HAS_CUDA
functors::Settings settings_of(const CudaCall& call, ScalarFunction function) {
#define BRRR_ROW(name, functor, chain) functors::read_settings<functors::functor>,
  static constexpr functors::Settings (*kRead[])(const Attrs&) = {BRRR_UNARY_FUNCTIONS(BRRR_ROW)};
#undef BRRR_ROW
  if (function.family != ScalarFunction::Family::unary) return {};
  return kRead[function.row](call.attrs);
}

void run_builtin(const CudaCall& call, ScalarFunction function, ComputeType type) {
  const Operand& output = call.output(0);
  SmallVector<const Layout*, kMaxNestOperands> layouts;
  for (const Operand& input : call.inputs) layouts.push_back(input.layout);
  layouts.push_back(output.layout);
  const LoopNest nest = make_nest(output.shape(), layouts);
  BuiltinElementwise builtin{.family = static_cast<uint8_t>(function.family),
                             .function = function.row,
                             .compute_type = static_cast<uint8_t>(type),
                             .operands = static_cast<uint8_t>(nest.operands),
                             .rank = static_cast<uint8_t>(nest.rank),
                             .flat = true,
                             .count = output.count()};
  for (int axis = 0; axis < nest.rank; ++axis)
    builtin.sizes[axis] = nest.sizes[static_cast<size_t>(axis)];
  for (int o = 0; o < nest.operands; ++o) {
    const Operand& operand = o + 1 == nest.operands ? output : call.input(o);
    builtin.dtypes[o] = static_cast<uint8_t>(operand.dtype);
    builtin.data[o] = first_byte(operand);
    builtin.flat = builtin.flat && nest.is_flat(o);
    for (int axis = 0; axis < nest.rank; ++axis)
      builtin.strides[o][axis] = nest.strides[static_cast<size_t>(o)][static_cast<size_t>(axis)];
  }
  std::ranges::copy(settings_of(call, function), builtin.settings);
  run_builtin_elementwise(builtin, call.stream);
}

void say_once_that_builtin_kernels_run() {
  static const bool said = [] {
    std::fprintf(stderr, "brrr: kernels are not generated (%s); built-in ones serve, slower\n",
                 cuda::compiler_name().c_str());
    return true;
  }();
  (void)said;
}
#else
void run_builtin(const CudaCall& call, ScalarFunction, ComputeType) {
  fail(call.op.name, ": this build has no CUDA kernels");
}
void say_once_that_builtin_kernels_run() {}
#endif

// ---- a kernel for this call ------------------------------------------------------------------------
TextOperand text_operand(const Operand& operand) {
  const auto address = reinterpret_cast<uintptr_t>(first_byte(operand));
  return {*operand.layout, operand.dtype,
          std::gcd<int64_t>(16, static_cast<int64_t>(address % 16))};
}

ElementwiseText text_of(const CudaCall& call, ComputeType type) {
  ElementwiseText text{.shape = call.output(0).shape()};
  std::vector<int> values;
  for (const Operand& input : call.inputs) {
    const int i = static_cast<int>(values.size());
    text.inputs.push_back(text_operand(input));
    text.loads.push_back({i, i, type});
    values.push_back(i);
  }
  text.outputs.push_back(text_operand(call.output(0)));
  const int result = static_cast<int>(values.size());
  text.statements = {statement_text(call.op, call.attrs, type, result, values)};
  text.stores = {{0, result, type}};
  return text;
}

struct OneOpKernel {
  const cuda::Kernel* kernel;
  unsigned blocks;
};

// What the text depends on, shorter than the text and faster to make.
std::string key_of(const CudaCall& call) {
  std::string key = fmt::format("{} {} ", call.op.name, to_text(call.attrs));
  for (const std::span<const Operand> all : {call.inputs, call.outputs}) {
    for (const Operand& operand : all) {
      const auto address = reinterpret_cast<uintptr_t>(first_byte(operand));
      fmt::format_to(std::back_inserter(key), "{}/{}", static_cast<int>(operand.dtype),
                     address % 16);
      for (int axis = 0; axis < operand.layout->rank(); ++axis)
        fmt::format_to(std::back_inserter(key), " {}:{}", operand.layout->shape[axis],
                       operand.layout->strides[axis]);
      key += ';';
    }
  }
  return key;
}

OneOpKernel make_kernel(const CudaCall& call, ComputeType type) {
  const ElementwiseText text = text_of(call, type);
  const int pack = pack_of(text);
  const std::string name = join_text(call.op.name, "_elements"),
                    kernel = join_text(call.op.name, "_kernel");
  const std::string source =
      source_head(name) + function_text(text, name, pack) +
      fmt::format(
          "extern \"C\" __global__ void __launch_bounds__({}) {}(const {}_args args) {{\n{}}}\n",
          kTextBlock, kernel, name, block_text(text, name, pack, "blockIdx.x", "args"));
  return {&cuda::generated_kernel({name, source}, kernel, 0),
          static_cast<unsigned>(blocks_of(text, pack))};
}

void run_generated(const CudaCall& call, ComputeType type) {
  static std::mutex mutex;
  static std::map<std::string, OneOpKernel> kernels;
  const std::string key = key_of(call);
  OneOpKernel kernel{};
  {
    const std::lock_guard lock(mutex);
    if (const auto known = kernels.find(key); known != kernels.end()) kernel = known->second;
  }
  if (!kernel.kernel) {
    kernel = make_kernel(call, type);
    const std::lock_guard lock(mutex);
    kernels.emplace(key, kernel);
  }
  SmallVector<void*, kMaxNestOperands> pointers;
  for (const std::span<const Operand> all : {call.inputs, call.outputs}) {
    for (const Operand& operand : all) pointers.push_back(first_byte(operand));
  }
  void* const arguments[] = {pointers.begin()};
  kernel.kernel->launch({.grid = {kernel.blocks}, .block = {kTextBlock}}, call.stream, arguments);
}

void run(const CudaCall& call, ScalarFunction function, ComputeType type) {
  using Family = ScalarFunction::Family;
  const int64_t count = call.output(0).count();
  if (count == 0) return;
  require_no_packed(call);
  if (function.family == Family::none || (count >= kWorthCompiling && cuda::has_compiler()))
    return run_generated(call, type);
  if (!cuda::has_compiler()) say_once_that_builtin_kernels_run();
  run_builtin(call, function, type);
}

}  // namespace

void run_elementwise_cuda(const CudaCall& call) { run(call, call.op.function, choose_type(call)); }

}  // namespace brrr::kernels
