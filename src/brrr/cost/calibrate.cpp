#include "brrr/cost/calibrate.h"

#include <fmt/chrono.h>

#include <algorithm>
#include <chrono>
#include <ctime>

#include "brrr/cost/kernel_family.h"
#include "brrr/hardware/measure.h"
#include "brrr/kernels/cpu/elementwise/convert_cpu.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/unary.h"

namespace brrr::cost {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double median(std::vector<double> all) {
  invariant(!all.empty(), "the median of nothing");
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
  std::nth_element(all.begin(), middle, all.end());
  return *middle;
}

// One visit to a case: what was done, and in which time.
struct Visit {
  double seconds = 0, amount = 0, bytes = 0;
  int kernels = 0, forks = 0;
};

Visit visit_once(CalibrationCase& item) {
  runtime::Executable& program = item.program.executable(item.inputs);
  runtime::KernelTimes times;
  program.run_timed(item.inputs, times);
  Visit visit;
  for (size_t k = 0; k < times.seconds.size(); ++k) {
    const compiler::Kernel& kernel = program.kernels().kernels[k];
    const auto runs_op = [&](const compiler::KernelPart& part) { return part.op->name == item.op; };
    const bool whole = item.measure == CaseMeasure::bytes;
    if (!whole && std::none_of(kernel.parts.begin(), kernel.parts.end(), runs_op)) continue;
    const KernelWork work = work_of(kernel);
    const auto bytes = static_cast<double>(kernel.cost.bytes_read + kernel.cost.bytes_written);
    visit.seconds += times.seconds[k];
    visit.bytes += bytes;
    visit.amount += whole ? bytes : work.parts.back().amount;
    ++visit.kernels;
    visit.forks += work.pieces > 1 ? 1 : 0;
  }
  invariant(visit.amount > 0, "calibrate: the program of ", item.family, " runs no ", item.op);
  return visit;
}

// Behind other cases the first call finds other data in the caches: it counts only where the data would
// not fit them anyway. Short kernels are called several times.
Visit visit_case(CalibrationCase& item) {
  constexpr double kLongSeconds = 2e-2, kEnoughSeconds = 2e-4;
  constexpr int kMostCalls = 9;
  std::vector<Visit> visits{visit_once(item)};
  if (visits[0].seconds > kLongSeconds) return visits[0];
  visits[0] = visit_once(item);
  double spent = visits[0].seconds;
  while (spent < kEnoughSeconds && static_cast<int>(visits.size()) < kMostCalls) {
    visits.push_back(visit_once(item));
    spent += visits.back().seconds;
  }
  const auto middle = visits.begin() + static_cast<std::ptrdiff_t>(visits.size() / 2);
  std::nth_element(visits.begin(), middle, visits.end(),
                   [](const Visit& a, const Visit& b) { return a.seconds < b.seconds; });
  return *middle;
}

// A tile primitive on one thread, its operands in the L1 cache. Tiles as in fused programs.
class TileTimer {
 public:
  TileTimer() {
    for (std::vector<float>& operand : operands_) {
      operand.resize(kTileElements);
      for (size_t i = 0; i < operand.size(); ++i)
        operand[i] = 0.5F + static_cast<float>(i) / kTileElements;
    }
  }

  double seconds_per_element(TileFn tile, const Attrs& attrs) {
    TileCall call{.inputs = {}, .output = output_.data(), .count = kTileElements, .attrs = &attrs};
    for (int i = 0; i < kMaxTileInputs; ++i)
      call.inputs[i] = operands_[static_cast<size_t>(i)].data();
    return per_element([&] { tile(call); });
  }

  // Bringing a tile into place from elements of a dtype that lie `stride` apart.
  double seconds_per_load(DType dtype, int64_t stride) {
    return per_element([&] {
      kernels::load_elements(dtype, wide_.data(), 0, stride, kTileElements, ComputeType::f32,
                             output_.data());
    });
  }

