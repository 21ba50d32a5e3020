#include "brrr/kernels/calls/cross_entropy_options.h"

namespace brrr {

Attrs to_attrs(const CrossEntropyOptions& options) {
  Attrs attrs;
  if (options.ignore_index) attrs.add({"ignore_index", *options.ignore_index});
  if (options.label_smoothing != 0) attrs.add({"label_smoothing", options.label_smoothing});
  if (options.soft_cap != 0) attrs.add({"soft_cap", options.soft_cap});
  if (options.z_loss != 0) attrs.add({"z_loss", options.z_loss});
  if (options.classes != 0) attrs.add({"classes", options.classes});
  return attrs;
}

CrossEntropyOptions options_of(const Attrs& attrs) {
  const auto number = [&](std::string_view name) {
    return attrs.has(name) ? attrs.number(name) : 0;
  };
  CrossEntropyOptions options{.ignore_index = {},
                              .label_smoothing = number("label_smoothing"),
                              .soft_cap = number("soft_cap"),
                              .z_loss = number("z_loss")};
  if (attrs.has("ignore_index")) options.ignore_index = attrs.integer("ignore_index");
  if (attrs.has("classes")) options.classes = attrs.integer("classes");
  return options;
}

}  // namespace brrr
