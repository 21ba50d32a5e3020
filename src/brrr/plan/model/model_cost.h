// What a model costs in training, read off the graph of its step on the null device: FLOPs, kept activations,
// the fullest instant, seconds. Layers are alike, so two short models tell everything about a long one:
//
//   cost(L) = outside + L * layer,   layer = cost(3) - cost(2),   outside = cost(2) - 2 layer
//
// FLOPs, parameters, kept bytes and traffic are exact so, and seconds to a per cent: the tests hold the rule against
// whole models. What is alive beside kept bytes does not grow with the layers, moment by moment (plan/cluster/step_memory.h);
// the largest of the moments would not follow the rule. Mixtures with dense first layers have two kinds of layers and
// take three short models.
#pragma once

#include <string>
#include <vector>

#include "brrr/compiler/pipeline.h"
#include "brrr/cost/predict.h"
#include "brrr/hardware/rates.h"
#include "brrr/nn/models.h"
#include "brrr/plan/cluster/step_memory.h"

namespace brrr::plan {

// Of one micro-batch on one device. A vector space: costs of layers are differences, of models sums.
struct StepCost {
  // FLOPs of 2 m n k for every product, forward, each weight once a token.
  double products = 0;              // with weights, the head included
  double head = 0;                  // of those the head's
  double attention = 0;             // scores and values over the pairs that a query sees
  double attention_all = 0;         // over all pairs of the square, as many counts have it
  double recomputed = 0;            // products and attention that run a second time
  double recomputed_attention = 0;  // of those attention's, over the pairs that a query sees

  // Of forward products: elements that are multiplied, each once however many products read them, and that come out;
  // and how many tensors those are.
  double product_operands = 0, product_results = 0, product_tensors = 0;

  // Bytes. Kept: made in the forward part and read by a later one.
  double activations = 0, logits = 0;
  double weight_copies =
      0;  // of the activations: made of weights alone, alike in every micro-batch
  double forward_traffic = 0, backward_traffic = 0;  // between kernels and memory

  // Predicted seconds.
  double forward_seconds = 0, backward_seconds = 0, update_seconds = 0;
  double forward_product_seconds = 0, forward_attention_seconds = 0;  // of the forward part
  double forward_other_seconds = 0, backward_other_seconds = 0;  // neither products nor attention
  double in_regime[cost::kRegimes] = {},
         update_in_regime[cost::kRegimes] = {};  // of a micro-batch, of the update
  double kernels = 0, update_kernels = 0;        // all of them, and those of the update

  // Parameters, by how layouts share them out.
  double matrices = 0;    // of layers: split by tensor parallelism
  double experts = 0;     // of layers: those that one expert-parallel device has
  double vectors = 0;     // norms and biases, of layers
  double embedding = 0;   // tables that are looked up: tokens (also where tied) and positions
  double positions = 0;   // of those the learned positions
  double head_table = 0;  // a head of its own, and the last norm
  // Bytes that the optimizer keeps for them, in f32.
  double matrix_states = 0, expert_states = 0, vector_states = 0, embedding_states = 0,
         position_states = 0, head_states = 0;

  StepCost& operator+=(const StepCost& other);
  StepCost operator*(double times) const;
  StepCost operator-(const StepCost& other) const;

  double parameters() const { return matrices + experts + vectors + embedding + head_table; }
  double state_bytes() const {
    return matrix_states + expert_states + vector_states + embedding_states + head_states;
  }
  double forward_flops() const { return products + attention; }
  double seconds() const { return forward_seconds + backward_seconds; }
};

struct CostOptions {
  int64_t batch = 1, seq = 1024;
  compiler::Precision precision = compiler::Precision::bf16_mixed;
  compiler::RematPolicy recompute = compiler::RematPolicy::none;
  std::string optimizer = "adamw";  // a registered one
  bool fuse = true;                 // false: a system that launches elementwise ops one by one
  std::string target = "cpu";       // whose kernels are priced (compiler/target.h)
  bool monitored = true;            // guard and largest activations, as `brrr train` has them
  // Expert parallelism: the part of one of so many devices (StepSpec::expert_devices).
  int64_t expert_devices = 1;
};

struct ModelCost {
  struct Layers {
    StepCost one;
    int64_t count = 0;
    double beside = 0;  // bytes beside what it and the layers below keep, while one of them runs
  };
  StepCost outside;
  std::vector<Layers> layers;      // by kind, from the first layer on
  double at_loss = 0, at_end = 0;  // bytes: see StepMemory

  StepCost total() const;
  StepCost all_layers() const;
  int64_t layer_count() const;
  // Bytes of one micro-batch at the fullest instant before the update, gradients of parameters left out.
  double fullest() const;
};

// Rates price the kernels; without any the seconds are 0.
ModelCost model_cost(const ModelConfig& config, const CostOptions& options,
                     const hardware::Rates& rates);

// The whole model, layer by layer: what model_cost is held against.
StepCost traced_cost(const ModelConfig& config, const CostOptions& options,
                     const hardware::Rates& rates);
StepMemory traced_memory(const ModelConfig& config, const CostOptions& options,
                         const hardware::Rates& rates);

// The part of a model that one of `degree` tensor-parallel devices holds: heads, hidden units and vocabulary
// divided, the residual stream whole. Throws Error where something does not divide.
ModelConfig tensor_shard(const ModelConfig& config, int64_t degree);
// Whether tensor_shard takes the degree.
bool splits_by(const ModelConfig& config, int64_t degree);

}  // namespace brrr::plan
