#include "brrr/report/memory_timeline.h"

#include <fmt/format.h>

#include <algorithm>

#include "brrr/base/units.h"
#include "brrr/report/html.h"
#include "brrr/report/table.h"

namespace brrr::report {
namespace {

std::string bar_of(int64_t value, int64_t largest, int width) {
  std::string bar;
  const int64_t filled = largest == 0 ? 0 : (value * width + largest / 2) / largest;
  for (int64_t i = 0; i < width; ++i) bar += i < filled ? "█" : "·";
  return bar;
}

std::string shortened(const std::string& name) {
  constexpr size_t kMost = 40;
  return name.size() <= kMost ? name : name.substr(0, kMost - 2) + "..";
}

}  // namespace

std::string memory_timeline_text(const compiler::KernelList& list, const compiler::MemoryPlan& plan,
                                 const TimelineOptions& options) {
  const std::vector<int64_t> bytes = compiler::bytes_over_time(list, plan);
  if (bytes.empty()) return "no kernels\n";
  const auto peak = std::max_element(bytes.begin(), bytes.end());
  const auto peak_at = static_cast<size_t>(peak - bytes.begin());
  Table table({"kernels", "phase", "bytes taken", "of the arena", "largest at"});
  const size_t rows = std::min(bytes.size(), static_cast<size_t>(options.rows));
  for (size_t r = 0; r < rows; ++r) {
    const size_t begin = bytes.size() * r / rows, end = bytes.size() * (r + 1) / rows;
    const auto most = std::max_element(bytes.begin() + static_cast<std::ptrdiff_t>(begin),
                                       bytes.begin() + static_cast<std::ptrdiff_t>(end));
    const compiler::Kernel& kernel = list.kernels[static_cast<size_t>(most - bytes.begin())];
    const bool is_peak = peak_at >= begin && peak_at < end;
    table.row(end - begin == 1 ? join_text(begin) : join_text(begin, "-", end - 1),
              graph::phase_name(kernel.phase), to_text(Bytes(*most)),
              bar_of(*most, *peak, options.width),
              join_text(shortened(kernel.name), is_peak ? "  <- peak" : ""));
  }
  std::vector<compiler::PlannedBuffer> holders;
  for (const compiler::PlannedBuffer& buffer : compiler::planned_buffers(list, plan)) {
    if (buffer.first <= static_cast<int>(peak_at) && buffer.last >= static_cast<int>(peak_at))
      holders.push_back(buffer);
  }
  std::stable_sort(holders.begin(), holders.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  constexpr size_t kMostHolders = 8;
  Table largest({"held at the peak", "bytes", "from kernel", "to kernel"});
  for (size_t i = 0; i < std::min(kMostHolders, holders.size()); ++i)
    largest.row(shortened(holders[i].made_by), to_text(Bytes(holders[i].bytes)), holders[i].first,
                holders[i].last);
  return table.text() + "\n" + largest.text();
}

std::string memory_timeline_svg(const compiler::KernelList& list,
                                const compiler::MemoryPlan& plan) {
  constexpr double kWidth = 1200, kHeight = 600, kMargin = 60;
  constexpr const char* kColours[] = {"#4c78a8", "#f58518", "#54a24b"};  // by phase
  const double kernels = std::max<double>(1, static_cast<double>(list.kernels.size()));
  const double arena = std::max<double>(1, static_cast<double>(plan.arena_bytes));
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n"
      "<text x=\"{2}\" y=\"24\">arena of {3} over {4} kernels (blue forward, orange backward, "
      "green update)</text>\n",
      kWidth + 2 * kMargin, kHeight + 2 * kMargin, kMargin, to_text(Bytes(plan.arena_bytes)),
      list.kernels.size());
  for (const compiler::PlannedBuffer& buffer : compiler::planned_buffers(list, plan)) {
    const double x = kMargin + kWidth * buffer.first / kernels,
                 width = kWidth * (buffer.last - buffer.first + 1) / kernels,
                 height = kHeight * static_cast<double>(buffer.bytes) / arena,
                 y = kMargin + kHeight * (1 - static_cast<double>(buffer.offset) / arena) - height;
    out += fmt::format(
        "<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\" "
        "fill-opacity=\"0.8\" stroke=\"white\" stroke-width=\"0.3\"><title>{}: {}, kernels {} to "
        "{}</title></rect>\n",
        x, y, width, height, kColours[static_cast<size_t>(buffer.phase)],
        html_escaped(buffer.made_by), to_text(Bytes(buffer.bytes)), buffer.first, buffer.last);
  }
  out += fmt::format(
      "<text x=\"{0}\" y=\"{1}\">kernel 0</text><text x=\"{2}\" y=\"{1}\" "
      "text-anchor=\"end\">{3}</text>\n<text x=\"4\" y=\"{4}\">{5}</text>\n</svg>\n",
      kMargin, kMargin + kHeight + 20, kMargin + kWidth, list.kernels.size(), kMargin,
      to_text(Bytes(plan.arena_bytes)));
  return out;
}

}  // namespace brrr::report
