#include "brrr/io/gzip.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "brrr/base/error.h"
#include "brrr/io/little_endian.h"

namespace brrr {
namespace {

constexpr int kMostCodeBits = 15;

// Bits from the lowest of each byte on. Behind the end come zeros; `overrun` then says so.
class BitReader {
 public:
  explicit BitReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  uint32_t peek(int count) {
    while (held_ < count) {
      const uint64_t byte = next_ < bytes_.size() ? std::to_integer<uint64_t>(bytes_[next_]) : 0;
      ++next_;
      bits_ |= byte << held_;
      held_ += 8;
    }
    return static_cast<uint32_t>(bits_ & ((uint64_t{1} << count) - 1));
  }
  void skip(int count) {
    bits_ >>= count;
    held_ -= count;
  }
  uint32_t take(int count) {
    const uint32_t value = peek(count);
    skip(count);
    return value;
  }
  void to_byte() { skip(held_ % 8); }
  // Bytes of which at least one bit was taken.
  size_t position() const { return next_ - static_cast<size_t>(held_ / 8); }
  bool overrun() const { return position() > bytes_.size(); }

 private:
  std::span<const std::byte> bytes_;
  size_t next_ = 0;
  uint64_t bits_ = 0;
  int held_ = 0;
};

// A prefix code by one table: the next bits are the index, the entry has symbol and length.
class PrefixCode {
 public:
  // False where the lengths are those of no code, or of one with gaps that a stream could step into. A
  // single code of one bit is allowed, as deflate has it for blocks with one distance.
  bool build(std::span<const uint8_t> lengths) {
    std::array<int, kMostCodeBits + 1> count = {};
    for (uint8_t length : lengths) ++count[length];
    count[0] = 0;
    bits_ = kMostCodeBits;
    while (bits_ > 1 && count[static_cast<size_t>(bits_)] == 0) --bits_;
    int left = 1, used = 0;
    std::array<uint32_t, kMostCodeBits + 2> next = {};
    for (size_t length = 1; length <= kMostCodeBits; ++length) {
      left = 2 * left - count[length];
      used += count[length];
      if (left < 0) return false;
      next[length + 1] = (next[length] + static_cast<uint32_t>(count[length])) << 1;
    }
    if (left > 0 && used > 1) return false;
    entries_.assign(size_t{1} << bits_, {});
    for (size_t symbol = 0; symbol < lengths.size(); ++symbol) {
      if (lengths[symbol] != 0)
        fill(static_cast<uint16_t>(symbol), lengths[symbol], next[lengths[symbol]]++);
    }
    return true;
  }

  // -1 for bits that are no code.
  int decode(BitReader& bits) const {
    const Entry entry = entries_[bits.peek(bits_)];
    bits.skip(entry.length);
    return entry.length == 0 ? -1 : entry.symbol;
  }

 private:
  struct Entry {
    uint16_t symbol = 0;
    uint8_t length = 0;
  };
  // Codes come with their highest bit first, the table is indexed with the first bit lowest.
  void fill(uint16_t symbol, uint8_t length, uint32_t code) {
    uint32_t reversed = 0;
    for (int bit = 0; bit < length; ++bit) reversed |= (code >> bit & 1U) << (length - 1 - bit);
    for (uint32_t i = reversed; i < entries_.size(); i += 1U << length)
      entries_[i] = {.symbol = symbol, .length = length};
  }

