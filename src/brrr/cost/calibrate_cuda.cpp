#include "brrr/cost/calibrate_cuda.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <set>

#include "brrr/base/error.h"
#include "brrr/cost/calibrate_cuda_cases.h"
#include "brrr/cost/kernel_family.h"
#include "brrr/cost/standalone_kernel.h"
#include "brrr/device/cuda/runtime.h"
#include "brrr/device/default_device.h"
#include "brrr/device/gpu_info.h"
#include "brrr/hardware/hardware.h"
#include "brrr/hardware/measure_cuda.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/op_list.h"
#include "brrr/ops/reduce/reduce.h"
#include "brrr/runtime/compile.h"

namespace brrr::cost {
namespace {

// Seconds of one call by the GPU's clock: enough calls for a millisecond, medians over rounds.
double seconds_of(const std::function<void()>& work, cuda::Stream stream, int rounds) {
  constexpr double kLongEnough = 1e-3;
  constexpr int kMostCalls = 1000;
  const auto run = [&](int calls) {
    cuda::Event begin, end;
    begin.record(stream);
    for (int i = 0; i < calls; ++i) work();
    end.record(stream);
    end.wait();
    return cuda::seconds_between(begin, end) / calls;
  };
  for (int i = 0; i < 3; ++i) work();  // loads code, captures
  const double once = run(1);
  const int calls = static_cast<int>(std::clamp(kLongEnough / once, 1.0, double{kMostCalls}));
  std::vector<double> all;
  for (int i = 0; i < rounds; ++i) all.push_back(run(calls));
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}

// Rows of the largest cases: their operands take some gigabytes.
int64_t most_tokens(int device) {
  constexpr int64_t kRoomForMany = int64_t{12} << 30;
  return cuda::memory_state(device).free >= kRoomForMany ? 65536 : 8192;
}

class GpuCalibration {
 public:
  GpuCalibration(Device device, const CalibrateCudaOptions& options)
      : device_(device),
        stream_(cuda::stream(device.index)),
        options_(options),
        families_(is_quick() ? quick_cuda_families() : cuda_families(most_tokens(device.index))),
        kernels_(own_kernels()) {
    cases_ = 1 + bandwidth_points() + static_cast<int>(kernels_.size());
    for (const CudaFamily& family : families_) cases_ += static_cast<int>(family.grid.points());
  }

  hardware::Rates run() {
    const DeviceScope scope(device_);
    NoGrad nothing_is_recorded;
    launch_ = launch_seconds();
    const hardware::RateGrid bandwidth = measure_bandwidth();
    std::map<std::string, hardware::RateGrid> measured;
    for (const CudaFamily& family : families_) {
      if (std::optional<hardware::RateGrid> grid = measure_family(family))
        measured[family.name] = std::move(*grid);
    }
    check(measured.contains("matmul.nn"), "calibrate: ", machine_name(),
          " multiplied no f32 matrices; is cuBLASLt there?");
    hardware::Rates rates = hardware::rates_from_peaks(
        machine_name(), {.flops_per_second = measured["matmul.nn"].largest(),
                         .bytes_per_second = bandwidth.values.back(),
                         .launch_seconds = launch_});
    rates.grids["bandwidth"] = rates.grids["optimizer"] = bandwidth;
    for (auto& [family, grid] : measured) rates.grids[family] = std::move(grid);
    add_arithmetics(rates);
    if (!is_quick()) add_transfers(rates);
    measure_kernels(rates);
    rates.calibrated = true;
    rates.quick = is_quick();
    rates.source = source_text();
    cuda::return_kept_blocks(device_.index);  // who plans a run next counts what is free
    return rates;
  }

 private:
  bool is_quick() const { return options_.size != CalibrationSize::full; }
  // Copies of 1 MiB, and of four times as much each further one; a small GPU has room for 64 MiB.
  int bandwidth_points() const { return is_quick() ? 4 : 6; }
  bool is_late() const {
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start_;
    return spent.count() > options_.most_seconds;
  }

