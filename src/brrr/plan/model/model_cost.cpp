#include "brrr/plan/model/model_cost.h"

#include <algorithm>
#include <array>
#include <set>

#include "brrr/plan/model/model_limits.h"
#include "brrr/runtime/stages.h"
#include "brrr/train/setup.h"

namespace brrr::plan {
namespace {

// All numbers of a cost in one order, so that sums and differences are written once.
constexpr double StepCost::*kFields[] = {&StepCost::products,
                                         &StepCost::head,
                                         &StepCost::attention,
                                         &StepCost::attention_all,
                                         &StepCost::recomputed,
                                         &StepCost::recomputed_attention,
                                         &StepCost::product_operands,
                                         &StepCost::product_results,
                                         &StepCost::product_tensors,
                                         &StepCost::activations,
                                         &StepCost::weight_copies,
                                         &StepCost::logits,
                                         &StepCost::forward_traffic,
                                         &StepCost::backward_traffic,
                                         &StepCost::forward_seconds,
                                         &StepCost::backward_seconds,
                                         &StepCost::update_seconds,
                                         &StepCost::kernels,
                                         &StepCost::update_kernels,
                                         &StepCost::matrices,
                                         &StepCost::experts,
                                         &StepCost::vectors,
                                         &StepCost::embedding,
                                         &StepCost::positions,
                                         &StepCost::head_table,
                                         &StepCost::matrix_states,
                                         &StepCost::expert_states,
                                         &StepCost::vector_states,
                                         &StepCost::embedding_states,
                                         &StepCost::position_states,
                                         &StepCost::head_states,
                                         &StepCost::forward_product_seconds,
                                         &StepCost::forward_attention_seconds,
                                         &StepCost::forward_other_seconds,
                                         &StepCost::backward_other_seconds};

// Biases add a FLOP an element to a linear op; by convention a product is 2 m n k.
double product_flops(const graph::Graph& graph, const graph::Node& node) {
  if (node.op->role == OpRole::linear) {
    const Shape& weight = graph.type(node.inputs[1]).shape;
    return 2.0 * static_cast<double>(numel(graph.type(node.outputs[0]).shape) * weight[1]);
  }
  return static_cast<double>(graph::cost_of(graph, node).flops);
}

// Scores and values over all pairs: 2 b a s_q s_k (d_q + d_v).
double square_flops(const graph::Graph& graph, const graph::Node& node) {
  const Shape &q = graph.type(node.inputs[0]).shape, &k = graph.type(node.inputs[1]).shape,
              &v = graph.type(node.inputs[2]).shape;
  return 2.0 * static_cast<double>(q[0] * q[1] * q[2] * k[2]) * static_cast<double>(q[3] + v[3]);
}

// Operands that several products read are one tensor.
void add_product_tensors(const graph::Graph& graph, StepCost& cost) {
  std::set<graph::ValueId> seen;
  const auto add = [&](graph::ValueId id, double& elements) {
    if (!seen.insert(id).second) return;
    elements += static_cast<double>(numel(graph.type(id).shape));
    ++cost.product_tensors;
  };
  for (const graph::Node& node : graph.nodes) {
    const bool is_product =
        node.op->kind == OpKind::contraction && node.op->role != OpRole::attention;
    if (!is_product || node.phase != graph::Phase::forward) continue;
    add(node.inputs[0], cost.product_operands), add(node.inputs[1], cost.product_operands);
    add(node.outputs[0], cost.product_results);
  }
}

void add_flops(const graph::Graph& graph, int64_t vocab, StepCost& cost) {
  for (const graph::Node& node : graph.nodes) {
    if (node.op->kind != OpKind::contraction) continue;
    const bool is_attention = node.op->role == OpRole::attention;
    const double flops = is_attention ? static_cast<double>(graph::cost_of(graph, node).flops)
                                      : product_flops(graph, node);
    if (node.phase == graph::Phase::recompute) {
      cost.recomputed += flops;
      if (is_attention) cost.recomputed_attention += flops;
    }
    if (node.phase != graph::Phase::forward) continue;
    if (is_attention) {
      cost.attention += flops;
      cost.attention_all += square_flops(graph, node);
    } else {
      cost.products += flops;
      const Shape& shape = graph.type(node.outputs[0]).shape;
      const bool is_head = !node.segment.valid() && !shape.empty() && shape.back() == vocab;
      if (is_head) cost.head += flops;
    }
  }
}

// Where a parameter belongs, by its name in the families and its rank.
struct ParameterPart {
  double StepCost::*count, StepCost::*states;
};
ParameterPart part_of(const NamedTensor& p) {
  const bool in_layer = p.name.starts_with("h.") || p.name.starts_with("model.layers.") ||
                        p.name.starts_with("layers.");
  if (in_layer && p.tensor.rank() == 3) return {&StepCost::experts, &StepCost::expert_states};
  if (in_layer && p.tensor.rank() == 2) return {&StepCost::matrices, &StepCost::matrix_states};
  if (in_layer) return {&StepCost::vectors, &StepCost::vector_states};
  if (p.name == "wte.weight" || p.name == "wpe.weight" || p.name.find("embed") != std::string::npos)
    return {&StepCost::embedding, &StepCost::embedding_states};
  return {&StepCost::head_table, &StepCost::head_states};
}

void add_parameters(const Optimizer& optimizer, StepCost& cost) {
  const std::vector<NamedTensor>& parameters = optimizer.named_parameters();
  double counters = static_cast<double>(optimizer.state_bytes().value());
  for (size_t i = 0; i < parameters.size(); ++i) {
    const NamedTensor& p = parameters[i];
    const auto count = static_cast<double>(p.tensor.numel()),
               states = static_cast<double>(optimizer.state_bytes_of(i).value());
    const ParameterPart part = part_of(p);
    cost.*part.count += count, cost.*part.states += states;
    if (p.name == "wpe.weight") cost.positions += count, cost.position_states += states;
    counters -= states;
  }
  cost.vector_states += counters;  // the number of the step, once a model
}

void add_seconds(const compiler::KernelList& list, const compiler::MemoryPlan& plan,
                 const hardware::Rates& rates, StepCost& cost) {
  const cost::Prediction prediction = cost::predict(list, plan, rates);
  for (size_t k = 0; k < list.kernels.size(); ++k) {
    const compiler::Kernel& kernel = list.kernels[k];
    const double seconds = prediction.kernels[k].seconds();
    const auto bytes = static_cast<double>(kernel.cost.bytes_read + kernel.cost.bytes_written);
    const std::string& family = prediction.kernels[k].family;
    const bool is_product = family.starts_with("matmul"),
               is_attention = family.starts_with("attention");
    switch (kernel.phase) {
      case graph::Phase::forward:
        cost.forward_seconds += seconds;
        (is_product     ? cost.forward_product_seconds
         : is_attention ? cost.forward_attention_seconds
                        : cost.forward_other_seconds) += seconds;
        cost.forward_traffic += bytes;
        break;
      case graph::Phase::update:
        cost.update_seconds += seconds;
        ++cost.update_kernels;
        break;
      default:
        cost.backward_seconds += seconds;
        cost.backward_traffic += bytes;
        if (!is_product && !is_attention) cost.backward_other_seconds += seconds;
    }
    const bool is_update = kernel.phase == graph::Phase::update;
    auto& in_regime = is_update ? cost.update_in_regime : cost.in_regime;
    in_regime[static_cast<size_t>(prediction.kernels[k].regime())] += seconds;
  }
  cost.kernels = static_cast<double>(list.kernels.size());
}

// Every expert has room for an even share and no more: what one token costs on average.
ModelConfig with_even_experts(ModelConfig config, const CostOptions& options) {
  if (shape_of(config).experts > 0) config.set_if_there("capacity_factor", 1.0);
  config.set("context", std::max(context_of(config), options.seq));
  return config;
}

ModelConfig with_layers(ModelConfig config, int64_t dense, int64_t mixed) {
  config.set("layers", dense + mixed);
  if (shape_of(config).experts > 0) config.set_if_there("dense_layers", dense);
  return config;
}

// Chunks of the head are alike, and a graph of thousands of them would take minutes and tell nothing new. So there are
// no more than these; what a chunk of the usual size would have alive is in `logits_share`.
constexpr int64_t kMostChunks = 128;

struct HeadChunks {
  compiler::ChunkHeadOptions options;
  double logits_share = 1;  // rows of a usual chunk over rows of one here
};

HeadChunks head_chunks(const ModelConfig& config, const CostOptions& options) {
  const int64_t rows = options.batch * options.seq;
  const int64_t row_bytes =
      vocab_of(config) * (options.precision == compiler::Precision::f32 ? 4 : 2);
  HeadChunks chunks;
  const int64_t usual = compiler::chunk_rows(rows, row_bytes, chunks.options);
  if (rows / usual <= kMostChunks) return chunks;
  chunks.options.min_rows = rows / kMostChunks;
  chunks.logits_share = static_cast<double>(usual) /
                        static_cast<double>(compiler::chunk_rows(rows, row_bytes, chunks.options));
  return chunks;
}

struct TracedStep {
  StepCost cost;
  StepMemory memory;
};

// The step that `brrr train` has of this model, with what the options say of it.
training::StepSpec step_of(const ModelConfig& config, const CostOptions& options,
                           const hardware::Rates& rates) {
  training::StepSpec spec = training::on_paper(training::default_step(
      config, options.batch, options.seq, compiler::parse_target(options.target)));
  spec.optimizer = options.optimizer;
  spec.expert_devices = options.expert_devices;
  spec.guard = spec.activations = options.monitored;
  if (!options.fuse) spec.pipeline.without.insert("fuse");
  spec.pipeline.precision.policy = options.precision;
  spec.pipeline.remat.policy = options.recompute;
  spec.pipeline.remat.rates = runtime::remat_rates(rates);
  return spec;
}

// plan_program with the last graph alone: searches trace hundreds of steps, and copies of the graphs before it are a
// tenth of their time.
runtime::PlannedProgram plan_without_stages(graph::Graph joint,
                                            const compiler::PipelineOptions& options) {
  compiler::CompiledProgram made = compiler::run_pipeline(std::move(joint), options, thread_pool());
  runtime::PlannedProgram program{
      .graphs = {}, .kernels = std::move(made.kernels.list), .plan = std::move(made.kernels.plan)};
  program.graphs.push_back({"last", std::move(made.graph)});
  return program;
}

TracedStep traced(const ModelConfig& given, const CostOptions& options,
                  const hardware::Rates& rates) {
  const ModelConfig config = with_even_experts(given, options);
  training::StepSpec spec = step_of(config, options, rates);
  const HeadChunks chunks = head_chunks(config, options);
  spec.pipeline.head = chunks.options;
  const training::TrainingParts parts = training::make_parts(spec);
  const runtime::PlannedProgram program = plan_without_stages(
      parts.step->trace(training::make_batch(spec)), training::pipeline_of(spec));
  TracedStep made{.cost = {}, .memory = step_memory(program, vocab_of(config))};
  add_flops(program.graph(), vocab_of(config), made.cost);
  add_product_tensors(program.graph(), made.cost);
  add_parameters(*parts.optimizer, made.cost);
  add_seconds(program.kernels, program.plan, rates, made.cost);
  made.cost.activations = static_cast<double>(made.memory.activations);
  made.cost.weight_copies = static_cast<double>(made.memory.weight_copies);
  made.cost.logits = static_cast<double>(made.memory.logits) * chunks.logits_share;
  return made;
}

void check_expert_devices(const ModelConfig& config, int64_t degree) {
  check(degree >= 1, "an expert-parallel degree of ", degree, " is none; use 1 or more");
  if (degree == 1) return;
  const int64_t experts = shape_of(config).experts;
  check(experts > 0, "ep ", degree, ": the model has no experts");
  check(experts % degree == 0, "ep ", degree, " does not divide ", experts, " experts");
}

}  // namespace

StepCost& StepCost::operator+=(const StepCost& other) {
  for (double StepCost::*field : kFields) this->*field += other.*field;
  for (int i = 0; i < cost::kRegimes; ++i) {
    in_regime[i] += other.in_regime[i];
    update_in_regime[i] += other.update_in_regime[i];
  }
  return *this;
}
StepCost StepCost::operator*(double times) const {
  StepCost result = *this;
  for (double StepCost::*field : kFields) result.*field *= times;
  for (double& seconds : result.in_regime) seconds *= times;
  for (double& seconds : result.update_in_regime) seconds *= times;
  return result;
}
StepCost StepCost::operator-(const StepCost& other) const {
  StepCost result = *this;
  return result += other * -1;
}

StepCost traced_cost(const ModelConfig& config, const CostOptions& options,
                     const hardware::Rates& rates) {
  return traced(config, options, rates).cost;
}
StepMemory traced_memory(const ModelConfig& config, const CostOptions& options,
                         const hardware::Rates& rates) {
  return traced(config, options, rates).memory;
}

ModelCost model_cost(const ModelConfig& config, const CostOptions& options,
                     const hardware::Rates& rates) {
  check_micro_batch(config, options.batch, options.seq);
  check_expert_devices(config, options.expert_devices);
  const ModelShape shape = shape_of(config);
  if (shape.heads == 0) {
    const TracedStep whole = traced(config, options, rates);
    const StepMemory& memory = whole.memory;
    return {.outside = whole.cost,
            .layers = {},
            .at_loss = static_cast<double>(
                std::max<int64_t>(0, memory.fullest - memory.activations - memory.logits))};
  }
  const auto with = [&](int64_t dense, int64_t mixed) {
    return traced(with_layers(config, dense, mixed), options, rates);
  };
  // Layers whose kinds come in turn are counted by whole turns; what is left over of the last turn is in the base.
  const int64_t turn = shape.period(), rest = shape.layers % turn;
  const int64_t dense = shape.experts > 0 ? shape.dense_layers : shape.layers,
                mixed = shape.layers - dense;
  const int64_t d = dense > 0 ? 2 * turn + rest : 0,
                m = mixed > 0 ? 2 * turn + (dense > 0 ? 0 : rest) : 0;
  const TracedStep base = with(d, m);
  ModelCost cost{.outside = base.cost,
                 .layers = {},
                 .at_loss = static_cast<double>(base.memory.at_loss),
                 .at_end = static_cast<double>(base.memory.at_end)};
  // `first` and `last` are the base's layers of the kind.
  const auto add_kind = [&](const TracedStep& longer, int64_t count, int64_t first, int64_t last) {
    const StepCost one = turn == 1 ? longer.cost - base.cost
                                   : (longer.cost - base.cost) * (1 / static_cast<double>(turn));
    int64_t beside = 0;
    for (int64_t layer = last - turn + 1; layer <= last; ++layer)
      beside = std::max(beside, base.memory.in_layer[static_cast<size_t>(layer)]);
    cost.layers.push_back({.one = one, .count = count, .beside = static_cast<double>(beside)});
    cost.outside += one * -static_cast<double>(last - first + 1);
  };
  if (dense > 0) add_kind(with(d + turn, m), dense, 0, d - 1);
  if (mixed > 0) add_kind(with(d, m + turn), mixed, d, d + m - 1);
  return cost;
}

double ModelCost::fullest() const {
  const StepCost all = total();
  double most = std::max(at_end, all.activations + all.logits + at_loss), kept = 0;
  for (const Layers& kind : layers) {
    kept += static_cast<double>(kind.count) * kind.one.activations;
    most = std::max(most, kept + kind.beside);
  }
  return most;
}

StepCost ModelCost::all_layers() const {
  StepCost sum;
  for (const Layers& kind : layers) sum += kind.one * static_cast<double>(kind.count);
  return sum;
}
StepCost ModelCost::total() const { return all_layers() += outside; }
int64_t ModelCost::layer_count() const {
  int64_t count = 0;
  for (const Layers& kind : layers) count += kind.count;
  return count;
}

}  // namespace brrr::plan
