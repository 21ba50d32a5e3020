#include "brrr/ops/loss/cross_entropy_call.h"

#include <cmath>

#include "brrr/kernels/cpu/elementwise/convert_cpu.h"
#include "brrr/ops/infer.h"
#include "brrr/ops/loss/loss_weights.h"
#include "brrr/ops/samples.h"

namespace brrr {

void check_bounds(const CrossEntropyOptions& options, std::string_view op) {
  check(options.label_smoothing >= 0 && options.label_smoothing <= 1, op, ": label_smoothing ",
        options.label_smoothing, " must be between 0 and 1");
  check(options.soft_cap >= 0 && std::isfinite(options.soft_cap), op, ": soft_cap ",
        options.soft_cap, " must be a positive number, or 0 for none");
  check(options.z_loss >= 0 && std::isfinite(options.z_loss), op, ": z_loss ", options.z_loss,
        " must be a positive number, or 0 for none");
}

void require_rows(const InferCall& call, int logits_input, int targets_input) {
  const Shape &logits = call.shape(logits_input), &targets = call.shape(targets_input);
  check(logits.size() == 2 && targets.size() == 1 && logits[0] == targets[0], call.op.name,
        ": logits ", logits, " and targets ", targets, " must be [rows, classes] and [rows]");
  check(is_integer(call.dtype(targets_input)), call.op.name, ": targets must be integers, not ",
        call.dtype(targets_input), "; cast them to i64");
  check(logits[1] > 0 || logits[0] == 0, call.op.name, ": logits ", logits,
        " have no classes to choose from");
  require_dtype(call, call.dtype(logits_input));
  const CrossEntropyOptions options = options_of(call.attrs);
  check_bounds(options, call.op.name);
  check(options.classes >= 0 && (options.classes <= logits[1] || logits[0] == 0), call.op.name,
        ": ", options.classes, " classes in logits ", logits,
        "; there must be a column for each, or 0 for all");
}

std::vector<int64_t> read_targets(const Operand& targets, int64_t classes,
                                  const CrossEntropyOptions& options) {
  std::vector<int64_t> values(static_cast<size_t>(targets.count()));
  kernels::load_elements(targets.dtype, targets.base, targets.layout->offset,
                         targets.layout->strides[0], targets.count(), ComputeType::i64,
                         values.data());
  for (size_t row = 0; row < values.size(); ++row) {
    if (options.ignore_index && values[row] == *options.ignore_index) {
      values[row] = -1;
      continue;
    }
    check(values[row] >= 0 && values[row] < classes, "cross_entropy: target ", values[row],
          " at row ", row, " is out of range; there are ", classes, " classes, 0 to ", classes - 1,
          "; to leave such rows out, name the target as ignore_index");
  }
  return values;
}

Tensor counted_rows(const Tensor& targets, const CrossEntropyOptions& options) {
  return counted_targets(targets, options.ignore_index);
}

std::vector<CrossEntropySample> cross_entropy_cases() {
  std::vector<CrossEntropySample> cases;
  const auto add = [&](const Shape& shape, const CrossEntropyOptions& options) {
    cases.push_back({sample_values(shape, 130, -3, 3), sample_indices({shape[0]}, 131, shape[1]),
                     to_attrs(options)});
  };
  for (const Shape& shape :
       {Shape{1, 1}, Shape{4, 3}, Shape{0, 5}, Shape{33, 17}, Shape{40, 1300}}) {
    add(shape, {});
  }
  add({9, 5}, {.ignore_index = 2});
  add({9, 5}, {.label_smoothing = 0.1});
  add({9, 5}, {.soft_cap = 2});
  add({9, 5}, {.z_loss = 0.01});
  add({1, 1}, {.ignore_index = 0});  // nothing is left
  const auto filled = [&](const Shape& shape, CrossEntropyOptions options, int64_t classes) {
    options.classes = classes;
    cases.push_back({sample_values(shape, 130, -3, 3), sample_indices({shape[0]}, 131, classes),
                     to_attrs(options)});
  };
  filled({9, 8}, {}, 5);
  filled({9, 8}, {}, 8);
  filled({33, 1344}, {.ignore_index = 3, .label_smoothing = 0.2, .soft_cap = 3, .z_loss = 1e-3},
         1281);
  filled({40, 64}, {}, 1);  // a loss of 0: smoothing would leave how it is rounded
  filled({40, 64}, {.label_smoothing = 0.1}, 2);
  add({0, 5}, {.label_smoothing = 0.1, .soft_cap = 2});
  for (const Shape& shape : {Shape{33, 17}, Shape{40, 1300}}) {
    add(shape, {.ignore_index = 3, .label_smoothing = 0.2, .soft_cap = 3, .z_loss = 1e-3});
  }
  return cases;
}

}  // namespace brrr
