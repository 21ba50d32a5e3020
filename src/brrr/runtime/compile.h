// compile(fn): traces fn once for every combination of input types, and runs the compiled program.
//
//   auto step = compile([&](Tensor tokens, Tensor targets) {
//     Tensor loss = model.loss(tokens, targets);
//     auto grads = grad(loss, parameters);
//     for (size_t i = 0; i < grads.size(); ++i)
//       parameters[i].copy_from(parameters[i] - 0.1 * grads[i]);
//     return loss;
//   });
//   Tensor loss = step(tokens, targets);
//
// Tensors that fn captures are states: the program reads them where they are, and writes into them. What
// changes from call to call besides them (rates, step numbers, keys of random numbers) is an input.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <vector>

#include "brrr/runtime/executable.h"

namespace brrr::runtime {

class CompiledFunction {
 public:
  using Function = std::function<Tensors(std::span<const Tensor>)>;
  CompiledFunction(Function function, const compiler::PipelineOptions& options);

  Tensors run(std::span<const Tensor> inputs);
  PendingResults enqueue(std::span<const Tensor> inputs);  // Executable::enqueue
  // The program for inputs like these; traced now if there is none yet.
  Executable& executable(std::span<const Tensor> inputs);
  int programs() const { return static_cast<int>(programs_.size()); }

 private:
  struct Program {
    std::vector<TensorType> types;
    std::optional<Device> device;  // of the inputs, where there are any
    std::unique_ptr<Executable> executable;
  };
  void add_program(std::span<const Tensor> inputs);
  Function function_;
  compiler::PipelineOptions options_;
  std::vector<Program> programs_;
};

namespace compile_detail {

template <typename Result>
Tensors as_tensors(Result&& result) {
  if constexpr (std::is_same_v<std::decay_t<Result>, Tensor>) {
    return {result};
  } else {
    Tensors all;
    for (const Tensor& x : result) all.push_back(x);
    return all;
  }
}

template <typename Signature>
struct Arity;
template <typename Class, typename Result, typename... Args>
struct Arity<Result (Class::*)(Args...) const> {
  using ResultType = Result;
  static constexpr size_t kCount = sizeof...(Args);
};
template <typename Class, typename Result, typename... Args>
struct Arity<Result (Class::*)(Args...)> : Arity<Result (Class::*)(Args...) const> {};

template <typename Fn>
struct FunctionArity : Arity<decltype(&Fn::operator())> {};
template <typename Result, typename... Args>
struct FunctionArity<Result (*)(Args...)> {
  using ResultType = Result;
  static constexpr size_t kCount = sizeof...(Args);
};

}  // namespace compile_detail

// How many tensors a function takes is read off its type: a function, or one operator() whose parameters
// have named types.
template <typename Fn>
concept NamesItsParameters = std::is_function_v<std::remove_pointer_t<Fn>> || requires {
  &Fn::operator();
};

// A compiled function of tensors that returns what `fn` returns: a tensor, several, or nothing.
template <typename Fn>
class Compiled {
  using Traits = compile_detail::FunctionArity<Fn>;
  using Result = typename Traits::ResultType;

 public:
  Compiled(Fn fn, const compiler::PipelineOptions& options)
      : function_(
            [fn = std::move(fn)](std::span<const Tensor> inputs) mutable {
              return call(fn, inputs, std::make_index_sequence<Traits::kCount>());
            },
            options) {}

  template <typename... Args>
  Result operator()(const Args&... args) {
    static_assert(sizeof...(Args) == Traits::kCount, "one tensor for each parameter");
    const std::array<Tensor, sizeof...(Args)> inputs{args...};
    Tensors results = function_.run(inputs);
    if constexpr (std::is_same_v<Result, Tensor>) return results[0];
    if constexpr (std::is_same_v<Result, Tensors>) return results;
    if constexpr (std::is_same_v<Result, std::vector<Tensor>>)
      return {results.begin(), results.end()};
  }
  CompiledFunction& function() { return function_; }

 private:
  template <size_t... I>
  static Tensors call(Fn& fn, std::span<const Tensor> inputs, std::index_sequence<I...>) {
    if constexpr (std::is_void_v<Result>) {
      fn(inputs[I]...);
      return {};
    } else {
      return compile_detail::as_tensors(fn(inputs[I]...));
    }
  }
  CompiledFunction function_;
};

template <typename Fn>
auto compile(Fn fn, const compiler::PipelineOptions& options = {}) {
  static_assert(
      NamesItsParameters<Fn>,
      "compile: write the parameters of the function as Tensor, as in "
      "compile([](Tensor x, Tensor y) { ... }); auto does not say how many tensors it takes");
  if constexpr (NamesItsParameters<Fn>) return Compiled<Fn>(std::move(fn), options);
}

}  // namespace brrr::runtime
