// How long compiling takes, pass by pass: the training step of GPT-2 with AdamW and clipping. Nothing is
// run and no arena is made; counters are milliseconds, those of verify apart.
#include <chrono>
#include <map>

#include "brrr/compiler/pipeline.h"
#include "brrr/graph/trace.h"
#include "harness.h"

namespace {

using namespace brrr;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

graph::Graph trace_step(const Gpt2& model, AdamW& optimizer) {
  graph::Tracer tracer;
  const TensorType ids{.shape = {4, 64}, .dtype = DType::i64};
  const Tensor tokens = tracer.add_input(ids, Device::cpu(), "tokens"),
               targets = tracer.add_input(ids, Device::cpu(), "targets"),
               rate = tracer.add_input({}, Device::cpu(), "rate");
  const Tensor loss = model.loss(tokens, targets);
  std::vector<Tensor> grads = grad(loss, optimizer.parameters());
  clip_global_norm(grads, 1.0);
  optimizer.update(grads, rate);
  const Tensor outputs[] = {loss.detach()};
  return tracer.finish(outputs);
}

void compile_step(benchmark::State& state, const Gpt2Config& config) {
  Random random(1);
  const Gpt2 model(config, random);
  AdamW optimizer(model.named_parameters());
  std::map<std::string, double> seconds;
  int64_t nodes = 0, kernels = 0;
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    graph::Graph graph = trace_step(model, optimizer);
    seconds["tracing"] += seconds_since(start);
    nodes = static_cast<int64_t>(graph.nodes.size());
    const compiler::CompiledProgram program =
        compiler::run_pipeline(std::move(graph), {}, thread_pool());
    kernels = static_cast<int64_t>(program.kernels.list.kernels.size());
    for (const compiler::PassRecord& pass : program.passes) {
      if (pass.name != "trace") seconds[std::string(pass.name)] += pass.seconds;
      seconds["verify"] += pass.verify_seconds;
    }
  }
  for (const auto& [name, total] : seconds)
    state.counters[name + "_ms"] =
        benchmark::Counter(1e3 * total, benchmark::Counter::kAvgIterations);
  state.counters["nodes"] = static_cast<double>(nodes);
  state.counters["kernels"] = static_cast<double>(kernels);
}

// Width has no part in the time to compile; a narrow model leaves the memory alone.
Gpt2Config narrow(int64_t layers) {
  return {.vocab = 256, .context = 64, .layers = layers, .heads = 4, .width = 64};
}
void compile_12_layers(benchmark::State& state) { compile_step(state, narrow(12)); }
BENCHMARK(compile_12_layers)->Unit(benchmark::kMillisecond);
void compile_48_layers(benchmark::State& state) { compile_step(state, narrow(48)); }
BENCHMARK(compile_48_layers)->Unit(benchmark::kMillisecond);

}  // namespace

int main(int argc, char** argv) { return brrr::bench::run_all(argc, argv); }
