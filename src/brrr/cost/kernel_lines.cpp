#include "brrr/cost/kernel_lines.h"

#include "brrr/base/error.h"
#include "brrr/cost/predict.h"
#include "brrr/graph/print.h"
#include "brrr/graph/repeat.h"

namespace brrr::cost {
namespace {

KernelLine line_of(const compiler::Kernel& kernel, const KernelPrediction& predicted) {
  KernelLine line{.name = kernel.name,
                  .phase = std::string(graph::phase_name(kernel.phase)),
                  .flops = static_cast<double>(kernel.cost.flops),
                  .bytes = static_cast<double>(kernel.cost.bytes_read + kernel.cost.bytes_written),
                  .seconds = predicted.seconds(),
                  .regime = std::string(regime_name(predicted.regime()))};
  if (!kernel.outputs.empty()) {
    line.dtype = to_text(kernel.outputs[0].dtype);
    line.shape = join_text(kernel.outputs[0].layout.shape);
  }
  return line;
}

// The same kernel over the same shapes. By the program alone: what bounds it is a matter of rates.
bool is_repeated(const KernelLine& last, const KernelLine& next) {
  return last.name == next.name && last.phase == next.phase && last.dtype == next.dtype &&
         last.shape == next.shape;
}

class Lines {
 public:
  explicit Lines(const hardware::Rates& rates) : rates_(rates) {}

  void add(const compiler::KernelList& list, const compiler::MemoryPlan& plan, int64_t times) {
    const Prediction prediction = predict(list, plan, rates_);
    for (size_t i = 0; i < list.kernels.size(); ++i) {
      const compiler::Kernel& kernel = list.kernels[i];
      if (kernel.body) {
        add(kernel.body->list, kernel.body->plan, times * graph::repeat_node(kernel.attrs).most);
      } else {
        append(line_of(kernel, prediction.kernels[i]), times);
      }
    }
  }
  std::vector<KernelLine> take() { return std::move(lines_); }

 private:
  void append(KernelLine line, int64_t times) {
    const auto factor = static_cast<double>(times);
    line.count = times;
    line.flops *= factor, line.bytes *= factor, line.seconds *= factor;
    if (lines_.empty() || !is_repeated(lines_.back(), line)) {
      lines_.push_back(std::move(line));
      return;
    }
    KernelLine& last = lines_.back();
    last.count += line.count;
    last.flops += line.flops, last.bytes += line.bytes, last.seconds += line.seconds;
  }

  const hardware::Rates& rates_;
  std::vector<KernelLine> lines_;
};

}  // namespace

std::vector<KernelLine> kernel_lines(const compiler::KernelList& list,
                                     const compiler::MemoryPlan& plan,
                                     const hardware::Rates& rates) {
  Lines lines(rates);
  lines.add(list, plan, 1);
  return lines.take();
}

}  // namespace brrr::cost
