// What forward and backward tiles of attention share. Included once for every CPU target.
#if defined(BRRR_OPS_ATTENTION_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BRRR_OPS_ATTENTION_TILES_INL_H_
#undef BRRR_OPS_ATTENTION_TILES_INL_H_
#else
#define BRRR_OPS_ATTENTION_TILES_INL_H_
#endif

#include <algorithm>
#include <limits>

#include "brrr/base/scalar_math.h"
#include "brrr/kernels/cpu/attention/attention_tiles.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace brrr::kernels::HWY_NAMESPACE::attention_tiles {

namespace hn = hwy::HWY_NAMESPACE;

// A register tile of C is kRows x kVectors vectors: 8 x 3 of the 32 registers of AVX-512, 4 x 3 of the 16
// of AVX2. A block of queries is kBlockVectors vectors.
#if HWY_TARGET <= HWY_AVX3
constexpr int kRows = 8, kVectors = 3, kBlockVectors = 3;
#elif HWY_TARGET <= HWY_AVX2
constexpr int kRows = 4, kVectors = 3, kBlockVectors = 6;
#else
constexpr int kRows = 2, kVectors = 2, kBlockVectors = 8;
#endif
constexpr int64_t kStrip = 8;  // keys whose visibility is decided together

template <typename T>
using Tag = hn::ScalableTag<T>;
template <typename T>
constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(Tag<T>()));
template <typename T>
constexpr int64_t kWidth = kBlockVectors* kLanes<T>;
template <typename T>
constexpr T kHidden = -std::numeric_limits<T>::infinity();

template <typename T>
constexpr int64_t padded(int64_t size) {
  return (size + kLanes<T> - 1) / kLanes<T> * kLanes<T>;
}

// ---- Products: C[i, :] (+)= sum over k of A[i, k] B[k, :] -----------------------------------------

template <typename T>
struct Product {
  int64_t rows, vectors, depth;
  const T* a;
  int64_t a_row, a_col;  // strides
  const T* b;
  int64_t b_row;
  T* c;
  int64_t c_row;
  bool add;
};

template <int kTileRows, int kTileVectors, typename T>
HWY_INLINE void multiply_tile(const Product<T>& p, int64_t row, int64_t column) {
  const Tag<T> d;
  using V = hn::Vec<Tag<T>>;
  const T* HWY_RESTRICT a = p.a + row * p.a_row;
  const T* HWY_RESTRICT b = p.b + column;
  T* HWY_RESTRICT c = p.c + row * p.c_row + column;
  const int64_t a_row = p.a_row, a_col = p.a_col, b_row = p.b_row, c_row = p.c_row, depth = p.depth;
  V sums[kTileRows][kTileVectors];
#pragma GCC unroll 16
  for (int i = 0; i < kTileRows; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < kTileVectors; ++v)
      sums[i][v] = p.add ? hn::LoadU(d, c + i * c_row + v * kLanes<T>) : hn::Zero(d);
  }
  for (int64_t k = 0; k < depth; ++k) {
    V line[kTileVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kTileVectors; ++v) line[v] = hn::LoadU(d, b + k * b_row + v * kLanes<T>);
#pragma GCC unroll 16
    for (int i = 0; i < kTileRows; ++i) {
      const V factor = hn::Set(d, a[i * a_row + k * a_col]);
#pragma GCC unroll 4
      for (int v = 0; v < kTileVectors; ++v) sums[i][v] = hn::MulAdd(factor, line[v], sums[i][v]);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kTileRows; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < kTileVectors; ++v) hn::StoreU(sums[i][v], d, c + i * c_row + v * kLanes<T>);
  }
}

// All rows of a column of tiles; the last ones in tiles of half as many rows, and again half.
template <int kTileRows, int kTileVectors, typename T>
void multiply_rows(const Product<T>& p, int64_t row, int64_t column) {
  for (; row + kTileRows <= p.rows; row += kTileRows)
    multiply_tile<kTileRows, kTileVectors>(p, row, column);
  if constexpr (kTileRows > 1) {
    if (row < p.rows) multiply_rows<kTileRows / 2, kTileVectors>(p, row, column);
  }
}

// Columns of tiles as equal as can be: 4 vectors are 2 + 2, since a tile of 1 vector waits for loads.
template <typename T>
void multiply(const Product<T>& p) {
  const int64_t parts = (p.vectors + kVectors - 1) / kVectors;
  int64_t begin = 0;
  for (int64_t part = 1; part <= parts; ++part) {
    const int64_t end = p.vectors * part / parts, column = begin * kLanes<T>;
    switch (end - begin) {
      case 1: multiply_rows<kRows, 1>(p, 0, column); break;
      case 2: multiply_rows<kRows, 2>(p, 0, column); break;
      default: multiply_rows<kRows, kVectors>(p, 0, column);
    }
    begin = end;
  }
}

// ---- Which scores of a tile exist -------------------------------------------------------------------

