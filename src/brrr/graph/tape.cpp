#include "brrr/graph/tape.h"

#include <algorithm>
#include <atomic>

#include "brrr/graph/scope.h"

namespace brrr::graph {
namespace {

constinit std::atomic<uint64_t> sequence_counter{0};
constinit thread_local GradWatch* innermost_watch = nullptr;

uint64_t take_sequence() { return sequence_counter.fetch_add(1, std::memory_order_relaxed); }

bool has_bit(uint32_t bits, int i) { return i >= 32 || (bits >> i & 1U) != 0; }

// Releases a chain of records without recursion: a loop of 100,000 steps would overflow the stack.
void release_iteratively(std::vector<Ref<GradSource>>& sources) {
  static thread_local std::vector<Ref<GradSource>> pending;
  static thread_local bool draining = false;
  for (Ref<GradSource>& source : sources) pending.push_back(std::move(source));
  if (draining) return;
  draining = true;
  while (!pending.empty()) {
    Ref<GradSource> next = std::move(pending.back());
    pending.pop_back();
  }
  draining = false;
}

[[noreturn]] void fail_written(const OpDef& op, std::string_view role, int i,
                               const TensorType& type) {
  fail("backward: ", role, " ", i, " of ", op.name, " (", type,
       ") was written to after the op ran, and its gradient needs the old value; ",
       "copy it with clone() before the write, or write after backward()");
}

}  // namespace

uint64_t next_sequence() { return sequence_counter.load(std::memory_order_relaxed); }

GradWatch::GradWatch() : outer_(std::exchange(innermost_watch, this)) {}
GradWatch::~GradWatch() { innermost_watch = outer_; }
GradWatch* GradWatch::current() { return innermost_watch; }

void GradWatch::see(std::span<const Tensor> inputs) {
  for (const Tensor& x : inputs) {
    const auto is_same = [&](const Tensor& other) { return key_of(other) == key_of(x); };
    if (x.requires_grad() && std::none_of(seen_.begin(), seen_.end(), is_same)) seen_.push_back(x);
  }
  if (outer_) outer_->see(inputs);
}

ValueKey key_of(const Tensor& x) {
  const TensorBody& body = x.body();
  if (body.source) return {.source = body.source.get(), .output = body.source_output};
  return {.slot = body.grad_slot.get()};
}

TapeRecord::TapeRecord(const OpDef& op, std::span<const Tensor> inputs, const Attrs& attrs)
    : op_(&op), attrs_(attrs), scope_(current_scope()), sequence_(take_sequence()) {
  inputs_.reserve(static_cast<int>(inputs.size()));
  for (const Tensor& input : inputs) {
    const TensorBody& body = input.body();
    SavedInput saved{.type = input.type(),
                     .source = body.source,
                     .source_output = body.source_output,
                     .slot = body.grad_slot};
    if (has_bit(op.grad_reads.inputs, inputs_.size())) {
      saved.value = input;
      if (body.storage) saved.version = body.storage->version();
    }
    inputs_.push_back(std::move(saved));
  }
}

void TapeRecord::attach_outputs(std::span<Tensor> outputs) {
  for (Tensor& output : outputs) {
    TensorBody& body = output.body();
    SavedOutput saved{.type = output.type(), .layout = body.layout};
    if (body.storage && has_bit(op_->grad_reads.outputs, outputs_.size())) {
      saved.storage = body.storage;
      saved.version = body.storage->version();
    }
    if (is_float(body.dtype)) {  // indices and masks beside a float result have no gradient
      body.source = Ref<GradSource>(this);
      body.source_output = outputs_.size();
    }
    outputs_.push_back(std::move(saved));
  }
}

TapeRecord::~TapeRecord() { free_saved(); }

TapeRecord* TapeRecord::input_source(int i) const {
  return static_cast<TapeRecord*>(inputs_[i].source.get());
}

void TapeRecord::keep_output_grad(int output, Ref<GradSlot> slot) {
  outputs_[output].slot = std::move(slot);
}

void TapeRecord::check_unwritten() const {
  for (int i = 0; i < inputs_.size(); ++i) {
    const SavedInput& saved = inputs_[i];
    const bool kept = saved.value.defined() && saved.value.body().storage;
    if (kept && saved.value.storage().version() != saved.version)
      fail_written(*op_, "input", i, saved.type);
  }
  for (int i = 0; i < outputs_.size(); ++i) {
    const SavedOutput& saved = outputs_[i];
    if (saved.storage && saved.storage->version() != saved.version)
      fail_written(*op_, "output", i, saved.type);
  }
}

Tensor TapeRecord::input(int i) const {
  const SavedInput& saved = inputs_[i];
  if (saved.value.defined()) return saved.value;
  Tensor husk = make_husk(saved.type);
  husk.body().source = saved.source;
  husk.body().source_output = saved.source_output;
  husk.body().grad_slot = saved.slot;
  return husk;
}

Tensor TapeRecord::output(int i) {
  const SavedOutput& saved = outputs_[i];
  Tensor again = make_husk(saved.type);
  again.body().layout = saved.layout;
  again.body().storage = saved.storage;
  again.body().source = Ref<GradSource>(this);
  again.body().source_output = i;
  again.body().grad_slot = saved.slot;
  return again;
}

void TapeRecord::free_saved() {
  freed_ = true;
  std::vector<Ref<GradSource>> sources;
  for (SavedInput& saved : inputs_) {
    if (saved.source) sources.push_back(std::move(saved.source));
    // The value holds its source too: take that over, or dropping the value would recurse.
    if (saved.value.defined() && saved.value.body_ref()->is_unique() && saved.value.body().source) {
      sources.push_back(std::move(saved.value.body().source));
    }
    saved = SavedInput{.type = saved.type};
  }
  for (SavedOutput& saved : outputs_) saved.storage = {};
  rule_ = nullptr;
  if (!sources.empty()) release_iteratively(sources);
}

}  // namespace brrr::graph
