#include "brrr/ops/gemm_amx.h"

#include <algorithm>
#include <bit>
#include <cmath>

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
#define BRRR_HAS_AMX 1
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"  // g++ 12 complains of its own undefined vectors
#endif

namespace brrr {

#if BRRR_HAS_AMX
namespace {

// Tiles are 16 rows of 64 bytes. Of A: 16 rows of 32 steps of k. Of B: 16 pairs of steps, each with 16
// columns, both steps of a column side by side.
constexpr int64_t kTile = 16, kStep = 32, kTerms = 3, kTileWords = 256;  // 32-bit words of a tile
constexpr int64_t kBlock = 2 * kTile;  // rows and columns of C at a time: 2 x 2 tiles
constexpr int64_t kStepWords = kTerms * 2 * kTileWords;  // both tiles of all terms at one step of k
constexpr int64_t kSteps = kGemmDepth / kStep;
constexpr int64_t kStripWords = kSteps * kStepWords;  // 32 rows of A, or columns of B, of one depth
constexpr int64_t kRowStrips = 4;                     // strips of A that are packed at a time
constexpr uint32_t kTooLarge = 0x7f7f8000;            // from here on bf16 rounds to infinity

#define BRRR_AMX \
  __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,amx-tile,amx-bf16")))

// 32 floats as their three terms, in order.
struct Terms {
  __m512i bf16[kTerms];
};

BRRR_AMX inline __m512 low_floats(__m512i bf16) {
  return _mm512_castsi512_ps(
      _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm512_castsi512_si256(bf16)), 16));
}
BRRR_AMX inline __m512 high_floats(__m512i bf16) {
  return _mm512_castsi512_ps(
      _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(bf16, 1)), 16));
}
BRRR_AMX inline __m512i round_both(__m512 low, __m512 high) {
  return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low));
}

BRRR_AMX inline Terms split(__m512 low, __m512 high) {
  Terms terms;
  terms.bf16[0] = round_both(low, high);
  low = _mm512_sub_ps(low, low_floats(terms.bf16[0]));
  high = _mm512_sub_ps(high, high_floats(terms.bf16[0]));
  terms.bf16[1] = round_both(low, high);
  low = _mm512_sub_ps(low, low_floats(terms.bf16[1]));
  high = _mm512_sub_ps(high, high_floats(terms.bf16[1]));
  terms.bf16[2] = round_both(low, high);
  return terms;
}

// The largest of the bit patterns without sign seen so far, lane by lane.
struct Largest {
  __m512i bits;
};
BRRR_AMX inline void note(Largest& largest, __m512 x) {
  const __m512i size = _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7fffffff));
  largest.bits = _mm512_max_epu32(largest.bits, size);
}

