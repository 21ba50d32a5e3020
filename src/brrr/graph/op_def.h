// What an op is, in one value: how it types, what it costs, what it means, how its gradient goes and which
// kernels of the CPU run it. Everything that handles ops asks here; nobody keeps a second list. Kernels of
// other backends are in the table of the backend (backends/).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "brrr/graph/kernel_call.h"
#include "brrr/graph/op_precision.h"

namespace brrr {

// Drives fusion and recomputation, and tells the sweep what to expect.
enum class OpKind : uint8_t {
  elementwise,
  reduce,
  view,
  contraction,
  gather,
  random,
  creation,
  other
};
std::string_view kind_name(OpKind kind);

// What passes take an op for. They ask for the role and never for the op itself, so one from outside the tree is treated
// as brrr's own. An op with a role has the operands, attributes and results that the line of the role promises; what a
// line leaves open no pass relies on.
enum class OpRole : uint8_t {
  none,

  // Products. Passes may add the attributes "dtype" (f32: sums of factors in 16 bits are stored as they are) and "tf32"
  // (f32 factors are multiplied by their upper bits).
  matmul,           // a [..., m, k], b [..., k, n] -> a @ b
  linear,           // x [..., k], weight [n, k], perhaps bias [n] -> x @ weight^T + bias
  matmul_epilogue,  // a [..., m, k], b [k, n], others -> a @ b with more done in its kernel, others

  // q [batch, heads, positions, size], k and v [batch, heads, keys, size]; the attribute "scale"
  attention,           // q, k, v, others -> out, logsumexp
  attention_backward,  // q, k, v, out, logsumexp, dout, dlogsumexp, others -> dq, dk, dv

  // Each row is computed without the others. logits [rows, classes], everything else [rows]
  cross_entropy,           // logits, targets -> losses, logsumexp
  cross_entropy_backward,  // logits, targets, logsumexp, dlosses, perhaps dlogsumexp -> dlogits

  // Elements in another dtype or another place.
  cast,         // x; "dtype"
  copy,         // x -> x in order
  quantize,     // x, scale -> x * scale in 8 bits, its transpose, or both; composed also in f32
  reshape,      // a view of x by "shape"
  transpose,    // a view of x with the axes "a" and "b" exchanged
  concat,       // any number of parts -> one after another along "axis"
  place_slice,  // x -> zeros of "shape" with x at "range" (start, stop, step) of "axis"
  scatter_add,  // x, index, source -> x, and source added where the index says along "axis"
  embedding_backward,  // dy [..., width], ids [...] -> the gradient of the table

  // Constants: no operands, the same in every run.
  full,    // "shape", "dtype", "device"; every element is "value", a float
  number,  // one element, "value": a float in f64, an integer in other dtypes

  repeat,  // runs the body of its node; operands and attributes are in graph/repeat.h
};
std::string_view role_name(OpRole role);

// How a reduction joins the elements over "axes", which stay as axes of one element with "keep_dims".
enum class Fold : uint8_t { none, sum, mean, product, max, min };

// Shape and dtype of an operand without owning them.
struct TypeRef {
  const Shape* shape;
  DType dtype;
  bool weak;
};

// What `infer` sees.
struct InferCall {
  const OpDef& op;
  std::span<const TypeRef> inputs;
  const Attrs& attrs;

  int size() const { return static_cast<int>(inputs.size()); }
  const Shape& shape(int i) const { return *inputs[static_cast<size_t>(i)].shape; }
  DType dtype(int i) const { return inputs[static_cast<size_t>(i)].dtype; }
};
using TensorTypes = SmallVector<TensorType, 3>;

// Work of one call. FLOPs are exact; bytes are those touched, each operand once.
struct Cost {
  int64_t flops = 0;
  int64_t bytes_read = 0;
  int64_t bytes_written = 0;
  Cost& operator+=(const Cost& other);
  bool operator==(const Cost&) const = default;
};

// What `cost` sees.
struct CostCall {
  const InferCall& call;
  std::span<const TensorType> outputs;
};

// What a composition sees: the op's meaning in simpler ops.
struct ComposeCall {
  std::span<const Tensor> inputs;
  const Attrs& attrs;
  const Tensor& input(int i) const { return inputs[static_cast<size_t>(i)]; }
};

// What a gradient rule sees. Inputs and outputs not listed in grad_reads have shape and dtype only;
// a rule that needs the device takes it from the gradient that arrived.
struct GradCall {
  const Attrs& attrs;
  std::span<const Tensor> inputs;
  std::span<const Tensor> outputs;
  std::span<const Tensor> output_grads;  // undefined where no gradient arrived
  uint32_t wanted;                       // bit i: input i needs a gradient

