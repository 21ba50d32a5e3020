// CRC-32C and SHA-256 against their published values.
#include <gtest/gtest.h>

#include <vector>

#include "brrr/io/crc32c.h"
#include "brrr/io/sha256.h"

namespace brrr {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

TEST(Crc32c, GivesThePublishedValues) {
  EXPECT_EQ(crc32c({}), 0u);
  EXPECT_EQ(crc32c(bytes_of("123456789")),
            0xE3069283u);  // the check value of the catalogue of CRCs
  // RFC 3720, B.4: 32 bytes of zeros, of ones, and ascending.
  EXPECT_EQ(crc32c(std::vector<std::byte>(32)), 0x8A9136AAu);
  EXPECT_EQ(crc32c(std::vector<std::byte>(32, std::byte{0xFF})), 0x62A8AB43u);
  std::vector<std::byte> ascending;
  for (int i = 0; i < 32; ++i) ascending.push_back(static_cast<std::byte>(i));
  EXPECT_EQ(crc32c(ascending), 0x46DD794Eu);
}

TEST(Crc32c, OfPartsIsThatOfTheWhole) {
  const std::string text = "The quick brown fox jumps over the lazy dog";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    const auto whole = bytes_of(text);
    EXPECT_EQ(crc32c(whole.subspan(cut), crc32c(whole.first(cut))), crc32c(whole)) << cut;
  }
}

TEST(Sha256, GivesThePublishedValues) {  // FIPS 180-4 examples
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256_hex(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, OfPartsIsThatOfTheWhole) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += static_cast<char>('a' + i % 26);
  const std::string whole = sha256_hex(text);
  for (size_t cut : {0, 1, 55, 56, 63, 64, 65, 119, 120, 128, 200}) {
    const std::string_view view(text);
    EXPECT_EQ(Sha256().add(view.substr(0, cut)).add(view.substr(cut)).hex(), whole) << cut;
  }
}

}  // namespace
}  // namespace brrr
