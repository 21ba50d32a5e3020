// einsum: names become labels (small numbers), operands meet two at a time, and each meeting is one
// matmul. Of the labels of a pair (A, B),
//   batch  is in both and still needed     free   is in one of them (then it is needed)
//   inner  is in both and needed no more   (what is in one and not needed was summed before)
// and the product is [batch, free of A, inner] @ [batch, inner, free of B]. Groups are folded into one
// axis each in the order of their strides, so that folding is a view wherever it can be one.
#include <algorithm>

#include "brrr/base/error.h"
#include "brrr/graph/trace.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/einops/einops.h"
#include "brrr/ops/einops/einsum_plan.h"
#include "brrr/ops/einops/einsum_recipe.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/matmul/matmul.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/ops/view/views.h"

namespace brrr {
namespace {

using namespace einsum_plan;

// ---- one operand -----------------------------------------------------------------------------------

// A value with the label of each axis; none of size 1, none twice.
struct Term {
  Tensor x;
  Labels labels;

  LabelSet set() const { return set_of(labels); }
  int axis_of(int label) const {
    return static_cast<int>(std::find(labels.begin(), labels.end(), label) - labels.begin());
  }
  int64_t size(int label) const { return x.shape()[axis_of(label)]; }
  int64_t stride(int label) const { return x.strides()[axis_of(label)]; }
};

Tensor permuted(const Tensor& x, const Axes& axes) {
  return std::is_sorted(axes.begin(), axes.end()) ? x : permute(x, axes);
}
Tensor reshaped(const Tensor& x, const Shape& shape) {
  return x.shape() == shape ? x : reshape(x, shape);
}

Tensor ordered(const Term& term, const Labels& labels) {
  Axes axes;
  for (int label : labels) axes.push_back(term.axis_of(label));
  return permuted(term.x, axes);
}

Term without_ones(const Tensor& x, const Labels& labels) {
  Term term{x, {}};
  Shape shape;
  for (int axis = 0; axis < x.rank(); ++axis) {
    if (labels[axis] == kDropped) continue;
    shape.push_back(x.shape()[axis]);
    term.labels.push_back(labels[axis]);
  }
  term.x = reshaped(x, shape);
  return term;
}

// x[..., i, i]: with both axes last and flat, the diagonal is every (n + 1)-th element.
Term take_diagonal(const Term& term, int first, int second) {
  Axes axes;
  Term result;
  Shape flat;
  for (int axis = 0; axis < term.x.rank(); ++axis) {
    if (axis == first || axis == second) continue;
    axes.push_back(axis);
    flat.push_back(term.x.shape()[axis]);
    result.labels.push_back(term.labels[axis]);
  }
  axes.push_back(first);
  axes.push_back(second);
  const int64_t n = term.x.shape()[first];
  flat.push_back(n * n);
  result.labels.push_back(term.labels[first]);
  result.x = slice(reshaped(permuted(term.x, axes), flat), -1, {0, n * n, n + 1});
  return result;
}

Term with_diagonals(Term term) {
  for (int second = 1; second < term.labels.size();) {
    const int first = term.axis_of(term.labels[second]);
    if (first == second) {
      ++second;
    } else {
      term = take_diagonal(term, first, second);
      second = 1;
    }
  }
  return term;
}

// Integers wrap in their own dtype, as in matmul.
Tensor sum_as(const Tensor& x, const Axes& axes) { return cast(sum(x, axes), x.dtype()); }

Term summed_to(const Term& term, LabelSet needed) {
  Axes gone;
  Term result;
  for (int axis = 0; axis < term.labels.size(); ++axis) {
    if ((needed & bit(term.labels[axis])) == 0)
      gone.push_back(axis);
    else
      result.labels.push_back(term.labels[axis]);
  }
  if (gone.empty()) return term;
  result.x = sum_as(term.x, gone);
  return result;
}

// ---- two operands ----------------------------------------------------------------------------------

Labels pick(const Labels& from, LabelSet set) {
  Labels labels;
  for (int label : from) {
    if ((set & bit(label)) != 0) labels.push_back(label);
  }
  return labels;
}

Labels by_stride(const Term& term, LabelSet set) {
  Labels labels = pick(term.labels, set);
  std::stable_sort(labels.begin(), labels.end(),
                   [&](int a, int b) { return term.stride(a) > term.stride(b); });
  return labels;
}

bool folds_to_view(const Term& term, const Labels& labels) {
  for (int i = 0; i + 1 < labels.size(); ++i) {
    if (term.stride(labels[i]) != term.stride(labels[i + 1]) * term.size(labels[i + 1]))
      return false;
  }
  return true;
}

int64_t product(const Term& term, const Labels& labels) {
  int64_t total = 1;
  for (int label : labels) total *= term.size(label);
  return total;
}

// The free labels of one operand: `folded` are the rows (or columns) of one matrix, `looped` are
// batch axes that the other operand does not have.
struct FreeLabels {
  Labels looped, folded;
};

// Where the free labels do not fold, either the operand is copied, or matmul runs over some of them as
// a batch. A copy moves each element once, the product uses each `columns` times: from 640 on the
// copy is less than 5 % of the work (an element copied costs about as much as 64 FLOPs).
FreeLabels fold_free(const Term& term, LabelSet free, LabelSet inner, int64_t columns) {
  constexpr int64_t kCopyIsCheap = 640, kFewRows = 16;
  const Labels all = by_stride(term, free);
  if (folds_to_view(term, all) || columns >= kCopyIsCheap) return {{}, all};
  // The last run has the smallest stride: with a unit stride there, or inside, BLAS reads it in place.
  Labels run;
  const Labels inner_labels = by_stride(term, inner);
  const bool inner_unit = !inner_labels.empty() && term.stride(inner_labels.back()) == 1;
  for (int i = all.size() - 1; i >= 0; --i) {
    Labels longer = run;
    longer.insert(0, all[i]);
    if (!run.empty() && !folds_to_view(term, longer)) {
      if (!inner_unit || product(term, run) >= kFewRows) break;
      longer = {all[i]};
    }
    run = longer;
  }
  if (product(term, run) < kFewRows && columns >= kFewRows) return {{}, all};
  return {pick(all, free & ~set_of(run)), run};
}

void append(Labels& to, const Labels& labels) {
  for (int label : labels) to.push_back(label);
}

// Outer and elementwise products have no inner labels: one multiplication in the wanted order.
Term multiply(const Term& a, const Term& b, const Labels& wanted) {
  const auto spread = [&](const Term& term) {
    Shape shape;
    for (int label : wanted) shape.push_back((term.set() & bit(label)) != 0 ? term.size(label) : 1);
    return reshaped(ordered(term, pick(wanted, term.set())), shape);
  };
  return {spread(a) * spread(b), wanted};
}

struct PairGroups {
  Labels batch, inner;
  FreeLabels rows, cols;
};

// The inner labels in an order that folds in both operands, else in the one that saves the larger
// copy.
Labels order_inner(const Term& a, const Term& b, LabelSet inner) {
  const Labels as_a = by_stride(a, inner), as_b = by_stride(b, inner);
  const auto copied = [&](const Labels& labels) {
    return (folds_to_view(a, labels) ? 0 : a.x.numel()) +
           (folds_to_view(b, labels) ? 0 : b.x.numel());
  };
  return copied(as_b) < copied(as_a) ? as_b : as_a;
}

PairGroups group_labels(const Term& a, const Term& b, LabelSet kept, const Labels& wanted) {
  const LabelSet both = a.set() & b.set(), free_a = a.set() & ~both, free_b = b.set() & ~both;
  PairGroups groups{pick(wanted, both & kept), order_inner(a, b, both & ~kept), {}, {}};
  const LabelSet inner = both & ~kept;
  const int64_t m = product(a, pick(a.labels, free_a)), n = product(b, pick(b.labels, free_b));
  const bool a_copied = !folds_to_view(a, groups.inner), b_copied = !folds_to_view(b, groups.inner);
  // Who is copied anyway folds in the order that the result wants.
  groups.rows = a_copied ? FreeLabels{{}, pick(wanted, free_a)} : fold_free(a, free_a, inner, n);
  groups.cols = b_copied ? FreeLabels{{}, pick(wanted, free_b)} : fold_free(b, free_b, inner, m);
  if (groups.batch.size() + groups.rows.looped.size() + groups.cols.looped.size() + 2 > kMaxRank) {
    groups.rows = {{}, pick(wanted, free_a)};
    groups.cols = {{}, pick(wanted, free_b)};
  }
  return groups;
}

// [batch..., looped..., matrix of two folded groups]; an axis of size 1 where the other one loops.
Tensor as_matrices(const Term& term, const PairGroups& groups, const Labels& first,
                   const Labels& second) {
  Labels order = groups.batch, looped = groups.rows.looped;
  append(looped, groups.cols.looped);
  append(order, pick(looped, term.set()));
  append(order, first);
  append(order, second);
  Shape shape;
  if (groups.batch.size() + looped.size() + 2 > kMaxRank) {
    shape.push_back(product(term, groups.batch));  // no loops in this case
  } else {
    for (int label : groups.batch) shape.push_back(term.size(label));
    for (int label : looped) shape.push_back((term.set() & bit(label)) != 0 ? term.size(label) : 1);
  }
  shape.push_back(product(term, first));
  shape.push_back(product(term, second));
  return reshaped(ordered(term, order), shape);
}

// A matrix product of one row and one column each: a GEMM takes 9 ns an element for a single number of
// 1024 (measured), a multiplication and a sum 0.3 ns.
Term dot_rows(const Term& a, const Term& b, const PairGroups& groups) {
  Labels order = groups.batch;
  append(order, groups.inner);
  Axes inner;
  for (int axis = groups.batch.size(); axis < order.size(); ++axis) inner.push_back(axis);
  return {sum_as(multiply(a, b, order).x, inner), groups.batch};
}

// Two terms as one, and the matrices behind it where there was a product of them.
struct Contracted {
  Term term;
  Tensor left, right, product;
};

Contracted contract(const Term& first, const Term& second, LabelSet kept, const Labels& output) {
  Labels wanted = pick(output, first.set() | second.set());
  for (const Term* term : {&first, &second})
    append(wanted, pick(term->labels, kept & ~set_of(wanted)));
  const LabelSet inner = first.set() & second.set() & ~kept;
  if (inner == 0) return {.term = multiply(first, second, wanted)};
  // Rows come before columns in the result, so the one with the last label is on the right.
  const bool swap = !wanted.empty() && (first.set() & bit(wanted.back())) != 0;
  const Term &a = swap ? second : first, &b = swap ? first : second;
  const PairGroups groups = group_labels(a, b, kept, wanted);
  const bool is_dot = a.labels.size() == groups.batch.size() + groups.inner.size() &&
                      b.labels.size() == a.labels.size();
  if (is_dot) return {.term = dot_rows(a, b, groups)};
  const Tensor left = as_matrices(a, groups, groups.rows.folded, groups.inner),
               right = as_matrices(b, groups, groups.inner, groups.cols.folded),
               product = matmul(left, right);
  Term result{product, groups.batch};
  for (const Labels& labels :
       {groups.rows.looped, groups.cols.looped, groups.rows.folded, groups.cols.folded})
    append(result.labels, labels);
  Shape shape;
  for (int label : result.labels)
    shape.push_back((a.set() & bit(label)) != 0 ? a.size(label) : b.size(label));
  result.x = reshaped(result.x, shape);
  return {result, left, right, product};
}

// A recipe makes its views by itself, so nothing may have to be recorded.
bool may_use_recipe(std::span<const Tensor> operands) {
  return !graph::Tracer::current() &&
         std::none_of(operands.begin(), operands.end(),
                      [](const Tensor& x) { return x.requires_grad(); });
}

void require_same_dtype(std::span<const Tensor> operands, std::string_view text) {
  check(!operands.empty(), "einsum: no operands are given\n  ", text);
  for (const Tensor& x : operands) {
    check(x.dtype() == operands[0].dtype(), "einsum: operands are ", operands[0].dtype(), " and ",
          x.dtype(), "; cast one of them\n  ", text);
    check(x.dtype() != DType::boolean, "einsum: operands are bool; cast them to numbers\n  ", text);
  }
}

}  // namespace

Tensor einsum(std::string_view pattern, std::span<const Tensor> operands) {
  require_same_dtype(operands, pattern);
  const bool is_plain = may_use_recipe(operands);
  if (is_plain) {
    if (const EinsumRecipe* recipe = find_recipe(pattern, operands))
      return run_recipe(*recipe, operands);
  }
  const auto plan = find_plan(pattern, operands);
  std::vector<Term> terms;
  for (size_t i = 0; i < operands.size(); ++i)
    terms.push_back(with_diagonals(without_ones(operands[i], plan->operands[i])));
  // Labels that somebody but these two needs.
  const auto needed = [&](int a, int b) {
    LabelSet set = set_of(plan->output);
    for (int i = 0; i < std::ssize(terms); ++i)
      set |= i == a || i == b ? 0 : terms[static_cast<size_t>(i)].set();
    return set;
  };
  for (int i = 0; i < std::ssize(terms); ++i)
    terms[static_cast<size_t>(i)] = summed_to(terms[static_cast<size_t>(i)], needed(i, i));
  Contracted last;
  for (const Meeting& meeting : plan->order) {
    Term &a = terms[static_cast<size_t>(meeting.a)], &b = terms[static_cast<size_t>(meeting.b)];
    last = contract(a, b, needed(meeting.a, meeting.b), plan->output);
    a = last.term;
    b = {};
  }
  const Tensor result = reshaped(ordered(terms[0], plan->output), plan->result);
  if (is_plain && plan->order.size() == 1 && last.product.defined())
    keep_recipe(pattern, operands, {{last.left, last.right}}, last.product, result);
  return result;
}

}  // namespace brrr
