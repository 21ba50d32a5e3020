#include "brrr/io/gzip.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "support/error_of.h"

namespace brrr {
namespace {

using ::testing::HasSubstr;

std::vector<std::byte> from_hex(std::string_view digits) {
  std::vector<std::byte> bytes;
  for (size_t i = 0; i < digits.size(); i += 2)
    bytes.push_back(
        static_cast<std::byte>(std::stoi(std::string(digits.substr(i, 2)), nullptr, 16)));
  return bytes;
}

std::string unpacked(std::span<const std::byte> file) {
  const std::vector<std::byte> bytes = gunzip(file, "file.gz");
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// What zlib 1.2.13 makes: "hello" stored, a text with the fixed codes, and one with codes of its own.
constexpr std::string_view kStored = "1f8b0800000000000403010500faff68656c6c6f86a6103605000000";
constexpr std::string_view kFixed =
    "1f8b08000000000002032bc957484a55c82f52c8cb2f5128017174144a32124b14328b8174aa4261696a7149667e9e"
    "154492ca2a015427f5277e000000";
constexpr std::string_view kNamed =
    "1f8b08080000000002ff6e616d652e74787400cb4bcc4d4d010087cce07105000000";
constexpr std::string_view kDynamic =
    "1f8b08000000000002034591d101c4300842670574ff150ed4f4f2d19a084f4d502009026a0940a3f2f1f2b9"
    "9c4a0ed46622754c5493dd7324b1222a51b5ce7e26038280d05c6674cea6d4d4098dabcda7c66a8062321aaa"
    "eae12f601938de5bec2a9fdbc6ba7c089900fc9cb3f4c20423b6c66e0d3b95c49367c415cebe5a3b13567243"
    "ec589dedfc52b50ff057c57aa57d759871f9c8dc644de33aa3eae8d6bb4f8f386fe2874a944e5a33c45e85af"
    "b5a6fcf6370fc58bbdc6b2cc1fbcbdafc2f4010000";

// 500 letters, most of them a.
std::string skewed_text() {
  std::string text;
  uint64_t state = 1;
  for (int i = 0; i < 500; ++i) {
    state = (state * 1103515245 + 12345) % (uint64_t{1} << 31);
    text += "aaaaaaaabbbbccde"[(state >> 16) % 16];
  }
  return text;
}

TEST(Gzip, UnpacksEveryKindOfBlock) {
  const std::string text = "to be or not to be, that is the question: ";
  EXPECT_EQ(unpacked(from_hex(kStored)), "hello");
  EXPECT_EQ(unpacked(from_hex(kFixed)), text + text + text);
  EXPECT_EQ(unpacked(from_hex(kDynamic)), skewed_text());
  EXPECT_EQ(unpacked(from_hex(kNamed)), "named");
}

TEST(Gzip, FilesAfterEachOtherAreOne) {
  EXPECT_EQ(unpacked(from_hex(std::string(kStored) + std::string(kNamed))), "hellonamed");
}

TEST(Gzip, ACutOrAChangedBitNeverGivesOtherContent) {
  const std::vector<std::byte> whole = from_hex(kDynamic);
  for (size_t length = 1; length < whole.size(); ++length)
    EXPECT_THROW(unpacked(std::span(whole).first(length)), Error) << length << " bytes";
  int found = 0, bits = 0;
  for (size_t bit = 8 * 10; bit < 8 * whole.size(); ++bit, ++bits) {  // behind the header
    std::vector<std::byte> changed = whole;
    changed[bit / 8] ^= std::byte{1} << (bit % 8);
    try {  // some bits mean nothing, or the same: padding, a copy from another place with the same letters
      EXPECT_EQ(unpacked(changed), skewed_text()) << "bit " << bit;
    } catch (const Error&) {
      ++found;
    }
  }
  EXPECT_GT(found, bits - 10);
}

TEST(Gzip, SaysWhatIsWrong) {
  EXPECT_THAT(error_of([] { gunzip(from_hex("00112233"), "a.gz"); }),
              HasSubstr("a.gz: not a gzip file"));
  EXPECT_THAT(error_of([] { gunzip(from_hex(kDynamic), "a.gz", 100_B); }),
              HasSubstr("a.gz: unpacks to more than 100 B"));
  std::vector<std::byte> file = from_hex(kStored);
  EXPECT_EQ(error_of([&] { gunzip(std::span(file).first(file.size() - 1), "a.gz"); }),
            "a.gz: damaged or cut off: ends inside its content");
  file[file.size() - 8] ^= std::byte{1};
  EXPECT_EQ(error_of([&] { gunzip(file, "a.gz"); }), "a.gz: damaged: incorrect data check");
  file = from_hex(kStored);
  file[2] = std::byte{7};
  EXPECT_EQ(error_of([&] { gunzip(file, "a.gz"); }), "a.gz: damaged: unknown compression method");
}

TEST(Gzip, WhatFollowsAFileMustBeAnother) {
  std::vector<std::byte> file = from_hex(kStored);
  file.resize(file.size() + 20);
  EXPECT_EQ(error_of([&] { gunzip(file, "a.gz"); }), "a.gz: not a gzip file, or cut off");
}

TEST(Gzip, ContentMayHaveTheLargestSizeAndNoMore) {
  const std::vector<std::byte> file = from_hex(kStored);
  EXPECT_EQ(gunzip(file, "a.gz", 5_B).size(), 5U);
  EXPECT_EQ(error_of([&] { gunzip(file, "a.gz", 4_B); }), "a.gz: unpacks to more than 4 B");
  const std::vector<std::byte> two = from_hex(std::string(kStored) + std::string(kNamed));
  EXPECT_EQ(gunzip(two, "a.gz", 10_B).size(), 10U);  // of all files together
  EXPECT_EQ(error_of([&] { gunzip(two, "a.gz", 9_B); }), "a.gz: unpacks to more than 9 B");
}

}  // namespace
}  // namespace brrr