// words[i][j] = words[j][i].
BRRR_AMX void transpose(uint32_t* words) {
  __m512i a[16], b[16];
  for (int i = 0; i < 16; ++i) a[i] = _mm512_load_si512(words + 16 * i);
  for (int i = 0; i < 16; i += 2) {
    b[i] = _mm512_unpacklo_epi32(a[i], a[i + 1]);
    b[i + 1] = _mm512_unpackhi_epi32(a[i], a[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {
    a[i] = _mm512_unpacklo_epi64(b[i], b[i + 2]);
    a[i + 1] = _mm512_unpackhi_epi64(b[i], b[i + 2]);
    a[i + 2] = _mm512_unpacklo_epi64(b[i + 1], b[i + 3]);
    a[i + 3] = _mm512_unpackhi_epi64(b[i + 1], b[i + 3]);
  }
  for (int i = 0; i < 4; ++i) {
    b[i] = _mm512_shuffle_i32x4(a[i], a[i + 4], 0x88);
    b[i + 4] = _mm512_shuffle_i32x4(a[i], a[i + 4], 0xdd);
    b[i + 8] = _mm512_shuffle_i32x4(a[i + 8], a[i + 12], 0x88);
    b[i + 12] = _mm512_shuffle_i32x4(a[i + 8], a[i + 12], 0xdd);
  }
  for (int i = 0; i < 4; ++i) {
    a[i] = _mm512_shuffle_i32x4(b[i], b[i + 8], 0x88);
    a[i + 4] = _mm512_shuffle_i32x4(b[i + 4], b[i + 12], 0x88);
    a[i + 8] = _mm512_shuffle_i32x4(b[i], b[i + 8], 0xdd);
    a[i + 12] = _mm512_shuffle_i32x4(b[i + 4], b[i + 12], 0xdd);
  }
  for (int i = 0; i < 16; ++i) _mm512_store_si512(words + 16 * i, a[i]);
}

// A matrix of which `lines` (rows of A, columns of B) are packed: element (line, k) lies at
// data[line * line_stride + k * k_stride].
struct Lines {
  const float* data;
  int64_t line_stride, k_stride, lines, depth;
};

BRRR_AMX inline __mmask16 first_lanes(int64_t count) {
  return static_cast<__mmask16>((1U << std::clamp<int64_t>(count, 0, 16)) - 1);
}

// 16 numbers `stride` apart; zeros from `count` on.
BRRR_AMX inline __m512 load_apart(const float* from, int64_t stride, int64_t count) {
  if (stride == 1) return _mm512_maskz_loadu_ps(first_lanes(count), from);
  alignas(64) float apart[16] = {};
  for (int64_t i = 0; i < std::min<int64_t>(count, 16); ++i) apart[i] = from[i * stride];
  return _mm512_load_ps(apart);
}

// One tile of every term with rows of k: a line in each, 32 steps along it. `to` is the first term's.
BRRR_AMX void pack_along_k(const Lines& from, int64_t line, int64_t k, uint32_t* to,
                           Largest& largest) {
  const int64_t steps = from.depth - k;
  for (int64_t i = 0; i < kTile; ++i) {
    Terms terms{{_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512()}};
    if (line + i < from.lines) {
      const float* x = from.data + (line + i) * from.line_stride + k * from.k_stride;
      const __m512 low = load_apart(x, from.k_stride, steps),
                   high = load_apart(x + 16 * from.k_stride, from.k_stride, steps - 16);
      note(largest, low), note(largest, high);
      terms = split(low, high);
    }
    for (int64_t t = 0; t < kTerms; ++t)
      _mm512_store_si512(to + t * 2 * kTileWords + i * 16, terms.bf16[t]);
  }
}

// One tile of every term with pairs of steps in its rows: 16 lines in each, side by side.
BRRR_AMX void pack_across(const Lines& from, int64_t line, int64_t k, uint32_t* to,
                          Largest& largest) {
  const __m512i pairs = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24,
                                         8, 23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  const int64_t lines = from.lines - line;
  for (int64_t i = 0; i < kTile; ++i) {
    const int64_t step = k + 2 * i;
    __m512 even = _mm512_setzero_ps(), odd = even;
    const float* x = from.data + line * from.line_stride + step * from.k_stride;
    if (step < from.depth) even = load_apart(x, from.line_stride, lines);
    if (step + 1 < from.depth) odd = load_apart(x + from.k_stride, from.line_stride, lines);
    note(largest, even), note(largest, odd);
    const Terms terms = split(even, odd);
    for (int64_t t = 0; t < kTerms; ++t)
      _mm512_store_si512(to + t * 2 * kTileWords + i * 16,
                         _mm512_permutexvar_epi16(pairs, terms.bf16[t]));
  }
}

// 32 lines as tiles: step after step, term after term, two tiles each. Memory is read in its order; where
// that is not the order of the tiles, they are transposed.
enum class TileOrder : uint8_t { along_k, across };
BRRR_AMX void pack_strip(const Lines& from, int64_t line, TileOrder order, uint32_t* to,
                         Largest& largest) {
  const bool reads_along_k = from.k_stride == 1 || from.line_stride != 1;
  for (int64_t k = 0; k < from.depth; k += kStep, to += kStepWords) {
    for (int64_t half = 0; half < 2; ++half) {
      uint32_t* tile = to + half * kTileWords;
      if (reads_along_k) {
        pack_along_k(from, line + half * kTile, k, tile, largest);
      } else {
        pack_across(from, line + half * kTile, k, tile, largest);
      }
      if (reads_along_k == (order == TileOrder::along_k)) continue;
      for (int64_t t = 0; t < kTerms; ++t) transpose(tile + t * 2 * kTileWords);
    }
  }
}

// Tiles 0 to 3 hold sums, 4 and 5 two tiles of A, 6 and 7 two of B.
BRRR_AMX inline void load_a(const uint32_t* a) {
  _tile_loadd(4, a, 64);
  _tile_loadd(5, a + kTileWords, 64);
}
BRRR_AMX inline void load_b(const uint32_t* b) {
  _tile_loadd(6, b, 64);
  _tile_loadd(7, b + kTileWords, 64);
}
BRRR_AMX inline void multiply_tiles() {
  _tile_dpbf16ps(0, 4, 6);
  _tile_dpbf16ps(1, 4, 7);
  _tile_dpbf16ps(2, 5, 6);
  _tile_dpbf16ps(3, 5, 7);
}

// The sums of 32 x 32 elements over one depth: small terms, then large ones.
BRRR_AMX void multiply_strips(const uint32_t* a, const uint32_t* b, int64_t steps, float* sums) {
  constexpr int64_t term = 2 * kTileWords;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int64_t s = 0; s < steps; ++s) {
    const uint32_t *as = a + s * kStepWords, *bs = b + s * kStepWords;
    load_a(as), load_b(bs + 2 * term), multiply_tiles();
    load_b(bs + term), multiply_tiles();
    load_a(as + term), multiply_tiles();
    load_b(bs), multiply_tiles();
    load_a(as + 2 * term), multiply_tiles();
  }
  for (int64_t s = 0; s < steps; ++s) {
    load_a(a + s * kStepWords), load_b(b + s * kStepWords), multiply_tiles();
  }
  constexpr int64_t stride = kBlock * sizeof(float);
  _tile_stored(0, sums, stride);
  _tile_stored(1, sums + kTile, stride);
  _tile_stored(2, sums + kTile * kBlock, stride);
  _tile_stored(3, sums + kTile * kBlock + kTile, stride);
}

// C (+)= sums for the rows and columns that exist, from the bias on in the first depth.
BRRR_AMX void add_sums(const GemmCall<float>& call, int64_t row, int64_t column, bool first,
                       const float* sums) {
  const int64_t rows = std::min(kBlock, call.m - row), columns = call.n - column;
  const __mmask16 masks[2] = {first_lanes(columns), first_lanes(columns - 16)};
  for (int64_t i = 0; i < rows; ++i) {
    float* c = call.c + (row + i) * call.c_row_stride + column;
    for (int64_t v = 0; v < 2; ++v) {
      __m512 sum = _mm512_load_ps(sums + i * kBlock + v * 16);
      if (!first) sum = _mm512_add_ps(_mm512_maskz_loadu_ps(masks[v], c + v * 16), sum);
      if (first && call.bias)
        sum = _mm512_add_ps(_mm512_maskz_loadu_ps(masks[v], call.bias + column + v * 16), sum);
      _mm512_mask_storeu_ps(c + v * 16, masks[v], sum);
    }
  }
}

BRRR_AMX bool is_too_large(const Largest& largest) {
  return _mm512_reduce_max_epu32(largest.bits) >= kTooLarge;
}

// ---- rows and columns that bf16 cannot hold ------------------------------------------------------
bool has_too_large(const Lines& from, int64_t line) {
  for (int64_t k = 0; k < from.depth; ++k) {
    const float x = from.data[line * from.line_stride + k * from.k_stride];
    if ((std::bit_cast<uint32_t>(x) & 0x7fffffffU) >= kTooLarge) return true;
  }
  return false;
}

// A part of C by the vector kernel.
void multiply_by_vectors(GemmCall<float> part) {
  const GemmKernels<float> kernels = gemm_kernels_f32();
  const int64_t panels = (part.n + kernels.panel_columns - 1) / kernels.panel_columns;
  for (int64_t p = 0; p < panels; p += kMaxPiecePanels)
    kernels.multiply(part, {0, part.m, p, std::min(kMaxPiecePanels, panels - p)});
}

struct Span {
  int64_t begin, end;
};

void mend_rows(const GemmCall<float>& call, const Lines& a, Span rows, Span columns) {
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    if (!has_too_large(a, row)) continue;
    GemmCall<float> part = call;
    part.m = 1, part.n = columns.end - columns.begin;
    part.a += row * call.a_row_stride;
    part.b += columns.begin * call.b_col_stride;
    part.c += row * call.c_row_stride + columns.begin;
    if (part.bias) part.bias += columns.begin;
    multiply_by_vectors(part);
  }
}

void mend_columns(const GemmCall<float>& call, const Lines& b, Span rows, Span columns) {
  for (int64_t column = columns.begin; column < columns.end; ++column) {
    if (!has_too_large(b, column)) continue;
    GemmCall<float> part = call;
    part.m = rows.end - rows.begin, part.n = 1;
    part.a += rows.begin * call.a_row_stride;
    part.b += column * call.b_col_stride;
    part.c += rows.begin * call.c_row_stride + column;
    if (part.bias) part.bias += column;
    multiply_by_vectors(part);
  }
}

struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

BRRR_AMX void multiply(const GemmCall<float>& call, const GemmPiece& piece) {
  alignas(64) uint32_t packed_b[kMaxPiecePanels * kStripWords];
  alignas(64) uint32_t packed_a[kRowStrips * kStripWords];
  alignas(64) float sums[kBlock * kBlock];
  const Span rows{piece.row, piece.row + piece.rows},
      columns{piece.panel * kBlock, std::min(call.n, (piece.panel + piece.panels) * kBlock)};
  const Lines all_a{call.a, call.a_row_stride, call.a_col_stride, rows.end, call.k},
      all_b{call.b, call.b_col_stride, call.b_row_stride, columns.end, call.k};
  Largest largest_a{_mm512_setzero_si512()}, largest_b{_mm512_setzero_si512()};
  const TileConfig config;
  _tile_loadconfig(&config);
  for (int64_t k = 0; k < call.k; k += kGemmDepth) {
    const int64_t depth = std::min(kGemmDepth, call.k - k), steps = (depth + kStep - 1) / kStep;
    Lines a = all_a, b = all_b;
    a.data += k * a.k_stride, a.depth = depth;
    b.data += k * b.k_stride, b.depth = depth;
    for (int64_t p = 0; p < piece.panels; ++p)
      pack_strip(b, columns.begin + p * kBlock, TileOrder::across, packed_b + p * kStripWords,
                 largest_b);
    for (int64_t row = rows.begin; row < rows.end; row += kRowStrips * kBlock) {
      const int64_t strips = std::min(kRowStrips, (rows.end - row + kBlock - 1) / kBlock);
      for (int64_t r = 0; r < strips; ++r)
        pack_strip(a, row + r * kBlock, TileOrder::along_k, packed_a + r * kStripWords, largest_a);
      for (int64_t r = 0; r < strips; ++r) {
        for (int64_t p = 0; p < piece.panels; ++p) {
          multiply_strips(packed_a + r * kStripWords, packed_b + p * kStripWords, steps, sums);
          GemmCall<float> bounded = call;
          bounded.m = rows.end;
          add_sums(bounded, row + r * kBlock, columns.begin + p * kBlock, k == 0, sums);
        }
      }
    }
  }
  _tile_release();
  if (is_too_large(largest_a)) mend_rows(call, all_a, rows, columns);
  if (is_too_large(largest_b)) mend_columns(call, all_b, rows, columns);
}

// The system hands out the tiles' registers only to who asks for them.
bool may_use_amx() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return false;
  const bool tiles = (edx >> 22 & 1U) != 0 && (edx >> 24 & 1U) != 0;  // AMX-BF16, AMX-TILE
  if (!tiles || __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) == 0) return false;
  if ((eax >> 5 & 1U) == 0) return false;  // AVX512-BF16
  constexpr int kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

}  // namespace

std::optional<GemmKernels<float>> amx_gemm_kernels_f32() {
  static const bool may = may_use_amx();
  if (!may) return std::nullopt;
  return GemmKernels<float>{kBlock, kBlock, &multiply};
}
#else
std::optional<GemmKernels<float>> amx_gemm_kernels_f32() { return std::nullopt; }
#endif

// Cycles of both, by count: six tile products of 16 cycles for 16 x 16 x 32, twice that for bringing tiles
// in, and one an element for splitting; 32 multiply-adds a cycle at 80 % of the peak.
bool is_for_amx(int64_t m, int64_t n, int64_t k) {
  const auto whole = [](int64_t x) { return static_cast<double>((x + 31) / 32 * 32); };
  const auto exact = [](int64_t x) { return static_cast<double>(x); };
  const double tiles = whole(m) * whole(n) * whole(k) * (2 * 6 * 16.0 / 8192),
               splits_of_a = std::ceil(exact(n) / 256), splits_of_b = std::ceil(exact(m) / 1024),
               splitting = exact(k) * (exact(m) * splits_of_a + exact(n) * splits_of_b),
               vectors = exact(m) * exact(n) * exact(k) / (0.8 * 32);
  return tiles + splitting < vectors;
}

}  // namespace brrr
