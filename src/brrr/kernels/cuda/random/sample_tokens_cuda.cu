// Draws the next token of each row. A row belongs to a cluster of blocks, which keep its logits in their shared
// memory and each other's sums within reach; a GPU without clusters gives it one block.
//
//   1  stage the logits with their penalty; the best of them, the least, the first that is no number
//   2  top-k, top-p: find the last token of the kept ones by its bytes (sample_cutoff.cuh)
//   3  weights of the kept ones; where the random number falls among their sums, in the order of ids
//
// Weights are whole numbers, round(e^x 2^bits), so that every sum is exact: no order of additions shows.
#include "brrr/device/cuda/check.h"
#include "brrr/kernels/cuda/random/sample_cutoff.cuh"
#include "brrr/kernels/cuda/random/sample_tokens_cuda.h"

namespace brrr::kernels {
namespace {

using namespace token_draw;  // NOLINT(google-build-using-namespace): all of it is for this kernel

struct Operands {
  const void* logits;
  Elements settings;
  int64_t logits_row, logits_col, settings_step;
  const bool* seen;  // null: no penalty
  int64_t seen_row, seen_col;
  const int64_t* keys;
  int64_t keys_row, keys_col;
  int64_t *ids, *status;
  RowParts parts;

  __device__ Options options(int64_t row) const {
    const int64_t* const key = keys + row * keys_row;
    return {.temperature = settings.load<double>(0),
            .top_p = settings.load<double>(settings_step),
            .min_p = min(1.0, settings.load<double>(2 * settings_step)),
            .penalty = settings.load<double>(3 * settings_step),
            .seed = static_cast<uint64_t>(key[0]),
            .place = {.sample = static_cast<uint32_t>(key[keys_col]),
                      .position = static_cast<uint64_t>(key[2 * keys_col])},
            .top_k = key[3 * keys_col]};
  }
};

// The logits of a row where they are; + 0.0 makes -0 the equal of 0 that it is.
template <typename T>
struct Source {
  const Operands& operands;
  int64_t row;
  double penalty;
  __device__ double operator()(uint32_t id) const {
    const T* const logits = static_cast<const T*>(operands.logits);
    const double logit =
        convert_fast<double>(logits[row * operands.logits_row + id * operands.logits_col]) + 0.0;
    const bool is_penalized = penalty != 1 && operands.seen &&
                              operands.seen[row * operands.seen_row + id * operands.seen_col];
    return is_penalized ? penalized(logit, penalty) : logit;
  }
};

template <typename T, bool kIsStaged>
__global__ void __launch_bounds__(kThreads, 1) draw_tokens_kernel(Operands operands) {
  extern __shared__ double staged[];
  __shared__ Shared shared;
  Team team(shared);
  const int64_t row = blockIdx.x / team.size();
  const Options options = operands.options(row);
  const Source<T> source{operands, row, options.penalty};
  Row<kIsStaged, Source<T>> values(source, operands.parts, team.rank(), staged);

  const Extremes found = team.join(values.stage(), Extremes::none());
  const bool is_writer = team.rank() == 0 && threadIdx.x == 0;
  if (found.bad != kNone || found.best_key <= key_of(-kInfinity)) {
    if (is_writer) {
      operands.ids[row] = 0;
      operands.status[row] = found.bad != kNone ? int64_t{found.bad} : kNoFiniteLogit;
    }
    return team.leave();
  }
  if (is_writer) operands.status[row] = kUsableLogits;
  if (options.temperature == 0) {
    if (is_writer) operands.ids[row] = ~found.best_id_turned;
    return team.leave();
  }

  const Weights weigh(options.temperature, found, operands.parts.weight_bits);
  const Cut cut = cut_of(values, weigh, options, team);
  const uint64_t bits = draw_bits(options.seed, options.place);
  // u total, rounded down: bits 2^11 total / 2^64
  const auto target = [&](uint64_t total) { return __umul64hi(bits << 11, total); };
  const uint64_t found_id = find(
      values,
      [&](uint32_t id, double value) {
        return cut.keeps(id, value) ? weigh.at_least(value, options.min_p) : uint64_t{0};
      },
      target, team);
  if (found_id != 0) operands.ids[row] = static_cast<int64_t>(found_id) - 1;
  team.leave();
}

// ---- Launching.

constexpr int kClusterBlocks = 8;                // what every GPU with clusters can place
constexpr int64_t kAloneBelow = 2048;            // elements that one block has in hand anyway
constexpr int64_t kOtherSharedBytes = 16 << 10;  // more than `Shared` and the sums of teams take

int bits_of(int64_t count) {
  int bits = 0;
  while (int64_t{1} << bits < count) ++bits;
  return bits;
}

Operands operands_of(const CudaCall& call) {
  const Operand &logits = call.input(0), &settings = call.input(1), &keys = call.input(2);
  const Operand* const seen = call.inputs.size() > 3 ? &call.input(3) : nullptr;
  const auto vocab = static_cast<uint32_t>(logits.shape()[1]);
  return {.logits = Elements(logits).as<const void>(),
          .settings = Elements(settings),
          .logits_row = logits.layout->strides[0],
          .logits_col = logits.layout->strides[1],
          .settings_step = settings.layout->strides[0],
          .seen = seen ? Elements(*seen).as<const bool>() : nullptr,
          .seen_row = seen ? seen->layout->strides[0] : 0,
          .seen_col = seen ? seen->layout->strides[1] : 0,
          .keys = Elements(keys).as<const int64_t>(),
          .keys_row = keys.layout->strides[0],
          .keys_col = keys.layout->strides[1],
          .ids = Elements(call.output(0)).as<int64_t>(),
          .status = Elements(call.output(1)).as<int64_t>(),
          // Sums of all weights stay below 2^62.
          .parts = {.vocab = vocab,
                    .part = vocab,
                    .weight_bits = std::min(52, 62 - bits_of(int64_t{vocab}))}};
}

template <typename T, bool kIsStaged>
void launch(const CudaCall& call, const Operands& operands, int blocks, size_t shared_bytes) {
  const auto kernel = draw_tokens_kernel<T, kIsStaged>;
  cuda::require(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     static_cast<int>(shared_bytes)),
                "shared memory of draw_tokens");
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = static_cast<unsigned>(blocks);
  cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(call.output(0).count() * blocks));
  config.blockDim = dim3(kThreads);
  config.dynamicSmemBytes = shared_bytes;
  config.stream = call.stream;
  config.attrs = &cluster;
  config.numAttrs = blocks > 1 ? 1 : 0;
  cuda::require(cudaLaunchKernelEx(&config, kernel, operands), "launch of draw_tokens");
}

template <typename T>
void draw_rows(const CudaCall& call) {
  Operands operands = operands_of(call);
  const cuda::DeviceFacts& facts = cuda::device_facts(cuda::current_device());
  const int64_t vocab = operands.parts.vocab;
  const int blocks = facts.major >= 9 && vocab > kAloneBelow ? kClusterBlocks : 1;
  const int64_t part = (vocab + blocks - 1) / blocks;
  operands.parts.part = static_cast<uint32_t>(part);
  const int64_t bytes = part * static_cast<int64_t>(sizeof(double));
  if (bytes + kOtherSharedBytes <= facts.shared_bytes_per_block) {
    launch<T, true>(call, operands, blocks, static_cast<size_t>(bytes));
  } else {
    launch<T, false>(call, operands, blocks, 0);
  }
}

}  // namespace

void draw_tokens_cuda(const CudaCall& call) {
  if (call.output(0).count() == 0) return;
  switch (call.input(0).dtype) {
    case DType::f32: return draw_rows<float>(call);
    case DType::bf16: return draw_rows<bf16>(call);
    default: return draw_rows<f16>(call);
  }
}

}  // namespace brrr::kernels
