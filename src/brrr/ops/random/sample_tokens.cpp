#include "brrr/ops/random/sample_tokens.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "brrr/graph/call.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/infer.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/samples.h"

namespace brrr {
namespace {

constexpr int64_t kMaxVocab = int64_t{1} << 30;  // ids and their status are 32-bit on a GPU

TensorTypes infer_draw(const InferCall& call) {
  require_dtype(call, call.dtype(0));
  const Shape& logits = call.shape(0);
  check(call.size() == 3 || call.size() == 4, "draw_tokens: takes 3 or 4 tensors, not ",
        call.size());
  check(logits.size() == 2, "draw_tokens: logits are [rows, vocab], not ", logits);
  check(logits[0] == 0 || (logits[1] > 0 && logits[1] <= kMaxVocab),
        "draw_tokens: a vocabulary of ", logits[1], "; use 1 to ", kMaxVocab);
  check(call.shape(1) == Shape{4} && is_float(call.dtype(1)),
        "draw_tokens: settings are 4 floats, not ", call.shape(1), " of ", call.dtype(1));
  check(call.shape(2) == (Shape{logits[0], 4}) && call.dtype(2) == DType::i64,
        "draw_tokens: keys are i64 [rows, 4], not ", call.shape(2), " of ", call.dtype(2),
        " for logits ", logits);
  check(call.size() == 3 || (call.shape(3) == logits && call.dtype(3) == DType::boolean),
        "draw_tokens: what was seen is a bool for each of ", logits);
  return {{Shape{logits[0]}, DType::i64}, {Shape{logits[0]}, DType::i64}};
}

// ---- The cpu: rows side by side, each drawn by sampling.cpp.

struct RowNumbers {
  SamplingOptions options;
  DrawPlace place;
};

double number_at(const Operand& x, int64_t place) {
  double value = 0;
  visit_dtype(x.dtype, [&]<typename T>() { value = convert_element<double>(x.data<T>()[place]); });
  return value;
}

RowNumbers numbers_of(const Operand& settings, const Operand& keys, int64_t row) {
  const auto setting = [&](int64_t i) {
    return number_at(settings, i * settings.layout->strides[0]);
  };
  const auto key = [&](int64_t i) {
    return keys.data<int64_t>()[row * keys.layout->strides[0] + i * keys.layout->strides[1]];
  };
  return {{.temperature = setting(0),
           .top_k = key(3),
           .top_p = setting(1),
           .min_p = std::min(1.0, setting(2)),
           .repetition_penalty = setting(3),
           .seed = static_cast<uint64_t>(key(0))},
          {.sample = static_cast<uint32_t>(key(1)), .position = static_cast<uint64_t>(key(2))}};
}

template <typename T>
std::vector<double> row_of(const KernelCall& call, int64_t row, double penalty) {
  const Operand& logits = call.input(0);
  const T* const from = logits.data<T>() + row * logits.layout->strides[0];
  const int64_t step = logits.layout->strides[1];
  std::vector<double> values(static_cast<size_t>(logits.shape()[1]));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = convert_element<double>(from[static_cast<int64_t>(i) * step]);
  if (call.inputs.size() < 4 || penalty == 1) return values;
  const Operand& seen = call.input(3);
  const bool* const flags = seen.data<bool>() + row * seen.layout->strides[0];
  for (size_t i = 0; i < values.size(); ++i) {
    if (flags[static_cast<int64_t>(i) * seen.layout->strides[1]])
      values[i] = penalized(values[i], penalty);
  }
  return values;
}

template <typename T>
void draw_row(const KernelCall& call, int64_t row) {
  const RowNumbers numbers = numbers_of(call.input(1), call.input(2), row);
  std::vector<double> logits = row_of<T>(call, row, numbers.options.repetition_penalty);
  const int64_t status = logits_status(logits);
  call.output(0).data<int64_t>()[row] =
      status == kUsableLogits ? draw_token(std::move(logits), numbers.options, numbers.place) : 0;
  call.output(1).data<int64_t>()[row] = status;
}

void draw_cpu(const KernelCall& call) {
  const auto draw = [&]<typename T>() {
    call.pool.for_each_piece(call.output(0).count(), [&](int64_t row) { draw_row<T>(call, row); });
  };
  switch (call.input(0).dtype) {
    case DType::f32: return draw.template operator()<float>();
    case DType::bf16: return draw.template operator()<bf16>();
    default: return draw.template operator()<f16>();
  }
}

// ---- The definition: all tokens in order, cut where each option says, and the first id whose share of the
// rest reaches past the random number.

struct ReferenceRow {
  std::vector<double> values;
  std::vector<size_t> order;  // likelier first, then lower ids

