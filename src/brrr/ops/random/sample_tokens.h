// The next token of every row, drawn where the logits are: on a GPU only ids travel to the host.
#pragma once

#include "brrr/kernels/scalar/sampling.h"
#include "brrr/tensor/tensor.h"

namespace brrr {

// The options as operands, so that one compiled program serves all of them. On the cpu.
// temperature, top_p, min_p, repetition_penalty: f64 [4]. Numbers outside their range act as its end.
Tensor draw_settings(const SamplingOptions& options);
// seed, sample, position, top_k of each row: i64 [rows, 4].
Tensor draw_keys(const SamplingOptions& options, std::span<const DrawPlace> places);

struct DrawnTokens {
  Tensor ids;     // i64 [rows]; 0 where none can be drawn
  Tensor status;  // i64 [rows], for check_logits
};
// logits [rows, vocab] in f32, bf16 or f16. `seen`, bool [rows, vocab], says which tokens the penalty is for;
// undefined: there is none.
//
// Tokens are those of sample_token. The GPU weighs tokens in multiples of 2^-44 of the largest weight (for
// 150,000 tokens; finer for fewer), so its sums are exact and the same in any order; the cpu sums f64. Both
// round e^x, each in its way. So they differ where the random number, or the share of top_p, falls within about
// 1e-11 of the edge between two tokens: once in millions of draws.
DrawnTokens draw_tokens(const Tensor& logits, const Tensor& settings, const Tensor& keys,
                        const Tensor& seen = {});

}  // namespace brrr
