#include "brrr/compiler/codegen/kernel_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "brrr/kernels/cuda/codegen/elementwise_text.h"

namespace brrr::compiler {
namespace {

std::string table_text(std::string_view type, std::string_view name,
                       const std::vector<int64_t>& values) {
  std::string text = fmt::format("__constant__ const {} {}[] = {{", type, name);
  for (size_t i = 0; i < values.size(); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : ", ", values[i]);
  return text + "};\n";
}

std::string entry_text(const std::string& entry, const std::string& parameters) {
  return fmt::format("\nextern \"C\" __global__ void __launch_bounds__({}) {}({}) {{\n",
                     kernels::kTextBlock, entry, parameters);
}

std::vector<KernelPointer> placed(std::vector<KernelPointer> pointers, const PlacedText& part,
                                  int64_t workspace) {
  for (KernelPointer& pointer : pointers) {
    switch (pointer.from) {
      case KernelPointer::From::input: pointer.index += part.first_input; break;
      case KernelPointer::From::output: pointer.index += part.first_output; break;
      case KernelPointer::From::workspace: pointer.index += static_cast<int>(workspace); break;
    }
  }
  return pointers;
}

constexpr size_t kMostParameters = 500;  // pointers; a launch may have 4 KiB of parameters

// Scratch of each part begins at a multiple of this, as it would alone.
constexpr int64_t kWorkspaceAlignment = 256;
int64_t aligned(int64_t bytes) {
  return (bytes + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment;
}

class Joiner {
 public:
  Joiner(const std::vector<PlacedText>& parts, const std::string& name, const std::string& comment)
      : parts_(parts), name_(name) {
    made_.source = {.name = name, .text = kernels::source_head(comment)};
    size_t launches = 0;
    for (const PlacedText& part : parts) {
      add_kind(part.text);
      workspaces_.push_back(made_.workspace_bytes);
      made_.workspace_bytes += aligned(part.text.workspace_bytes);
      launches = std::max(launches, part.text.launches.size());
    }
    for (size_t launch = 0; launch < launches; ++launch) add_launch(launch);
  }
  GeneratedKernel take() { return std::move(made_); }

 private:
  void add_kind(const KernelText& text) {
    const auto [kind, is_new] = kinds_.emplace(text.functions, static_cast<int64_t>(kinds_.size()));
    kind_of_.push_back(kind->second);
    if (is_new)
      made_.source.text +=
          fmt::format("namespace part_{} {{\n{}}}\n\n", kind->second, text.functions);
  }

  static std::string case_text(int64_t kind, const LaunchText& launch) {
    const auto argument = [&](const std::string& type, size_t behind) {
      // A copy: what is behind the table might change with every store, for all that the compiler knows.
      return fmt::format(
          ", part_{0}::{1}(*reinterpret_cast<const part_{0}::{1}*>(pointers + kPointersAt[part] "
          "+ {2}))",
          kind, type, behind);
    };
    return fmt::format("case {0}: return part_{0}::{1}(blockIdx.x - kFirstBlock[part]{2}{3});\n",
                       kind, launch.function, argument(launch.first, 0),
                       launch.more.empty() ? "" : argument(launch.more, launch.pointers.size()));
  }

  // Where they fit, pointers are parameters: one way to memory less before the first load.
  static std::string pointers_text(const GeneratedLaunch& launch) {
    if (launch.is_table) return entry_text(launch.entry, "const void* const* pointers");
    return fmt::format("struct Pointers {{\n  const void* at[{}];\n}};\n",
                       std::max<size_t>(launch.pointers.size(), 1)) +
           entry_text(launch.entry, "const __grid_constant__ Pointers parameters") +
           "const void* const* const pointers = parameters.at;\n";
  }

  // Of the parts that have so many launches.
  void add_launch(size_t number) {
    std::string cases;
    std::vector<int64_t> first_blocks, kinds, pointers_at;
    std::vector<bool> is_known(kinds_.size(), false);
    GeneratedLaunch launch{.entry = fmt::format("{}_{}", name_, number == 0 ? "kernel" : "join"),
                           .blocks = 0,
                           .threads = kernels::kTextBlock};
    for (size_t p = 0; p < parts_.size(); ++p) {
      if (number >= parts_[p].text.launches.size()) continue;
      const LaunchText& own = parts_[p].text.launches[number];
      const int64_t kind = kind_of_[p];
      if (!is_known[static_cast<size_t>(kind)]) cases += case_text(kind, own);
      is_known[static_cast<size_t>(kind)] = true;
      first_blocks.push_back(launch.blocks);
      kinds.push_back(kind);
      pointers_at.push_back(static_cast<int64_t>(launch.pointers.size()));
      launch.blocks += own.blocks;
      for (const std::vector<KernelPointer>* pointers : {&own.pointers, &own.more_pointers}) {
        const std::vector<KernelPointer> all = placed(*pointers, parts_[p], workspaces_[p]);
        launch.pointers.insert(launch.pointers.end(), all.begin(), all.end());
      }
    }
    launch.is_table = launch.pointers.size() > kMostParameters;
    // Bisection; all threads of a block agree.
    int64_t half = 1;
    while (half * 2 < static_cast<int64_t>(first_blocks.size())) half *= 2;
    made_.source.text +=
        fmt::format("namespace launch_{} {{\n", number) +
        table_text("unsigned", "kFirstBlock", first_blocks) + table_text("int", "kKind", kinds) +
        table_text("int", "kPointersAt", pointers_at) + pointers_text(launch) +
        fmt::format(
            "int part = 0;\n"
            "for (int step = {}; step > 0; step /= 2)\n"
            "  if (part + step < {} && kFirstBlock[part + step] <= blockIdx.x) part += step;\n"
            "switch (kKind[part]) {{\n{}}}\n}}\n}}\n\n",
            half, first_blocks.size(), cases);
    made_.launches.push_back(std::move(launch));
  }

  const std::vector<PlacedText>& parts_;
  const std::string& name_;
  std::map<std::string, int64_t> kinds_;  // by text
  std::vector<int64_t> kind_of_;          // by part
  std::vector<int64_t> workspaces_;       // by part: where its own begins
  GeneratedKernel made_;
};

}  // namespace

GeneratedKernel kernel_of(const KernelText& text, const std::string& name,
                          const std::string& comment) {
  const auto is_long = [](const LaunchText& launch) {
    return launch.pointers.size() + launch.more_pointers.size() > kMostParameters;
  };
  if (std::any_of(text.launches.begin(), text.launches.end(), is_long))
    return joined_kernel({{.text = text}}, name, comment);  // which has tables
  GeneratedKernel made{
      .source = {.name = name, .text = kernels::source_head(comment) + text.functions},
      .workspace_bytes = text.workspace_bytes};
  for (const LaunchText& launch : text.launches) {
    const bool has_more = !launch.more.empty();
    const std::string entry = fmt::format("{}_{}", name, made.launches.empty() ? "kernel" : "join");
    made.source.text +=
        entry_text(entry, fmt::format("const {} first{}", launch.first,
                                      has_more ? fmt::format(", const {} more", launch.more)
                                               : std::string())) +
        fmt::format("{}(blockIdx.x, first{});\n}}\n", launch.function, has_more ? ", more" : "");
    made.launches.push_back({entry, launch.blocks, kernels::kTextBlock, launch.pointers,
                             launch.more_pointers, /*is_table=*/false});
  }
  return made;
}

GeneratedKernel joined_kernel(const std::vector<PlacedText>& parts, const std::string& name,
                              const std::string& comment) {
  return Joiner(parts, name, comment).take();
}

}  // namespace brrr::compiler