 private:
  template <typename Work>
  static double per_element(const Work& work) {
    constexpr int kCalls = 32;
    work();
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < kCalls; ++i) work();
    return seconds_since(start) / (kCalls * static_cast<double>(kTileElements));
  }

  static constexpr int64_t kMaxStride = 16;
  std::array<std::vector<float>, kMaxTileInputs> operands_;
  std::vector<float> output_ = std::vector<float>(kTileElements);
  std::vector<std::byte> wide_ = std::vector<std::byte>(kTileElements * kMaxStride * 4);
};

struct TilePrimitive {
  std::string family;
  TileFn tile;
  Attrs attrs;
};

std::vector<TilePrimitive> tile_primitives() {
  std::vector<TilePrimitive> found;
  for (const OpDef* op : all_ops()) {
    const TileFn tile = op->tiles ? op->tiles().f32 : nullptr;
    if (!tile || !op->samples) continue;
    const std::vector<Sample> samples = op->samples();
    if (!samples.empty())
      found.push_back({join_text("tile.", op->name), tile, samples.front().attrs});
  }
  return found;
}

// A program of many kernels that do next to nothing: what remains is the call.
runtime::CompiledFunction tiny_kernels(int count) {
  return {[count](std::span<const Tensor> x) -> Tensors {
            Tensor y = x[0];
            for (int i = 0; i < count; ++i) y = neg(y);
            return {y};
          },
          {.without = {"fuse"}}};
}

std::string now_text() {
  return fmt::format("{:%Y-%m-%d %H:%M}", fmt::localtime(std::time(nullptr)));
}

}  // namespace

struct Calibrator::State {
  static constexpr int kTinyKernels = 256;

  explicit State(CalibrationSize size)
      : is_quick(size == CalibrationSize::quick),
        list(make_calibration_list(size)),
        visits(list.cases.size()) {
    for (CalibrationCase& item : list.cases) visit_once(item);  // compiled, and its pages present
  }

  const bool is_quick;
  CalibrationList list;
  std::vector<std::vector<Visit>> visits;  // by case
  std::vector<TilePrimitive> primitives = tile_primitives();
  std::map<std::string, std::vector<double>, std::less<>> seconds;  // by family without axes
  TileTimer timer;
  runtime::CompiledFunction tiny = tiny_kernels(kTinyKernels);
  Tensor one = ones({1});
  double peak = hardware::measure_peak(DType::f32).value();
  int rounds = 0;

  void measure_overheads() {
    constexpr int kForks = 100;
    runtime::Executable& program = tiny.executable({&one, 1});
    Clock::time_point start = Clock::now();
    program.run({&one, 1});
    seconds["launch"].push_back(seconds_since(start) / kTinyKernels);
    start = Clock::now();
    for (int i = 0; i < kForks; ++i)
      thread_pool().for_each_piece(thread_pool().threads() + 1, [](int64_t) {});
    seconds["fork_join"].push_back(seconds_since(start) / kForks);
  }

  void measure_tiles() {
    for (const TilePrimitive& primitive : primitives)
      seconds[primitive.family].push_back(
          timer.seconds_per_element(primitive.tile, primitive.attrs));
    const double spread = timer.seconds_per_load(DType::f32, 1),
                 convert = timer.seconds_per_load(DType::bf16, 1);
    seconds["tile.spread"].push_back(spread);
    seconds["tile.copy"].push_back(spread);
    seconds["tile.convert"].push_back(convert);
    seconds["tile.cast"].push_back(convert);
    seconds["tile.gather"].push_back(timer.seconds_per_load(DType::f32, 16));
  }

