#include "brrr/ops/control/repeat.h"

#include "brrr/graph/repeat.h"
#include "brrr/graph/trace.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/view/views.h"

namespace brrr {
namespace {

TensorType sum_type(const Tensor& part) {
  check(part.defined() && part.dtype() != DType::boolean, "repeat: cannot add up ",
        part.defined() ? to_text(part.type()) : "an undefined tensor");
  const bool in_f32 = compute_type(part.dtype()) == ComputeType::f32;
  return {.shape = part.shape(), .dtype = in_f32 ? DType::f32 : sum_dtype(part.dtype())};
}

void add_to(const Tensor& sum, const Tensor& part) {
  NoGrad only_numbers;
  sum.copy_from(sum + part.detach());
}

// Closes the body also where it throws.
class OpenBody {
 public:
  OpenBody(graph::Tracer& tracer, const Tensor& count, std::span<const Tensor> sliced)
      : tracer_(tracer), handles(tracer.begin_repeat(count, sliced)) {}
  ~OpenBody() {
    if (!ended_) tracer_.abandon_repeat();
  }
  OpenBody(const OpenBody&) = delete;
  OpenBody& operator=(const OpenBody&) = delete;

  std::vector<Tensor> end() {
    std::vector<Tensor> sums = tracer_.end_repeat();
    ended_ = true;
    return sums;
  }

 private:
  graph::Tracer& tracer_;
  bool ended_ = false;

 public:
  graph::Tracer::RepeatHandles handles;
};

std::vector<Tensor> trace_repeat(graph::Tracer& tracer, const Tensor& count,
                                 std::span<const Tensor> sliced, const RepeatBody& body) {
  OpenBody open(tracer, count, sliced);
  for (const Tensor& part : body(open.handles.index, open.handles.slices))
    add_to(tracer.add_sum(sum_type(part)), part);
  return open.end();
}

}  // namespace

std::vector<Tensor> repeat(const Tensor& count, std::span<const Tensor> sliced,
                           const RepeatBody& body) {
  if (graph::Tracer* tracer = graph::Tracer::current())
    return trace_repeat(*tracer, count, sliced, body);
  check(count.numel() == 1 && count.dtype() == DType::i64,
        "repeat: the count must be one i64, not ", describe(count));
  const int64_t times = count.item<int64_t>();
  std::vector<Tensor> sums;
  for (const Tensor& x : sliced)
    graph::check_repeat_count(times, {.most = x.rank() > 0 ? x.dim(0) : 0});
  for (int64_t i = 0; i < times; ++i) {
    std::vector<Tensor> slices;
    for (const Tensor& x : sliced) slices.push_back(select(x, 0, i));
    const std::vector<Tensor> parts = body(from_values(std::vector<int64_t>{i}, {}), slices);
    for (size_t k = 0; k < parts.size(); ++k) {
      const TensorType type = sum_type(parts[k]);
      if (i == 0) sums.push_back(zeros(type.shape, {type.dtype, parts[k].device()}));
      add_to(sums[k], parts[k]);
    }
  }
  check(times > 0,
        "repeat: a loop that runs at once needs at least one iteration to know what to return");
  return sums;
}

}  // namespace brrr
