// A random order of [0, size) that is computed, not stored: element i is a pure function of the key, so an
// epoch over billions of windows needs no table, and any step of any epoch is found at once.
//
// A Feistel network over Philox permutes the next power of four; values past the end are permuted again
// until they fall inside ("cycle walking"), which keeps it one to one. Source: Black, Rogaway, "Ciphers
// with arbitrary finite domains", CT-RSA 2002.
#pragma once

#include <cstdint>

namespace brrr {

// Which permutation: one for each seed, use (stream_id of base/philox.h) and number (of an epoch).
struct PermutationKey {
  uint64_t seed = 0;
  uint32_t stream = 0;
  uint64_t number = 0;  // below 2^56
};

class Permutation {
 public:
  Permutation(int64_t size, const PermutationKey& key);  // 1 <= size <= 2^62

  int64_t operator()(int64_t index) const;

 private:
  uint64_t permute(uint64_t value) const;

  uint64_t size_;
  PermutationKey key_;
  int half_bits_;  // a value has two halves of so many bits
};

}  // namespace brrr
