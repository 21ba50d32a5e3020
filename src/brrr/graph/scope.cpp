#include "brrr/graph/scope.h"

#include <mutex>
#include <set>

#include "brrr/graph/trace.h"

namespace brrr::graph {

std::string_view keep_scope_name(std::string_view name) {
  static std::mutex mutex;
  static std::set<std::string, std::less<>> names;
  std::lock_guard lock(mutex);
  return *names.emplace(name).first;
}

std::string_view current_scope() {
  const Tracer* tracer = Tracer::current();
  return tracer ? tracer->scope() : std::string_view();
}

Scope::Scope(std::string_view name) : tracer_(name.empty() ? nullptr : Tracer::current()) {
  if (!tracer_) return;
  outer_ = tracer_->scope();
  tracer_->set_scope(
      keep_scope_name(outer_.empty() ? std::string(name) : join_text(outer_, ".", name)));
}

Scope::~Scope() {
  if (tracer_) tracer_->set_scope(outer_);
}

}  // namespace brrr::graph
