#include "brrr/io/safetensors.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "brrr/io/atomic_file.h"
#include "brrr/io/little_endian.h"
#include "brrr/ops/create/copy.h"

namespace brrr {
namespace {

using Json = nlohmann::json;

constexpr size_t kLengthBytes = 8;
constexpr size_t kLargestHeader = 100'000'000;  // what other readers of the format accept
constexpr size_t kAlignment = 64;               // of the first element, by blanks behind the header

struct DTypeName {
  DType dtype;
  std::string_view name;
};
constexpr DTypeName kNames[] = {
    {DType::f64, "F64"},   {DType::f32, "F32"},        {DType::f16, "F16"},
    {DType::bf16, "BF16"}, {DType::f8e4m3, "F8_E4M3"}, {DType::f8e5m2, "F8_E5M2"},
    {DType::i64, "I64"},   {DType::i32, "I32"},        {DType::i16, "I16"},
    {DType::i8, "I8"},     {DType::u64, "U64"},        {DType::u32, "U32"},
    {DType::u16, "U16"},   {DType::u8, "U8"},          {DType::boolean, "BOOL"}};

std::string_view name_of(DType dtype, const std::string& tensor) {
  for (const DTypeName& entry : kNames) {
    if (entry.dtype == dtype) return entry.name;
  }
  fail("safetensors has no dtype for ", dtype, " (tensor \"", tensor, "\"); cast it before saving");
}

DType dtype_named(const std::string& name, const std::string& where) {
  for (const DTypeName& entry : kNames) {
    if (entry.name == name) return entry.dtype;
  }
  fail(where, " has dtype \"", name, "\", which brrr does not know");
}

std::span<const std::byte> bytes_of(const Tensor& x) {
  return {x.storage().data() + storage_bytes(x.dtype(), x.offset()),
          static_cast<size_t>(x.bytes().value())};
}

std::string header_of(const std::vector<NamedTensor>& tensors, const TextByName& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  size_t next = 0;
  for (const auto& [name, tensor] : tensors) {
    check(name != "__metadata__" && !header.contains(name), "safetensors: the name \"", name,
          "\" is taken; every tensor needs one of its own");
    const size_t end = next + static_cast<size_t>(storage_bytes(tensor.dtype(), tensor.numel()));
    header[name] = {{"dtype", name_of(tensor.dtype(), name)},
                    {"shape", std::vector<int64_t>(tensor.shape().begin(), tensor.shape().end())},
                    {"data_offsets", {next, end}}};
    next = end;
  }
  std::string text = header.dump();
  text.append((kAlignment - (kLengthBytes + text.size()) % kAlignment) % kAlignment, ' ');
  return text;
}

// Sizes multiply without overflow, and fit the bytes that they are said to have.
TensorType type_of(const Json& entry, const std::string& where) {
  check(entry.is_object() && entry.contains("dtype") && entry["dtype"].is_string() &&
            entry.contains("shape") && entry["shape"].is_array(),
        where, " has no dtype or no shape");
  TensorType type{.shape = {}, .dtype = dtype_named(entry["dtype"].get<std::string>(), where)};
  check(entry["shape"].size() <= kMaxRank, where, " has ", entry["shape"].size(),
        " axes; brrr takes up to ", kMaxRank);
  for (const Json& size : entry["shape"]) {
    check(size.is_number_unsigned() && size.get<uint64_t>() <= INT64_MAX, where,
          " has a size that is no count: ", size.dump());
    type.shape.push_back(size.get<int64_t>());
  }
  return type;
}

std::pair<size_t, size_t> offsets_of(const Json& entry, const std::string& where) {
  const bool fits = entry.contains("data_offsets") && entry["data_offsets"].is_array() &&
                    entry["data_offsets"].size() == 2 &&
                    entry["data_offsets"][0].is_number_unsigned() &&
                    entry["data_offsets"][1].is_number_unsigned();
  check(fits, where, " has no data_offsets [begin, end]");
  return {entry["data_offsets"][0].get<size_t>(), entry["data_offsets"][1].get<size_t>()};
}

}  // namespace

void save_safetensors(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors,
                      const TextByName& metadata) {
  const std::string header = header_of(tensors, metadata);
  AtomicFile file(path);
  std::array<std::byte, kLengthBytes> length{};
  store_le<uint64_t>(length, 0, header.size());
  file.write(length);
  file.write(std::as_bytes(std::span(header)));
  NoGrad nothing_is_recorded;
  for (const auto& [name, tensor] : tensors) file.write(bytes_of(contiguous(tensor.detach())));
  file.commit();
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) : file_(path) {
  const std::span<const std::byte> bytes = file_.bytes();
  check(bytes.size() >= kLengthBytes, file_.name(),
        " is too short for a safetensors file: ", bytes.size(), " B; is it whole?");
  const auto length = load_le<uint64_t>(bytes, 0);
  check(length <= kLargestHeader && length <= bytes.size() - kLengthBytes, file_.name(),
        " is damaged or no safetensors file: its header would have ", length, " B of ",
        bytes.size());
  const auto* text = reinterpret_cast<const char*>(bytes.data() + kLengthBytes);
  read_entries(kLengthBytes + length, std::string(text, length));
  require_no_gaps(kLengthBytes + length);
}

void SafetensorsFile::read_entries(size_t header_end, const std::string& header) {
  const Json json = Json::parse(header, nullptr, false);
  check(json.is_object(), file_.name(), " is damaged: its header is no JSON object");
  const size_t data_bytes = file_.bytes().size() - header_end;
  for (const auto& [name, value] : json.items()) {
    if (name == "__metadata__") {
      check(value.is_object(), file_.name(), ": __metadata__ is no object");
      for (const auto& [key, text] : value.items()) {
        check(text.is_string(), file_.name(), ": metadata \"", key, "\" is no text");
        metadata_[key] = text.get<std::string>();
      }
      continue;
    }
    const std::string where = join_text(file_.name(), ": tensor \"", name, "\"");
    const TensorType type = type_of(value, where);
    const auto [begin, end] = offsets_of(value, where);
    check(begin <= end && end <= data_bytes, where, " lies at [", begin, ", ", end, ") of ",
          data_bytes, " B; the file is cut short or damaged");
    check(static_cast<size_t>(storage_bytes(type.dtype, numel(type.shape))) == end - begin, where,
          " is ", type, " and has ", end - begin, " B");
    entries_.push_back({name, type, header_end + begin, header_end + end});
  }
  std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  for (size_t i = 0; i < entries_.size(); ++i) places_[entries_[i].name] = i;
}

// The format has no holes and no overlaps, so nothing can be hidden in a file.
void SafetensorsFile::require_no_gaps(size_t header_end) const {
  size_t next = header_end;
  for (const Entry& entry : entries_) {
    check(entry.begin == next, file_.name(), ": tensor \"", entry.name, "\" begins at byte ",
          entry.begin, ", not at ", next, " where the one before it ends");
    next = entry.end;
  }
  check(next == file_.bytes().size(), file_.name(), " has ", file_.bytes().size() - next,
        " B behind its last tensor; it is damaged");
}

const SafetensorsFile::Entry* SafetensorsFile::find(const std::string& name) const {
  const auto found = places_.find(name);
  return found == places_.end() ? nullptr : &entries_[found->second];
}

Tensor SafetensorsFile::load(const std::string& name) const {
  const Entry* entry = find(name);
  check(entry != nullptr, file_.name(), " has no tensor \"", name, "\"");
  Tensor x = empty(entry->type.shape, entry->type.dtype);
  const auto bytes = file_.bytes().subspan(entry->begin, entry->end - entry->begin);
  std::copy(bytes.begin(), bytes.end(), x.storage().data());
  return x;
}

void SafetensorsFile::load_into(const std::string& name, const Tensor& target) const {
  const Tensor x = load(name);
  check(x.shape() == target.shape(), file_.name(), ": tensor \"", name, "\" is ", x.type(),
        ", and ", describe(target), " is wanted");
  target.copy_from(x);
}

}  // namespace brrr
