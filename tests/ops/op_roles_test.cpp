// What passes take ops for: which of brrr's ops has which trait, and that each keeps what its role promises
// (graph/op_def.h). Passes rely on nothing else.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "brrr/graph/graph.h"
#include "brrr/graph/repeat.h"
#include "brrr/ops/op_list.h"

namespace brrr {
namespace {

using Names = std::map<std::string, std::string>;

// The names of ops by what `trait_of` says of them; those with an empty word are left out.
template <typename TraitOf>
Names names_by(TraitOf trait_of) {
  Names names;
  for (const OpDef* op : builtin_ops()) {
    const std::string trait(trait_of(*op));
    if (trait.empty()) continue;
    names[trait] += (names[trait].empty() ? "" : " ") + std::string(op->name);
  }
  return names;
}

TEST(OpRoles, AreThoseOfThisTable) {
  const Names expected{
      {"matmul", "matmul"},
      {"linear", "linear"},
      {"matmul_epilogue", "matmul_gelu matmul_gelu_backward matmul_sums matmul_add matmul_scaled"},
      {"attention", "attention"},
      {"attention_backward", "attention_backward"},
      {"cross_entropy", "cross_entropy"},
      {"cross_entropy_backward", "cross_entropy_backward"},
      {"cast", "cast"},
      {"copy", "copy"},
      {"quantize", "quantize"},
      {"reshape", "view"},
      {"transpose", "transpose"},
      {"concat", "concat"},
      {"place_slice", "place_slice"},
      {"scatter_add", "scatter_add"},
      {"embedding_backward", "embedding_grad"},
      {"full", "full"},
      {"number", "number"}};
  EXPECT_EQ(names_by([](const OpDef& op) {
              return op.role == OpRole::none ? std::string_view() : role_name(op.role);
            }),
            expected);
  EXPECT_EQ(graph::repeat_op.role, OpRole::repeat) << "not in the list of ops";
}

TEST(OpFolds, AreThoseOfThisTable) {
  const auto word = [](const OpDef& op) -> std::string_view {
    switch (op.fold) {
      case Fold::sum: return "sum";
      case Fold::mean: return "mean";
      case Fold::product: return "product";
      case Fold::max: return "max";
      case Fold::min: return "min";
      case Fold::none: break;
    }
    return {};
  };
  const Names expected{
      {"sum", "sum"}, {"mean", "mean"}, {"product", "prod"}, {"max", "max"}, {"min", "min"}};
  EXPECT_EQ(names_by(word), expected);
}

// All that a rule says, in one line: bits of factors and of wide operands, from operand 0 on.
std::string rule_text(const PrecisionRule& rule) {
  constexpr const char* kTakes[] = {"low", "stored", "follow", "table", "wide"};
  const auto bits = [](uint32_t mask) {
    std::string text;
    for (; mask != 0; mask >>= 1) text += (mask & 1U) != 0 ? '1' : '0';
    return text;
  };
  return std::string(kTakes[static_cast<size_t>(rule.take)]) + " factors=" + bits(rule.factors) +
         " wide=" + bits(rule.wide_inputs) + (rule.stores_sums ? " sums" : "") +
         (rule.takes_fp8 ? " fp8" : "");
}

TEST(OpPrecision, IsThatOfThisTable) {
  const Names expected{
      {"low factors=11 wide= sums fp8", "matmul linear"},
      {"low factors=111 wide=", "attention"},
      {"low factors=111001 wide=0000101", "attention_backward"},
      {"stored factors= wide=", "cast cross_entropy"},
      {"stored factors= wide=01", "draw_tokens rms_norm"},
      {"stored factors= wide=001", "classifier"},
      {"stored factors= wide=011", "layer_norm rms_norm_backward"},
      {"stored factors= wide=0111", "layer_norm_backward"},
      {"stored factors= wide=00111", "cross_entropy_backward"},
      {"table factors= wide=", "embedding"},
      {"follow factors= wide=",
       "max min argmax any all argmin softmax log_softmax softmax_backward log_softmax_backward"},
      {"wide factors= wide=", "cumsum nll"}};
  EXPECT_EQ(names_by([](const OpDef& op) {
              return op.precision ? rule_text(*op.precision) : std::string();
            }),
            expected);
}

TEST(OpPrecision, HasAReasonForEveryRule) {
  for (const OpDef* op : builtin_ops()) {
    if (!op->precision) continue;
    EXPECT_FALSE(op->precision->reason.empty()) << op->name;
  }
}

TEST(ScalarFunctions, BelongToOneOpEach) {
  std::set<std::pair<int, int>> seen;
  for (const OpDef* op : builtin_ops()) {
    const ScalarFunction function = op->function;
    if (function.family == ScalarFunction::Family::none) continue;
    EXPECT_TRUE(seen.insert({static_cast<int>(function.family), function.row}).second) << op->name;
    EXPECT_EQ(op->kind, OpKind::elementwise) << op->name;
  }
}

// ---- what roles promise ----

struct TypedCall {
  const Attrs& attrs;
  std::vector<TensorType> inputs;
  TensorTypes outputs;

