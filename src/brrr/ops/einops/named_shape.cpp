#include "brrr/ops/einops/named_shape.h"

#include "brrr/base/error.h"
#include "brrr/ops/einops/einops_parse.h"

namespace brrr {
namespace {

std::string fault_text(SpecFault fault) {
  switch (fault) {
    case SpecFault::character:
      return "a shape is written with names, numbers, '_' and '...', parted by spaces";
    case SpecFault::dot: return "a single dot; any number of axes is '...'";
    case SpecFault::second_dots: return "'...' may stand once";
    case SpecFault::number: return "not a number (too large, or a name that begins with a digit)";
    case SpecFault::too_many: return join_text("a tensor has at most ", kMaxRank, " axes");
    case SpecFault::none: break;
  }
  return "";
}

TextRange range_of(const SpecTerm& term) { return {term.position, term.length}; }

void require_rank(const Tensor& x, const ShapeSpec& parsed, std::string_view spec) {
  const bool dots = parsed.dots >= 0;
  const int named = parsed.count - (dots ? 1 : 0);
  if (dots ? x.rank() >= named : x.rank() == named) return;
  fail_at("shape check", spec, {0, spec.size()},
          join_text(to_text(x.type()), " has ", x.rank(), " axes, and ", dots ? "at least " : "",
                    named, named == 1 ? " is" : " are", " expected"));
}

}  // namespace

std::string_view ShapeNames::name_of(const Binding& binding) const {
  return std::string_view(seen_[binding.seen].spec).substr(binding.position, binding.length);
}

void ShapeNames::bind_name(const SpecTerm& term, int64_t size) {
  const Seen& here = seen_.back();
  const std::string_view name = std::string_view(here.spec).substr(term.position, term.length);
  for (const Binding& binding : bindings_) {
    if (name_of(binding) != name) continue;
    if (binding.size == size) return;
    const Seen& before = seen_[binding.seen];
    const bool same_tensor = binding.seen + 1 == seen_.size();
    fail_at("shape check", here.spec, range_of(term),
            join_text('"', name, "\" is ", size, " in ", to_text(here.type), " as \"", here.spec,
                      "\", and ", binding.size,
                      same_tensor
                          ? std::string(" before in the same shape")
                          : join_text(" in ", to_text(before.type), " as \"", before.spec, '"')));
  }
  bindings_.push_back({seen_.size() - 1, term.position, term.length, size});
}

void ShapeNames::check_and_bind(const Tensor& x, const ShapeSpec& parsed, std::string_view spec) {
  if (parsed.fault != SpecFault::none)
    fail_at("shape check", spec, {parsed.fault_position, 1}, fault_text(parsed.fault));
  require_rank(x, parsed, spec);
  const size_t bound_before = bindings_.size();
  seen_.push_back({x.type(), std::string(spec)});
  try {
    int axis = 0;
    for (int i = 0; i < parsed.count; ++i) {
      const SpecTerm& term = parsed.terms[static_cast<size_t>(i)];
      if (term.kind == SpecTerm::Kind::dots) {
        axis += x.rank() - (parsed.count - 1);
        continue;
      }
      const int64_t size = x.shape()[axis++];
      if (term.kind == SpecTerm::Kind::name) bind_name(term, size);
      if (term.kind == SpecTerm::Kind::size && term.size != size)
        fail_at("shape check", spec, range_of(term),
                join_text(to_text(x.type()), " has ", size, " where ", term.size, " is expected"));
    }
  } catch (const Error&) {  // a tensor that does not fit leaves no trace
    bindings_.resize(bound_before);
    seen_.pop_back();
    throw;
  }
}

}  // namespace brrr