  void count_case() {
    if (options_.on_case) options_.on_case(++case_, cases_);
  }
  double seconds(const std::function<void()>& work) {
    count_case();
    return seconds_of(work, stream_, options_.rounds);
  }

  std::string machine_name() const {
    const GpuList gpus = list_gpus();
    return gpus.gpus[static_cast<size_t>(device_.index)].name;
  }

  // Of one small kernel among many in a captured program: sums cannot be fused with each other.
  double launch_seconds() {
    constexpr int kKernels = 64;
    auto chain = runtime::compile([](const Tensor& x) {
      Tensor y = x;
      for (int i = 0; i < kKernels; ++i) y = x + sum(y, {0}, KeepDims::yes) * 0.5;
      return y;
    });
    const Tensor x = ones({32});
    const double whole = seconds([&] { chain(x); });
    const size_t kernels = chain.function().executable({{x}}).kernels().kernels.size();
    return whole / static_cast<double>(kernels);
  }

  // By bytes touched between two uses: copies of these sizes, again and again, between the same places; to allocate a
  // large result would take longer than to fill it.
  hardware::RateGrid measure_bandwidth() {
    hardware::RateGrid grid{
        .unit = "byte/s", .axes = {{.name = "distance", .points = {}}}, .values = {}};
    int64_t bytes = int64_t{1} << 20;
    for (int i = 0; i < bandwidth_points(); ++i, bytes *= 4) {
      const compiler::Kernel copy =
          make_kernel(copy_op, {operand(DType::f32, Shape{bytes / 4})}, {});
      const std::optional<double> once = time_alone(copy, 0);
      check(once.has_value(), "calibrate: ", machine_name(), " has no room for a copy of ",
            Bytes(bytes));
      grid.axes[0].points.push_back(2 * static_cast<double>(bytes));
      grid.values.push_back(2 * static_cast<double>(bytes) / once.value_or(1));
    }
    return grid;
  }

  // What predictions add comes off again: the launch. Nothing where this GPU or library has no such kernel.
  std::optional<double> time_alone(const compiler::Kernel& kernel, int64_t ids_below) {
    count_case();
    try {
      const std::optional<double> whole =
          seconds_alone(kernel, device_, {.rounds = options_.rounds, .ids_below = ids_below});
      if (whole) return std::max(*whole - launch_, 0.1 * *whole);
    } catch (const Error&) {
      return {};
    }
    return {};
  }

  std::optional<hardware::RateGrid> measure_family(const CudaFamily& family) {
    hardware::RateGrid grid = family.grid;
    if (is_late() && &family != &families_.front()) {
      left_out_.push_back(family.name);
      return {};
    }
    for (size_t i = 0; i < grid.points(); ++i) {
      const compiler::Kernel kernel = family.make(family.point(i));
      const std::optional<double> once = time_alone(kernel, family.ids_below);
      if (!once) {
        left_out_.push_back(family.name);
        return {};
      }
      grid.values.push_back(work_of(kernel).parts.back().amount / *once);
    }
    return grid;
  }

