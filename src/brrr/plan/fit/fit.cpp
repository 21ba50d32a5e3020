// What fits on a number of devices: the largest model, the longest context, the largest micro-batch.
#include "brrr/plan/fit/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "brrr/base/units.h"
#include "brrr/plan/fit/fit_price.h"

namespace brrr::plan {
namespace {

constexpr int64_t kMostFitLayers = 1024;
constexpr int64_t kLongestContext = 1 << 24;
constexpr int64_t kContextStep = 1024;     // tokens, on each of cp devices
constexpr int64_t kMostSequences = 16384;  // of a micro-batch

int64_t ssize(const std::vector<int64_t>& sizes) { return static_cast<int64_t>(sizes.size()); }

// Parameters / count is the least that any layout leaves a device of.
double least_states(const RunQuestion& q, const ModelConfig& model) {
  return static_cast<double>(parameter_count(model)) *
         state_recipe(q.precision, q.optimizer, q.grads).total() / static_cast<double>(q.count);
}

LlamaConfig llama_of_layers(int64_t layers) {
  const int64_t width = 128 * layers;
  return {.vocab = 128256,
          .context = 131072,
          .layers = layers,
          .width = width,
          .heads = layers,
          .kv_heads = layers,
          .hidden = (8 * width / 3 + 1023) / 1024 * 1024};
}

std::string missed_text(const FitCandidate& leanest, std::string_view with) {
  return fmt::format("memory: with {} the leanest plan needs {:.1f} GB a device ({})", with,
                     leanest.memory_bytes / 1e9,
                     plan_text(leanest.layout, leanest.dp, leanest.recompute));
}

void keep_quickest(FitResult& result, PlanPricer& pricer, int64_t count, double value) {
  const FitChoice choice = quickest_plans(pricer, count);
  if (!choice.best) fail("a plan that fitted is no longer found");
  FitPlan best{value, pricer.confirm(*choice.best)};
  check(best.answer.fits, "the answer about a plan says that it does not fit");
  result.best = std::move(best);
  result.runner_up.reset();
  if (choice.runner_up) result.runner_up = FitPlan{value, pricer.confirm(*choice.runner_up)};
}

// Sizes of which a plan takes more memory the larger they are: the last that fits is looked for where a straight line
// through two known points meets the device's memory, and between sizes known to fit and not to fit.
class SizeSearch {
 public:
  using With = std::function<RunQuestion(int64_t)>;
  // Plans of one cp, or of all where that is 0.
  SizeSearch(const std::vector<int64_t>& sizes, With with, int64_t cp)
      : sizes_(sizes), with_(std::move(with)), cp_(cp), high_(ssize(sizes)) {}

  // The index of the last size that fits, -1 where none does. All below `known` are known to fit.
  int64_t run(int64_t known) {
    low_ = known - 1;
    int64_t next = known;
    for (int64_t round = 1; low_ + 1 < high_; ++round) {
      weigh(next);
      const bool halves = round % 4 == 0 && high_ < ssize(sizes_);
      next = std::clamp(halves ? low_ + (high_ - low_) / 2 : guess(), low_ + 1,
                        std::max(low_ + 1, high_ - 1));
    }
    return low_;
  }
  // Of the first size that does not fit, where one was seen.
  const std::optional<FitCandidate>& missed() const { return missed_; }
  int64_t tried() const { return tried_; }

 private:
  struct Point {
    int64_t index = -1;
    double size = 0, bytes = 0;
  };

  void weigh(int64_t index) {
    const int64_t size = sizes_[static_cast<size_t>(index)];
    PlanPricer pricer(with_(size));
    room_ = pricer.room_bytes();
    const std::optional<FitCandidate> leanest = leanest_plan(pricer, pricer.question().count, cp_);
    tried_ += pricer.tried();
    const bool fits = leanest && pricer.fits(*leanest);
    (fits ? low_ : high_) = index;
    if (!fits) missed_ = leanest;
    before_ = last_;
    last_ = {index, static_cast<double>(size), leanest ? leanest->memory_bytes : 2 * room_};
  }

  // Long programs take long to trace, so guesses beyond what is known grow by steps.
  int64_t guess() const {
    const int64_t most = 8 * (last_.index + 2);
    if (before_.index < 0) return most;
    const double slope = (last_.bytes - before_.bytes) / (last_.size - before_.size);
    if (slope <= 0) return high_ < ssize(sizes_) ? low_ + (high_ - low_) / 2 : most;
    const double end = last_.size + (room_ - last_.bytes) / slope;
    const auto is_before = [](double e, int64_t s) { return e < static_cast<double>(s); };
    const auto after = std::upper_bound(sizes_.begin(), sizes_.end(), end, is_before);
    return std::min<int64_t>(after - sizes_.begin() - 1, most);
  }

