#include "brrr/io/npy_header.h"

#include <algorithm>
#include <array>

#include "brrr/base/error.h"
#include "brrr/io/little_endian.h"

namespace brrr {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kMaxHeaderBytes = 1 << 16;  // numpy itself refuses more than 10000
constexpr size_t kMaxAxes = 32;              // numpy's limit before version 2

// Reads the dictionary from left to right; every function takes what it names or throws.
class DictReader {
 public:
  DictReader(std::string_view text, std::string_view name) : text_(text), name_(name) {}

  NpyHeader read() {
    NpyHeader header;
    bool seen_descr = false, seen_order = false, seen_shape = false;
    take('{');
    while (!is_next('}')) {
      const std::string_view key = quoted();
      take(':');
      if (key == "descr" && !seen_descr) {
        seen_descr = true;
        set_type(header, quoted());
      } else if (key == "fortran_order" && !seen_order) {
        seen_order = true;
        header.fortran_order = boolean();
      } else if (key == "shape" && !seen_shape) {
        seen_shape = true;
        header.shape = tuple();
      } else {
        fail_here("the key descr, fortran_order or shape, each once");
      }
      if (!is_next('}')) take(',');
    }
    take('}');
    skip_space();
    if (!text_.empty()) fail_here("the end of the header");
    if (!seen_descr || !seen_order || !seen_shape)
      fail_here("all of descr, fortran_order and shape");
    return header;
  }

 private:
  void skip_space() {
    const size_t used = std::min(text_.find_first_not_of(" \n"), text_.size());
    text_.remove_prefix(used);
  }
  bool is_next(char wanted) {
    skip_space();
    return !text_.empty() && text_[0] == wanted;
  }
  void take(char wanted) {
    if (!is_next(wanted)) fail_here(std::string_view(&wanted, 1));
    text_.remove_prefix(1);
  }
  std::string_view quoted() {
    const char quote = is_next('"') ? '"' : '\'';
    take(quote);
    const size_t end = text_.find(quote);
    if (end == text_.npos) fail_here("a closing quote");
    const std::string_view inside = text_.substr(0, end);
    text_.remove_prefix(end + 1);
    return inside;
  }
  bool boolean() {
    skip_space();
    for (const auto& [word, value] :
         {std::pair{std::string_view("True"), true}, {"False", false}}) {
      if (!text_.starts_with(word)) continue;
      text_.remove_prefix(word.size());
      return value;
    }
    fail_here("True or False");
  }
  std::vector<int64_t> tuple() {
    std::vector<int64_t> sizes;
    take('(');
    while (!is_next(')')) {
      if (sizes.size() == kMaxAxes) fail_here("at most 32 axes");
      sizes.push_back(size());
      if (!is_next(')')) take(',');
    }
    take(')');
    return sizes;
  }
  int64_t size() {
    skip_space();
    int64_t value = 0;
    size_t digits = 0;
    for (; digits < text_.size() && text_[digits] >= '0' && text_[digits] <= '9'; ++digits) {
      if (__builtin_mul_overflow(value, 10, &value) ||
          __builtin_add_overflow(value, text_[digits] - '0', &value))
        fail_here("a size below 2^63");
    }
    if (digits == 0) fail_here("a size");
    text_.remove_prefix(digits);
    return value;
  }
  void set_type(NpyHeader& header, std::string_view descr) const {
    // '<u2': byte order, kind, bytes. One-byte types have the order '|'.
    constexpr std::array<std::string_view, 12> kKnown = {"<f2", "<f4", "<f8", "<i2", "<i4", "<i8",
                                                         "<u2", "<u4", "<u8", "|i1", "|u1", "|b1"};
    check(std::ranges::find(kKnown, descr) != kKnown.end(), name_, ": elements of type \"",
          printable(descr),
          "\" are not read; save it as a little-endian number type such as <u2 or <f4");
    header.kind = descr[1];
    header.item_bytes = descr[2] - '0';
  }

  static std::string printable(std::string_view text) {
    std::string out(text.substr(0, 24));
    for (char& c : out) c = c >= ' ' && c <= '~' ? c : '?';
    return out;
  }
  [[noreturn]] void fail_here(std::string_view wanted) const {
    fail(name_, ": damaged .npy header: expected ", wanted, " before \"", printable(text_), "\"");
  }

  std::string_view text_, name_;
};

}  // namespace

bool is_npy(std::span<const std::byte> file) {
  return file.size() >= kMagic.size() &&
         std::memcmp(file.data(), kMagic.data(), kMagic.size()) == 0;
}

NpyHeader parse_npy_header(std::span<const std::byte> file, std::string_view name) {
  check(is_npy(file), name, ": not a .npy file");
  check(file.size() >= 12, name, ": a .npy file cut off after ", file.size(), " bytes");
  const int version = static_cast<int>(file[6]);
  check(version >= 1 && version <= 3, name, ": .npy version ", version,
        " is not known; 1 to 3 are");
  const size_t text_start = version == 1 ? 10 : 12;
  const size_t text_bytes = version == 1 ? load_le<uint16_t>(file, 8) : load_le<uint32_t>(file, 8);
  check(text_bytes <= kMaxHeaderBytes && text_bytes <= file.size() - text_start, name,
        ": the .npy header says it has ", text_bytes, " bytes, in a file of ", file.size());
  const std::string_view text(reinterpret_cast<const char*>(file.data()) + text_start, text_bytes);
  NpyHeader header = DictReader(text, name).read();
  header.data_offset = static_cast<int64_t>(text_start + text_bytes);

  int64_t bytes = header.item_bytes;
  header.count = 1;
  const bool empty = std::ranges::find(header.shape, 0) != header.shape.end();
  for (int64_t size : header.shape) {
    const bool too_large = !empty && (__builtin_mul_overflow(header.count, size, &header.count) ||
                                      __builtin_mul_overflow(bytes, size, &bytes));
    check(!too_large, name, ": the .npy header names more elements than any file holds");
  }
  if (empty) header.count = bytes = 0;
  check(bytes <= static_cast<int64_t>(file.size()) - header.data_offset, name, ": ", header.count,
        " elements need ", bytes, " bytes after the header; the file has ",
        static_cast<int64_t>(file.size()) - header.data_offset, ": was it cut off?");
  return header;
}

std::string make_npy_header(std::string_view descr, std::span<const int64_t> shape) {
  std::string sizes;
  for (int64_t size : shape) sizes += join_text(size, ", ");
  if (shape.size() != 1 && !sizes.empty()) sizes.resize(sizes.size() - 2);
  if (shape.size() == 1) sizes.pop_back();  // a tuple of one is written (3,)
  std::string text =
      join_text("{'descr': '", descr, "', 'fortran_order': False, 'shape': (", sizes, "), }");
  constexpr size_t kStart = 10;
  text.append(63 - (kStart + text.size()) % 64, ' ');
  text += '\n';
  std::string header(kMagic);
  header +=
      {'\x01', '\x00', static_cast<char>(text.size() & 0xFF), static_cast<char>(text.size() >> 8)};
  return header + text;
}

}  // namespace brrr
