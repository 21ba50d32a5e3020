#include "brrr/data/permutation.h"

#include <bit>

#include "brrr/base/error.h"
#include "brrr/base/philox.h"

namespace brrr {
namespace {

// Four rounds make a permutation hard to tell from a random one (Luby, Rackoff 1988) when halves are
// large; more of them mix the halves of one or two bits that small sizes have.
constexpr uint32_t kRounds = 8;

}  // namespace

Permutation::Permutation(int64_t size, const PermutationKey& key)
    : size_(static_cast<uint64_t>(size)), key_(key) {
  check(size >= 1 && size <= int64_t{1} << 62, "permutation: of ", size,
        " elements; 1 to 2^62 can be");
  check(key.number < uint64_t{1} << 56, "permutation: number ", key.number, " is not below 2^56");
  half_bits_ = (std::bit_width(size_ - 1) + 1) / 2;
}

int64_t Permutation::operator()(int64_t index) const {
  invariant(index >= 0 && static_cast<uint64_t>(index) < size_, "permutation of an index outside");
  if (half_bits_ == 0) return 0;  // of one element
  auto value = static_cast<uint64_t>(index);
  do {
    value = permute(value);
  } while (value >= size_);
  return static_cast<int64_t>(value);
}

uint64_t Permutation::permute(uint64_t value) const {
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  uint64_t left = value >> half_bits_, right = value & mask;
  const auto number_low = static_cast<uint32_t>(key_.number);
  const auto number_high = static_cast<uint32_t>(key_.number >> 32) << 8;
  for (uint32_t round = 0; round < kRounds; ++round) {
    const PhiloxCounter counter{
        {static_cast<uint32_t>(right), number_low, number_high | round, key_.stream}};
    const uint64_t mixed = left ^ (philox4x32(counter, philox_key(key_.seed)).v[0] & mask);
    left = right;
    right = mixed;
  }
  return (left << half_bits_) | right;
}

}  // namespace brrr