  explicit ReferenceRow(std::vector<double> logits)
      : values(std::move(logits)), order(values.size()) {
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return values[a] > values[b]; });
  }
  double weight(size_t id, double temperature) const {
    return std::exp((values[id] - values[order[0]]) / temperature);
  }

  size_t draw(const RowNumbers& numbers) {
    const SamplingOptions& o = numbers.options;
    if (o.temperature == 0) return order[0];
    if (o.top_k > 0) order.resize(std::min(order.size(), static_cast<size_t>(o.top_k)));
    double total = 0, reached = 0;
    for (size_t id : order) total += weight(id, o.temperature);
    std::vector<size_t> kept;
    for (size_t id : order) {
      if (kept.empty() || o.top_p >= 1 || reached < o.top_p * total) kept.push_back(id);
      reached += weight(id, o.temperature);
    }
    std::erase_if(kept, [&](size_t id) { return weight(id, o.temperature) < o.min_p; });
    std::sort(kept.begin(), kept.end());
    double rest = 0;
    for (size_t id : kept) rest += weight(id, o.temperature);
    double left = rest * static_cast<double>(draw_bits(o.seed, numbers.place)) * 0x1p-53;
    for (size_t id : kept) {
      left -= weight(id, o.temperature);
      if (left < 0) return id;
    }
    return kept.back();
  }
};

Tensors draw_reference(const ComposeCall& call) {
  const Tensor &logits = call.input(0), &settings = call.input(1), &keys = call.input(2);
  const int64_t rows = logits.dim(0);
  const Tensor ids = empty({rows}, DType::i64), status = empty({rows}, DType::i64);
  const auto operand = [](const Tensor& x) {
    return Operand{x.storage().data(), &x.layout(), x.dtype()};
  };
  for (int64_t row = 0; row < rows; ++row) {
    const RowNumbers numbers = numbers_of(operand(settings), operand(keys), row);
    std::vector<double> values = logits[row].to_vector<double>();
    if (call.inputs.size() > 3) {
      const auto seen = call.input(3)[row].to_vector<bool>();
      for (size_t i = 0; i < values.size(); ++i) {
        if (seen[i]) values[i] = penalized(values[i], numbers.options.repetition_penalty);
      }
    }
    const int64_t said = logits_status(values);
    store_int(status, row, said);
    store_int(ids, row,
              said == kUsableLogits
                  ? static_cast<int64_t>(ReferenceRow(std::move(values)).draw(numbers))
                  : 0);
  }
  return {ids, status};
}

// ---- Samples.

struct DrawSample {
  Shape shape;
  SamplingOptions options;
  bool has_seen = false;
  bool has_ties = false;
  double bad = 0;  // put into the second row where it is not 0
};

Sample sample_of(const DrawSample& how, uint32_t seed) {
  const Tensor logits = sample_values(how.shape, seed, -9, 9);
  double* const values = logits.data<double>();
  if (how.has_ties) {  // 0 included: no random movement tells equal ones apart there
    for (int64_t i = 0; i < logits.numel(); ++i)
      values[i] = std::max(0.0, std::round(values[i] - 7));
  }
  if (how.bad != 0) values[how.shape[1] + how.shape[1] / 2] = how.bad;
  std::vector<DrawPlace> places;
  for (int64_t row = 0; row < how.shape[0]; ++row)
    places.push_back({.sample = seed, .position = static_cast<uint64_t>(row) << 33});
  Tensors inputs{logits, draw_settings(how.options), draw_keys(how.options, places)};
  if (how.has_seen) inputs.push_back(sample_mask(how.shape, seed));
  return {inputs, {}};
}

