// Programs on the null device: the same kernels and the same plan as on the cpu, counted and not run, so
// that models far larger than this machine can be compiled and priced.
#include <gtest/gtest.h>

#include "brrr/autodiff/grad.h"
#include "brrr/graph/call.h"
#include "brrr/ops/attention/attention.h"
#include "brrr/ops/control/repeat.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/elementwise/unary.h"
#include "brrr/ops/index/index.h"
#include "brrr/ops/loss/cross_entropy.h"
#include "brrr/ops/matmul/matmul.h"
#include "brrr/ops/norm/layer_norm.h"
#include "brrr/ops/view/views.h"
#include "brrr/runtime/compile.h"
#include "support/error_of.h"

namespace brrr {
namespace {

struct Size {
  int64_t layers, width, heads, vocab, batch, seq;
  int64_t parameters() const {  // without biases and norms: 12 h^2 a layer and the table
    return layers * 12 * width * width + vocab * width;
  }
};

// A decoder with AdamW, its tensors on any device.
class Model {
 public:
  Model(const Size& size, Device device) : size_(size), device_(device) {
    table_ = add({size.vocab, size.width});
    for (int64_t i = 0; i < size.layers; ++i) {
      const int64_t h = size.width;
      layers_.push_back(
          {add({h}), add({h}), add({3 * h, h}), add({h, h}), add({4 * h, h}), add({h, 4 * h})});
    }
    shift_ = zeros({size.width}, {.device = device});
    for (const Tensor& p : parameters_) {
      first_.push_back(zeros(p.shape(), {.device = device}));
      second_.push_back(zeros(p.shape(), {.device = device}));
    }
  }

  Tensor step(const Tensor& tokens, const Tensor& targets) const {
    const Tensor loss = loss_of(tokens, targets);
    update(grad(loss, parameters_));
    return loss.detach();
  }
  Tensor accumulate(const Tensor& tokens, const Tensor& targets, const Tensor& count) const {
    std::vector<Tensor> sums =
        repeat(count, {tokens, targets}, [&](const Tensor& x, const Tensor& y) {
          const Tensor loss = loss_of(x, y);
          std::vector<Tensor> parts = grad(loss, parameters_);
          parts.push_back(loss);
          return parts;
        });
    const Tensor loss = sums.back();
    sums.pop_back();
    update(sums);
    return loss;
  }
  int64_t state_bytes() const {
    int64_t bytes = shift_.bytes().value();
    for (const Tensor& p : parameters_) bytes += 3 * p.bytes().value();
    return bytes;
  }

 private:
  struct Layer {
    Tensor norm_1, norm_2, qkv, out, up, down;
  };
  Tensor add(const Shape& shape) {
    parameters_.push_back(full(shape, 0.01, {.device = device_}));
    return parameters_.back().require_grad();
  }

  Tensor loss_of(const Tensor& tokens, const Tensor& targets) const {
    Tensor x = embedding(table_, tokens);
    for (const Layer& layer : layers_) {
      x = x + mix(layer, layer_norm(x, layer.norm_1, shift_));
      x = x + linear(gelu_tanh(linear(layer_norm(x, layer.norm_2, shift_), layer.up)), layer.down);
    }
    return cross_entropy(linear(x, table_), targets);
  }
  Tensor mix(const Layer& layer, const Tensor& x) const {
    const int64_t batch = x.dim(0), seq = x.dim(1), width = x.dim(2);
    const Tensor qkv =
        view(linear(x, layer.qkv), {batch, seq, 3, size_.heads, width / size_.heads});
    const auto part = [&](int64_t i) { return transpose(select(qkv, 2, i), 1, 2); };
    const Tensor mixed = attention(part(0), part(1), part(2), {.causal = true});
    return linear(reshape(transpose(mixed, 1, 2), {batch, seq, width}), layer.out);
  }
  void update(const std::vector<Tensor>& grads) const {
    NoGrad only_numbers;
    for (size_t i = 0; i < grads.size(); ++i) {
      const Tensor &p = parameters_[i], &m = first_[i], &v = second_[i], &g = grads[i];
      m.copy_from(m * 0.9 + g * 0.1);
      v.copy_from(v * 0.95 + square(g) * 0.05);
      p.copy_from(p - m * 1e-4 / (sqrt(v) + 1e-8) - p * 1e-5);
    }
  }