// The queries of a block by lane. Lanes behind the last query repeat what it sees; they hold numbers
// that nobody reads.
template <typename T>
struct Lanes {
  int64_t count, vectors;
  int32_t begin[kWidth<T>], end[kWidth<T>];  // keys are fewer than 2^31
  int64_t document[kWidth<T>], lowest = 0, highest = 0;

  explicit Lanes(const AttentionBlock<T>& block)
      : count(block.count), vectors((block.count + kLanes<T> - 1) / kLanes<T>) {
    const VisibleKeys& visible = block.visible;
    for (int64_t j = 0; j < kWidth<T>; ++j) {
      const int64_t query = block.first + std::min(j, count - 1);
      begin[j] = static_cast<int32_t>(visible.begin(query));
      end[j] = static_cast<int32_t>(visible.end(query));
      document[j] = visible.documents ? visible.documents[query] : 0;
    }
    const auto [low, high] = std::minmax_element(document, document + count);
    lowest = *low;
    highest = *high;
  }
  int64_t first_key() const { return begin[0]; }
  int64_t last_key() const { return end[count - 1]; }  // one behind
};

// Vectors that hold the queries of one product in add_to_queries.
template <typename T>
constexpr int64_t kGroup = std::max<int64_t>(1, kStrip / kLanes<T>);

// Some keys of a tile and the vectors of queries that see any of them.
struct Strip {
  int64_t key, keys;
  int64_t first, last;  // vectors, one behind
  bool edge;            // some of these scores are hidden
};

// A tile of keys: strips in order. Empty where nothing in it is visible.
template <typename T>
struct KeyTile {
  int64_t key, keys;
  int count = 0;
  Strip strips[kKeyTile / kStrip];

  KeyTile(const Lanes<T>& lanes, const int64_t* documents, int64_t first_key, int64_t last_key)
      : key(first_key), keys(last_key - first_key) {
    bool mixed = false;
    if (documents) {
      const auto [low, high] = std::minmax_element(documents + key, documents + last_key);
      if (*high < lanes.lowest || *low > lanes.highest) return;
      mixed = *low != *high || lanes.lowest != lanes.highest || *low != lanes.lowest;
    }
    for (int64_t k = key; k < last_key; k += kStrip) {
      Strip strip{k, std::min(kStrip, last_key - k), 0, lanes.vectors, mixed};
      const int64_t behind = k + strip.keys;
      const auto last_lane = [&](int64_t v) { return (v + 1) * kLanes<T> - 1; };
      while (strip.first < strip.last && lanes.end[last_lane(strip.first)] <= k) ++strip.first;
      while (strip.first < strip.last && lanes.begin[(strip.last - 1) * kLanes<T>] >= behind)
        --strip.last;
      if (strip.first == strip.last) continue;
      // Where vectors are short, those of queries that are multiplied together come together.
      strip.first = strip.first / kGroup<T> * kGroup<T>;
      strip.last = std::min(lanes.vectors, (strip.last + kGroup<T> - 1) / kGroup<T> * kGroup<T>);
      strip.edge = mixed || lanes.end[strip.first * kLanes<T>] < behind ||
                   lanes.begin[last_lane(strip.last - 1)] > k;
      strips[count++] = strip;
    }
  }
  const Strip* begin() const { return strips; }
  const Strip* end() const { return strips + count; }
  // Where the row of scores of `k` starts in a tile.
  int64_t row(int64_t k) const { return (k - key) * kWidth<T>; }
};

// ---- Scores -------------------------------------------------------------------------------------------

// out[c, r] = scale * x[r, c] for four rows and four columns.
#if HWY_TARGET != HWY_SCALAR
HWY_INLINE void transpose_4x4(const float* x, int64_t stride, float scale, float* out,
                              int64_t out_stride) {
  const hn::CappedTag<float, 4> d;
  const auto factor = hn::Set(d, scale);
  const auto row = [&](int64_t i) { return hn::Mul(factor, hn::LoadU(d, x + i * stride)); };
  const auto r0 = row(0), r1 = row(1), r2 = row(2), r3 = row(3);
  const auto low_01 = hn::InterleaveLower(d, r0, r1), high_01 = hn::InterleaveUpper(d, r0, r1);
  const auto low_23 = hn::InterleaveLower(d, r2, r3), high_23 = hn::InterleaveUpper(d, r2, r3);
  hn::StoreU(hn::ConcatLowerLower(d, low_23, low_01), d, out);
  hn::StoreU(hn::ConcatUpperUpper(d, low_23, low_01), d, out + out_stride);
  hn::StoreU(hn::ConcatLowerLower(d, high_23, high_01), d, out + 2 * out_stride);
  hn::StoreU(hn::ConcatUpperUpper(d, high_23, high_01), d, out + 3 * out_stride);
}
#endif

