// How far the matrix of the head is filled up inside the training program.
//
// A vocabulary of 50257 makes rows of logits that begin at odd addresses: in bf16 a row has 100514 bytes, and
// matrix units load 16 at a time, so cuBLASLt takes kernels that load element by element, and the loss reads
// them one by one as well. Tiles do not grow: 50257 columns are 393 tiles of 128, and so are 50304. Inside the
// step the matrix therefore gets rows of zeros up to a multiple, the loss leaves their logits out, and the
// gradient of the filling is dropped. Parameters, their counts, optimizer state, checkpoints and samples are
// those of the model; the same run may be resumed with another setting.
#pragma once

#include <string_view>

#include "brrr/compiler/target.h"

namespace brrr::compiler {

struct PadVocab {
  bool by_target = true;  // chosen for the target
  int64_t multiple = 1;   // 1: none
};
// "auto", "off" or a number from 1 on; throws Error on anything else.
PadVocab parse_pad_vocab(std::string_view setting);

// Rows of the head's matrix inside the program; `vocab` itself where nothing is filled up.
int64_t padded_vocab(int64_t vocab, std::string_view setting, const Target& target);

}  // namespace brrr::compiler