  int bits_ = 1;
  std::vector<Entry> entries_;
};

constexpr std::array<uint16_t, 29> kLengthBase = {3,  4,  5,  6,   7,   8,   9,   10,  11, 13,
                                                  15, 17, 19, 23,  27,  31,  35,  43,  51, 59,
                                                  67, 83, 99, 115, 131, 163, 195, 227, 258};
constexpr std::array<uint8_t, 29> kLengthBits = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                                 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
constexpr std::array<uint16_t, 30> kDistanceBase = {
    1,   2,   3,   4,   5,   7,    9,    13,   17,   25,   33,   49,   65,    97,    129,
    193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
constexpr std::array<uint8_t, 30> kDistanceBits = {0, 0, 0,  0,  1,  1,  2,  2,  3,  3,
                                                   4, 4, 5,  5,  6,  6,  7,  7,  8,  8,
                                                   9, 9, 10, 10, 11, 11, 12, 12, 13, 13};

class Inflater {
 public:
  Inflater(std::span<const std::byte> bytes, const std::string& name, size_t largest,
           std::vector<std::byte>& out)
      : bytes_(bytes),
        bits_(bytes),
        name_(name),
        largest_(largest),
        out_(out),
        start_(out.size()) {}

  // Unpacks one stream; returns the bytes that it took.
  size_t run() {
    bool last = false;
    while (!last) {
      last = bits_.take(1) == 1;
      const uint32_t kind = bits_.take(2);
      require(kind != 3, "a block of a kind that does not exist");
      if (kind == 0) {
        copy_stored();
      } else {
        if (kind == 1) set_fixed_codes();
        if (kind == 2) read_codes();
        copy_coded();
      }
    }
    return bits_.position();
  }

 private:
  void require(bool holds, std::string_view what) const {
    check(holds && !bits_.overrun(), name_, ": damaged or cut off: ", what);
  }
  void require_room(size_t more) const {
    check(out_.size() + more <= largest_, name_, ": unpacks to more than ",
          to_text(Bytes(static_cast<int64_t>(largest_))));
  }

  void copy_stored() {
    bits_.to_byte();
    const uint32_t length = bits_.take(16), complement = bits_.take(16);
    require((length ^ complement) == 0xFFFF, "the length of a block contradicts itself");
    require(bits_.position() + length <= bytes_.size(), "a block goes past the end");
    require_room(length);
    for (uint32_t i = 0; i < length; ++i) out_.push_back(static_cast<std::byte>(bits_.take(8)));
  }

  void set_fixed_codes() {
    std::array<uint8_t, 288> lengths;
    std::fill(lengths.begin(), lengths.begin() + 144, uint8_t{8});
    std::fill(lengths.begin() + 144, lengths.begin() + 256, uint8_t{9});
    std::fill(lengths.begin() + 256, lengths.begin() + 280, uint8_t{7});
    std::fill(lengths.begin() + 280, lengths.end(), uint8_t{8});
    std::array<uint8_t, 32> distances;
    distances.fill(5);
    require(literals_.build(lengths) && distances_.build(distances), "the fixed codes");
  }

  // The lengths of both codes, themselves coded: 16 repeats the last, 17 and 18 are runs of zeros.
  void read_codes() {
    constexpr std::array<uint8_t, 19> kOrder = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                                11, 4,  12, 3, 13, 2, 14, 1, 15};
    const size_t literals = bits_.take(5) + 257, distances = bits_.take(5) + 1,
                 used = bits_.take(4) + 4;
    std::array<uint8_t, 19> first = {};
    for (size_t i = 0; i < used; ++i) first[kOrder[i]] = static_cast<uint8_t>(bits_.take(3));
    PrefixCode code;
    require(code.build(first), "the code of code lengths is no code");
    std::vector<uint8_t> lengths;
    while (lengths.size() < literals + distances) {
      const int symbol = code.decode(bits_);
      require(symbol >= 0 && (symbol != 16 || !lengths.empty()), "a code length");
      if (symbol < 16) {
        lengths.push_back(static_cast<uint8_t>(symbol));
        continue;
      }
      const uint8_t repeated = symbol == 16 ? lengths.back() : uint8_t{0};
      const uint32_t times = symbol == 16   ? 3 + bits_.take(2)
                             : symbol == 17 ? 3 + bits_.take(3)
                                            : 11 + bits_.take(7);
      lengths.insert(lengths.end(), times, repeated);
    }
    require(lengths.size() == literals + distances, "too many code lengths");
    const std::span<const uint8_t> all(lengths);
    require(literals_.build(all.first(literals)) && distances_.build(all.subspan(literals)),
            "code lengths that make no code");
  }

  void copy_coded() {
    while (true) {
      const int symbol = literals_.decode(bits_);
      require(symbol >= 0 && symbol < 286, "a symbol that does not exist");
      if (symbol == 256) return;
      if (symbol < 256) {
        require_room(1);
        out_.push_back(static_cast<std::byte>(symbol));
        continue;
      }
      const auto l = static_cast<size_t>(symbol - 257);
      const size_t length = kLengthBase[l] + bits_.take(kLengthBits[l]);
      const int far = distances_.decode(bits_);
      require(far >= 0 && far < 30, "a distance that does not exist");
      const auto d = static_cast<size_t>(far);
      const size_t distance = kDistanceBase[d] + bits_.take(kDistanceBits[d]);
      require(distance <= out_.size() - start_, "a distance to before the beginning");
      require_room(length);
      for (size_t i = 0; i < length; ++i) out_.push_back(out_[out_.size() - distance]);
    }
  }

  std::span<const std::byte> bytes_;
  BitReader bits_;
  const std::string& name_;
  size_t largest_;
  std::vector<std::byte>& out_;
  size_t start_;
  PrefixCode literals_, distances_;
};

// CRC-32 as gzip has it (polynomial 0x04C11DB7, reflected), a byte at a time by a table.
uint32_t crc32(std::span<const std::byte> bytes) {
  static const auto table = [] {
    std::array<uint32_t, 256> entries;
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ (value & 1U ? 0xEDB88320U : 0U);
      entries[i] = value;
    }
    return entries;
  }();
  uint32_t crc = 0xFFFFFFFFU;
  for (std::byte byte : bytes)
    crc = table[(crc ^ std::to_integer<uint32_t>(byte)) & 0xFFU] ^ (crc >> 8);
  return ~crc;
}

// Where the deflate stream begins: behind ten fixed bytes and what the flags announce.
size_t header_bytes(std::span<const std::byte> file, const std::string& name) {
  check(file.size() >= 18 && is_gzip(file), name, ": not a gzip file, or cut off");
  check(file[2] == std::byte{8}, name, ": packed by a method other than deflate");
  const auto flags = std::to_integer<unsigned>(file[3]);
  size_t at = 10;
  const auto skip_text = [&] {
    while (at < file.size() && file[at] != std::byte{0}) ++at;
    ++at;
  };
  if (flags & 4U) at += 2 + size_t{load_le<uint16_t>(file, at)};
  if (flags & 8U) skip_text();   // the name of the file
  if (flags & 16U) skip_text();  // a comment
  if (flags & 2U) at += 2;       // a checksum of the header
  check(at + 8 <= file.size(), name, ": the header of gzip goes past the end of the file");
  return at;
}

}  // namespace

bool is_gzip(std::span<const std::byte> file) {
  return file.size() >= 2 && file[0] == std::byte{0x1f} && file[1] == std::byte{0x8b};
}

std::vector<std::byte> gunzip(std::span<const std::byte> file, const std::string& name,
                              Bytes largest) {
  std::vector<std::byte> out;
  while (!file.empty()) {  // files put behind each other are one file
    const size_t header = header_bytes(file, name), before = out.size();
    Inflater inflater(file.subspan(header), name, static_cast<size_t>(largest.value()), out);
    const size_t end = header + inflater.run();
    check(end + 8 <= file.size(), name, ": cut off before its checksum");
    const auto content = std::span<const std::byte>(out).subspan(before);
    check(load_le<uint32_t>(file, end) == crc32(content) &&
              load_le<uint32_t>(file, end + 4) == static_cast<uint32_t>(content.size()),
          name, ": damaged: the checksum of the content is another");
    file = file.subspan(end + 8);
  }
  return out;
}

}  // namespace brrr
