#include "brrr/runtime/calibrate_cuda.h"

#include <algorithm>
#include <map>

#include "brrr/base/error.h"
#include "brrr/device/cuda/runtime.h"
#include "brrr/device/default_device.h"
#include "brrr/device/gpu_info.h"
#include "brrr/ops/attention.h"
#include "brrr/ops/binary.h"
#include "brrr/ops/creation.h"
#include "brrr/ops/matmul.h"
#include "brrr/ops/reduce.h"
#include "brrr/ops/views.h"
#include "brrr/runtime/compile.h"

namespace brrr {
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
  for (int i = 0; i < 3; ++i) work();  // loads code, chooses algorithms, captures
  const double once = run(1);
  const int calls = static_cast<int>(std::clamp(kLongEnough / once, 1.0, double{kMostCalls}));
  std::vector<double> all;
  for (int i = 0; i < rounds; ++i) all.push_back(run(calls));
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}

class GpuCalibration {
 public:
  GpuCalibration(Device device, const CalibrateCudaOptions& options)
      : device_(device), stream_(cuda::stream(device.index)), options_(options) {}

  Rates run() {
    const DeviceScope scope(device_);
    NoGrad nothing_is_recorded;
    const double launch = launch_seconds();
    const RateGrid bandwidth = measure_bandwidth();
    std::map<std::string, RateGrid> products;
    for (const char* layout : {"nn", "nt", "tn"})
      products[join_text("matmul.", layout)] = measure_products(layout);
    const double f32 = products["matmul.nn"].largest();
    Rates rates = rates_from_peaks(machine_name(), {.flops_per_second = f32,
                                                    .bytes_per_second = bandwidth.values.back(),
                                                    .launch_seconds = launch,
                                                    .bf16_speedup = bf16_speedup()});
    rates.grids["bandwidth"] = rates.grids["optimizer"] = bandwidth;
    for (auto& [family, grid] : products) rates.grids[family] = std::move(grid);
    measure_attention(rates);
    rates.calibrated = true;
    rates.source = "measured by `brrr calibrate --device cuda`";
    return rates;
  }

 private:
  double seconds(const std::function<void()>& work) {
    if (options_.on_case) options_.on_case(++case_, kCases);
    return seconds_of(work, stream_, options_.rounds);
  }

  std::string machine_name() const {
    const GpuList gpus = list_gpus();
    return gpus.gpus[device_.index].name;
  }

  // Of one small kernel among many in a captured program: sums cannot be fused with each other.
  double launch_seconds() {
    constexpr int kKernels = 64;
    auto chain = compile([](const Tensor& x) {
      Tensor y = x;
      for (int i = 0; i < kKernels; ++i) y = x + sum(y, {0}, KeepDims::yes) * 0.5;
      return y;
    });
    const Tensor x = ones({32});
    const double whole = seconds([&] { chain(x); });
    const size_t kernels = chain.function().executable({{x}}).kernels().kernels.size();
    return whole / static_cast<double>(kernels);
  }

  // By bytes touched between two uses: x + 1 over tensors of these sizes, again and again.
  RateGrid measure_bandwidth() {
    RateGrid grid{.unit = "byte/s", .axes = {{.name = "distance", .points = {}}}, .values = {}};
    for (int64_t bytes = int64_t{1} << 20; bytes <= int64_t{1} << 30; bytes *= 4) {
      const Tensor x = ones({bytes / 4});
      const double once = seconds([&] { x + 1.0; });
      grid.axes[0].points.push_back(2 * static_cast<double>(bytes));
      grid.values.push_back(2 * static_cast<double>(bytes) / once);
    }
    return grid;
  }

  Tensor operand(int64_t rows, int64_t columns, bool transposed, DType dtype) const {
    const TensorOptions options{.dtype = dtype};
    return transposed ? transpose(ones({columns, rows}, options), 0, 1)
                      : ones({rows, columns}, options);
  }

  double product_rate(double m, double n, double k, std::string_view layout, DType dtype) {
    const auto size = [](double x) { return static_cast<int64_t>(x); };
    const Tensor a = operand(size(m), size(k), layout[0] == 't', dtype);
    const Tensor b = operand(size(k), size(n), layout[1] == 't', dtype);
    return 2 * m * n * k / seconds([&] { matmul(a, b); });
  }

  RateGrid measure_products(std::string_view layout) {
    const std::vector<double> points{256, 1024, 4096};
    RateGrid grid{
        .unit = "flop/s", .axes = {{"m", points}, {"n", points}, {"k", points}}, .values = {}};
    for (double m : points) {
      for (double n : points) {
        for (double k : points) grid.values.push_back(product_rate(m, n, k, layout, DType::f32));
      }
    }
    return grid;
  }

  double bf16_speedup() {
    constexpr double kSize = 4096;
    return product_rate(kSize, kSize, kSize, "nn", DType::bf16) /
           product_rate(kSize, kSize, kSize, "nn", DType::f32);
  }

  void measure_attention(Rates& rates) {
    const std::vector<double> keys{256, 1024}, sizes{64, 128};
    RateGrid forward{.unit = "flop/s", .axes = {{"keys", keys}, {"head_dim", sizes}}, .values = {}};
    for (double t : keys) {
      for (double d : sizes) {
        const auto length = static_cast<int64_t>(t), size = static_cast<int64_t>(d);
        const Tensor q = ones({8, 12, length, size}, {.dtype = DType::bf16});
        const double flops = 4 * 8 * 12 * t * t * d;
        forward.values.push_back(flops / seconds([&] { attention(q, q, q); }));
      }
    }
    rates.grids["attention"] = rates.grids["attention_backward"] = forward;
  }

  static constexpr int kCases = 1 + 6 + 3 * 27 + 2 + 4;
  const Device device_;
  const cuda::Stream stream_;
  const CalibrateCudaOptions& options_;
  int case_ = 0;
};

}  // namespace

Rates calibrate_cuda(Device device, const CalibrateCudaOptions& options) {
  return GpuCalibration(device, options).run();
}

}  // namespace brrr
