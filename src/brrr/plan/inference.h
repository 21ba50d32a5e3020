// Bounds on running a model: what a cache takes, how long a prompt and a token need at least.
//
//   decode   max[(weights touched + batch * cache) / bandwidth, 2 N_active batch / peak], n devices together
//   prefill  2 N_products T / peak + attention / peak
// Tensor parallelism shares a cache out by key heads: beyond their number each is on several devices, and what one
// device holds and reads falls no further. Latent attention has one vector for all heads, which every device keeps.
// A mixture keeps all experts and touches E (1 - (1 - K/E)^batch) of them in a layer. Of a sliding window no more than
// the window is kept, read and attended to. Bounds are those that nobody can beat: products run at the peak of the
// weights' format, attention at that of the cache's, where the device has such arithmetic, and else at that of 16 bits.
#pragma once

#include <optional>
#include <string>

#include "brrr/hardware/hardware.h"
#include "brrr/nn/models.h"

namespace brrr::plan {

struct InferQuestion {
  ModelConfig model;
  std::string gpu;
  int64_t count = 1;
  int64_t batch = 1, context = 1024;
  double weight_bytes = 2, kv_bytes = 2;  // of an element
  // What products and attention would run in: those of the formats of weights and cache.
  hardware::Arithmetic products = hardware::Arithmetic::bf16,
                       attention = hardware::Arithmetic::bf16;
  // What the bounds count. Norms are no work; the input table is looked up and not read.
  bool whole_table = false;  // true: all parameters are read for every token, as the lecture counts
};

struct InferAnswer {
  double params = 0, active_params = 0;
  double weight_bytes = 0, touched_bytes = 0;  // held, and read for one token of the batch
  double read_elements = 0;                    // weights that are not only looked up, all experts
  double kv_bytes_per_token = 0, kv_bytes_per_sequence = 0, kv_bytes = 0;
  int64_t kv_devices = 1;      // that share a cache out; the others have copies
  double kv_device_bytes = 0;  // of all caches, on one device
  int64_t cached_tokens = 0;   // of a sequence: its context, or the window where that is shorter
  hardware::Arithmetic products = hardware::Arithmetic::bf16,
                       attention = hardware::Arithmetic::bf16;  // of the peaks
  double products_peak = 0, attention_peak = 0;                 // FLOP/s of one device
  double memory_bytes = 0;
  bool fits = false;
  int64_t largest_batch = 0;  // that fits at this context
  double prefill_seconds = 0, decode_seconds = 0;
  double decode_bandwidth_seconds = 0, decode_compute_seconds = 0;
  double tokens_per_second = 0;
  std::string binding;
};
InferAnswer answer(const InferQuestion& question);

// Beside the bounds, what kernels would take: the model's own forward graph over a prompt of `context` tokens and over
// one token, priced on the table's rates and split over `count` devices of a node by tensor parallelism, with the two
// all-reduces of a layer, and the reading of keys and values. Uncalibrated.
struct InferPrediction {
  double prefill_seconds = 0, decode_seconds = 0;
  double prefill_reduce_seconds = 0, decode_reduce_seconds = 0;  // of them the all-reduces
};
// None where tensor parallelism does not split the model over `count` devices.
std::optional<InferPrediction> predict(const InferQuestion& question);

// Bytes of an element of stored weights: "bf16" 2, "int8" 1, "int4" 0.5 and its scales.
double weight_bytes_of(std::string_view format);
// What its products can run in: 8-bit formats in their own arithmetic, all others in 16 bits (4-bit weights are spread
// out before they are multiplied).
hardware::Arithmetic product_arithmetic(std::string_view format);
// Keys and values of a token in all layers; latent attention keeps one narrow vector for all heads.
double kv_elements_per_token(const ModelConfig& model);

}  // namespace brrr::plan
