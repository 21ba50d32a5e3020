// A training run as a question: which model on how many devices, cut how. And the answer: FLOPs, time, money,
// memory and traffic of one device, and what limits it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "brrr/hardware/hardware.h"
#include "brrr/plan/conventions.h"
#include "brrr/plan/gpu_rates.h"
#include "brrr/plan/model/model_cost.h"

namespace brrr::plan {

// How a run is cut: count = tp * pp * cp * dp, and experts lie over ep of the dp * cp devices.
struct ParallelLayout {
  int64_t tp = 1, pp = 1, cp = 1, ep = 1;
  int zero = 0;  // 0: all have everything; 1 optimizer, 2 also gradients, 3 also parameters
  int64_t interleave = 1;         // virtual pipeline stages of a device
  bool sequence_parallel = true;  // with tp: what tp does not split is split along the sequence
};

// What runs the model. A framework differs from a tuned system in what its graph does not show: the loss, copies of
// parameters, and a host that launches every op.
enum class Framework : uint8_t {
  brrr,      // the program that brrr compiles for the GPU
  tuned,     // another tuned system: everything as the graph has it, elementwise ops fused
  compiled,  // PyTorch with compiled layers: the loss and sharded parameters op by op
  eager      // PyTorch op by op
};
std::string_view to_text(Framework framework);
// "brrr", "tuned", "compiled" or "eager"; throws Error with the list on any other name.
Framework parse_framework(std::string_view name);

// What the software of a run does beside its layout. Systems of other years differ in these; the defaults are a
// tuned system of today.
struct SystemTraits {
  Framework framework = Framework::tuned;
  bool fuse =
      true;  // false: elementwise ops are launched one by one, as eager frameworks always do
  AttentionMethod attention = AttentionMethod::current;
  bool hides_data = true;      // gradients, and gathers of ZeRO-3, travel behind the arithmetic
  bool hides_pipeline = true;  // so does what stages send each other
  // A tuned system sends a token once to each node that has experts of it, and while another micro-batch computes
  // (DeepEP, DualPipe). False, and of a framework: a copy for each expert, and everybody waits for them.
  bool hides_experts = true;
  double gather_bytes = 0;      // of a parameter that ZeRO-3 gathers; 0: as it is computed with
  double gathers_of_layer = 1;  // collectives that ZeRO-3 makes of a layer: 1 flat, or one a matrix
  double products_again = 0;    // share of the layers' products that run again beside the policy
  // Of a framework.
  bool autocast = true;          // the loss in f32; false: all in the type of the parameters
  bool flat_parameters = false;  // ZeRO-3 gathers a layer as one tensor that matrices are views of
  bool node_rings = false;       // collectives over whole nodes use all adapters of a node
  bool is_tuned() const { return framework == Framework::brrr || framework == Framework::tuned; }
  bool fuses() const { return fuse && framework != Framework::eager; }
  bool overlaps_experts() const { return hides_experts && is_tuned(); }
};

enum class GradType : uint8_t { as_parameter, f32 };

struct RunQuestion {
  std::string model_name;
  std::optional<ModelConfig> model;  // none: `parameters` alone is known
  double parameters = 0;

  double tokens = 0;
  std::string gpu;
  int64_t count = 1;
  std::optional<double> mfu;          // none: predicted
  std::optional<double> peak_tflops;  // in place of the table's
  std::optional<hardware::Rates>
      rates;  // measured on the target itself, in place of the table's shares

  int64_t seq = 0;           // 0: the model's context, 8192 at most
  int64_t global_batch = 0;  // sequences; 0: chosen
  int64_t micro_batch = 1;
  compiler::Precision precision = compiler::Precision::bf16_mixed;
  std::string optimizer = "adamw";
  compiler::RematPolicy recompute = compiler::RematPolicy::none;
  SystemTraits system;
  GradType grads = GradType::as_parameter;
  ParallelLayout layout;
  Convention convention = Convention::exact;

