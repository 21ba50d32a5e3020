// Tensors as text: tensor([[1, 2], [3, 4]], f32[2, 2] on cpu).
// What fits on a line stays on one; the rest is laid out as a matrix, one row a line and columns
// aligned. All floats of a tensor share one format, so that they can be compared by eye. The rules
// for eliding and for the format are those of NumPy and PyTorch, which readers know already.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "brrr/tensor/tensor.h"

namespace brrr {
namespace {

constexpr int64_t kElideAbove = 1000;  // tensors of more elements show the ends of long axes only
constexpr int64_t kEdgeItems = 3;      // at each end
constexpr size_t kLineWidth = 80;
constexpr std::string_view kPrefix = "tensor(";

// Calls show(index) for the indices of an axis that are printed, and gap() where others are not.
template <typename Show, typename Gap>
void for_each_shown(int64_t size, bool elide, Show&& show, Gap&& gap) {
  const bool cut = elide && size > 2 * kEdgeItems;
  for (int64_t i = 0; i < size; ++i) {
    if (cut && i == kEdgeItems) {
      gap();
      i = size - kEdgeItems;
    }
    show(i);
  }
}

void collect_shown(const Layout& layout, int axis, int64_t position, bool elide,
                   std::vector<int64_t>& positions) {
  if (axis == layout.rank()) {
    positions.push_back(position);
    return;
  }
  const auto show = [&](int64_t i) {
    collect_shown(layout, axis + 1, position + i * layout.strides[axis], elide, positions);
  };
  for_each_shown(layout.shape[axis], elide, show, [] {});
}

// Whole numbers need no point. Four decimals suffice unless they would hide small values or spell
// out long ones: then every value gets an exponent.
fmt::string_view format_for(const std::vector<double>& values) {
  double largest = 0, smallest = INFINITY;  // of the magnitudes, zero and non-finite ones left out
  bool whole = true;
  for (double value : values) {
    if (!std::isfinite(value)) continue;
    whole &= value == std::trunc(value);
    if (value == 0) continue;
    largest = std::max(largest, std::fabs(value));
    smallest = std::min(smallest, std::fabs(value));
  }
  if (whole && largest < 1e8) return "{:.0f}";
  const bool wide = largest >= 1e8 || smallest < 1e-4 || largest > 1000 * smallest;
  return wide ? "{:.4e}" : "{:.4f}";
}

std::vector<std::string> float_texts(const Tensor& x, const std::vector<int64_t>& positions) {
  std::vector<double> values;
  for (int64_t position : positions) values.push_back(load_float(x, position));
  const fmt::string_view format = format_for(values);
  std::vector<std::string> texts;
  for (double value : values) {
    // The sign of a NaN means nothing to a reader.
    texts.push_back(std::isnan(value) ? "nan" : fmt::format(fmt::runtime(format), value));
  }
  return texts;
}

std::vector<std::string> element_texts(const Tensor& x, const std::vector<int64_t>& positions) {
  if (is_float(x.dtype())) return float_texts(x, positions);
  std::vector<std::string> texts;
  for (int64_t position : positions) {
    if (x.dtype() == DType::u64) {
      texts.push_back(std::to_string(load_uint(x, position)));
      continue;
    }
    const int64_t value = load_int(x, position);
    texts.push_back(x.dtype() == DType::boolean ? (value != 0 ? "true" : "false")
                                                : std::to_string(value));
  }
  return texts;
}

enum class Lines { one, many };

// Puts brackets around the texts of the shown elements, which come in row-major order.
class Brackets {
 public:
  Brackets(const Shape& shape, bool elide, const std::vector<std::string>& texts, Lines lines)
      : shape_(shape), elide_(elide), lines_(lines), next_(texts.begin()) {
    if (lines == Lines::one) return;
    for (const std::string& text : texts) width_ = std::max(width_, text.size());
  }

  std::string write() {
    write_axis(0);
    return std::move(out_);
  }

 private:
  void write_axis(int axis) {
    if (axis == shape_.size()) {
      out_ += fmt::format("{:>{}}", *next_++, width_);
      return;
    }
    out_ += '[';
    bool first = true;
    const auto separate = [&] {
      if (!first) separate_items(axis);
      first = false;
    };
    const auto show = [&](int64_t) {
      separate();
      write_axis(axis + 1);
    };
    const auto gap = [&] {
      separate();
      out_ += "...";
    };
    for_each_shown(shape_[axis], elide_, show, gap);
    out_ += ']';
  }

  // Rows stand below one another, and each axis further out adds an empty line.
  void separate_items(int axis) {
    const int inner_axes = shape_.size() - axis - 1;
    out_ += ',';
    if (lines_ == Lines::one) {
      out_ += ' ';
    } else if (inner_axes > 0) {
      start_line(axis, inner_axes);
    } else if (column() + 1 + width_ + 1 > kLineWidth) {
      start_line(axis, 1);
    } else {
      out_ += ' ';
    }
  }

  void start_line(int axis, int newlines) {
    out_.append(static_cast<size_t>(newlines), '\n');
    line_start_ = out_.size();
    out_.append(kPrefix.size() + static_cast<size_t>(axis) + 1, ' ');
  }

  // The first line starts after the prefix, which is not in out_.
  size_t column() const {
    return out_.size() - line_start_ + (line_start_ == 0 ? kPrefix.size() : 0);
  }

  const Shape& shape_;
  bool elide_;
  Lines lines_;
  std::vector<std::string>::const_iterator next_;
  size_t width_ = 0;
  size_t line_start_ = 0;
  std::string out_;
};

std::string elements_text(const Tensor& x, size_t suffix_size) {
  if (x.numel() == 0) return "[]";
  const bool elide = x.numel() > kElideAbove;
  std::vector<int64_t> positions;
  collect_shown(x.layout(), 0, x.offset(), elide, positions);
  const std::vector<std::string> texts = element_texts(x, positions);
  std::string line = Brackets(x.shape(), elide, texts, Lines::one).write();
  if (kPrefix.size() + line.size() + suffix_size <= kLineWidth) return line;
  return Brackets(x.shape(), elide, texts, Lines::many).write();
}

}  // namespace

std::string to_text(const Tensor& x) {
  if (!x.defined()) return "tensor(undefined)";
  if (!x.body().storage) return fmt::format("{}no elements, {})", kPrefix, to_text(x.type()));
  const std::string suffix = fmt::format(", {} on {})", to_text(x.type()), to_text(x.device()));
  std::string elements = "no elements";
  if (x.device().kind == DeviceKind::cpu) {
    elements = elements_text(x, suffix.size());
  } else if (x.device().has_data()) {
    elements = "elements not on the host";
  }
  return fmt::format("{}{}{}", kPrefix, elements, suffix);
}

}  // namespace brrr