  const std::vector<int64_t>& sizes_;
  With with_;
  int64_t cp_ = 0;
  int64_t low_ = -1, high_ = 0, tried_ = 0;
  double room_ = 0;
  Point last_, before_;
  std::optional<FitCandidate> missed_;
};

// Lengths on cp devices that share a sequence: a multiple of 1024 on each, and all of a table of positions.
std::vector<int64_t> lengths_over(int64_t cp, int64_t longest, bool has_table) {
  std::vector<int64_t> lengths;
  const int64_t step = kContextStep * cp;
  for (int64_t length = cp == 1 ? step : kLeastContextPart * cp; length <= longest; length += step)
    lengths.push_back(length);
  if (has_table && cp == 1 && (lengths.empty() || lengths.back() != longest))
    lengths.push_back(longest);
  return lengths;
}

}  // namespace

double largest_model_by_states(const RunQuestion& question) {
  const StateRecipe recipe = state_recipe(question.precision, question.optimizer, question.grads);
  return static_cast<double>(hardware::find_gpu(question.gpu).memory.value()) *
         static_cast<double>(question.count) / recipe.total();
}

// Heads decide which tp there is and layers which pp, so a larger model may fit where a smaller one does not: from the
// largest whose states alone would fit downwards, one by one.
FitResult largest_model(const RunQuestion& question) {
  const auto room = static_cast<double>(hardware::find_gpu(question.gpu).memory.value());
  const auto with = [&](int64_t layers) {
    RunQuestion q = question;
    q.model = llama_of_layers(layers);
    q.model_name = fmt::format("llama of {} layers", layers);
    if (q.seq == 0) q.seq = 4096;
    return q;
  };
  FitResult result;
  result.step = "one layer, 128 wide";
  int64_t layers = kMostFitLayers;
  while (layers > 1 && least_states(question, llama_of_layers(layers)) > room) --layers;
  result.binding = layers == kMostFitLayers
                       ? "nothing: the largest model that was tried fits"
                       : fmt::format("memory: the states of {} layers alone fill it", layers + 1);
  double least_missed = 0;  // bytes, of all larger ones
  for (; layers >= 1; --layers) {
    PlanPricer pricer(with(layers));
    const std::optional<FitCandidate> leanest = leanest_plan(pricer, question.count);
    result.tried += pricer.tried();
    if (!leanest) continue;
    if (pricer.fits(*leanest)) {
      keep_quickest(result, pricer, question.count, 0);
      for (auto* plan : {&result.best, &result.runner_up}) {
        if (*plan) (*plan)->value = (*plan)->answer.params;
      }
      return result;
    }
    if (least_missed > 0 && leanest->memory_bytes > least_missed) continue;
    least_missed = leanest->memory_bytes;
    result.binding = missed_text(*leanest, fmt::format("{} layers", layers));
  }
  return result;
}

FitResult longest_context(const RunQuestion& question) {
  const ModelConfig& model = fit_model(question);
  // A table of positions is as long as it is; rotary ones can be stretched.
  const bool has_table = shape_of(model).learned_positions > 0;
  const int64_t longest = has_table ? context_of(model) : kLongestContext;
  const auto with = [&](int64_t length) {
    RunQuestion q = question;
    q.seq = length;
    return q;
  };
  FitResult result;
  result.step = "1024 tokens on each of cp devices";
  result.binding = "the global batch: no layout divides it";
  int64_t best = 0, largest_cp = 1;
  while (2 * largest_cp <= std::min(question.count, kMostFitContext)) largest_cp *= 2;
  for (int64_t cp = largest_cp; cp >= 1; cp /= 2) {
    const std::vector<int64_t> lengths = lengths_over(cp, longest, has_table);
    // Another cp is only asked for what is longer than the best so far.
    const int64_t known = std::upper_bound(lengths.begin(), lengths.end(), best) - lengths.begin();
    if (known == ssize(lengths)) continue;
    SizeSearch search(lengths, with, cp);
    const int64_t at = search.run(known);
    result.tried += search.tried();
    if (at >= known) best = lengths[static_cast<size_t>(at)];
    const std::optional<FitCandidate> missed = search.missed();
    if (missed && (at >= known || best == 0))
      result.binding = missed_text(
          *missed, fmt::format("{} tokens", with_commas(lengths[static_cast<size_t>(at + 1)])));
  }
  if (best == 0) return result;
  if (best == longest)
    result.binding = has_table ? "the table of positions: it has no more"
                               : "nothing: the longest that was tried fits";
  PlanPricer pricer(with(best));
  keep_quickest(result, pricer, question.count, static_cast<double>(best));
  return result;
}

FitResult largest_batch(const RunQuestion& question) {
  std::vector<int64_t> sizes;
  if (question.global_batch > 0) {
    sizes = divisors_of(question.global_batch);
  } else {
    for (int64_t size = 1; size <= kMostSequences; ++size) sizes.push_back(size);
  }
  const auto with = [&](int64_t size) {
    RunQuestion q = question;
    q.micro_batch = size;
    return q;
  };
  FitResult result;
  result.step = question.global_batch > 0 ? "divisors of the global batch" : "one sequence";
  SizeSearch search(sizes, with, 0);
  const int64_t at = search.run(0);
  const std::optional<FitCandidate> missed = search.missed();
  result.tried = search.tried();
  if (at + 1 == ssize(sizes)) {
    result.binding = question.global_batch > 0 ? "the global batch: it has no more sequences"
                                               : "nothing: the largest that was tried fits";
  } else if (missed) {
    result.binding =
        missed_text(*missed, fmt::format("{} sequences", sizes[static_cast<size_t>(at + 1)]));
  } else {
    result.binding = "the global batch: no layout divides it";
  }
  if (at < 0) return result;
  PlanPricer pricer(with(sizes[static_cast<size_t>(at)]));
  keep_quickest(result, pricer, question.count,
                static_cast<double>(sizes[static_cast<size_t>(at)]));
  return result;
}

}  // namespace brrr::plan