  // Work in a second at the point of a case, without what predictions add: overhead, and the bytes of
  // products, which were last used a call ago.
  double rate_of(size_t c, const hardware::Rates& rates) const {
    std::vector<double> per_unit;
    for (const Visit& visit : visits[c]) {
      double added =
          rates.number("launch") * visit.kernels + rates.number("fork_join") * visit.forks;
      if (list.cases[c].op == "matmul") {
        const double distance[] = {visit.bytes};
        added += visit.bytes / rates.grid("bandwidth").at(distance);
      }
      per_unit.push_back(std::max(visit.seconds - added, 0.1 * visit.seconds) / visit.amount);
    }
    return 1 / median(std::move(per_unit));
  }
};

Calibrator::Calibrator(CalibrationSize size) : state_(std::make_unique<State>(size)) {}
Calibrator::~Calibrator() = default;
int Calibrator::rounds() const { return state_->rounds; }

void Calibrator::round() {
  State& s = *state_;
  s.measure_overheads();
  s.measure_tiles();
  for (size_t c = 0; c < s.list.cases.size(); ++c)
    s.visits[c].push_back(visit_case(s.list.cases[c]));
  ++s.rounds;
}

hardware::Rates Calibrator::rates() const {
  const State& s = *state_;
  check(s.rounds > 0, "calibrate: no round was measured yet");
  const int threads = thread_pool().threads();
  hardware::Rates rates{
      .machine = join_text(hardware::cpu_name(), ", ", threads, " threads"),
      .threads = threads,
      .calibrated = true,
      .quick = s.is_quick,
      .source = join_text(s.is_quick ? "measured quickly " : "measured ", now_text(), ", ",
                          s.rounds, s.rounds == 1 ? " round" : " rounds"),
      .packs_operands = true,
      .grids = s.list.grids};
  rates.grids["peak.f32"] = hardware::constant_rate("flop/s", s.peak);
  std::vector<double> tiles;
  for (const auto& [family, times] : s.seconds) {
    const double time = median(times);
    const bool tile = family.starts_with("tile.");
    rates.grids[family] =
        tile ? hardware::constant_rate("element/s", 1 / time) : hardware::constant_rate("s", time);
    if (tile) tiles.push_back(1 / time);
  }
  rates.grids["tile.other"] = hardware::constant_rate("element/s", median(std::move(tiles)));
  for (bool of_products : {false, true}) {  // whose rates need the bandwidth
    for (size_t c = 0; c < s.list.cases.size(); ++c) {
      const CalibrationCase& item = s.list.cases[c];
      if ((item.op == "matmul") != of_products) continue;
      std::vector<double>& values = rates.grids[item.family].values;
      values.resize(std::max(values.size(), item.index + 1));
      values[item.index] = s.rate_of(c, rates);
    }
  }
  rates.grids["scale.matmul.bf16"] =
      hardware::constant_rate("ratio", rates.number("matmul.bf16") / rates.number("matmul.f32"));
  return rates;
}

hardware::Rates calibrate(const CalibrateOptions& options) {
  check(options.rounds >= 1, "calibrate: ", options.rounds, " rounds; use at least one");
  const Clock::time_point start = Clock::now();
  Calibrator calibrator(options.size);
  double last_round = 0;
  for (int i = 0; i < options.rounds; ++i) {
    const double before = seconds_since(start);
    if (i > 0 && before + last_round > options.most_seconds) break;
    if (options.on_round) options.on_round(i);
    calibrator.round();
    last_round = seconds_since(start) - before;
  }
  return calibrator.rates();
}

hardware::Rates rough_rates() {
  constexpr double kLaunchSeconds = 3e-7;
  const int threads = thread_pool().threads();
  hardware::Rates rates =
      hardware::rates_from_peaks(join_text(hardware::cpu_name(), ", ", threads, " threads"),
                                 {.flops_per_second = hardware::measure_peak().value(),
                                  .bytes_per_second = hardware::measure_memory().copy.value(),
                                  .launch_seconds = kLaunchSeconds});
  rates.source = "peaks of arithmetic and memory, measured now; no family was";
  rates.packs_operands = true;
  return rates;
}

}  // namespace brrr::cost
