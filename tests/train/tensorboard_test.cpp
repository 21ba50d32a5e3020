#include "brrr/run/tensorboard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "brrr/io/crc32c.h"
#include "support/temp_folder.h"

namespace brrr {
namespace {

std::string hex(std::string_view bytes) {
  std::string digits;
  for (char byte : bytes) {
    for (int half : {static_cast<uint8_t>(byte) >> 4, static_cast<uint8_t>(byte) & 15})
      digits += "0123456789abcdef"[half];
  }
  return digits;
}

TEST(TensorBoard, WritesByteForByteWhatTensorBoardItselfWrites) {
  std::ifstream file(std::string(BRRR_SOURCE_DIR) + "/tests/fixtures/tensorboard.json");
  const std::string theirs = nlohmann::json::parse(file)["file"];
  std::string story;
  for (int i = 0; i < 12; ++i)
    story += "Once \u201cupon\u201d a time ";  // over 127 bytes: a longer varint
  const std::string ours =
      runs::framed(runs::version_event(1700000000.5)) +
      runs::framed(runs::restart_event(1700000000.75, 301)) +
      runs::framed(runs::scalar_event(1700000001.25, "loss/train", 1, 3.140625)) +
      runs::framed(runs::scalar_event(1700000002.0, "lr", 123456789, 3e-4)) +
      runs::framed(runs::text_event(1700000003.0, "sample", 300, story));
  EXPECT_EQ(hex(ours), theirs);
}

// ---- a reader of our own files, by the same public description but not by the same code ----------------

struct Field {
  uint64_t number = 0, value = 0;  // the value of a varint, or the bits of a number
  std::string bytes;
};

uint64_t take_varint(std::string_view& rest) {
  uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = static_cast<uint8_t>(rest.at(0));
    rest.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
}

std::vector<Field> fields_of(std::string_view message) {
  std::vector<Field> fields;
  while (!message.empty()) {
    const uint64_t key = take_varint(message);
    Field field{.number = key >> 3, .bytes = {}};
    size_t size = key % 8 == 1 ? 8 : key % 8 == 5 ? 4 : 0;
    if (key % 8 == 0) field.value = take_varint(message);
    if (key % 8 == 2) size = take_varint(message);
    field.bytes = message.substr(0, size);
    if (key % 8 == 1 || key % 8 == 5) std::memcpy(&field.value, field.bytes.data(), size);
    message.remove_prefix(size);
    fields.push_back(field);
  }
  return fields;
}

const Field& field(const std::vector<Field>& fields, uint64_t number) {
  for (const Field& candidate : fields) {
    if (candidate.number == number) return candidate;
  }
  throw std::runtime_error("no such field");
}

template <typename T>
T take(std::string_view& rest) {
  T value;
  std::memcpy(&value, rest.substr(0, sizeof(T)).data(), sizeof(T));
  rest.remove_prefix(sizeof(T));
  return value;
}

uint32_t unmasked(uint32_t crc) { return std::rotl(crc - 0xa282ead8U, 15); }

std::vector<std::string> records_of(const std::string& file) {
  std::vector<std::string> records;
  for (std::string_view rest = file; !rest.empty();) {
    const std::string_view length_bytes = rest.substr(0, 8);
    const auto length = take<uint64_t>(rest);
    EXPECT_EQ(unmasked(take<uint32_t>(rest)), crc32c(std::as_bytes(std::span(length_bytes))));
    records.emplace_back(rest.substr(0, length));
    rest.remove_prefix(length);
    EXPECT_EQ(unmasked(take<uint32_t>(rest)), crc32c(std::as_bytes(std::span(records.back()))));
  }
  return records;
}

TEST(TensorBoard, AFileIsReadBackRecordByRecord) {
  const TempFolder folder;
  std::filesystem::path path;
  {
    runs::TensorBoardWriter board(folder.path(), {.resumed_after_step = 6});
    path = board.path();
    board.scalar("loss", 7, 0.5);
    board.text("sample", 8, "a story");
  }
  EXPECT_THAT(path.filename().string(), ::testing::StartsWith("events.out.tfevents."));
  const std::vector<std::string> records = records_of(read_file(path));
  ASSERT_EQ(records.size(), 4U);
  EXPECT_EQ(field(fields_of(records[0]), 3).bytes, "brain.Event:2");
  EXPECT_EQ(field(fields_of(records[1]), 2).value,
            7U);  // what earlier files say of step 7 on is void
  const auto scalar = fields_of(records[2]);
  EXPECT_GT(std::bit_cast<double>(field(scalar, 1).value), 1.6e9);  // seconds since 1970
  EXPECT_EQ(field(scalar, 2).value, 7U);
  const auto value = fields_of(field(fields_of(field(scalar, 5).bytes), 1).bytes);
  EXPECT_EQ(field(value, 1).bytes, "loss");
  EXPECT_EQ(std::bit_cast<float>(static_cast<uint32_t>(field(value, 2).value)), 0.5F);
  const auto text = fields_of(field(fields_of(field(fields_of(records[3]), 5).bytes), 1).bytes);
  EXPECT_EQ(field(fields_of(field(text, 8).bytes), 8).bytes, "a story");
}

TEST(TensorBoard, WritersWithinOneSecondHaveFilesOfTheirOwn) {
  const TempFolder folder;
  const runs::TensorBoardWriter first(folder.path()), second(folder.path()), third(folder.path());
  EXPECT_NE(first.path(), second.path());
  EXPECT_NE(second.path(), third.path());
}

}  // namespace
}  // namespace brrr
