// Philox4x32-10: random numbers as a pure function of (counter, key).
// Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
//
// There is no state to save: element i of a use draws block i, whichever thread computes it, so
// recomputation, resume, CPU and GPU all see the same numbers. The seed is the key; the counter
// says which use (a named stream), which step and which element:
//
//   constexpr uint32_t kDropout = stream_id("dropout");     // at namespace scope
//   PhiloxBlock block = philox4x32(philox_counter(index, kDropout, step), philox_key(seed));
//   bool keep = uniform01(block.v[0]) >= rate;
#pragma once

#include <cstdint>
#include <string_view>

#include "brrr/base/host_device.h"

namespace brrr {

struct PhiloxCounter {
  std::uint32_t c[4];
};
struct PhiloxKey {
  std::uint32_t k[2];
};
struct PhiloxBlock {
  std::uint32_t v[4];
};

[[nodiscard]] constexpr BRRR_HD PhiloxKey philox_key(std::uint64_t seed) {
  return {{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)}};
}

// Different (index, stream, step) give different counters, hence different blocks.
[[nodiscard]] constexpr BRRR_HD PhiloxCounter philox_counter(std::uint64_t index,
                                                             std::uint32_t stream,
                                                             std::uint32_t step = 0) {
  return {
      {static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32), step, stream}};
}

[[nodiscard]] constexpr BRRR_HD PhiloxBlock philox4x32(PhiloxCounter counter, PhiloxKey key) {
  constexpr std::uint64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;  // golden ratio, sqrt(3) - 1
  constexpr int kRounds = 10;
  std::uint32_t c0 = counter.c[0], c1 = counter.c[1], c2 = counter.c[2], c3 = counter.c[3];
  std::uint32_t k0 = key.k[0], k1 = key.k[1];
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t product0 = kMultiplier0 * c0, product1 = kMultiplier1 * c2;
    c0 = static_cast<std::uint32_t>(product1 >> 32) ^ c1 ^ k0;
    c1 = static_cast<std::uint32_t>(product1);
    c2 = static_cast<std::uint32_t>(product0 >> 32) ^ c3 ^ k1;
    c3 = static_cast<std::uint32_t>(product0);
    k0 += kWeyl0;
    k1 += kWeyl1;
  }
  return {{c0, c1, c2, c3}};
}

// The number of a named stream (FNV-1a, 32 bits). Host code: a kernel uses it through a constexpr
// variable at namespace scope, or gets the number as an argument.
[[nodiscard]] constexpr std::uint32_t stream_id(std::string_view name) {
  std::uint32_t hash = 2166136261u;
  for (char letter : name) hash = (hash ^ static_cast<unsigned char>(letter)) * 16777619u;
  return hash;
}

// [0, 1), a multiple of 2^-24: as many bits as a float holds, so nothing is rounded up to 1.
[[nodiscard]] constexpr BRRR_HD float uniform01(std::uint32_t random) {
  return static_cast<float>(random >> 8) * 0x1p-24f;
}

// (0, 1], for logarithms: the least value is 2^-24.
[[nodiscard]] constexpr BRRR_HD float uniform_open01(std::uint32_t random) {
  return static_cast<float>((random >> 8) + 1) * 0x1p-24f;
}

// [0, 1), a multiple of 2^-53.
[[nodiscard]] constexpr BRRR_HD double uniform01_double(std::uint32_t high, std::uint32_t low) {
  const std::uint64_t random = (static_cast<std::uint64_t>(high) << 32) | low;
  return static_cast<double>(random >> 11) * 0x1p-53;
}

}  // namespace brrr
