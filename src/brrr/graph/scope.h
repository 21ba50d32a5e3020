// Names on a trace: while a Scope lives, the nodes that its thread traces carry its name, joined with
// those of the scopes around it: "h.0.attn.c_attn". Backward nodes have the scope of the forward node
// that they differentiate. Outside a trace a Scope does nothing.
#pragma once

#include <string_view>

namespace brrr::graph {

class Tracer;

class Scope {
 public:
  explicit Scope(std::string_view name);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  Tracer* tracer_;
  std::string_view outer_;
};

// The same text for as long as the program runs, once for equal names: nodes hold views of it.
std::string_view keep_scope_name(std::string_view name);
// What nodes traced now would carry; empty outside a trace.
std::string_view current_scope();

}  // namespace brrr::graph
