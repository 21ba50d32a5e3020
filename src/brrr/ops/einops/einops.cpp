// rearrange, reduce and repeat are one walk:
//   split every group on the left -> fold what is not on the right -> order as on the right
//   -> expand what is not on the left -> merge the groups on the right
#include "brrr/ops/einops/einops.h"

#include <algorithm>
#include <numeric>

#include "brrr/base/error.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/einops/einops_parse.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/ops/view/views.h"

namespace brrr {
namespace {

using Kind = PatternAxis::Kind;

constexpr int64_t kUnknown = -1;
constexpr int kUnnamed = -1;

// An axis of its own, in no group. The axes of `...` have numbers after those of the names.
struct Axis {
  int name;
  int64_t size;
};

// A pattern meets a shape: all sizes are known.
class Resolved {
 public:
  std::vector<Axis> left, right;  // without axes of size 1 that are numbers
  Shape result;

  Resolved(const Pattern& pattern, const Shape& shape, const std::vector<AxisSize>& given)
      : pattern_(pattern), shape_(shape), sizes_(pattern.names.size(), kUnknown) {
    take_given(given);
    resolve_left();
    resolve_right();
    for (const std::vector<Axis>* side : {&left, &right}) {
      if (side->size() > kMaxRank)
        fail_at(
            pattern, {0, pattern.text.size()},
            join_text("this takes ", side->size(), " axes apart; a tensor has at most ", kMaxRank));
    }
  }

 private:
  std::string quoted(const PatternAxis& axis) const {
    return join_text('"', pattern_.names[static_cast<size_t>(axis.name)], '"');
  }
  int64_t& size_of(const PatternAxis& axis) { return sizes_[static_cast<size_t>(axis.name)]; }

  void take_given(const std::vector<AxisSize>& given) {
    for (const AxisSize& axis : given) {
      const auto found = std::ranges::find(pattern_.names, axis.name);
      check(found != pattern_.names.end(), to_text(pattern_.use), ": a size is given for \"",
            axis.name, "\", which is not in the pattern\n  ", pattern_.text);
      int64_t& size = sizes_[static_cast<size_t>(found - pattern_.names.begin())];
      check(axis.size >= 0, to_text(pattern_.use), ": the size given for \"", axis.name, "\" is ",
            axis.size, "\n  ", pattern_.text);
      check(size == kUnknown || size == axis.size, to_text(pattern_.use), ": \"", axis.name,
            "\" is given two sizes, ", size, " and ", axis.size, "\n  ", pattern_.text);
      size = axis.size;
    }
  }

  void resolve_left() {
    const PatternSide& side = pattern_.inputs[0];
    const bool dots = has_dots(side);
    const int named = static_cast<int>(side.size()) - (dots ? 1 : 0);
    if (dots ? shape_.size() < named : shape_.size() != named)
      fail_at(
          pattern_, {0, pattern_.text.find("->")},
          join_text("the left has ", dots ? "at least " : "", named, named == 1 ? " axis" : " axes",
                    ", and the tensor ", shape_.size(), ": shape ", shape_));
    dots_ = shape_.size() - named;
    int axis = 0;
    for (const PatternGroup& group : side) {
      if (group.is_dots()) {
        first_dots_axis_ = axis;
        add_dots(left);
        axis += dots_;
      } else {
        resolve_group(group, shape_[axis++]);
      }
    }
  }

  void add_dots(std::vector<Axis>& side) const {
    for (int i = 0; i < dots_; ++i)
      side.push_back({static_cast<int>(sizes_.size()) + i, shape_[first_dots_axis_ + i]});
  }

  void resolve_group(const PatternGroup& group, int64_t total) {
    int64_t known = 1;
    const PatternAxis* open = nullptr;  // the one whose size follows from the others
    for (const PatternAxis& axis : group.axes) {
      const int64_t size = axis.kind == Kind::number ? axis.size : size_of(axis);
      if (size == kUnknown) {
        if (open)
          fail_at(pattern_, axis.at,
                  join_text("neither ", quoted(*open), " nor ", quoted(axis),
                            " has a size; give one of them"));
        open = &axis;
      } else if (__builtin_mul_overflow(known, size, &known)) {
        fail_at(pattern_, axis.at,
                "the sizes of this group multiply to more than an axis can hold");
      }
    }
    if (open) {
      if (known == 0 || total % known != 0)
        fail_at(pattern_, open->at,
                join_text(quoted(*open), " has no size: ", total, " does not divide by ", known,
                          " (shape ", shape_, ")"));
      size_of(*open) = total / known;
    } else if (known != total) {
      fail_at(
          pattern_, group.at,
          join_text("this is ", known, ", but the axis has size ", total, " (shape ", shape_, ")"));
    }
    for (const PatternAxis& axis : group.axes) {
      if (axis.kind == Kind::name) left.push_back({axis.name, size_of(axis)});
      if (axis.kind == Kind::number && axis.size != 1) left.push_back({kUnnamed, axis.size});
    }
  }

