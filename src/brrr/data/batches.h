// Batches of windows over tokens. Any step's batch is a pure function of (seed, step): the step number is
// the whole position in the data, so a resumed run goes on with exactly the rows that would have come.
//
// A window is `context` tokens and, one place on, their targets; windows lie beside each other without
// overlap, and an epoch of a source uses each of them once, in an order of its own. They are cut evenly,
// or so that they hold whole documents: then no text lacks its beginning, and what a row has left over
// is filled up with targets that cross_entropy leaves out.
//
//   Batches batches({{.tokens = open_tokens("corpus")}}, {.batch = 12, .context = 256, .seed = 1});
//   Batch batch = batches.at(step);
//   attention(q, k, v, {.causal = true, .documents = batch.documents});
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "brrr/data/mixture.h"
#include "brrr/data/token_set.h"
#include "brrr/tensor/tensor.h"

namespace brrr {

// i64 tensors [rows, context].
struct Batch {
  int64_t step = 0;
  Tensor inputs, targets;
  Tensor
      documents;  // a number for each input, counted from 0 in each row; undefined when not wanted
};

struct BatchSource {
  TokenSet tokens;
  double weight = 1;
};

enum class WindowOrder : uint8_t {
  shuffled,       // epochs, each in an order of its own
  sequential,     // from front to end, and again: for evaluation
  random_starts,  // any start, with replacement; no epochs
};

enum class WindowCut : uint8_t {
  even,             // every `context` tokens, wherever that is in a document
  whole_documents,  // as many documents as fit; one that is longer than a row is cut evenly
};

// The target of places that are filled up: cross_entropy(logits, targets, {.ignore_index = kIgnoredTarget}).
inline constexpr int64_t kIgnoredTarget = -100;

struct BatchOptions {
  int64_t batch = 1;    // rows a step
  int64_t context = 1;  // tokens a row
  uint64_t seed = 0;
  WindowOrder order = WindowOrder::shuffled;
  WindowCut cut = WindowCut::even;
  bool documents = true;
  // Tokens outside [0, vocab_size) are refused, by file and position. 0: only negative ones.
  int64_t vocab_size = 0;
};

// Where a row comes from.
struct RowPlace {
  int source = 0;
  int64_t epoch = 0;
  const TokenRange* range = nullptr;
  int64_t first = 0;  // token of the file
  int64_t count = 0;  // tokens before the row is filled up
};

class Batches {
 public:
  Batches(std::vector<BatchSource> sources, const BatchOptions& options);

  Batch at(int64_t step) const { return rows(step, 0, options_.batch); }
  // Rows [first, first + count) of a step: one micro-batch, or the share of one process.
  Batch rows(int64_t step, int64_t first, int64_t count) const;
  RowPlace place(int64_t step, int64_t row) const;

  const BatchOptions& options() const { return options_; }
  int64_t windows(int source) const;

 private:
  struct Windows {
    TokenSet tokens;
    std::vector<int64_t> range_starts;  // the first window, or start, of each range; at the end all
    std::vector<std::vector<int64_t>>
        cuts;  // of whole documents: where each range's windows begin and end
  };
  struct RowView {
    std::span<int64_t> inputs, targets, documents;
  };
  int64_t add_windows(Windows& windows, const TokenRange& range) const;
  void read_row(const RowPlace& place, std::vector<int64_t>& scratch, const RowView& row) const;
  void check_tokens(const RowPlace& place, std::span<const int64_t> tokens) const;

  BatchOptions options_;
  std::vector<Windows> sources_;
  Mixture mixture_;
};

}  // namespace brrr