  const Tensor& input(int i) const { return inputs[static_cast<size_t>(i)]; }
  const Tensor& output(int i) const { return outputs[static_cast<size_t>(i)]; }
  const Tensor& output_grad(int i) const { return output_grads[static_cast<size_t>(i)]; }
  // Inputs past the 32nd are always wanted.
  bool wants(int i) const { return i >= 32 || (wanted >> i & 1U) != 0; }
};

// The result that may be written over an operand: its element i is computed when nobody reads that of the operand any
// more. Elementwise ops may do so with every operand and need not say it.
struct Overwrites {
  int input = -1, output = -1;  // none
};

// Which operands a gradient rule reads the elements of; the tape keeps only those alive.
struct GradReads {
  uint32_t inputs = 0, outputs = 0;  // bit i: operand i
};

// A set of dtypes.
struct DTypeSet {
  uint32_t bits = 0;
  constexpr bool contains(DType dtype) const { return (bits >> static_cast<int>(dtype) & 1U) != 0; }
  constexpr DTypeSet operator|(DTypeSet other) const { return {bits | other.bits}; }
};
constexpr DTypeSet dtype_set(DType dtype) { return {1U << static_cast<int>(dtype)}; }
inline constexpr DTypeSet kFloats{0b111111};
inline constexpr DTypeSet kIntegers = DTypeSet{0b1111111U << 6} | dtype_set(DType::u64);
inline constexpr DTypeSet kNumbers = kFloats | kIntegers;
inline constexpr DTypeSet kAnyDType = kNumbers | dtype_set(DType::boolean);

// One call for the sweep. Float operands are given in f64 and cast to every dtype that the op claims;
// integer and bool operands (indices, masks, keys) stay as they are.
struct Sample {
  Tensors inputs;
  Attrs attrs;
};

// Which row of the tables of scalar functions an elementwise op is. Backends with built-in elementwise kernels
// switch on it; `none` for an op of somebody else, which is known by its expression alone.
struct ScalarFunction {
  enum class Family : uint8_t { none, unary, binary, activation_backward };
  Family family = Family::none;
  uint8_t row = 0;
  bool operator==(const ScalarFunction&) const = default;
};

struct OpDef {
  std::string_view name;
  std::string_view formula;  // one line for people: "y = x / (1 + exp(-x))"
  OpKind kind = OpKind::other;
  OpRole role = OpRole::none;
  Fold fold = Fold::none;
  const PrecisionRule* precision = nullptr;  // null: by the kind
  DTypeSet dtypes = kFloats;      // what the main operands may be; `infer` refuses the others
  int64_t flops_per_element = 1;  // of the output, for the default cost

  TensorTypes (*infer)(const InferCall&) = nullptr;
  Cost (*cost)(const CostCall&) = nullptr;  // null: flops_per_element, every operand touched once
  Tensors (*grad)(const GradCall&) = nullptr;
  GradReads grad_reads;

  // The meaning. A composite op gives `compose`; a primitive gives `scalar` (elementwise, in f64) or
  // `reference` (slow, index by index): the sweep holds the kernels against it.
  Tensors (*compose)(const ComposeCall&) = nullptr;
  double (*scalar)(const double* inputs, const Attrs& attrs) = nullptr;
  Tensors (*reference)(const ComposeCall&) = nullptr;

  // Kernels. A view has a layout rule and no kernel, an elementwise op has tiles.
  Layout (*view)(const Layout&, const Attrs&) = nullptr;
  TileKernels (*tiles)() = nullptr;
  void (*cpu)(const KernelCall&) = nullptr;
  int64_t (*workspace)(const KernelCall&) =
      nullptr;  // bytes of scratch; operands may have no data yet
  Streams streams;
  Overwrites overwrites;
  // The last operand, which may be left out: it has the type of result 0 and is added to it. -1: the op takes none.
  int addend = -1;
  // Elementwise: one element as an expression of x0, x1, ... in C++, for backends that generate kernels.
  std::string (*expression)(const Attrs& attrs, ComputeType type) = nullptr;
  ScalarFunction function;

  std::vector<Sample> (*samples)() = nullptr;
  double tolerance =
      1;  // multiplies the sweep's tolerance where an op needs more room, with reason
};

// a @ b in either form of the second operand.
inline bool is_matmul(const OpDef& op) {
  return op.role == OpRole::matmul || op.role == OpRole::linear;
}
// q, k and v first, forward or backward.
inline bool is_attention(const OpDef& op) {
  return op.role == OpRole::attention || op.role == OpRole::attention_backward;
}
// "value" everywhere; how it is stored differs.
inline bool is_constant(const OpDef& op) {
  return op.role == OpRole::full || op.role == OpRole::number;
}
// One element of the result for each of the operands: such ops fuse into programs of tiles.
inline bool has_tiles(const OpDef& op) {
  return op.tiles != nullptr || op.role == OpRole::cast || op.role == OpRole::copy;
}

// The type of an elementwise result by PyTorch's promotion rules, and the broadcast shape.
DType promote_types(std::span<const TypeRef> operands, std::string_view op = "promote");
TensorType promoted_type(const InferCall& call);
// What an elementwise op computes in: floats in the type of the result; comparisons and integers in the type of the
// operands.
ComputeType elementwise_type(DType result, std::span<const TypeRef> operands);
// The tile function of an op for that type. Throws Error where the op has none.
TileFn tile_for(const OpDef& op, ComputeType type);

// The cost that `op` declares, or the default.
Cost cost_of(const CostCall& call);

// Every op in the program: those of brrr and those registered by users.
std::vector<const OpDef*> all_ops();
std::span<const OpDef* const> builtin_ops();  // the list itself is ops/all_ops.cpp
const OpDef* find_op(std::string_view name);  // nullptr when there is none
// Adds an op from outside; it must outlive the program's use of it. Throws Error on a taken name.
void register_op(const OpDef& op);

}  // namespace brrr
