#include "brrr/ops/loss/loss_weights.h"

#include "brrr/ops/create/copy.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/index/index_select.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/ops/view/views.h"

namespace brrr {

Tensor counted_targets(const Tensor& targets, std::optional<int64_t> ignore_index) {
  const Tensor wide = cast(targets, DType::i64);
  return ignore_index ? not_equal(wide, *ignore_index) : equal(wide, wide);
}

Tensor safe_targets(const Tensor& targets, std::optional<int64_t> ignore_index) {
  const Tensor wide = cast(targets, DType::i64);
  return ignore_index ? where(not_equal(wide, *ignore_index), wide, 0) : wide;
}

Tensor target_weights(const Tensor& class_weights, const Tensor& targets,
                      std::optional<int64_t> ignore_index, const TensorType& logits,
                      std::string_view op) {
  const int64_t classes = logits.shape.back();
  check(class_weights.shape() == Shape{classes} && is_float(class_weights.dtype()), op,
        ": class weights are ", describe(class_weights), "; there must be one float for each of ",
        classes, " classes");
  const DType dtype = logits.dtype == DType::f64 ? DType::f64 : DType::f32;
  const Tensor flat = reshape(safe_targets(targets, ignore_index), {targets.numel()});
  const Tensor chosen = index_select(cast(class_weights, dtype), 0, flat);
  const Tensor weights = reshape(chosen, targets.shape());
  return ignore_index ? where(counted_targets(targets, ignore_index), weights, 0) : weights;
}

Tensor weighted_mean(const Tensor& losses, const Tensor& weights) {
  const Tensor total = sum(weights);
  return sum(losses) / where(equal(total, 0), 1, total);
}

}  // namespace brrr