  const Shape& in(size_t i) const { return inputs[i].shape; }
  const Shape& out(int i) const { return outputs[i].shape; }
};

Shape leading(const Shape& shape, int count) {
  Shape first;
  for (int i = 0; i < count; ++i) first.push_back(shape[i]);
  return first;
}

bool is_product_of(const TypedCall& call, int64_t k, int64_t n) {
  const Shape &a = call.in(0), &y = call.out(0);
  return a.back() == k && y.back() == n && numel(y) * k == numel(a) * n;
}

bool is_matmul_call(const TypedCall& call) {
  const Shape &a = call.in(0), &b = call.in(1), &y = call.out(0);
  return call.inputs.size() == 2 && a.size() >= 2 && b.size() >= 2 && a.back() == b[b.size() - 2] &&
         y.back() == b.back() && y[y.size() - 2] == a[a.size() - 2];
}

bool is_linear_call(const TypedCall& call) {
  const Shape& weight = call.in(1);
  const bool has_bias = call.inputs.size() == 3;
  return (has_bias || call.inputs.size() == 2) && weight.size() == 2 &&
         (!has_bias || call.in(2) == Shape{weight[0]}) && is_product_of(call, weight[1], weight[0]);
}

bool is_epilogue_call(const TypedCall& call) {
  return call.inputs.size() >= 2 && call.in(1).size() == 2 &&
         is_product_of(call, call.in(1)[0], call.in(1)[1]);
}

bool has_qkv(const TypedCall& call) {
  if (call.inputs.size() < 3 || !call.attrs.has("scale")) return false;
  const Shape &q = call.in(0), &k = call.in(1), &v = call.in(2);
  return q.size() == 4 && k.size() == 4 && q[3] == k[3] && leading(k, 3) == leading(v, 3);
}

bool is_attention_call(const TypedCall& call) {
  const Shape rows = leading(call.in(0), 3);
  return has_qkv(call) && call.outputs.size() == 2 && leading(call.out(0), 3) == rows &&
         call.out(0)[3] == call.in(2)[3] && call.out(1) == rows;
}

bool is_attention_backward_call(const TypedCall& call) {
  const Shape rows = leading(call.in(0), 3);
  return has_qkv(call) && call.inputs.size() >= 7 && call.in(3) == call.in(5) &&
         call.in(4) == rows && call.in(6) == rows && call.outputs.size() == 3 &&
         call.out(0) == call.in(0) && call.out(1) == call.in(1) && call.out(2) == call.in(2);
}

bool has_row_columns(const TypedCall& call) {
  if (call.in(0).size() != 2) return false;
  for (size_t i = 1; i < call.inputs.size(); ++i) {
    if (call.in(i) != Shape{call.in(0)[0]}) return false;
  }
  return true;
}

bool is_cross_entropy_call(const TypedCall& call) {
  const Shape rows{call.in(0)[0]};
  return has_row_columns(call) && call.inputs.size() == 2 && call.outputs.size() == 2 &&
         call.out(0) == rows && call.out(1) == rows;
}

bool is_cross_entropy_backward_call(const TypedCall& call) {
  return has_row_columns(call) && (call.inputs.size() == 4 || call.inputs.size() == 5) &&
         call.outputs.size() == 1 && call.out(0) == call.in(0);
}

bool is_transpose_call(const TypedCall& call) {
  Shape shape = call.in(0);
  const auto axis = [&](const char* name) {
    return normalize_axis(call.attrs.integer(name), shape.size(), "transpose");
  };
  std::swap(shape[axis("a")], shape[axis("b")]);
  return call.out(0) == shape;
}

bool is_concat_call(const TypedCall& call) {
  const int axis = normalize_axis(call.attrs.integer("axis"), call.out(0).size(), "concat");
  int64_t length = 0;
  for (size_t i = 0; i < call.inputs.size(); ++i) length += call.in(i)[axis];
  return call.out(0)[axis] == length;
}

bool is_place_slice_call(const TypedCall& call) {
  const int axis = normalize_axis(call.attrs.integer("axis"), call.out(0).size(), "place_slice");
  const Axes& range = call.attrs.list("range");
  return range.size() == 3 && call.inputs.size() == 1 &&
         call.in(0)[axis] == (range[1] - range[0] + range[2] - 1) / range[2];
}

bool is_embedding_backward_call(const TypedCall& call) {
  return call.inputs.size() == 2 && call.in(0).size() == call.in(1).size() + 1 &&
         leading(call.in(0), call.in(1).size()) == call.in(1) && call.out(0).size() == 2 &&
         call.out(0)[1] == call.in(0).back();
}

bool keeps_promise(OpRole role, const TypedCall& call) {
  switch (role) {
    case OpRole::matmul: return is_matmul_call(call);
    case OpRole::linear: return is_linear_call(call);
    case OpRole::matmul_epilogue: return is_epilogue_call(call);
    case OpRole::attention: return is_attention_call(call);
    case OpRole::attention_backward: return is_attention_backward_call(call);
    case OpRole::cross_entropy: return is_cross_entropy_call(call);
    case OpRole::cross_entropy_backward: return is_cross_entropy_backward_call(call);
    case OpRole::cast:
      return call.out(0) == call.in(0) && call.outputs[0].dtype == call.attrs.get<DType>("dtype");
    case OpRole::copy: return call.inputs.size() == 1 && call.outputs[0] == call.inputs[0];
    case OpRole::quantize: return call.inputs.size() == 2 && call.in(1).empty();
    case OpRole::reshape: return call.attrs.has("shape") && numel(call.out(0)) == numel(call.in(0));
    case OpRole::transpose: return is_transpose_call(call);
    case OpRole::concat: return is_concat_call(call);
    case OpRole::place_slice: return is_place_slice_call(call);
    case OpRole::scatter_add:
      return call.inputs.size() == 3 && call.in(1) == call.in(2) && call.out(0) == call.in(0);
    case OpRole::embedding_backward: return is_embedding_backward_call(call);
    case OpRole::full: return call.inputs.empty() && call.attrs.has("value");
    case OpRole::number: return call.inputs.empty() && call.out(0).empty();
    case OpRole::none:
    case OpRole::repeat: break;
  }
  return false;  // no op of the list
}

// Samples are in f64; where an op does not take that, f32 stands for it, as in the sweep.
TypedCall typed_call(const OpDef& op, const Sample& sample) {
  TypedCall call{.attrs = sample.attrs, .inputs = {}, .outputs = {}};
  for (const Tensor& x : sample.inputs) {
    const bool is_main = x.dtype() == DType::f64 && !op.dtypes.contains(DType::f64);
    call.inputs.push_back({.shape = x.shape(), .dtype = is_main ? DType::f32 : x.dtype()});
  }
  call.outputs = graph::infer_types(op, sample.attrs, call.inputs);
  return call;
}

TEST(OpRoles, KeepWhatTheyPromiseInEverySample) {
  for (const OpDef* op : builtin_ops()) {
    if (op->role == OpRole::none) continue;
    const std::vector<Sample> samples = op->samples();
    EXPECT_FALSE(samples.empty()) << op->name;
    for (size_t i = 0; i < samples.size(); ++i)
      EXPECT_TRUE(keeps_promise(op->role, typed_call(*op, samples[i])))
          << op->name << " in sample " << i << " is no " << role_name(op->role);
  }
}

// An op that takes an addend has it last, and is complete without it.
TEST(OpAddends, AreTheLastOperandAndMayBeLeftOut) {
  int found = 0;
  for (const OpDef* op : builtin_ops()) {
    if (op->addend < 0) continue;
    std::set<size_t> counts;
    for (const Sample& sample : op->samples()) {
      const TypedCall call = typed_call(*op, sample);
      const auto addend = static_cast<size_t>(op->addend);
      counts.insert(call.inputs.size());
      if (call.inputs.size() <= addend) continue;
      EXPECT_EQ(call.inputs[addend], call.outputs[0]) << op->name;
    }
    const std::set<size_t> expected{static_cast<size_t>(op->addend),
                                    static_cast<size_t>(op->addend) + 1};
    EXPECT_EQ(counts, expected) << op->name;
    ++found;
  }
  EXPECT_EQ(found, 2) << "layer_norm_backward and rms_norm_backward";
}

}  // namespace
}  // namespace brrr
