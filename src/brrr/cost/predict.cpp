#include "brrr/cost/predict.h"

#include <algorithm>
#include <cmath>

#include "brrr/compiler/codegen/codegen_cuda.h"
#include "brrr/cost/kernel_family.h"
#include "brrr/cost/traffic.h"
#include "brrr/graph/repeat.h"

namespace brrr::cost {
namespace {

constexpr size_t kManyStreams =
    5;  // operands of an optimizer update: p, m, v, g and what is written

// How much faster products of this type are than those of f32, where they have no grid of their own.
double matmul_scale(std::string_view arithmetic, const hardware::Rates& rates) {
  if (arithmetic.empty()) return 1;
  const hardware::RateGrid* scale = rates.find(join_text("scale.matmul.", arithmetic));
  return scale ? scale->at({}) : 1;
}

struct FamilyGrid {
  const hardware::RateGrid* grid = nullptr;
  double scale = 1;
};

// The grid of a family in the arithmetic of the work, or of the family that is nearest to it.
FamilyGrid grid_for(const hardware::Rates& rates, const FamilyWork& work, bool& is_measured) {
  const std::string ending = work.arithmetic.empty() ? "" : join_text(".", work.arithmetic);
  for (const std::string& family : {work.own, work.family}) {
    const hardware::RateGrid* grid = family.empty() ? nullptr : rates.find(family + ending);
    if (grid) return {grid};
  }
  const bool is_product = work.family.starts_with("matmul");
  if (const hardware::RateGrid* grid = rates.find(work.family))
    return {grid, is_product ? matmul_scale(work.arithmetic, rates) : 1};
  is_measured = false;
  for (std::string_view side : {".row", ".column"}) {
    if (std::string_view(work.family).ends_with(side)) {
      if (const hardware::RateGrid* sum = rates.find(join_text("sum", side))) return {sum};
    }
  }
  return {};
}

double seconds_of(const FamilyWork& work, const KernelWork& kernel, const hardware::Rates& rates,
                  bool& is_measured) {
  if (work.amount == 0) return 0;
  const auto shared = static_cast<double>(std::min<int64_t>(rates.threads, kernel.pieces));
  const auto [grid, scale] = grid_for(rates, work, is_measured);
  if (!grid) return work.amount / (rates.number("tile.other") * shared);
  const std::span<const double> where(work.where.begin(), work.where.end());
  const double rate = grid->at(grid->axes.empty() ? std::span<const double>() : where);
  return work.amount / (rate * scale * (work.per_thread ? shared : 1));
}

void price_arithmetic(const compiler::Kernel& kernel, const hardware::Rates& rates,
                      KernelPrediction& price) {
  const KernelWork work = work_of(kernel);
  double largest = -1;
  for (const FamilyWork& part : work.parts) {
    const double seconds = seconds_of(part, work, rates, price.is_measured);
    price.compute += seconds;
    if (part.family.starts_with("matmul")) price.overlaps = !rates.packs_operands;
    if (seconds > largest) price.family = part.family;
    largest = std::max(largest, seconds);
  }
  const size_t launches = kernel.generated ? kernel.generated->launches.size() : 1;
  price.overhead = static_cast<double>(launches) * rates.number("launch");
  if (work.pieces > 1 && rates.threads > 1) price.overhead += rates.number("fork_join");
}

const hardware::RateGrid& bandwidth_for(const compiler::Kernel& kernel, size_t streams,
                                        const hardware::Rates& rates) {
  if (kernel.phase == graph::Phase::update && streams >= kManyStreams)
    return rates.grid("optimizer");
  const hardware::RateGrid* fused =
      kernel.parts.size() > 1 ? rates.find("bandwidth.fused") : nullptr;
  return fused ? *fused : rates.grid("bandwidth");
}

void price_memory(const compiler::Kernel& kernel, const std::vector<Touch>& touches,
                  const hardware::Rates& rates, KernelPrediction& price) {
  const hardware::RateGrid& bandwidth = bandwidth_for(kernel, touches.size(), rates);
  for (const Touch& touch : touches) {
    const double distance[] = {std::max(1.0, touch.distance)};
    price.memory += touch.bytes / bandwidth.at(distance);
  }
}

// A product or attention that was measured by itself, its bytes with it.
void price_as_measured(const compiler::Kernel& kernel, const hardware::Rates& rates,
                       KernelPrediction& price) {
  const std::string signature = kernel_signature(kernel);
  const hardware::RateGrid* measured = signature.empty() ? nullptr : rates.find(signature);
  if (!measured) return;
  price.compute = measured->at({});
  price.memory = std::min(price.memory, price.compute);
  price.is_measured = price.overlaps = true;
}

bool has_kernels(const hardware::Rates& rates) {
  const auto first = rates.grids.lower_bound("kernel.");
  return first != rates.grids.end() && first->first.starts_with("kernel.");
}

double parse_factor(std::string_view name, std::string_view text) {
  if (text.ends_with('x')) text.remove_suffix(1);
  const std::string digits(text);
  size_t used = 0;
  double factor = -1;
  try {
    factor = std::stod(digits, &used);
  } catch (const std::exception&) {
    used = std::string::npos;
  }
  check(used == digits.size() && std::isfinite(factor) && factor >= 0, "what-if: ", name, "=", text,
        " is not a factor; write ", name, "=2x or ", name, "=0.5");
  check(factor > 0 || name == "overhead", "what-if: ", name,
        " of 0 takes forever; only overhead may be 0");
  return factor;
}

}  // namespace

std::string_view regime_name(Regime regime) {
  constexpr std::array<std::string_view, kRegimes> names = {"compute", "bandwidth", "overhead"};
  return names[static_cast<size_t>(regime)];
}

Regime KernelPrediction::regime() const {
  if (overhead > std::max(compute, memory)) return Regime::overhead;
  return memory > compute ? Regime::bandwidth : Regime::compute;
}

double Prediction::seconds() const {
  double total = 0;
  for (const KernelPrediction& kernel : kernels) total += kernel.seconds();
  return total;
}

double Prediction::seconds_in(Regime regime) const {
  double total = 0;
  for (const KernelPrediction& kernel : kernels) {
    if (kernel.is_loop) {
      total += regime == Regime::compute     ? kernel.compute
               : regime == Regime::bandwidth ? kernel.memory
                                             : kernel.overhead;
    } else if (kernel.regime() == regime) {
      total += kernel.seconds();
    }
  }
  return total;
}

WhatIf parse_what_if(std::string_view text) {
  WhatIf what_if;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string_view item = text.substr(0, comma);
    text = comma == std::string_view::npos ? "" : text.substr(comma + 1);
    const size_t equals = item.find('=');
    check(equals != std::string_view::npos, "what-if: \"", item,
          "\" has no value; write for example flops=2x,bandwidth=2x,overhead=0,dtype=bf16");
    const std::string_view name = item.substr(0, equals), value = item.substr(equals + 1);
    if (name == "flops") {
      what_if.flops = parse_factor(name, value);
    } else if (name == "bandwidth") {
      what_if.bandwidth = parse_factor(name, value);
    } else if (name == "overhead") {
      what_if.overhead = parse_factor(name, value);
    } else {
      check(name == "dtype", "what-if: there is no \"", name,
            "\"; use flops, bandwidth, overhead, dtype");
      what_if.precision = compiler::parse_precision(value);
    }
  }
  return what_if;
}