  // Roofs: the data sheet's where the device is known, else the best that was seen.
  void add_arithmetics(hardware::Rates& rates) const {
    const double f32 = rates.grid("matmul.nn").largest();
    struct Named {
      const char* name;
      hardware::ProductKind kind;
    };
    for (const Named& each :
         {Named{"f32", hardware::ProductKind::f32}, Named{"tf32", hardware::ProductKind::tf32},
          Named{"f16", hardware::ProductKind::f16}, Named{"bf16", hardware::ProductKind::bf16},
          Named{"fp8", hardware::ProductKind::f8}}) {
      const bool is_f32 = each.kind == hardware::ProductKind::f32;
      const hardware::RateGrid* products =
          rates.find(is_f32 ? std::string("matmul.nt") : join_text("matmul.nt.", each.name));
      if (!products) continue;
      const std::optional<FlopsPerSecond> promised =
          hardware::promised_product_rate(known_name(), each.kind);
      rates.grids[join_text("peak.", each.name)] =
          hardware::constant_rate("flop/s", promised ? promised->value() : products->largest());
      if (!is_f32)
        rates.grids[join_text("scale.matmul.", each.name)] =
            hardware::constant_rate("ratio", products->largest() / f32);
    }
    // Bringing an operand into place is an instruction of many that hide behind memory.
    const double instructions = rates.number("peak.f32") / 2;
    for (const char* move :
         {"tile.convert", "tile.cast", "tile.copy", "tile.spread", "tile.gather"})
      rates.grids[move] = hardware::constant_rate("element/s", instructions);
    rates.grids["tile.other"] = hardware::constant_rate("element/s", instructions / 2);
  }

  // Empty where the table does not have what the driver reports.
  std::string known_name() const {
    const std::string reported = machine_name();
    for (const hardware::GpuSpec& gpu : hardware::known_gpus()) {
      const std::vector<std::string>& names = gpu.driver_names;
      if (std::find(names.begin(), names.end(), reported) != names.end()) return gpu.name;
    }
    return {};
  }

  void add_transfers(hardware::Rates& rates) const {
    const hardware::TransferRates transfers = hardware::measure_transfers(device_.index);
    const auto add = [&](const char* family, BytesPerSecond rate) {
      rates.grids[family] = hardware::constant_rate("byte/s", rate.value());
    };
    add("transfer.to_device.pinned", transfers.to_device_pinned);
    add("transfer.to_device.pageable", transfers.to_device_pageable);
    add("transfer.to_host.pinned", transfers.to_host_pinned);
    add("transfer.to_host.pageable", transfers.to_host_pageable);
  }

  // Products and attentions of the given programs and of the loops in them, each once.
  std::map<std::string, const compiler::Kernel*> own_kernels() const {
    std::map<std::string, const compiler::Kernel*> kernels;
    const std::function<void(const compiler::KernelList&)> add =
        [&](const compiler::KernelList& list) {
          for (const compiler::Kernel& kernel : list.kernels) {
            if (kernel.body) add(kernel.body->list);
            std::string signature = kernel_signature(kernel);
            if (!signature.empty()) kernels.emplace(std::move(signature), &kernel);
          }
        };
    for (const compiler::KernelList* list : options_.programs) add(*list);
    return kernels;
  }

  void measure_kernels(hardware::Rates& rates) {
    for (const auto& [signature, kernel] : kernels_) {
      const std::optional<double> once = time_alone(*kernel, 1);
      if (once) {
        rates.grids[signature] = hardware::constant_rate("s", *once);
      } else {
        left_out_.emplace_back(kernel->op->name);
      }
    }
  }

  std::string source_text() const {
    std::string text =
        is_quick() ? "measured quickly" : "measured by `brrr calibrate --device cuda`";
    if (!kernels_.empty())
      text += join_text("; products and attention of ", options_.programs_name,
                        " each by itself at its own shape");
    const std::set<std::string> left_out(left_out_.begin(), left_out_.end());
    for (const std::string& name : left_out)
      text += join_text(name == *left_out.begin()
                            ? "; not measured, for want of memory, of time or of a kernel: "
                            : ", ",
                        name);
    return text;
  }

  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  const Device device_;
  const cuda::Stream stream_;
  const CalibrateCudaOptions& options_;
  const std::vector<CudaFamily> families_;
  const std::map<std::string, const compiler::Kernel*> kernels_;
  std::vector<std::string> left_out_;
  double launch_ = 0;
  int case_ = 0, cases_ = 0;
};

}  // namespace

hardware::Rates calibrate_cuda(Device device, const CalibrateCudaOptions& options) {
  return GpuCalibration(device, options).run();
}

}  // namespace brrr::cost