  double price_per_hour = 0;  // of one device; 0: no cost
  double watts = 0;           // of one device; 0: the table's
  double pue = 1.1;           // power of the building over that of the devices
  double goodput = 1;         // share of the time in which steps are made
  int64_t node_size = 8;      // devices that share fast links
  double network_gb_s = 0;    // of one device to other nodes, one way; 0: by generation
};

// Bytes of one device, at its fullest.
struct RunMemory {
  double params = 0, grads = 0, master = 0, optimizer = 0;
  double activations = 0, logits = 0, buffers = 0, overhead = 0;
  int64_t stage = 0;  // the pipeline stage that needs most
  double total() const {
    return params + grads + master + optimizer + activations + logits + buffers + overhead;
  }
  double states() const { return params + grads + master + optimizer; }
};

// Bytes that one device sends in a step, and the seconds that stay visible.
struct RunTraffic {
  double data = 0, tensor = 0, pipeline = 0, context = 0, expert = 0;  // bytes
  double data_seconds = 0, tensor_seconds = 0, pipeline_seconds = 0, context_seconds = 0,
         expert_seconds = 0;
  double exposed_seconds = 0;
  double bubble = 0;  // share of a step in which a pipeline stage waits
  double bytes() const { return data + tensor + pipeline + context + expert; }
  double seconds() const {
    return data_seconds + tensor_seconds + pipeline_seconds + context_seconds + expert_seconds;
  }
};

struct RunAnswer {
  RunQuestion question;  // with what was chosen
  int64_t dp = 1, micro_batches = 1;
  double params = 0, active_params = 0;
  FlopFacts facts;
  double flops_per_token = 0, total_flops = 0;
  double six_nd_error = 0;     // 6 N over the exact count, minus 1
  double attention_share = 0;  // of the exact count
  double step_tokens = 0, steps = 0;
  double step_seconds = 0, tokens_per_second = 0;
  double days = 0, gpu_hours = 0, cost_usd = 0, energy_kwh = 0;
  double peak_flops_per_second = 0, mfu = 0, hfu = 0;
  bool is_predicted = false;
  double compute_seconds = 0, bandwidth_seconds = 0, overhead_seconds = 0;  // of the prediction
  double update_seconds = 0;                                                // of the step
  RunMemory memory;
  bool fits = false;
  std::string binding;
  RunTraffic traffic;
  std::vector<std::string> assumptions;
};

// Throws Error on what cannot be: heads that tp does not divide, layers that pp does not, an mfu above 1, ...
RunAnswer answer(const RunQuestion& question);
// What `answer` does under RematPolicy::budget: of none, selective and full recomputation the first that fits, named
// among the assumptions; where nothing fits, what needs least.
RunAnswer answer_within_memory(const RunQuestion& question);

// The global batch that is taken where none is given, for dp copies of the model: about half a million tokens a step
// for small models, four million for large ones.
int64_t choose_batch(const RunQuestion& question, double parameters, int64_t dp);

// Bytes of a parameter of a matrix by part, of the recipes that are in use.
struct StateRecipe {
  double params = 4, grads = 4, master = 0, optimizer = 8;
  double total() const { return params + grads + master + optimizer; }
};
StateRecipe state_recipe(compiler::Precision precision, std::string_view optimizer, GradType grads);

// Parts of `answer` that others use by themselves.
// The model with the experts of one of ep devices, and the share of it that one of tp devices has.
struct RunCost {
  ModelCost whole, shard;
  StepCost
      updated;  // of one of tp devices were all experts on it: whose update all their copies share out
};
// Of a micro-batch of question.seq tokens.
RunCost run_cost(const RunQuestion& question);
// What kernels are priced by: rates measured on the target, those of brrr's own kernels, or of a tuned system.
hardware::Rates run_rates(const RunQuestion& question);
RunMemory run_memory(const RunQuestion& question, const RunCost& cost, int64_t dp,
                     int64_t micro_batches);
RunTraffic run_traffic(const RunQuestion& question, const RunCost& cost, int64_t dp,
                       int64_t micro_batches);
// The rates of links and network behind it, for people.
std::string traffic_assumption(const RunQuestion& question);
// Seconds that a framework adds to one micro-batch of a device that has all layers, beside the graph's kernels.
struct FrameworkSeconds {
  double loss = 0;     // logits in f32, one op after another
  double casts = 0;    // operands of products to 8 bits, where ops are not fused
  double weights = 0;  // casts and copies of parameters that ZeRO-3 gathers, and of their gradients
  double parts = 0;    // norms and rotations that have no kernel of their own
  double host = 0;     // launching all its ops; a step cannot be faster than that
  double host_update = 0;  // launching those of the update, once a step
};
FrameworkSeconds framework_seconds(const RunQuestion& question, const RunCost& cost);
// Bytes that a framework has of every logit at the loss of a micro-batch; 0 for a tuned system, which chunks its head.
double framework_logit_bytes(const RunQuestion& question);
// Whether products in 8 bits have their operands cast by kernels of their own, as Transformer Engine runs them.
bool casts_apart(const RunQuestion& question);
// Bytes of copies in 8 bits that a layer's weights have from its forward to its backward part.
double low_copies(const RunQuestion& question, const StepCost& layer);
// The update (run_update.cpp): seconds of the share that one device updates, what is behind them for people, and bytes
// that an update of one parameter of a matrix moves.
double update_seconds(const RunQuestion& question, const RunCost& cost, int64_t dp);
std::string update_assumption(const RunQuestion& question, const RunCost& cost, int64_t dp);
double update_bytes(compiler::Precision precision, std::string_view optimizer);
// What is behind it, for people; nothing for a tuned system.
std::vector<std::string> framework_assumptions(const RunQuestion& question);
// Fills the seconds of a step from its kernels and its traffic.
void predict_step(RunAnswer& answer, const RunCost& cost);
// Seconds of one micro-batch on one of tp devices, forward and backward apart, without what is sent.
struct MicroBatchSeconds {
  double forward = 0, backward = 0;
  double both() const { return forward + backward; }
};
MicroBatchSeconds micro_batch_seconds(const RunQuestion& question, const StepCost& whole,
                                      const StepCost& shard);
// Seconds of one all-reduce over the devices of a node: 2 S (n - 1) / n over the link, and the hops.
double node_reduce_seconds(const hardware::GpuSpec& gpu, int64_t devices, double bytes);

std::string to_json(const RunAnswer& answer);

}  // namespace brrr::plan