std::vector<Sample> draw_samples() {
  const double none = -HUGE_VAL;
  const SamplingOptions all{.temperature = 0.75,
                            .top_k = 30,
                            .top_p = 0.9375,
                            .min_p = 0.0078125,
                            .repetition_penalty = 1.5,
                            .seed = 0x8000'0000'0000'0005};
  std::vector<Sample> samples;
  uint32_t seed = 40;
  for (const DrawSample& how : std::vector<DrawSample>{
           {{1, 1}, {}},
           {{0, 7}, {}},
           {{3, 37}, {.seed = 1}},
           {{4, 50}, {.temperature = 0}},
           {{4, 50}, {.temperature = 0, .repetition_penalty = 2}, true},
           {{5, 61}, {.top_k = 7, .seed = 2}},
           {{5, 61}, {.top_k = 90, .seed = 2}},
           {{5, 61}, {.temperature = 4, .top_p = 0.5, .seed = 3}},
           {{5, 61}, {.temperature = 4, .min_p = 0.25, .seed = 4}},
           {{5, 61}, {.temperature = 8, .repetition_penalty = 3, .seed = 5}, true},
           {{6, 90}, all, true},
           {{3, 40}, {.temperature = 1, .seed = 6}, false, false, none},
           {{3, 40}, {.temperature = 1, .seed = 6}, false, false, HUGE_VAL},
           {{3, 40}, {.temperature = 1, .top_p = 0.5, .seed = 6}, true, false, std::nan("")},
           {{4, 300}, {.temperature = 64, .top_k = 120, .top_p = 0.75, .seed = 7}, false, true},
           {{3, 2999}, {.temperature = 4, .seed = 8}},
           {{3, 5003}, {.temperature = 16, .top_k = 1000, .top_p = 0.875, .seed = 9}, false, true},
           {{7, 3001}, {.temperature = 2, .top_k = 64, .top_p = 0.875, .seed = 10}, true}})
    samples.push_back(sample_of(how, seed++));
  return samples;
}

constexpr PrecisionRule kDrawTokens{
    .take = Take::stored,
    .wide_inputs = 0b10,
    .reason = "f64 inside; logits as they are stored, settings with all their digits"};

}  // namespace

const OpDef draw_tokens_op{
    .name = "draw_tokens",
    .formula = "the next token of each row by temperature, top-k, top-p, min-p and penalty",
    .kind = OpKind::other,
    .precision = &kDrawTokens,
    .dtypes = dtype_set(DType::f32) | dtype_set(DType::bf16) | dtype_set(DType::f16),
    .flops_per_element = 0,
    .infer = infer_draw,
    .reference = draw_reference,
    .cpu = draw_cpu,
    .samples = draw_samples};

Tensor draw_settings(const SamplingOptions& options) {
  return from_values(std::vector<double>{options.temperature, options.top_p, options.min_p,
                                         options.repetition_penalty},
                     {4});
}

Tensor draw_keys(const SamplingOptions& options, std::span<const DrawPlace> places) {
  std::vector<int64_t> keys;
  for (const DrawPlace& place : places) {
    keys.insert(keys.end(), {static_cast<int64_t>(options.seed), int64_t{place.sample},
                             static_cast<int64_t>(place.position), options.top_k});
  }
  return from_values(keys, {static_cast<int64_t>(places.size()), 4});
}

DrawnTokens draw_tokens(const Tensor& logits, const Tensor& settings, const Tensor& keys,
                        const Tensor& seen) {
  Tensors inputs{logits, settings, keys};
  if (seen.defined()) inputs.push_back(seen);
  const Tensors drawn = call_op(draw_tokens_op, inputs);
  return {drawn[0], drawn[1]};
}

}  // namespace brrr
