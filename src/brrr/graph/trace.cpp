#include "brrr/graph/trace.h"

#include <utility>

#include "brrr/graph/basic_ops.h"

namespace brrr::graph {
namespace {

constinit thread_local Tracer* innermost = nullptr;

Attrs layout_attrs(const Layout& layout) {
  return {{"shape", layout.shape}, {"strides", layout.strides}, {"offset", layout.offset}};
}

}  // namespace

Tracer::Tracer() {
  check(!innermost, "compile: a traced function cannot compile another one; call it directly");
  innermost = this;
  frames_.emplace_back();
}
Tracer::~Tracer() { innermost = nullptr; }
Tracer* Tracer::current() { return innermost; }

NodeId Tracer::add_node(const OpDef& op, const Attrs& attrs, const ValueIds& inputs,
                        std::span<const TensorType> types) {
  const NodeId id = graph().add_node(op, attrs, inputs, types, phase_, scope_);
  if (phase_ == Phase::forward) graph().nodes.back().segment = frame().segment;
  return id;
}

void Tracer::enter_segment(std::string name, bool checkpoint) {
  graph().segments.push_back(
      {.name = std::move(name), .parent = frame().segment, .checkpoint = checkpoint});
  frame().segment = SegmentId(graph().segments.size() - 1);
}
void Tracer::leave_segment() { frame().segment = graph().segments[frame().segment.index()].parent; }

SegmentScope::SegmentScope(std::string name, bool checkpoint) : tracer_(Tracer::current()) {
  if (tracer_) tracer_->enter_segment(std::move(name), checkpoint);
}
SegmentScope::~SegmentScope() {
  if (tracer_) tracer_->leave_segment();
}

Tensor Tracer::make_handle(const TensorType& type, Device device, ValueId value) {
  auto body = make_ref<TensorBody>();
  body->layout = contiguous_layout(type.shape);
  body->dtype = type.dtype;
  body->weak = type.weak;
  body->storage = Storage::traced(device, storage_bytes(type.dtype, numel(type.shape)));
  add_base(body->storage, value, body->layout, frames_.size() - 1);
  return Tensor(std::move(body));
}

Tracer::Base& Tracer::add_base(Ref<Storage> storage, ValueId value, const Layout& layout,
                               size_t depth) {
  const Storage* key = storage.get();
  return frames_[depth].bases[key] = {
             .storage = std::move(storage), .value = value, .layout = layout, .views = {}};
}

ValueId Tracer::add_one(const OpDef& op, const Attrs& attrs, const ValueIds& inputs,
                        const TensorType& type) {
  const NodeId node = add_node(op, attrs, inputs, {&type, 1});
  return graph().node(node).outputs[0];
}

Tensor Tracer::add_input(const TensorType& type, Device device, std::string name) {
  const ValueId value = graph().add_value(type);
  graph().inputs.push_back({std::move(name), value});
  frame().given.push_back(make_handle(type, device, value));
  return frame().given.back();
}

// A tensor that fills its storage gives the state its shape; a view of a larger one makes it a plain row
// of elements.
Tracer::Base& Tracer::add_state(const Tensor& x) {
  check(!x.storage().is_traced(), "this tensor (", describe(x),
        ") belongs to a trace that has ended, or to the body of a repeat; ",
        "return it from the compiled function, or from the body, instead");
  const bool whole =
      x.offset() == 0 && x.is_contiguous() && x.storage().bytes() == x.bytes().value();
  const int64_t elements = x.storage().bytes() * 8 / bit_size(x.dtype());
  const TensorType type{.shape = whole ? x.shape() : Shape{elements},
                        .dtype = x.dtype(),
                        .weak = whole && x.body().weak};
  const Layout layout = contiguous_layout(type.shape);
  Graph& program = frames_.front().graph;
  const ValueId value = program.add_value(type);
  Base& base = add_base(x.body().storage, value, layout, 0);
  base.state = static_cast<int>(program.states.size());
  program.states.push_back({.name = join_text("state ", program.states.size()),
                            .before = value,
                            .after = value,
                            .tensor = make_view(x, layout)});
  return base;
}

// Gives a body the whole storage that x is a view of.
Tracer::Base& Tracer::capture(const Tensor& x, size_t depth) {
  const Base& outside = base_of(x, depth - 1);
  const ValueId value =
      frames_[depth].graph.add_value(frames_[depth - 1].graph.type(outside.value));
  Base& base = add_base(outside.storage, value, outside.layout, depth);
  base.state = outside.state;
  base.entry = value;
  frames_[depth].captured.push_back(outside.storage.get());
  return base;
}

Tracer::Base& Tracer::base_of(const Tensor& x, size_t depth) {
  std::unordered_map<const Storage*, Base>& bases = frames_[depth].bases;
  const auto found = bases.find(&x.storage());
  if (found != bases.end()) return found->second;
  return depth == 0 ? add_state(x) : capture(x, depth);
}

void Tracer::name_state(const Tensor& x, std::string name) {
  const Base& base = base_of(x, 0);
  if (base.state >= 0)
    frames_.front().graph.states[static_cast<size_t>(base.state)].name = std::move(name);
}

ValueId Tracer::value_of(const Tensor& x) {
  Base& base = base_of(x);
  if (x.layout() == base.layout) return base.value;
  for (const DerivedView& view : base.views) {
    if (view.layout == x.layout()) return view.value;
  }
  const TensorType type{.shape = x.shape(), .dtype = x.dtype(), .weak = x.body().weak};
  const ValueId value =
      add_one(basic_ops().strided_view, layout_attrs(x.layout()), {base.value}, type);
  base.views.push_back({x.layout(), value});
  return value;
}

Tensors Tracer::record(const OpDef& op, std::span<const Tensor> inputs, const Attrs& attrs,
                       std::span<const TensorType> types, Device device) {
  ValueIds ids;
  for (const Tensor& input : inputs) ids.push_back(value_of(input));
  const NodeId node = add_node(op, attrs, ids, types);
  Tensors outputs;
  for (size_t i = 0; i < types.size(); ++i) {
    const ValueId value = graph().node(node).outputs[static_cast<int>(i)];
    outputs.push_back(make_handle(types[i], device, value));
  }
  return outputs;
}

Tensor Tracer::record_view(const OpDef& op, const Tensor& input, const Attrs& attrs) {
  Tensor view = make_view(input, op.view(input.layout(), attrs));
  const ValueId source = value_of(input);
  Base& base = base_of(input);
  if (view.layout() == base.layout) return view;  // back at the whole: no node needed
  const TensorType type = view.type();
  const NodeId node = add_node(op, attrs, {source}, {&type, 1});
  base.views.push_back({view.layout(), graph().node(node).outputs[0]});
  return view;
}

void Tracer::set_value(Base& base, ValueId value) {
  base.value = value;
  base.views.clear();
  // In a body the state is written when the repeat ends.
  if (base.state >= 0 && frames_.size() == 1)
    graph().states[static_cast<size_t>(base.state)].after = value;
}

void Tracer::record_write(const OpDef& op, std::span<const Tensor> inputs, const Attrs& attrs,
                          const TensorType& type, const Tensor& target) {
  ValueIds ids;
  for (const Tensor& input : inputs) ids.push_back(value_of(input));
  ValueId value;
  const bool plain_copy = op.role == OpRole::copy && type.shape == target.shape() &&
                          inputs[0].layout() == base_of(inputs[0]).layout;
  if (plain_copy) {
    value = ids[0];  // a functional graph needs no copy to give a value another name
  } else {
    value = graph().node(add_node(op, attrs, ids, {&type, 1})).outputs[0];
  }
  if (type.dtype != target.dtype()) {
    const TensorType stored{.shape = type.shape, .dtype = target.dtype()};
    value = add_one(basic_ops().cast, {{"dtype", target.dtype()}}, {value}, stored);
  }
  Base& base = base_of(target);
  if (target.layout() != base.layout) {
    const TensorType whole = graph().type(base.value);
    value =
        add_one(basic_ops().update_view, layout_attrs(target.layout()), {base.value, value}, whole);
  }
  set_value(base, value);
}

Graph Tracer::finish(std::span<const Tensor> outputs) {
  invariant(frames_.size() == 1, "a trace ended inside the body of a repeat");
  require_read_only(frame(), "the compiled function");
  for (const Tensor& output : outputs) graph().outputs.push_back(value_of(output));
  for (const StateName& use : state_names_) {
    const std::string& name = graph().states[static_cast<size_t>(use.state)].name;
    (use.is_state ? use.body->states[use.position].name : use.body->inputs[use.position].name) =
        name;
  }
  return std::move(graph());
}

}  // namespace brrr::graph
