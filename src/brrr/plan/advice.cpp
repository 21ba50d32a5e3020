#include "brrr/plan/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "brrr/base/units.h"
#include "brrr/plan/profile.h"

namespace brrr::plan {
namespace {

struct Pair {
  size_t producer, consumer;
};

// For every buffer the kernel that writes it and those that read it.
struct BufferUse {
  int writer = -1;
  int writers = 0;
  std::vector<size_t> readers;
};

std::vector<BufferUse> uses_of_buffers(const compiler::KernelList& list) {
  std::vector<BufferUse> uses(list.buffers.size());
  for (size_t k = 0; k < list.kernels.size(); ++k) {
    for (const compiler::OperandRef& ref : list.kernels[k].inputs) {
      std::vector<size_t>& readers = uses[ref.buffer.index()].readers;
      if (readers.empty() || readers.back() != k) readers.push_back(k);
    }
    for (const compiler::OperandRef& ref : list.kernels[k].outputs) {
      uses[ref.buffer.index()].writer = static_cast<int>(k);
      ++uses[ref.buffer.index()].writers;
    }
  }
  return uses;
}

bool can_merge(const compiler::KernelList& list, const Pair& pair,
               const compiler::OperandRef& between) {
  const compiler::Kernel &a = list.kernels[pair.producer], &b = list.kernels[pair.consumer];
  const cost::KernelClass first = cost::class_of(a), second = cost::class_of(b);
  const bool one_is_elementwise =
      first == cost::KernelClass::elementwise || second == cost::KernelClass::elementwise;
  if (!one_is_elementwise || second == cost::KernelClass::contraction) return false;
  const int64_t elements = numel(between.layout.shape);
  return between.layout.is_contiguous() && elements == numel(a.outputs[0].layout.shape) &&
         elements >= kTileElements;
}

// Pairs of kernels by the labels of both; a kernel takes part in one pair at most.
std::map<std::string, std::vector<Pair>> find_pairs(const compiler::KernelList& list) {
  const std::vector<BufferUse> uses = uses_of_buffers(list);
  std::map<std::string, std::vector<Pair>> found;
  std::vector<bool> taken(list.kernels.size(), false);
  for (size_t k = 0; k < list.kernels.size(); ++k) {
    for (const compiler::OperandRef& ref : list.kernels[k].inputs) {
      const BufferUse& use = uses[ref.buffer.index()];
      const bool passes_only_here =
          list.buffers[ref.buffer.index()].place == compiler::Place::temporary &&
          use.writers == 1 && use.readers.size() == 1 && use.writer < static_cast<int>(k);
      if (!passes_only_here || taken[k]) continue;
      const Pair pair{static_cast<size_t>(use.writer), k};
      if (taken[pair.producer] || !can_merge(list, pair, ref)) continue;
      taken[k] = taken[pair.producer] = true;
      found[join_text(kernel_label(list.kernels[pair.producer]), " into ",
                      kernel_label(list.kernels[k]))]
          .push_back(pair);
    }
  }
  return found;
}

compiler::KernelList merge_all(compiler::KernelList list, std::vector<Pair> pairs) {
  // From the end, so that the numbers of those before stay.
  std::sort(pairs.begin(), pairs.end(),
            [](const Pair& a, const Pair& b) { return a.consumer > b.consumer; });
  for (size_t i = 0; i < pairs.size(); ++i) {
    list = merge_kernels(list, pairs[i].producer, pairs[i].consumer);
    for (size_t j = i + 1; j < pairs.size(); ++j) {
      // The producer is gone: everything behind it moved up by one.
      if (pairs[j].consumer > pairs[i].producer) --pairs[j].consumer;
      if (pairs[j].producer > pairs[i].producer) --pairs[j].producer;
    }
  }
  return list;
}

std::string saving_text(double saved, double total) {
  return saved < 0.005 * total ? "nothing" : to_text(Seconds(saved));
}

}  // namespace

compiler::KernelList merge_kernels(const compiler::KernelList& list, size_t producer,
                                   size_t consumer) {
  invariant(producer < consumer && consumer < list.kernels.size(), "merging kernel ", producer,
            " into ", consumer);
  compiler::KernelList merged = list;
  const compiler::Kernel& a = list.kernels[producer];
  compiler::Kernel& b = merged.kernels[consumer];
  const std::vector<BufferUse> uses = uses_of_buffers(list);
  const auto stays_inside = [&](const compiler::OperandRef& ref) {
    const BufferUse& use = uses[ref.buffer.index()];
    return list.buffers[ref.buffer.index()].place == compiler::Place::temporary &&
           use.readers.size() == 1 && use.readers[0] == consumer;
  };
  const auto bytes_of = [](const compiler::OperandRef& ref) {
    return storage_bytes(ref.dtype, numel(ref.layout.shape));
  };
  const auto is_same = [](const compiler::OperandRef& x) {
    return [&x](const compiler::OperandRef& y) {
      return x.buffer == y.buffer && x.layout == y.layout;
    };
  };
  b.cost.flops += a.cost.flops;
  std::vector<compiler::OperandRef> inputs = a.inputs;
  int64_t read = a.cost.bytes_read;
  for (const compiler::OperandRef& ref : list.kernels[consumer].inputs) {
    const bool inside =
        std::any_of(a.outputs.begin(), a.outputs.end(),
                    [&](const compiler::OperandRef& made) { return made.buffer == ref.buffer; });
    if (inside || std::any_of(inputs.begin(), inputs.end(), is_same(ref))) continue;
    inputs.push_back(ref);
    read += bytes_of(ref);
  }
  b.inputs = std::move(inputs);
  b.cost.bytes_read = read;
  for (const compiler::OperandRef& ref : a.outputs) {
    if (stays_inside(ref)) continue;
    b.outputs.push_back(ref);
    b.cost.bytes_written += bytes_of(ref);
  }
  b.parts.insert(b.parts.begin(), a.parts.begin(), a.parts.end());
  b.name = join_text(a.name, "+", b.name);
  merged.kernels.erase(merged.kernels.begin() + static_cast<std::ptrdiff_t>(producer));
  return merged;
}

Advice advise(const compiler::KernelList& list, const compiler::MemoryPlan& plan,
              const hardware::Rates& rates, const AdviceOptions& options) {
  const cost::Prediction now = cost::predict(list, plan, rates);
  const double total = now.seconds();
  Advice advice{.predicted_seconds = total};
  for (int r = 0; r < cost::kRegimes; ++r)
    advice.share[r] = total > 0 ? now.seconds_in(static_cast<cost::Regime>(r)) / total : 0;
  for (const auto& [label, pairs] : find_pairs(list)) {
    const double saved = total - cost::predict(merge_all(list, pairs), plan, rates).seconds();
    if (saved < options.least_part * total) continue;
    advice.fusions.push_back({join_text("fusing ", label, " (", pairs.size(), "x)"), saved});
  }
  std::stable_sort(advice.fusions.begin(), advice.fusions.end(),
                   [](const Counterfactual& a, const Counterfactual& b) {
                     return a.saves_seconds > b.saves_seconds;
                   });
  if (advice.fusions.size() > static_cast<size_t>(options.fusions))
    advice.fusions.resize(static_cast<size_t>(options.fusions));
  const auto priced = [&](const char* change, const cost::WhatIf& what_if) {
    advice.resources.push_back(
        {change, total - cost::predict(list, plan, rates, what_if).seconds()});
  };
  if (options.in_bf16) {
    const runtime::PlannedProgram& low = *options.in_bf16;
    advice.resources.push_back(
        {"bf16 mixed precision", total - cost::predict(low.kernels, low.plan, rates).seconds()});
  }
  priced("twice the bandwidth", {.bandwidth = 2});
  priced("twice the FLOP/s", {.flops = 2});
  priced("no overhead", {.overhead = 0});
  return advice;
}

std::string to_text(const Advice& advice) {
  const auto* largest = std::max_element(std::begin(advice.share), std::end(advice.share));
  std::string out =
      fmt::format("{:.0f} % of the predicted {} is {}-bound\n", 100 * *largest,
                  to_text(Seconds(advice.predicted_seconds)),
                  cost::regime_name(static_cast<cost::Regime>(largest - std::begin(advice.share))));
  for (const std::vector<Counterfactual>* list : {&advice.fusions, &advice.resources}) {
    for (const Counterfactual& item : *list)
      out += fmt::format("  {} would save {}\n", item.change,
                         saving_text(item.saves_seconds, advice.predicted_seconds));
  }
  return out;
}

}  // namespace brrr::plan
