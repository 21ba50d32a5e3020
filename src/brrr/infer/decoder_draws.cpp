// Draws of a decoder: the program for one token ends in draw_tokens and begins with what the last one drew.
#include <algorithm>

#include "brrr/infer/decoder.h"
#include "brrr/ops/create/copy.h"
#include "brrr/ops/create/creation.h"
#include "brrr/ops/elementwise/binary.h"
#include "brrr/ops/random/sample_tokens.h"
#include "brrr/ops/view/views.h"

namespace brrr::infer {
void Decoder::begin_draws(const SamplingOptions& sampling, const Rows& seen) {
  check_sampling(sampling);
  NoGrad inference;
  CategoryScope scope(Category::workspace);
  draws_.sampling = sampling;
  if (!draws_.drawn.defined())
    draws_.drawn = zeros({options_.batch}, {.dtype = DType::i64, .device = device()});
  if (!draws_.is_penalized()) return;
  const Shape shape{options_.batch, model_.vocab()};
  const Tensor flags = zeros(shape, {.dtype = DType::boolean, .device = Device::cpu()});
  for (size_t row = 0; row < seen.size(); ++row) {
    for (int32_t token : seen[row]) {
      if (token >= 0 && token < model_.vocab())
        flags.data<bool>()[static_cast<int64_t>(row) * model_.vocab() + token] = true;
    }
  }
  if (!draws_.seen.defined())
    draws_.seen = zeros(shape, {.dtype = DType::boolean, .device = device()});
  draws_.seen.copy_from(to(flags, device()));
}

void Decoder::note_drawn(const Tensor& ids, bool is_penalized) const {
  draws_.drawn.copy_from(ids);
  if (!is_penalized) return;
  const Tensor all = arange(0, static_cast<double>(model_.vocab()), 1,
                            {.dtype = DType::i64, .device = ids.device()});
  draws_.seen.copy_from(logical_or(draws_.seen, equal(all, unsqueeze(ids, 1))));
}

// starts [batch], counts [batch], settings [4], keys [batch, 4] -> ids [batch], status [batch]
Tensors Decoder::trace_draw(std::span<const Tensor> inputs, bool is_penalized) const {
  NoGrad inference;
  const Tensor logits = last_logits(unsqueeze(draws_.drawn, 1), inputs[0], inputs[1]);
  const DrawnTokens drawn =
      draw_tokens(logits, inputs[2], inputs[3], is_penalized ? draws_.seen : Tensor());
  note_drawn(drawn.ids, is_penalized);
  return {drawn.ids, drawn.status};
}

runtime::PendingResults Decoder::draw(const Rows& tokens, std::span<const DrawPlace> places) {
  NoGrad inference;
  check(draws_.drawn.defined(), "decoder: begin_draws says how to draw; call it first");
  require_room(tokens);
  std::vector<int64_t> last;
  std::vector<bool> has_one;
  for (const std::vector<int32_t>& row : tokens) {
    last.push_back(row.empty() ? 0 : row.back());
    has_one.push_back(row.size() == 1);
  }
  const bool is_single =
      std::all_of(tokens.begin(), tokens.end(), [](const auto& row) { return row.size() <= 1; });
  if (is_single && uses_cache()) {
    draws_.drawn.copy_from(to(numbers(last), device()));
    return draw_next(has_one, places);
  }
  const Tensor logits = feed_to(device(), tokens);
  const Tensor settings = to(draw_settings(draws_.sampling), device()),
               keys = to(draw_keys(draws_.sampling, places), device());
  const DrawnTokens drawn =
      draw_tokens(logits, settings, keys, draws_.is_penalized() ? draws_.seen : Tensor());
  note_drawn(drawn.ids, draws_.is_penalized());
  return runtime::PendingResults(Tensors{drawn.ids, drawn.status});
}

runtime::PendingResults Decoder::draw_next(const std::vector<bool>& goes_on,
                                           std::span<const DrawPlace> places) {
  check(uses_cache(), "decoder: the model keeps nothing of earlier tokens; feed them to draw");
  check(draws_.drawn.defined(), "decoder: begin_draws says how to draw; call it first");
  std::vector<int64_t> counts(lengths_.size(), 0);
  for (size_t row = 0; row < counts.size(); ++row) {
    counts[row] = goes_on[row] ? 1 : 0;
    check(lengths_[row] + counts[row] <= capacity(), "decoder: row ", row, " has ", capacity(),
          " tokens, as many as the context; begin again with fewer");
  }
  const Tensor inputs[] = {numbers(lengths_), numbers(counts), draw_settings(draws_.sampling),
                           draw_keys(draws_.sampling, places)};
  runtime::PendingResults drawn =
      (draws_.is_penalized() ? penalized_program_ : draw_program_).enqueue(inputs);
  for (size_t row = 0; row < counts.size(); ++row) lengths_[row] += counts[row];
  return drawn;
}

}  // namespace brrr::infer