  Size size_;
  Device device_;
  Tensor table_, shift_;
  std::vector<Layer> layers_;
  std::vector<Tensor> parameters_, first_, second_;
};

constexpr Size kTiny{.layers = 2, .width = 16, .heads = 2, .vocab = 32, .batch = 2, .seq = 8};
constexpr Size k124M{
    .layers = 12, .width = 768, .heads = 12, .vocab = 50304, .batch = 4, .seq = 64};
constexpr Size k70B{
    .layers = 80, .width = 8192, .heads = 64, .vocab = 128256, .batch = 1, .seq = 4096};

Tensor ids(const Shape& shape, Device device) {
  return zeros(shape, {.dtype = DType::i64, .device = device});
}

void expect_same_plan(const compiler::KernelProgram& a, const compiler::KernelProgram& b) {
  ASSERT_EQ(a.list.kernels.size(), b.list.kernels.size());
  for (size_t k = 0; k < a.list.kernels.size(); ++k) {
    EXPECT_EQ(a.list.kernels[k].name, b.list.kernels[k].name);
    EXPECT_EQ(a.list.kernels[k].cost, b.list.kernels[k].cost);
    ASSERT_EQ(a.list.kernels[k].body != nullptr, b.list.kernels[k].body != nullptr);
    if (a.list.kernels[k].body) expect_same_plan(*a.list.kernels[k].body, *b.list.kernels[k].body);
  }
  EXPECT_EQ(a.plan.offsets, b.plan.offsets);
}

// A compiled step that accumulates over three micro-batches, after one run of it.
struct Ran {
  explicit Ran(Device device)
      : model(kTiny, device),
        step(
            [this](std::span<const Tensor> x) -> Tensors {
              return {model.accumulate(x[0], x[1], x[2])};
            },
            {}) {
    const Tensor x = ids({3, 2, 8}, device),
                 n = full({}, 3, {.dtype = DType::i64, .device = device});
    program = &step.executable({{x, x, n}});
    CostCounter counter;
    loss = step.run({{x, x, n}})[0];
    counted = counter.total();
    contraction_flops = counter.contractions().flops;
    calls = counter.calls();
  }
  Model model;
  runtime::CompiledFunction step;
  const runtime::Executable* program;
  Tensor loss;
  Cost counted;
  int64_t contraction_flops, calls;
};

TEST(NullDevice, RunsTheSamePlan) {
  const Ran on_cpu(Device::cpu()), on_null(Device::null());
  EXPECT_EQ(on_null.loss.device(), Device::null());
  EXPECT_EQ(on_null.counted, on_null.program->cost());
  EXPECT_EQ(on_null.counted, on_cpu.counted);
  EXPECT_EQ(on_null.calls, on_cpu.calls);
  EXPECT_EQ(on_null.contraction_flops, on_cpu.contraction_flops);
  EXPECT_GT(on_null.contraction_flops, 0);
  expect_same_plan(on_cpu.program->program().kernels, on_null.program->program().kernels);
}

// The products alone: forward 2 FLOPs a weight and token, backward twice that.
int64_t product_flops(const graph::Graph& graph) {
  int64_t flops = 0;
  for (const graph::Node& node : graph.nodes) {
    if (node.op->name == "matmul" || node.op->name == "linear")
      flops += graph::cost_of(graph, node).flops;
  }
  return flops;
}

void expect_priced(const Size& size) {
  const Ledger& books = ledger(Device::null());
  const int64_t before = books.live().value(), cpu_before = ledger(Device::cpu()).live().value();
  const Model model(size, Device::null());
  auto step = runtime::compile([&](const Tensor& x, const Tensor& y) { return model.step(x, y); });
  const Tensor x = ids({size.batch, size.seq}, Device::null());
  const runtime::Executable& program = step.function().executable({{x, x}});
  CostCounter counter;
  const Tensor loss = step(x, x);
  EXPECT_EQ(counter.total(), program.cost());
  EXPECT_GE(product_flops(program.graph()), 6 * size.parameters() * size.batch * size.seq);
  EXPECT_LE(product_flops(program.graph()),
            6 * size.parameters() * size.batch * size.seq * 101 / 100);
  // The books of the device hold what the plan says, to the byte, and the machine holds next to nothing.
  const runtime::ProgramMemory memory = program.memory();
  EXPECT_EQ(memory.states.value(), model.state_bytes());
  EXPECT_EQ(books.live().value() - before,
            (memory.states + memory.outputs + memory.arena).value() + x.bytes().value());
  EXPECT_LT(ledger(Device::cpu()).live().value() - cpu_before, 1 << 20);
  EXPECT_GE(program.plan().arena_bytes, program.plan().lower_bound);
  testing::Test::RecordProperty("kernels", static_cast<int>(program.kernels().kernels.size()));
  for (const compiler::PassRecord& pass : program.program().passes) {
    testing::Test::RecordProperty(std::string(pass.name) + "_ms",
                                  std::to_string(1e3 * pass.seconds));
    testing::Test::RecordProperty(std::string(pass.name) + "_verify_ms",
                                  std::to_string(1e3 * pass.verify_seconds));
  }
}

TEST(NullDevice, Prices124MillionParameters) { expect_priced(k124M); }
TEST(NullDevice, Prices70BillionParameters) { expect_priced(k70B); }

TEST(NullDevice, ProgramsAreForOneDevice) {
  const Tensor w = ones({3});
  auto f = runtime::compile([](const Tensor& x) { return x * 2.0; });
  EXPECT_EQ(f(ones({3})).device(), Device::cpu());
  EXPECT_EQ(f(ones({3}, {.device = Device::null()})).device(), Device::null());
  EXPECT_EQ(f.function().programs(), 2);
  EXPECT_NE(error_of([&] {
              f.function().executable({{ones({3})}}).run({{ones({3}, {.device = Device::null()})}});
            }).find("runs on cpu"),
            std::string::npos);
  auto g = runtime::compile([&](const Tensor& x) { return x * w; });
  EXPECT_NE(error_of([&] { g(ones({3}, {.device = Device::null()})); }).find("different devices"),
            std::string::npos);
  auto h = runtime::compile([](const Tensor& x, const Tensor& y) -> Tensors { return {x, y}; });
  EXPECT_NE(error_of([&] {
              h(ones({3}), ones({3}, {.device = Device::null()}));
            }).find("different devices"),
            std::string::npos);
}

}  // namespace
}  // namespace brrr
