// Recurrent networks with the equations and parameter names of PyTorch (weight_ih_l0, bias_hh_l1, ...).
// With a = W_ih x + b_ih and b = W_hh h + b_hh, cut into gates of the size of h:
//   rnn   h' = tanh(a + b)
//   gru   r, z = sigmoid(a + b);  n = tanh(a_n + r b_n);  h' = (1 - z) n + z h        (order r, z, n)
//   lstm  i, f, o = sigmoid(a + b);  g = tanh(a + b);  c' = f c + i g;  h' = o tanh(c')  (i, f, g, o)
// The products with all inputs of a sequence are one; only those with h go step by step.
#pragma once

#include "brrr/nn/layers.h"

namespace brrr {

enum class Cell : uint8_t { rnn, gru, lstm };
std::string_view cell_name(Cell cell);

struct RecurrentOptions {
  int64_t layers = 1;
  double dropout = 0;              // of what one layer passes to the next
  int64_t first_dropout_site = 0;  // layer l drops at this site + l
};

// What a sequence leaves behind, one tensor [batch, hidden] a layer; empty: zeros.
struct RecurrentState {
  std::vector<Tensor> hidden;
  std::vector<Tensor> cell;  // lstm only
};
struct RecurrentResult {
  Tensor output;  // [batch, seq, hidden]: the hidden states of the last layer
  RecurrentState state;
};

class Recurrent : public Module {
 public:
  Recurrent(Cell cell, int64_t in, int64_t hidden, Random& random,
            const RecurrentOptions& options = {});
  // x [batch, seq, in]. Where a new document begins in the sequence, the state starts at zero again. A
  // decoder's filling leaves the state as it is.
  RecurrentResult operator()(const Tensor& x, const RecurrentState& state = {},
                             const ForwardInputs& inputs = {}) const;
  RecurrentState make_state(int64_t batch, const TensorOptions& options) const;  // zeros
  // How many parameters one has.
  static int64_t count_for(Cell cell, int64_t in, int64_t hidden, int64_t layers);

 private:
  struct LayerWeights {
    Tensor w_ih, w_hh, b_ih, b_hh;
  };
  struct Step {
    Tensor hidden, cell;
  };
  Step step(const LayerWeights& weights, const Tensor& from_input, const Step& before) const;
  // Which steps go on from the state before them, and which leave it alone.
  struct Masks {
    Tensor same_document;  // [batch, seq - 1]: 1 where a token is of the document of the one before
    Tensor counts;         // i64 [batch, 1]: how many tokens of a row are no filling
  };
  static Masks masks_of(const Tensor& x, const ForwardInputs& inputs);
  Tensor run_layer(const LayerWeights& weights, const Tensor& x, const Masks& masks,
                   Step& state) const;

  Cell cell_;
  int64_t hidden_;
  std::vector<LayerWeights> layers_;
  std::vector<std::unique_ptr<Dropout>> dropouts_;
};

class Rnn : public Recurrent {
 public:
  Rnn(int64_t in, int64_t hidden, Random& random, const RecurrentOptions& options = {})
      : Recurrent(Cell::rnn, in, hidden, random, options) {}
};
class Gru : public Recurrent {
 public:
  Gru(int64_t in, int64_t hidden, Random& random, const RecurrentOptions& options = {})
      : Recurrent(Cell::gru, in, hidden, random, options) {}
};
class Lstm : public Recurrent {
 public:
  Lstm(int64_t in, int64_t hidden, Random& random, const RecurrentOptions& options = {})
      : Recurrent(Cell::lstm, in, hidden, random, options) {}
};

}  // namespace brrr
