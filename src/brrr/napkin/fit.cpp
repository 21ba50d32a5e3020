#include "brrr/napkin/fit.h"

#include <fmt/format.h>

#include <algorithm>

namespace brrr {
namespace {

constexpr RematPolicy kPolicies[] = {RematPolicy::none, RematPolicy::selective, RematPolicy::full};

bool divides(int64_t degree, int64_t size) { return size % degree == 0; }

// Degrees of each kind that are worth a try.
std::vector<ParallelLayout> layouts_of(const RunQuestion& q, const ModelConfig& model) {
  const ModelShape shape = shape_of(model);
  const auto* llama = std::get_if<LlamaConfig>(&model);
  const int64_t experts = llama ? llama->experts : 0;
  std::vector<ParallelLayout> layouts;
  for (int64_t tp : {1, 2, 4, 8}) {
    if (!divides(tp, q.count) || !splits_by(model, tp)) continue;
    for (int64_t pp = 1; pp <= std::min<int64_t>(shape.layers, 32); ++pp) {
      if (!divides(pp, shape.layers) || !divides(tp * pp, q.count)) continue;
      for (int64_t cp : {1, 2, 4, 8, 16}) {
        if (!divides(tp * pp * cp, q.count) || !divides(cp, q.seq) || (cp > 1 && q.seq / cp < 4096))
          continue;
        const int64_t ranks = q.count / (tp * pp);
        for (int zero : {1, 3}) {
          if (ranks == 1 && zero == 3) continue;
          ParallelLayout layout{.tp = tp, .pp = pp, .cp = cp, .zero = ranks == 1 ? 0 : zero};
          layouts.push_back(layout);
          for (int64_t ep : {8, 64}) {
            if (experts == 0 || !divides(ep, experts) || !divides(ep, ranks)) continue;
            layout.ep = ep;
            layouts.push_back(layout);
          }
        }
      }
    }
  }
  return layouts;
}

// The quickest plan that fits, and the next one with another layout.
struct Search {
  std::optional<RunAnswer> best, second;
  double least_memory = 0;  // of all plans, in bytes
  int64_t tried = 0;
};

Search search_plans(const RunQuestion& question) {
  Search found;
  for (const RunQuestion& plan : possible_plans(question)) {
    RunAnswer a = answer(plan);
    ++found.tried;
    if (found.least_memory == 0 || a.memory.total() < found.least_memory)
      found.least_memory = a.memory.total();
    if (!a.fits) continue;
    if (!found.best || a.step_seconds < found.best->step_seconds) {
      found.second = std::move(found.best);
      found.best = std::move(a);
    } else if (!found.second || a.step_seconds < found.second->step_seconds) {
      found.second = std::move(a);
    }
  }
  return found;
}

void keep(FitResult& result, Search search, double value) {
  if (!search.best) return;
  result.best = FitPlan{value, std::move(*search.best)};
  result.runner_up.reset();
  if (search.second) result.runner_up = FitPlan{value, std::move(*search.second)};
}

// The largest of sizes[0..] for which some plan fits, by halving.
FitResult largest_that_fits(const std::vector<int64_t>& sizes, std::string_view unit,
                            const std::function<RunQuestion(int64_t)>& with) {
  FitResult result;
  size_t low = 0, high = sizes.size();  // all below `low` fit, those from `high` on do not
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    Search search = search_plans(with(sizes[middle]));
    result.tried += search.tried;
    if (search.best) {
      keep(result, std::move(search), static_cast<double>(sizes[middle]));
      low = middle + 1;
    } else {
      result.binding = fmt::format("memory: with {} {} the leanest plan needs {:.1f} GB a device",
                                   sizes[middle], unit, search.least_memory / 1e9);
      high = middle;
    }
  }
  if (result.best && high == sizes.size())
    result.binding = "nothing: the largest size that was tried fits";
  return result;
}

LlamaConfig llama_of_layers(int64_t layers) {
  const int64_t width = 128 * layers;
  return {.vocab = 128256,
          .context = 131072,
          .layers = layers,
          .width = width,
          .heads = layers,
          .kv_heads = layers % 8 == 0 ? 8 : layers,
          .hidden = (8 * width / 3 + 1023) / 1024 * 1024};
}

}  // namespace

