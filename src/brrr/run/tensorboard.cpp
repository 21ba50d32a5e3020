#include "brrr/run/tensorboard.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "brrr/base/error.h"
#include "brrr/io/crc32c.h"

namespace brrr::runs {
namespace {

// ---- protocol buffers: a field is its number with a wire type, then its value --------------------------

enum class Wire : uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

template <typename T>
void put_fixed(std::string& out, T value) {
  const auto bytes = std::bit_cast<std::array<char, sizeof(T)>>(value);
  out.append(bytes.data(), bytes.size());
}

// Seven bits a byte, the lowest first; the highest bit says that more follow.
void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

void put_key(std::string& out, int field, Wire wire) {
  put_varint(out, static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(wire));
}

void put_integer(std::string& out, int field, int64_t value) {
  put_key(out, field, Wire::varint);
  put_varint(out, static_cast<uint64_t>(value));
}

void put_bytes(std::string& out, int field, std::string_view bytes) {
  put_key(out, field, Wire::bytes);
  put_varint(out, bytes.size());
  out += bytes;
}

// ---- the messages that are used, by the field numbers of tensorflow's .proto files ---------------------

constexpr int kEventWallTime = 1, kEventStep = 2, kEventFileVersion = 3, kEventSummary = 5,
              kEventSessionLog = 7;
constexpr int kSessionStatus = 1, kSessionStart = 1;
constexpr int kSummaryValue = 1;
constexpr int kValueTag = 1, kValueSimple = 2, kValueTensor = 8, kValueMetadata = 9;
constexpr int kMetadataPlugin = 1, kPluginName = 1;
constexpr int kTensorDtype = 1, kTensorShape = 2, kTensorString = 8, kDtypeString = 7;
constexpr int kShapeDim = 2, kDimSize = 1;

std::string event_at(double wall_time, int64_t step) {
  std::string event;
  put_key(event, kEventWallTime, Wire::fixed64);
  put_fixed(event, wall_time);
  if (step != 0) put_integer(event, kEventStep, step);  // zero is what an absent field means
  return event;
}

std::string with_value(std::string event, std::string_view value) {
  std::string summary;
  put_bytes(summary, kSummaryValue, value);
  put_bytes(event, kEventSummary, summary);
  return event;
}

std::string text_tensor(std::string_view text) {
  std::string dim, shape, tensor;
  put_integer(dim, kDimSize, 1);
  put_bytes(shape, kShapeDim, dim);
  put_integer(tensor, kTensorDtype, kDtypeString);
  put_bytes(tensor, kTensorShape, shape);
  put_bytes(tensor, kTensorString, text);
  return tensor;
}

std::string plugin(std::string_view name) {
  std::string data, metadata;
  put_bytes(data, kPluginName, name);
  put_bytes(metadata, kMetadataPlugin, data);
  return metadata;
}

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// The checksum of bytes that may themselves contain checksums: rotated, and moved by a constant.
uint32_t masked_crc(std::string_view bytes) {
  const uint32_t crc = crc32c(std::as_bytes(std::span(bytes)));
  return std::rotr(crc, 15) + 0xa282ead8U;
}

std::string host_name() {
  std::array<char, 256> name = {};
  if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == 0) return "host";
  return name.data();
}

}  // namespace

std::string version_event(double wall_time) {
  std::string event = event_at(wall_time, 0);
  put_bytes(event, kEventFileVersion, "brain.Event:2");
  return event;
}

std::string restart_event(double wall_time, int64_t first_step) {
  std::string log, event = event_at(wall_time, first_step);
  put_integer(log, kSessionStatus, kSessionStart);
  put_bytes(event, kEventSessionLog, log);
  return event;
}

std::string scalar_event(double wall_time, std::string_view tag, int64_t step, double value) {
  std::string entry;
  put_bytes(entry, kValueTag, tag);
  put_key(entry, kValueSimple, Wire::fixed32);
  put_fixed(entry, static_cast<float>(value));
  return with_value(event_at(wall_time, step), entry);
}

std::string text_event(double wall_time, std::string_view tag, int64_t step,
                       std::string_view text) {
  std::string entry;
  put_bytes(entry, kValueTag, tag);
  put_bytes(entry, kValueTensor, text_tensor(text));
  put_bytes(entry, kValueMetadata, plugin("text"));
  return with_value(event_at(wall_time, step), entry);
}

std::string framed(std::string_view event) {
  std::string record;
  put_fixed(record, static_cast<uint64_t>(event.size()));
  put_fixed(record, masked_crc(record));
  record += event;
  put_fixed(record, masked_crc(event));
  return record;
}

TensorBoardWriter::TensorBoardWriter(const std::filesystem::path& folder,
                                     const TensorBoardOptions& options) {
  std::filesystem::create_directories(folder);
  // Seconds with ten digits, because TensorBoard reads files in the order of their names; two writers
  // within a second get a number behind it.
  const std::string stem =
      fmt::format("events.out.tfevents.{:010d}.{}", static_cast<int64_t>(now()), host_name());
  for (int copy = 0; file_ < 0; ++copy) {
    path_ = folder / (copy == 0 ? stem : fmt::format("{}.{}", stem, copy));
    file_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
    check(file_ >= 0 || errno == EEXIST, path_.string(),
          ": cannot be written: ", std::strerror(errno));
  }
  add(version_event(now()));
  if (options.resumed_after_step > 0) add(restart_event(now(), options.resumed_after_step + 1));
}

TensorBoardWriter::~TensorBoardWriter() { ::close(file_); }

void TensorBoardWriter::scalar(std::string_view tag, int64_t step, double value) {
  add(scalar_event(now(), tag, step, value));
}

void TensorBoardWriter::text(std::string_view tag, int64_t step, std::string_view text) {
  add(text_event(now(), tag, step, text));
}

// One call for each record: a process that is killed leaves whole records.
void TensorBoardWriter::add(const std::string& event) {
  const std::string record = framed(event);
  ssize_t written = 0;
  do {
    written = ::write(file_, record.data(), record.size());
  } while (written < 0 && errno == EINTR);
  if (written == static_cast<ssize_t>(record.size())) {
    size_ += written;
    return;
  }
  const int reason = written < 0 ? errno : ENOSPC;
  (void)::ftruncate(file_, size_);  // what was there before stays readable
  fail(path_.string(), ": cannot be written: ", std::strerror(reason));
}

}  // namespace brrr::runs
