// The precision pass on small programs: golden graphs, casts, products, overrides, the table.
#include "brrr/compiler/precision/precision.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <fstream>
#include <set>
#include <sstream>

#include "brrr/autodiff/grad.h"
#include "brrr/compiler/precision/precision_table.h"
#include "brrr/compiler/rewrite/simplify.h"
#include "brrr/graph/call.h"
#include "brrr/graph/interpret.h"
#include "brrr/graph/print.h"
#include "brrr/graph/trace.h"
#include "brrr/graph/verify.h"
#include "brrr/nn/families/gpt2.h"
#include "brrr/ops/attention/attention.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/matmul/matmul.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/ops/view/views.h"
#include "brrr/optim/optimizer.h"
#include "brrr/runtime/compile.h"
#include "support/error_of.h"

namespace brrr {
namespace {

compiler::PrecisionOptions bf16_mixed() { return {.policy = compiler::Precision::bf16_mixed}; }

Tensor values(const Shape& shape, uint32_t draw) {
  return normal(shape, RandomKey{.seed = 11, .stream = 1, .draw = draw});
}

graph::Graph applied(const graph::Graph& graph, const compiler::PrecisionOptions& options) {
  graph::Graph result = compiler::apply_precision(graph, options);
  graph::verify(result, "precision");
  result = compiler::simplify(result);
  graph::verify(result, "simplify");
  return result;
}

// ---- golden graphs: tests/compiler/golden_precision/precision_*.txt, the program and what becomes of it ----

struct Golden {
  std::string before, after;
};
Golden read_golden(const std::string& name) {
  std::ifstream file(BRRR_SOURCE_DIR "/tests/compiler/golden_precision/" + name);
  EXPECT_TRUE(file.good()) << name;
  std::stringstream text;
  text << file.rdbuf();
  const std::string whole = text.str(), line = "----\n";
  const size_t at = whole.find(line);
  EXPECT_NE(at, std::string::npos) << name << " has no line ----";
  return {whole.substr(0, at), whole.substr(at + line.size())};
}

void expect_golden(const std::string& name, const compiler::PrecisionOptions& options) {
  const Golden golden = read_golden(name);
  EXPECT_EQ(graph::to_text(applied(graph::parse_graph(golden.before), options)), golden.after)
      << name;
}

TEST(Precision, GoldenBf16) { expect_golden("precision_bf16.txt", bf16_mixed()); }
TEST(Precision, GoldenF16WithAFixedScale) {
  expect_golden("precision_f16.txt",
                {.policy = compiler::Precision::f16_mixed,
                 .loss_scale = {.kind = compiler::LossScaling::fixed, .initial = 1024}});
}
TEST(Precision, GoldenF16WithADynamicScale) {
  expect_golden("precision_f16_dynamic.txt", {.policy = compiler::Precision::f16_mixed});
}
TEST(Precision, GoldenFp8) {
  expect_golden("precision_fp8.txt", {.policy = compiler::Precision::fp8_mixed, .amax_steps = 4});
}
TEST(Precision, GoldenF16InABody) {
  expect_golden("precision_f16_repeat.txt", {.policy = compiler::Precision::f16_mixed});
}
TEST(Precision, GoldenFp8InABody) {
  expect_golden("precision_fp8_repeat.txt",
                {.policy = compiler::Precision::fp8_mixed, .amax_steps = 4});
}
TEST(Precision, GoldenTf32) {
  expect_golden("precision_tf32.txt", {.matmul = compiler::MatmulPrecision::tf32});
}

// ---- a small GPT ----

struct Model {
  Random random{3};
  Gpt2 gpt{{.vocab = 32, .context = 16, .layers = 2, .heads = 2, .width = 16}, random};
  AdamW optimizer;
  Model() : optimizer(gpt.named_parameters(), AdamWOptions{.weight_decay = 0.1}) {}