// scale * x^T [columns, width] from rows of x; lanes behind the last row become 0.
template <typename T>
void pack_transposed(const T* x, int64_t stride, int64_t rows, int64_t columns, T scale, T* out) {
  int64_t whole_rows = 0, whole_columns = 0;  // what goes by blocks of 4 x 4
#if HWY_TARGET != HWY_SCALAR
  if constexpr (sizeof(T) == 4) {
    whole_rows = rows / 4 * 4;
    whole_columns = columns / 4 * 4;
    for (int64_t i = 0; i < whole_rows; i += 4) {
      for (int64_t d = 0; d < whole_columns; d += 4)
        transpose_4x4(x + i * stride + d, stride, scale, out + d * kWidth<T> + i, kWidth<T>);
    }
  }
#endif
  for (int64_t d = 0; d < columns; ++d) {
    T* HWY_RESTRICT lane = out + d * kWidth<T>;
    for (int64_t i = d < whole_columns ? whole_rows : 0; i < rows; ++i)
      lane[i] = scale * x[i * stride + d];
    for (int64_t i = rows; i < kWidth<T>; ++i) lane[i] = T(0);
  }
}

template <typename T>
HWY_INLINE T dot(const T* a, const T* b, int64_t count) {
  const Tag<T> d;
  auto sums = hn::Zero(d);
  int64_t i = 0;
  for (; i + kLanes<T> <= count; i += kLanes<T>)
    sums = hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), sums);
  T total = hn::GetLane(hn::SumOfLanes(d, sums));
  for (; i < count; ++i) total += a[i] * b[i];
  return total;
}

// One tile of A B^T: rows of `rows` by the packed queries.
template <typename T>
void multiply_strip(const KeyTile<T>& tile, const Strip& strip, const T* rows, int64_t stride,
                    int64_t depth, const T* packed, T* scores) {
  multiply<T>({.rows = strip.keys,
               .vectors = strip.last - strip.first,
               .depth = depth,
               .a = rows + strip.key * stride,
               .a_row = stride,
               .a_col = 1,
               .b = packed + strip.first * kLanes<T>,
               .b_row = kWidth<T>,
               .c = scores + tile.row(strip.key) + strip.first * kLanes<T>,
               .c_row = kWidth<T>,
               .add = false});
}

// Adds the product of a tile of weights with rows of keys or values to the rows of the queries, eight
// queries at a time with the keys that any of them sees.
template <typename T>
void add_to_queries(const Lanes<T>& lanes, const KeyTile<T>& tile, const T* weights, const T* rows,
                    int64_t stride, T* sums, int64_t columns) {
  for (int64_t i = 0; i < lanes.count; i += kStrip) {
    const int64_t queries = std::min(kStrip, lanes.count - i);
    const int64_t first = std::max<int64_t>(tile.key, lanes.begin[i]);
    const int64_t behind = std::min<int64_t>(tile.key + tile.keys, lanes.end[i + queries - 1]);
    if (first >= behind) continue;
    multiply<T>({.rows = queries,
                 .vectors = columns / kLanes<T>,
                 .depth = behind - first,
                 .a = weights + tile.row(first) + i,
                 .a_row = 1,
                 .a_col = kWidth<T>,
                 .b = rows + first * stride,
                 .b_row = stride,
                 .c = sums + i * columns,
                 .c_row = columns,
                 .add = true});
  }
}

template <typename T>
void hide(const AttentionBlock<T>& block, const Lanes<T>& lanes, const KeyTile<T>& tile,
          const Strip& strip, T* scores) {
  const int64_t first = strip.first * kLanes<T>, count = (strip.last - strip.first) * kLanes<T>;
  const int32_t *begin = lanes.begin + first, *end = lanes.end + first;
  const int64_t* document = lanes.document + first;
  for (int64_t k = strip.key; k < strip.key + strip.keys; ++k) {
    T* HWY_RESTRICT row = scores + tile.row(k) + first;
    const auto key = static_cast<int32_t>(k);
    for (int64_t j = 0; j < count; ++j)
      row[j] = (key >= begin[j]) & (key < end[j]) ? row[j] : kHidden<T>;
    if (!block.visible.documents) continue;
    const int64_t key_document = block.visible.documents[k];
    for (int64_t j = 0; j < count; ++j) row[j] = document[j] == key_document ? row[j] : kHidden<T>;
  }
}

// e^x for x below the largest exponent; results below the normal range, that of -infinity among them,
// become 0.
template <typename T>
HWY_INLINE T exp_flushed(T x) {
  using F = math::Format<T>;
  constexpr T smallest = sizeof(T) == 4 ? T(-87) : T(-708);
  const auto [shifted, r] = math::reduce_by_ln2(x, T(F::bias));
  const T y =
      math::exp_polynomial(r) * math::from_bits<T>(math::to_bits(shifted) << F::mantissa_bits);
  return x < smallest ? T(0) : y;
}

}  // namespace brrr::kernels::HWY_NAMESPACE::attention_tiles
HWY_AFTER_NAMESPACE();

#endif