namespace {

KernelPrediction loop_prediction(const compiler::Kernel& kernel, const hardware::Rates& rates,
                                 const WhatIf& what_if) {
  const Prediction body = predict(kernel.body->list, kernel.body->plan, rates, what_if);
  const auto times = static_cast<double>(graph::repeat_node(kernel.attrs).most);
  KernelPrediction loop{.family = "repeat", .overlaps = false, .is_loop = true};
  loop.compute = times * body.seconds_in(Regime::compute);
  loop.memory = times * body.seconds_in(Regime::bandwidth);
  loop.overhead = times * body.seconds_in(Regime::overhead);
  for (const KernelPrediction& inner : body.kernels)
    loop.is_measured = loop.is_measured && inner.is_measured;
  return loop;
}

}  // namespace

Prediction predict(const compiler::KernelList& list, const compiler::MemoryPlan& plan,
                   const hardware::Rates& rates, const WhatIf& what_if) {
  const std::vector<std::vector<Touch>> traffic = trace_traffic(list, plan);
  const bool are_kernels_known = has_kernels(rates);
  Prediction prediction{.kernels = {}, .calibrated = rates.calibrated};
  for (size_t k = 0; k < list.kernels.size(); ++k) {
    if (list.kernels[k].body) {
      prediction.kernels.push_back(loop_prediction(list.kernels[k], rates, what_if));
      continue;
    }
    KernelPrediction price;
    price_arithmetic(list.kernels[k], rates, price);
    price_memory(list.kernels[k], traffic[k], rates, price);
    if (are_kernels_known) price_as_measured(list.kernels[k], rates, price);
    price.compute /= what_if.flops;
    price.memory /= what_if.bandwidth;
    price.overhead *= what_if.overhead;
    prediction.kernels.push_back(std::move(price));
  }
  return prediction;
}

}  // namespace brrr::cost