  graph::Graph trace_step() {
    graph::Tracer tracer;
    const TensorType ids{.shape = {2, 8}, .dtype = DType::i64};
    const Tensor tokens = tracer.add_input(ids, Device::cpu(), "tokens"),
                 targets = tracer.add_input(ids, Device::cpu(), "targets");
    const Tensor loss = gpt.loss(tokens, targets);
    std::vector<Tensor> grads = grad(loss, optimizer.parameters());
    clip_global_norm(grads, 1.0);
    optimizer.update(grads, 1e-3);
    const Tensor result = loss.detach();
    graph::Graph graph = tracer.finish({&result, 1});
    graph::verify(graph, "trace");
    return graph;
  }
};

TEST(Precision, F32LeavesTheGraphAsItIs) {
  Model model;
  const graph::Graph graph = model.trace_step();
  EXPECT_EQ(graph::to_text(compiler::apply_precision(graph, {})), graph::to_text(graph));
}

TEST(Precision, ScopesSurvivePrintingAndParsing) {
  Model model;
  const std::string text = graph::to_text(model.trace_step());
  EXPECT_NE(text.find("@\"h.1.attn.c_attn\""), std::string::npos);
  EXPECT_EQ(graph::to_text(graph::parse_graph(text)), text);
  const std::string low =
      graph::to_text(compiler::apply_precision(graph::parse_graph(text), bf16_mixed()));
  EXPECT_NE(low.find("\"wte.weight.bf16\" of \"wte.weight\""), std::string::npos);
  EXPECT_EQ(graph::to_text(graph::parse_graph(low)), low);
}

TEST(Precision, BackwardNodesCarryTheScopeOfTheirForwardNode) {
  Model model;
  int attention_backward = 0;
  const graph::Graph graph = model.trace_step();
  for (const graph::Node& node : graph.nodes) {
    if (node.op != &attention_backward_op) continue;
    EXPECT_EQ(node.phase, graph::Phase::backward);
    EXPECT_EQ(node.scope, attention_backward++ == 0 ? "h.1.attn" : "h.0.attn");
  }
  EXPECT_EQ(attention_backward, 2);
}

std::vector<const graph::Node*> casts_of(const graph::Graph& graph, graph::Phase phase) {
  std::vector<const graph::Node*> casts;
  for (const graph::Node& node : graph.nodes) {
    if (node.op == &cast_op && node.phase == phase) casts.push_back(&node);
  }
  return casts;
}

TEST(Precision, CastsAreWhereTheyMustBeAndNowhereTwice) {
  Model model;
  const graph::Graph before = compiler::simplify(model.trace_step()),
                     after = applied(model.trace_step(), bf16_mixed());
  // Forward: the weights have copies, norms take f32 weights beside bf16 rows, logits are read as they are.
  EXPECT_EQ(casts_of(after, graph::Phase::forward).size(),
            casts_of(before, graph::Phase::forward).size());
  const std::vector<std::vector<graph::NodeId>> uses = graph::uses_of(after);
  // Backward: gradients widen for sums over rows (biases and positions) and for the table of tokens, and
  // so do the two parts of the last one, which these alone read.
  for (const graph::Node* node : casts_of(after, graph::Phase::backward)) {
    EXPECT_EQ(after.type(node->inputs[0]).dtype, DType::bf16);
    EXPECT_EQ(after.type(node->outputs[0]).dtype, DType::f32);
    for (graph::NodeId user : uses[node->outputs[0].index()]) {
      const std::string_view name = after.node(user).op->name;
      EXPECT_TRUE(name == "sum" || name == "embedding_grad" || name == "add" ||
                  after.node(user).op->view)
          << name;
    }
  }
  // Update: every copy is cast from the new master once.
  int copies = 0;
  for (const graph::StateSlot& state : after.states) copies += state.copy_of >= 0 ? 1 : 0;
  EXPECT_EQ(copies,
            2 + 2 * 8);  // tokens and positions; a block has four products, each with a bias
  EXPECT_EQ(casts_of(after, graph::Phase::update).size(),
            casts_of(before, graph::Phase::update).size() + static_cast<size_t>(copies));
  std::set<std::pair<int32_t, DType>> seen;
  for (const graph::Node& node : after.nodes) {
    if (node.op != &cast_op) continue;
    EXPECT_TRUE(seen.emplace(node.inputs[0].value, after.type(node.outputs[0]).dtype).second);
  }
}

TEST(Simplify, RemovesCastsThereAndBack) {
  const graph::Graph graph = compiler::simplify(graph::parse_graph(R"(input %0: bf16[3] "x"
input %1: f32[3] "y"
%2: f32[3] = cast %0 {dtype=f32}
%3: bf16[3] = cast %2 {dtype=bf16}
%4: bf16[3] = neg %3
%5: bf16[3] = cast %1 {dtype=bf16}
%6: f32[3] = cast %5 {dtype=f32}
%7: f32[3] = neg %6
return %4 %7
)"));
  EXPECT_EQ(graph::to_text(graph), R"(input %0: bf16[3] "x"
input %1: f32[3] "y"
%2: bf16[3] = neg %0
%3: bf16[3] = cast %1 {dtype=bf16}
%4: f32[3] = cast %3 {dtype=f32}
%5: f32[3] = neg %4
return %2 %5
)");
}

TEST(Precision, StoresWhatTheTableSays) {
  Model model;
  const graph::Graph graph = applied(model.trace_step(), bf16_mixed());
  for (const graph::Node& node : graph.nodes) {
    const DType first = graph.type(node.outputs[0]).dtype;
    if (node.phase == graph::Phase::update) {
      for (graph::ValueId id : node.inputs)
        EXPECT_NE(graph.type(id).dtype, DType::bf16) << node.op->name;
    } else if (node.op == &matmul_op || node.op == &linear_op) {
      for (graph::ValueId id : node.inputs) EXPECT_EQ(graph.type(id).dtype, DType::bf16);
      const bool weight_gradient = node.attrs.has("dtype");
      EXPECT_EQ(first, weight_gradient ? DType::f32 : DType::bf16);
    } else if (node.op == &attention_op) {
      EXPECT_EQ(first, DType::bf16);
      EXPECT_EQ(graph.type(node.outputs[1]).dtype, DType::f32);  // logsumexp
    } else if (node.op == &layer_norm_op) {
      EXPECT_EQ(first, DType::bf16);
      EXPECT_EQ(graph.type(node.inputs[1]).dtype, DType::f32);   // weight
      EXPECT_EQ(graph.type(node.outputs[2]).dtype, DType::f32);  // 1 / standard deviation
    } else if (node.op == &layer_norm_backward_op) {
      EXPECT_EQ(first, DType::bf16);
      EXPECT_EQ(graph.type(node.outputs[1]).dtype, DType::f32);  // gradient of the weight
    } else if (node.op == &cross_entropy_op || node.op == &mean_op || node.op == &sum_op) {
      EXPECT_EQ(first, DType::f32);
    } else if (node.op == &add_op && node.phase == graph::Phase::forward) {
      EXPECT_EQ(first, DType::bf16);  // the residual stream
    }
  }
  for (const graph::StateSlot& state : graph.states)
    EXPECT_EQ(graph.type(state.before).dtype == DType::bf16, state.copy_of >= 0) << state.name;
}

// ---- overrides ----

// The lines of the nodes in these scopes, without the numbers of values.
std::multiset<std::string> lines_of(const graph::Graph& graph, const std::string& pattern) {
  std::multiset<std::string> lines;
  for (const graph::Node& node : graph.nodes) {
    if (!compiler::matches_pattern(pattern, node.scope)) continue;
    std::string line(node.op->name);
    for (graph::ValueId id : node.inputs) line += " " + to_text(graph.type(id));
    line += " ->";
    for (graph::ValueId id : node.outputs) line += " " + to_text(graph.type(id));
    lines.insert(line);
  }
  return lines;
}

bool has_dtype(const graph::Graph& graph, const std::string& pattern, DType dtype) {
  for (const graph::Node& node : graph.nodes) {
    if (!compiler::matches_pattern(pattern, node.scope) || node.op == &cast_op || node.op->view)
      continue;
    for (graph::ValueId id : node.outputs) {
      if (graph.type(id).dtype == dtype) return true;
    }
  }
  return false;
}

TEST(Precision, AnOverrideChangesItsModulesAlone) {
  Model model;
  const graph::Graph traced = model.trace_step();
  const graph::Graph plain = applied(traced, bf16_mixed());
  compiler::PrecisionOptions options = bf16_mixed();
  options.overrides = {{"h.*.attn", compiler::Precision::f32}};
  const graph::Graph changed = applied(traced, options);
  EXPECT_TRUE(has_dtype(plain, "h.0.attn*", DType::bf16));
  EXPECT_FALSE(has_dtype(changed, "h.0.attn*", DType::bf16));
  EXPECT_FALSE(has_dtype(changed, "h.1.attn*", DType::bf16));
  for (const char* scope : {"h.?.mlp*", "head", "ln_f", "wte"})
    EXPECT_EQ(lines_of(changed, scope), lines_of(plain, scope)) << scope;

  options.overrides = {{"h.0.attn", compiler::Precision::f32}};
  const graph::Graph first = applied(traced, options);
  EXPECT_FALSE(has_dtype(first, "h.0.attn*", DType::bf16));
  EXPECT_EQ(lines_of(first, "h.1.attn*"), lines_of(plain, "h.1.attn*"));
}

TEST(Precision, TheHeadAloneInBf16) {
  Model model;
  const graph::Graph traced = model.trace_step();
  const graph::Graph graph =
      applied(traced, {.overrides = {{"head", compiler::Precision::bf16_mixed}}});
  int low = 0;
  for (const graph::Node& node : graph.nodes) {
    if (node.op != &matmul_op && node.op != &linear_op) continue;
    const bool in_head = node.scope == "head";
    EXPECT_EQ(graph.type(node.inputs[0]).dtype, in_head ? DType::bf16 : DType::f32);
    low += in_head ? 1 : 0;
  }
  EXPECT_EQ(low, 3);  // the product and its two gradients
}

TEST(Precision, AnOverrideThatCoversNothingNamesWhatIsNear) {
  Model model;
  const graph::Graph traced = model.trace_step();
  compiler::PrecisionOptions options = bf16_mixed();
  options.overrides = {{"h.0.atn", compiler::Precision::f32}};
  const std::string error = error_of([&] { compiler::apply_precision(traced, options); });
  EXPECT_NE(error.find("\"h.0.atn\" covers no module"), std::string::npos) << error;
  EXPECT_NE(error.find("near names: h.0.attn"), std::string::npos) << error;
}

TEST(Precision, TheLastOverrideThatCoversWins) {
  Model model;
  compiler::PrecisionOptions options = bf16_mixed();
  options.overrides = {{"*attn*", compiler::Precision::f32},
                       {"h.1", compiler::Precision::bf16_mixed}};
  const graph::Graph graph = applied(model.trace_step(), options);
  EXPECT_FALSE(has_dtype(graph, "h.0.attn*", DType::bf16));
  EXPECT_TRUE(has_dtype(graph, "h.1.attn*", DType::bf16));
}

TEST(Precision, Patterns) {
  EXPECT_TRUE(compiler::matches_pattern("h.*.attn", "h.0.attn"));
  EXPECT_FALSE(compiler::matches_pattern("h.*.attn", "h.0.attn.c_attn"));
  EXPECT_TRUE(compiler::matches_pattern("*attn*", "h.0.attn.c_attn"));
  EXPECT_TRUE(compiler::matches_pattern("h.?", "h.7"));
  EXPECT_FALSE(compiler::matches_pattern("h.?", "h.17"));
  EXPECT_TRUE(compiler::matches_pattern("*a*b", "xaxbab"));
  EXPECT_FALSE(compiler::matches_pattern("", "x"));
  EXPECT_TRUE(compiler::matches_pattern("**", ""));
}

TEST(Precision, ReadsAndPrintsItsOptions) {
  const compiler::PrecisionOverride entry = compiler::parse_precision_override("h.*.attn=f32");
  EXPECT_EQ(entry.pattern, "h.*.attn");
  EXPECT_EQ(entry.precision, compiler::Precision::f32);
  EXPECT_EQ(compiler::parse_precision("bf16"), compiler::Precision::bf16_mixed);
  EXPECT_EQ(compiler::parse_matmul_precision("tf32"), compiler::MatmulPrecision::tf32);
  EXPECT_NE(error_of([] { compiler::parse_precision("bf17"); }).find("fp8_mixed"),
            std::string::npos);
  EXPECT_NE(error_of([] { compiler::parse_precision_override("attn"); }).find("PATTERN=PRECISION"),
            std::string::npos);
  const std::string text = compiler::to_text(
      compiler::PrecisionOptions{.policy = compiler::Precision::fp8_mixed,
                                 .overrides = {{"head", compiler::Precision::bf16_mixed}}});
  EXPECT_NE(text.find("policy fp8_mixed (low type bf16)"), std::string::npos) << text;
  EXPECT_NE(text.find("override head = bf16_mixed"), std::string::npos);
  for (const compiler::PrecisionRow& row : compiler::precision_rows())
    EXPECT_NE(text.find(row.rule->reason), std::string::npos) << row.rule->reason;
}

// ---- products of f32 ----

float kept_bits(float x) { return std::bit_cast<float>(std::bit_cast<uint32_t>(x) & ~0x1fffU); }

Tensor kept_bits(const Tensor& x) {
  std::vector<float> kept = x.to_vector<float>();
  for (float& value : kept) value = kept_bits(value);
  return from_values(kept, x.shape());
}

TEST(MatmulPrecision, Tf32DropsThirteenBitsOfEachOperand) {
  const Tensor a = values({5, 70}, 1), b = values({70, 9}, 2), bias = values({9}, 3);
  auto product = runtime::compile([](const Tensor& x, const Tensor& y) { return matmul(x, y); },
                                  {.precision = {.matmul = compiler::MatmulPrecision::tf32}});
  EXPECT_EQ(product(a, b).to_vector<float>(),
            matmul(kept_bits(a), kept_bits(b)).to_vector<float>());
  EXPECT_NE(product(a, b).to_vector<float>(), matmul(a, b).to_vector<float>());
  // One product without a sum: the bits are those of the machine's own multiplication.
  const Tensor x = values({1, 1}, 4), y = values({1, 1}, 5);
  EXPECT_EQ(product(x, y).item<float>(), kept_bits(x.item<float>()) * kept_bits(y.item<float>()));
  auto layer = runtime::compile([](const Tensor& in, const Tensor& weight,
                                   const Tensor& add) { return linear(in, weight, add); },
                                {.precision = {.matmul = compiler::MatmulPrecision::tf32}});
  EXPECT_EQ(layer(a, contiguous(transpose(b)), bias).to_vector<float>(),
            linear(kept_bits(a), contiguous(transpose(kept_bits(b))), bias).to_vector<float>());
}

TEST(MatmulPrecision, Tf32ReachesGradientsAndAttention) {
  const Tensor q = values({1, 2, 6, 8}, 1), k = values({1, 2, 6, 8}, 2),
               v = values({1, 2, 6, 8}, 3);
  const compiler::PipelineOptions tf32{.precision = {.matmul = compiler::MatmulPrecision::tf32}};
  auto mixed = runtime::compile(
      [](const Tensor& a, const Tensor& b, const Tensor& c) { return attention(a, b, c, {}); },
      tf32);
  EXPECT_EQ(mixed(q, k, v).to_vector<float>(),
            attention(kept_bits(q), kept_bits(k), kept_bits(v), {}).to_vector<float>());

  const Tensor w = values({4, 3}, 4).require_grad(), x = values({5, 4}, 5), dy = values({5, 3}, 6);
  auto gradient = runtime::compile(
      [&](const Tensor& in) { return grad(matmul(in, w), {w}, {.seed = dy})[0]; }, tf32);
  EXPECT_EQ(gradient(x).to_vector<float>(),
            matmul(transpose(kept_bits(x)), kept_bits(dy)).to_vector<float>());
}

TEST(MatmulPrecision, Bf16RoundsOperandsAndAddsInF32) {
  const Tensor a = values({5, 70}, 1), b = values({70, 9}, 2);
  auto product = runtime::compile([](const Tensor& x, const Tensor& y) { return matmul(x, y); },
                                  {.precision = {.matmul = compiler::MatmulPrecision::bf16}});
  const auto rounded = [](const Tensor& x) { return cast(cast(x, DType::bf16), DType::f32); };
  EXPECT_EQ(product(a, b).dtype(), DType::f32);
  EXPECT_EQ(product(a, b).to_vector<float>(), matmul(rounded(a), rounded(b)).to_vector<float>());
}

TEST(MatmulPrecision, Tf32OfSpecialNumbers) {
  const uint32_t low_payload_nan = 0x7f800001U;
  const std::vector<float> x{std::bit_cast<float>(low_payload_nan), INFINITY, -0.0F, 1e-45F, -3.0F};
  const std::vector<float> y = call_one(to_tf32_op, {from_values(x, {5})}).to_vector<float>();
  EXPECT_TRUE(std::isnan(y[0]));
  EXPECT_EQ(y[1], INFINITY);
  EXPECT_TRUE(y[2] == 0 && std::signbit(y[2]));
  EXPECT_EQ(y[3], 0);
  EXPECT_EQ(y[4], -3);
}

}  // namespace
}  // namespace brrr
