// The part of the tracer that opens and closes the bodies of repeats.
#include "brrr/graph/repeat.h"
#include "brrr/graph/trace.h"

namespace brrr::graph {

Tracer::RepeatHandles Tracer::begin_repeat(const Tensor& count, std::span<const Tensor> sliced) {
  const TensorType index{.shape = {}, .dtype = DType::i64};
  check(count.shape().empty() && count.dtype() == DType::i64,
        "repeat: the count must be one i64 without axes, not ", describe(count));
  for (const Tensor& x : sliced) {
    check(x.rank() > 0, "repeat: ", describe(x), " has no first axis to take slices of");
    check(x.dim(0) == sliced[0].dim(0), "repeat: ", describe(sliced[0]), " and ", describe(x),
          " have different numbers of slices along their first axis");
    check(!is_packed(x.dtype()), "repeat: ", describe(x), " is packed for storage; cast it first");
    value_of(x);  // before the body opens: its views belong outside
  }
  value_of(count);
  frames_.emplace_back();
  frame().count = count;
  RepeatHandles handles{.index = add_input(index, count.device(), "index"), .slices = {}};
  for (const Tensor& x : sliced) {
    TensorType slice{.shape = x.shape(), .dtype = x.dtype()};
    slice.shape.erase(0);
    handles.slices.push_back(
        add_input(slice, x.device(), join_text("slice ", handles.slices.size())));
    frame().sliced.push_back(x);
  }
  phase_ = Phase::forward;
  return handles;
}

Tensor Tracer::add_sum(const TensorType& type) {
  invariant(frames_.size() > 1, "a sum belongs to the body of a repeat");
  const ValueId value = graph().add_value(type);
  frame().sums.push_back(make_handle(type, frame().count.device(), value));
  graph().states.push_back(
      {.name = join_text("sum ", graph().states.size()), .before = value, .after = value});
  return frame().sums.back();
}

// The number itself where it is known, else as many as there are slices.
int64_t Tracer::largest_count(const Frame& body) {
  const ValueId count = value_of(body.count);
  const int64_t slices = body.sliced.empty() ? 0 : body.sliced[0].dim(0);
  if (const NodeId maker = graph().value(count).node; maker.valid()) {
    const Node& node = graph().node(maker);
    check(is_constant(*node.op), "repeat: the count must be known before the program starts; ",
          "pass it as an input of the compiled function, or as a number");
    const int64_t value = node.op->role == OpRole::full
                              ? static_cast<int64_t>(node.attrs.number("value"))
                              : node.attrs.integer("value");
    check(value >= 0 && (body.sliced.empty() || value <= slices), "repeat: ", value,
          " iterations, and there are ", slices, " slices");
    return body.sliced.empty() ? value : slices;
  }
  for (const StateSlot& state : graph().states) {
    check(state.before != count,
          "repeat: the count is a tensor that the function holds; pass it as an input instead");
  }
  check(!body.sliced.empty(),
        "repeat: with a count that is an input, give at least one tensor to take slices of: ",
        "the length of its first axis is the largest count");
  return slices;
}

// Outside a trace the caller would see such a write. A program has no way to tell him, and a body has the
// slice only, not the whole that it shows.
void Tracer::require_read_only(const Frame& frame, std::string_view who) {
  for (size_t i = 0; i < frame.given.size(); ++i) {
    check(frame.bases.at(&frame.given[i].storage()).value == frame.graph.inputs[i].value, who,
          " writes to its \"", frame.graph.inputs[i].name,
          "\", which is given anew at every call; clone() it first, or let the function hold the "
          "tensor");
  }
  for (const Tensor& x : frame.sliced) {
    const auto found = frame.bases.find(&x.storage());
    check(found == frame.bases.end() || found->second.value == found->second.entry, who,
          " writes to ", describe(x), ", which it takes slices of");
  }
}

std::vector<Tensor> Tracer::end_repeat() {
  invariant(frames_.size() > 1, "there is no repeat to end");
  require_read_only(frame(), "the body of a repeat");
  Frame inner = std::move(frames_.back());
  frames_.pop_back();
  const size_t depth = frames_.size() - 1;
  auto body = std::make_shared<Graph>(std::move(inner.graph));
  RepeatNode parts{.sliced = static_cast<int>(inner.sliced.size()),
                   .sums = static_cast<int>(inner.sums.size()),
                   .most = largest_count(inner)};
  for (int s = 0; s < parts.sums; ++s) {
    const Tensor& sum = inner.sums[static_cast<size_t>(s)];
    body->states[static_cast<size_t>(s)].after = inner.bases.at(&sum.storage()).value;
  }

  ValueIds operands{value_of(inner.count)}, initial;
  for (const Tensor& x : inner.sliced) operands.push_back(value_of(x));
  std::vector<const Storage*> written;
  for (const Storage* storage : inner.captured) {
    const Base& base = inner.bases.at(storage);
    const Base& outside = frames_[depth].bases.at(storage);
    const bool is_written = base.value != base.entry;
    const std::string name = join_text(is_written ? "carried " : "captured ", base.entry.value);
    const size_t position = is_written ? body->states.size() : body->inputs.size();
    if (base.state >= 0) state_names_.push_back({body, is_written, position, base.state});
    if (is_written) {
      body->states.push_back({.name = name, .before = base.entry, .after = base.value});
      initial.push_back(outside.value);
      written.push_back(storage);
    } else {
      body->inputs.push_back({name, base.entry});
      operands.push_back(outside.value);
      ++parts.captured;
    }
  }
  for (ValueId id : initial) operands.push_back(id);
  parts.initial = initial.size();
  check(parts.states() > 0, "repeat: the body returns nothing and writes nothing");

  std::vector<TensorType> types;
  for (const StateSlot& state : body->states) types.push_back(body->type(state.before));
  const NodeId node = graph().add_node(repeat_op, repeat_attrs(parts), operands, types,
                                       Phase::forward, scope_, body);
  const auto result = [&](size_t s) { return graph().node(node).outputs[static_cast<int>(s)]; };
  std::vector<Tensor> sums;
  for (size_t s = 0; s < inner.sums.size(); ++s)
    sums.push_back(make_handle(types[s], inner.count.device(), result(s)));
  for (size_t w = 0; w < written.size(); ++w)
    set_value(frames_[depth].bases.at(written[w]), result(inner.sums.size() + w));
  return sums;
}

void Tracer::abandon_repeat() noexcept {
  if (frames_.size() > 1) frames_.pop_back();
}

}  // namespace brrr::graph
