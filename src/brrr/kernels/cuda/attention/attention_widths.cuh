// Which kernels of attention on tensor cores there are: by width of heads, engine, type of elements and gradient, with
// the rows that a block of threads has, the tiles that it walks, and the launch.
//
// A kernel for width D takes heads of at most D numbers; rows are filled up with zeros in shared memory, which has 227 KiB
// on Hopper and 99 KiB on sm_89. A thread has at most 255 registers. Both bound what a block can have:
//   a warp, or a warpgroup, has D / 2 registers a thread of sums for each result, and half a tile's rows for its scores
//   dK and dV together are too much above D = 128: each gets a launch of its own, and scores are multiplied twice
#pragma once

#include "brrr/kernels/calls/tensor_cores.h"
#include "brrr/kernels/cuda/attention/attention_cuda.h"
#include "brrr/kernels/cuda/attention/attention_engines.cuh"
#include "brrr/kernels/cuda/device/elements.cuh"

namespace brrr::kernels::mma {

// A warp has 16 rows.
constexpr int threads_of(int rows) { return rows / 16 * 32; }

template <typename Engine>
constexpr bool kIsWarpgroup = Engine::kUnitRows == 64;
template <typename Engine>
constexpr int64_t kMaxSharedBytes = (kIsWarpgroup<Engine> ? 227 : 99) * 1024;

// Elements between rows of a tile, on average: wgmma wants blocks of 64 columns.
template <typename Engine, int D>
constexpr int kRowSpan = kIsWarpgroup<Engine> ? (D + 63) / 64 * 64 : D;
template <typename Engine, int D>
constexpr int64_t tile_bytes(int rows) {
  return int64_t{rows} * kRowSpan<Engine, D> * 2;
}

// 128 queries, and two tiles each of K and V.
template <typename Engine, int D>
struct ForwardTiles {
  static constexpr int kRows = 128, kThreads = threads_of(kRows);
  static constexpr int kKeys = kIsWarpgroup<Engine> || D <= 128 ? 64 : D == 192 ? 32 : 16;
  // Two blocks a multiprocessor where they fit: one computes while the other multiplies.
  static constexpr int kBlocks = kIsWarpgroup<Engine> && D == 64 ? 2 : 1;
  static constexpr int64_t kSharedBytes = tile_bytes<Engine, D>(kRows + 4 * kKeys);
  static_assert(kBlocks * kSharedBytes <= kMaxSharedBytes<Engine>);
};

enum class Grads { queries, keys_and_values, keys, values };

// Queries or keys of a block with two operands (dV alone needs one), two tiles each of two operands of the other side,
// and for dK and dV two floats of each query of a tile.
template <typename Engine, int D, Grads Wanted>
struct BackwardTiles {
  static constexpr int kRows = !kIsWarpgroup<Engine> && D > 128 ? 64 : 128;
  static constexpr int kThreads = threads_of(kRows);
  // A warp alone has no registers for 64 where heads are wide. A warpgroup has, but with 32 two blocks fit a
  // multiprocessor where heads are narrow, and more than 48 do not fit shared memory where they are widest.
  static constexpr int kWarpTile = D <= 64 ? 64 : D <= 192 ? 32 : 16;
  static constexpr int kGroupTile = D == 64 ? 32 : D == 256 && Wanted != Grads::values ? 48 : 64;
  static constexpr int kTile = kIsWarpgroup<Engine> ? kGroupTile : kWarpTile;
  static constexpr int kBlocks = kIsWarpgroup<Engine> && D == 64 ? 2 : 1;
  static constexpr int kRowOperands = Wanted == Grads::values ? 1 : 2;
  static constexpr int64_t kFactBytes =
      Wanted == Grads::queries ? 0 : 4 * kTile * static_cast<int64_t>(sizeof(float));
  static constexpr int64_t kSharedBytes =
      tile_bytes<Engine, D>(kRowOperands * kRows + 4 * kTile) + kFactBytes;
  static_assert(kBlocks * kSharedBytes <= kMaxSharedBytes<Engine>);
};

inline bool is_hopper() { return cuda::device_facts(cuda::current_device()).major == 9; }

// Whether visit_kernels() launches a kernel on the GPUs that this is compiled for; others are left empty.
template <typename Engine, int D, bool Capped>
__device__ constexpr bool is_launched() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  return kIsWarpgroup<Engine> || D == 32 || Capped;
#else
  return !kIsWarpgroup<Engine>;
#endif
}

// Calls body.template operator()<D>() with the width of the kernel for heads of `dim`.
template <typename Body>
void visit_width(int64_t dim, const Body& body) {
  switch (attention_kernel_width(dim)) {
    case 32: return body.template operator()<32>();
    case 64: return body.template operator()<64>();
    case 96: return body.template operator()<96>();
    case 128: return body.template operator()<128>();
    case 192: return body.template operator()<192>();
    case 256: return body.template operator()<256>();
    default: invariant(false, "attention: no kernel takes heads of ", dim);
  }
}

// Calls body.template operator()<Engine, T, D, Capped>(). Capped scores are for models that are rare; they
// take the engine that every GPU has.
template <typename Body>
void visit_kernels(const CudaCall& call, const Body& body) {
  const auto with_rule = [&]<typename T, bool Capped>() {
    visit_width(call.input(0).shape()[3], [&]<int D>() {
      if constexpr (!Capped && D != 32) {
        if (is_hopper()) return body.template operator()<WarpgroupEngine, T, D, false>();
      }
      body.template operator()<WarpEngine, T, D, Capped>();
    });
  };
  const auto with_type = [&]<typename T>() {
    call.attrs.number("soft_cap") > 0 ? with_rule.template operator()<T, true>()
                                      : with_rule.template operator()<T, false>();
  };
  call.input(0).dtype == DType::bf16 ? with_type.template operator()<bf16>()
                                     : with_type.template operator()<f16>();
}

// Tiles: ForwardTiles or BackwardTiles.
template <typename Tiles, typename Kernel, typename... Arguments>
void launch(const CudaCall& call, Kernel* kernel, int rows, int heads, int batch,
            const Arguments&... arguments) {
  if (rows == 0 || heads == 0 || batch == 0) return;
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       static_cast<int>(Tiles::kSharedBytes));
  const dim3 grid(static_cast<unsigned>((rows + Tiles::kRows - 1) / Tiles::kRows),
                  static_cast<unsigned>(heads), static_cast<unsigned>(batch));
  kernel<<<grid, Tiles::kThreads, static_cast<size_t>(Tiles::kSharedBytes), call.stream>>>(
      arguments...);
  cuda::check_launch(call.op.name);
}

}  // namespace brrr::kernels::mma