std::vector<RunQuestion> possible_plans(const RunQuestion& question) {
  if (!question.model) fail("a search over layouts needs the shape of the model; give --model");
  const ModelConfig& model = *question.model;
  RunQuestion base = question;
  if (base.seq == 0) base.seq = std::min<int64_t>(8192, context_of(model));
  std::vector<RunQuestion> plans;
  for (const ParallelLayout& layout : layouts_of(base, model)) {
    RunQuestion plan = base;
    plan.layout = layout;
    plan.layout.sequence_parallel = true;
    const int64_t unit = base.count / (layout.tp * layout.pp * layout.cp) * base.micro_batch;
    if (base.global_batch > 0 && base.global_batch % unit != 0) continue;
    for (RematPolicy policy : kPolicies) {
      plan.recompute = policy;
      plans.push_back(plan);
    }
  }
  return plans;
}

double largest_model_by_states(const RunQuestion& question) {
  const StateRecipe recipe = state_recipe(question.precision, question.optimizer, question.grads);
  return static_cast<double>(find_gpu(question.gpu).memory.value()) *
         static_cast<double>(question.count) / recipe.total();
}

FitResult largest_model(const RunQuestion& question) {
  std::vector<int64_t> layers;
  for (int64_t count = 8; count <= 256; count += 8) layers.push_back(count);
  FitResult result = largest_that_fits(layers, "layers (width 128 x layers)", [&](int64_t count) {
    RunQuestion q = question;
    q.model = llama_of_layers(count);
    q.model_name = fmt::format("llama of {} layers", count);
    if (q.seq == 0) q.seq = 4096;
    return q;
  });
  for (auto* plan : {&result.best, &result.runner_up}) {
    if (*plan) (*plan)->value = (*plan)->answer.params;
  }
  return result;
}

FitResult longest_context(const RunQuestion& question) {
  std::vector<int64_t> lengths;
  // A table of positions is as long as it is; rotary ones can be stretched.
  const bool has_table = question.model && std::holds_alternative<Gpt2Config>(*question.model);
  const int64_t longest = has_table ? context_of(*question.model) : (1 << 24) + (1 << 23);
  for (int64_t length = 1024; length <= 1 << 24; length *= 2) {
    for (const int64_t each : {length, length + length / 2}) {
      if (each <= longest) lengths.push_back(each);
    }
  }
  if (lengths.empty()) lengths.push_back(longest);
  return largest_that_fits(lengths, "tokens", [&](int64_t length) {
    RunQuestion q = question;
    q.seq = length;
    return q;
  });
}

FitResult largest_batch(const RunQuestion& question) {
  std::vector<int64_t> sizes;
  for (int64_t size = 1; size <= 4096; size *= 2) {
    sizes.push_back(size);
    if (size > 1) sizes.push_back(size + size / 2);
  }
  return largest_that_fits(sizes, "sequences of a micro-batch", [&](int64_t size) {
    RunQuestion q = question;
    q.micro_batch = size;
    q.global_batch = 0;
    return q;
  });
}

FitResult fewest_devices(const RunQuestion& question, int64_t most) {
  FitResult result;
  for (int64_t count = 1; count <= most; count *= 2) {
    RunQuestion q = question;
    q.count = count;
    Search search = search_plans(q);
    result.tried += search.tried;
    if (search.best) {
      keep(result, std::move(search), static_cast<double>(count));
      return result;
    }
    result.binding = fmt::format("memory: on {} the leanest plan needs {:.1f} GB a device", count,
                                 search.least_memory / 1e9);
  }
  return result;
}

FitResult cheapest_plan(const RunQuestion& question, double days, int64_t most) {
  check(days > 0, days, " days are no deadline");
  FitResult result;
  for (int64_t count = 1; count <= most; count *= 2) {
    RunQuestion q = question;
    q.count = count;
    Search search = search_plans(q);
    result.tried += search.tried;
    if (!search.best) {
      if (!result.best) result.binding = fmt::format("memory, below {} devices", 2 * count);
      continue;
    }
    if (search.best->days > days) {
      if (!result.best)
        result.binding =
            fmt::format("the deadline: {} devices take {:.1f} days", count, search.best->days);
      continue;
    }
    const double cost = q.price_per_hour > 0 ? search.best->cost_usd : search.best->gpu_hours;
    if (!result.best || cost < result.best->value) {
      std::optional<FitPlan> before = std::move(result.best);
      result.best = FitPlan{cost, std::move(*search.best)};
      if (before) result.runner_up = std::move(before);
    } else if (!result.runner_up || cost < result.runner_up->value) {
      result.runner_up = FitPlan{cost, std::move(*search.best)};
    }
    // More devices only talk more: two larger counts are enough to see it.
    if (result.best->answer.question.count * 4 <= count) break;
  }
  return result;
}

}  // namespace brrr