  void resolve_right() {
    for (const PatternGroup& group : pattern_.output) {
      const size_t first = right.size();
      for (const PatternAxis& axis : group.axes) add_right(axis);
      if (group.is_dots() && group.at.length == group.axes[0].at.length) {
        for (size_t i = first; i < right.size(); ++i) push_result(group, right[i].size);
        continue;
      }
      int64_t total = 1;
      for (size_t i = first; i < right.size(); ++i) {
        if (__builtin_mul_overflow(total, right[i].size, &total))
          fail_at(pattern_, group.at,
                  "the sizes of this group multiply to more than an axis can hold");
      }
      push_result(group, total);
    }
  }

  void push_result(const PatternGroup& group, int64_t size) {
    if (result.size() == kMaxRank)
      fail_at(pattern_, group.at, join_text("the result has more than ", kMaxRank, " axes"));
    result.push_back(size);
  }

  void add_right(const PatternAxis& axis) {
    if (axis.kind == Kind::dots) return add_dots(right);
    if (axis.kind == Kind::number) {
      if (axis.size != 1) right.push_back({kUnnamed, axis.size});
      return;
    }
    if (size_of(axis) == kUnknown)
      fail_at(pattern_, axis.at,
              join_text(quoted(axis), " is new and needs a size: {{", quoted(axis), ", n}}"));
    right.push_back({axis.name, size_of(axis)});
  }

  const Pattern& pattern_;
  const Shape& shape_;
  std::vector<int64_t> sizes_;  // by name
  int dots_ = 0, first_dots_axis_ = 0;
};

Tensor reshaped(const Tensor& x, const Shape& shape) {
  return x.shape() == shape ? x : reshape(x, shape);
}

int position_of(const std::vector<Axis>& axes, int name) {
  if (name == kUnnamed) return -1;
  const auto found = std::ranges::find(axes, name, &Axis::name);
  return found == axes.end() ? -1 : static_cast<int>(found - axes.begin());
}

Tensor fold(const Tensor& x, const Axes& axes, Reduce how) {
  switch (how) {
    case Reduce::sum: return sum(x, axes);
    case Reduce::mean: return mean(x, axes);
    case Reduce::max: return max(x, axes);
    case Reduce::min: return min(x, axes);
    case Reduce::prod: break;
  }
  return prod(x, axes);
}

// Folding integers over no axes still has the dtype of a fold, so it is one over an axis of size 1.
Tensor fold_missing(const Tensor& x, Resolved& axes, Reduce how) {
  Axes missing;
  std::vector<Axis> kept;
  for (int i = 0; i < std::ssize(axes.left); ++i) {
    const Axis& axis = axes.left[static_cast<size_t>(i)];
    if (position_of(axes.right, axis.name) < 0)
      missing.push_back(i);
    else
      kept.push_back(axis);
  }
  axes.left = std::move(kept);
  if (!missing.empty()) return fold(x, missing, how);
  return is_float(x.dtype()) ? x : fold(unsqueeze(x, 0), {0}, how);
}

Tensor ordered_as_right(const Tensor& x, const Resolved& axes) {
  Axes order;
  for (const Axis& axis : axes.right) {
    const int position = position_of(axes.left, axis.name);
    if (position >= 0) order.push_back(position);
  }
  return std::ranges::is_sorted(order) ? x : permute(x, order);
}

Tensor expanded_as_right(const Tensor& x, const Resolved& axes) {
  if (axes.left.size() == axes.right.size()) return x;
  Shape with_ones, full;
  for (const Axis& axis : axes.right) {
    full.push_back(axis.size);
    with_ones.push_back(position_of(axes.left, axis.name) >= 0 ? axis.size : 1);
  }
  return expand(view(x, with_ones), full);
}

Tensor split_left(const Tensor& x, const Resolved& axes) {
  Shape split;
  for (const Axis& axis : axes.left) split.push_back(axis.size);
  return reshaped(x, split);
}

}  // namespace

Tensor rearrange(const Tensor& x, std::string_view pattern, const std::vector<AxisSize>& sizes) {
  const auto parsed = find_pattern(PatternUse::rearrange, pattern);
  const Resolved axes(*parsed, x.shape(), sizes);
  return reshaped(ordered_as_right(split_left(x, axes), axes), axes.result);
}

Tensor reduce(const Tensor& x, std::string_view pattern, Reduce how,
              const std::vector<AxisSize>& sizes) {
  const auto parsed = find_pattern(PatternUse::reduce, pattern);
  Resolved axes(*parsed, x.shape(), sizes);
  const Tensor folded = fold_missing(split_left(x, axes), axes, how);
  return reshaped(ordered_as_right(folded, axes), axes.result);
}

Tensor repeat(const Tensor& x, std::string_view pattern, const std::vector<AxisSize>& sizes) {
  const auto parsed = find_pattern(PatternUse::repeat, pattern);
  const Resolved axes(*parsed, x.shape(), sizes);
  const Tensor ordered = ordered_as_right(split_left(x, axes), axes);
  return reshaped(expanded_as_right(ordered, axes), axes.result);
}

}  // namespace brrr
