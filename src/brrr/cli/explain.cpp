// brrr explain: a program at any stage on its way from a traced function to planned memory.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "brrr/base/join_names.h"
#include "brrr/base/units.h"
#include "brrr/cli/commands.h"
#include "brrr/cli/device_option.h"
#include "brrr/cli/model_options.h"
#include "brrr/cli/rates_option.h"
#include "brrr/compiler/codegen/codegen_cuda.h"
#include "brrr/device/cuda/runtime.h"
#include "brrr/graph/print.h"
#include "brrr/graph/verify.h"
#include "brrr/report/graph_views.h"
#include "brrr/report/memory_timeline.h"
#include "brrr/report/table.h"
#include "brrr/runtime/stages.h"
#include "brrr/train/setup.h"

namespace brrr::cli {
namespace {

struct Options {
  ModelOptions model;
  std::string graph, stage = "plan", svg;
  DeviceOption device{.name = "cpu"};
  RatesOption rates;
  bool json = false, dot = false;
};

// Everything that a stage may show, made from the forward graph and the whole step.
struct Explained {
  graph::Graph forward;
  runtime::PlannedProgram program;
  RatesOption rates;  // looked for by the stages that price something
  compiler::Target target;
  std::string svg;  // where to draw the plan, if anywhere
};

enum class Form : uint8_t { text, json, dot };

std::string no_dot(std::string_view stage) {
  fail("explain: the stage ", stage,
       " has no Graphviz form; use trace, joint, precision, simplify, rematerialize or fuse");
}

std::string show_graph(const graph::Graph& graph, Form form) {
  if (form == Form::json) return report::graph_json(graph);
  if (form == Form::dot) return report::graph_dot(graph);
  const Cost cost = graph::cost_of(graph);
  return fmt::format("{}# {} nodes, {} FLOPs, {} touched when each runs by itself\n",
                     graph::to_text(graph), graph.nodes.size(), with_commas(cost.flops),
                     to_text(Bytes(cost.bytes_read + cost.bytes_written)));
}

std::string show_kept(const Explained& explained, Form form) {
  if (form == Form::dot) return no_dot("remat");
  const graph::Graph& graph = explained.program.graph();
  const std::vector<compiler::KeptValue> values = compiler::kept_values(
      graph, runtime::remat_rates(find_rates(explained.rates, explained.target)));
  return form == Form::json ? report::kept_values_json(graph, values)
                            : report::kept_values_text(graph, values);
}

std::string show_kernels(const Explained& explained, Form form) {
  const runtime::PlannedProgram& program = explained.program;
  if (form == Form::dot) return report::kernels_dot(program.kernels);
  const cost::Prediction prediction =
      cost::predict(program.kernels, program.plan, find_rates(explained.rates, explained.target));
  return form == Form::json ? report::kernels_json(program.kernels, prediction)
                            : report::kernels_text(program.kernels, prediction);
}

int64_t bytes_in(const compiler::KernelList& list, compiler::Place place) {
  int64_t bytes = 0;
  for (const compiler::Buffer& buffer : list.buffers)
    bytes += buffer.place == place ? buffer.bytes : 0;
  return bytes;
}

nlohmann::json plan_json(const runtime::PlannedProgram& program,
                         const cost::Prediction& prediction) {
  nlohmann::json buffers = nlohmann::json::array();
  for (const compiler::PlannedBuffer& buffer :
       compiler::planned_buffers(program.kernels, program.plan))
    buffers.push_back({{"offset", buffer.offset},
                       {"bytes", buffer.bytes},
                       {"first_kernel", buffer.first},
                       {"last_kernel", buffer.last},
                       {"made_by", buffer.made_by}});
  return {{"arena_bytes", program.plan.arena_bytes},
          {"lower_bound_bytes", program.plan.lower_bound},
          {"state_bytes", bytes_in(program.kernels, compiler::Place::state)},
          {"input_bytes", bytes_in(program.kernels, compiler::Place::input)},
          {"output_bytes", bytes_in(program.kernels, compiler::Place::output)},
          {"kernels", program.kernels.kernels.size()},
          {"predicted_seconds", prediction.seconds()},
          {"calibrated", prediction.calibrated},
          {"bytes_over_time", compiler::bytes_over_time(program.kernels, program.plan)},
          {"buffers", buffers}};
}

std::string show_plan(const Explained& explained, Form form) {
  if (form == Form::dot) return no_dot("plan");
  const runtime::PlannedProgram& program = explained.program;
  if (!explained.svg.empty())
    write_file(explained.svg, report::memory_timeline_svg(program.kernels, program.plan));
  const hardware::Rates rates = find_rates(explained.rates, explained.target);
  const cost::Prediction prediction = cost::predict(program.kernels, program.plan, rates);
  if (form == Form::json) return plan_json(program, prediction).dump(1);
  const int64_t state = bytes_in(program.kernels, compiler::Place::state),
                input = bytes_in(program.kernels, compiler::Place::input),
                output = bytes_in(program.kernels, compiler::Place::output),
                arena = program.plan.arena_bytes;
  report::Table table({"memory", "bytes", ""});
  table.row("states", to_text(Bytes(state)), "parameters and what the optimizer keeps");
  table.row("arena", to_text(Bytes(arena)),
            fmt::format("temporaries; no plan can do with less than {}",
                        to_text(Bytes(program.plan.lower_bound))));
  table.row("inputs, outputs", to_text(Bytes(input + output)), "");
  table.rule();
  table.row("all", to_text(Bytes(state + arena + input + output)), "");
  Cost cost;
  for (const compiler::Kernel& kernel : program.kernels.kernels) cost += kernel.cost;
  return table.text() + "\n" + report::memory_timeline_text(program.kernels, program.plan) +
         fmt::format("\n{} kernels, {}, {} touched, {} predicted on {}{}\n",
                     program.kernels.kernels.size(), to_text(Flops(cost.flops)),
                     to_text(Bytes(cost.bytes_read + cost.bytes_written)),
                     to_text(Seconds(prediction.seconds())), rates.machine,
                     prediction.calibrated ? "" : " (uncalibrated)");
}

std::string show_sources(const Explained& explained, Form form) {
  if (form == Form::dot) return no_dot("codegen");
  const compiler::KernelList& list = explained.program.kernels;
  if (form == Form::text) return compiler::generated_text(list);
  nlohmann::json kernels = nlohmann::json::array();
  for (const compiler::Kernel& kernel : list.kernels) {
    if (!kernel.generated) continue;
    nlohmann::json launches = nlohmann::json::array();
    for (const compiler::GeneratedLaunch& launch : kernel.generated->launches)
      launches.push_back(
          {{"entry", launch.entry}, {"blocks", launch.blocks}, {"threads", launch.threads}});
    kernels.push_back({{"name", kernel.name},
                       {"launches", launches},
                       {"workspace_bytes", kernel.generated->workspace_bytes},
                       {"source", kernel.generated->source.text}});
  }
  return kernels.dump(1);
}

struct Stage {
  std::string_view name, what;
  std::string (*show)(const Explained&, Form);
};
// Stages of the compiler that make a graph from a graph come from graph_stages(); these are the others.
constexpr Stage kStages[] = {
    {"trace", "the forward part as traced",
     [](const Explained& explained, Form form) { return show_graph(explained.forward, form); }},
    {"remat",
     "what the backward part needs of the forward part, and the price of computing it again",
     show_kept},
    {"fuse", "the kernels, with FLOPs, bytes and predicted time", show_kernels},
    {"codegen", "the kernels that are generated for a GPU, as CUDA C++", show_sources},
    {"plan", "where every temporary lives, as a timeline", show_plan}};

std::string show_stage(const Explained& explained, std::string_view name, Form form) {
  for (const Stage& stage : kStages) {
    if (stage.name == name) return stage.show(explained, form);
  }
  for (const runtime::GraphStage& pass : runtime::graph_stages()) {
    if (pass.name == name) {
      const graph::Graph* graph = explained.program.find(name);
      check(graph != nullptr, "explain: the pass ", name, " was left out, so it has made no graph");
      return show_graph(*graph, form);
    }
  }
  fail("explain: there is no stage \"", name, "\"; use one of ", join_names(kStages, &Stage::name),
       ", ", join_names(runtime::graph_stages(), &runtime::GraphStage::name));
}

// Generated kernels are those of a GPU: by default of the first one here, or else of an H200.
compiler::Target target_for(const Options& options) {
  const std::string& name = options.device.name;
  const bool is_some_gpu = name == "cuda" || (options.stage == "codegen" && name == "cpu");
  if (!is_some_gpu) return options.device.target();
  return cuda::gpu_count() > 0 ? compiler::target_of(Device::cuda(0))
                               : compiler::parse_target("cuda:h200");
}

// The model takes no memory, wherever its program would run.
Explained explain_model(const Options& options) {
  const training::StepSpec spec = training::on_paper(options.model.on(target_for(options)));
  training::StepSpec micro_batch = spec;
  micro_batch.accumulate = 1;
  return {
      .forward =
          training::make_parts(micro_batch).step->trace_forward(training::make_batch(micro_batch)),
      .program = training::plan_step(spec),
      .rates = options.rates,
      .target = target_for(options),
      .svg = options.svg};
}

Explained explain_graph(const Options& options) {
  const graph::Graph graph = graph::parse_graph(read_file(options.graph));
  graph::verify(graph, "parse");
  const bool is_step = runtime::has_backward(graph) || graph.states.empty();
  const training::StepSpec spec =
      training::on_paper(options.model.step_of(Gpt2Config{}, target_for(options)));
  return {.forward = graph,
          .program = runtime::plan_program(is_step ? graph : runtime::differentiate(graph),
                                           training::pipeline_of(spec)),
          .rates = options.rates,
          .target = target_for(options),
          .svg = options.svg};
}

void run_explain(const Options& options) {
  const Explained explained =
      options.graph.empty() ? explain_model(options) : explain_graph(options);
  const Form form = options.json ? Form::json : options.dot ? Form::dot : Form::text;
  std::string text = show_stage(explained, options.stage, form);
  if (!text.ends_with('\n')) text += '\n';
  std::fputs(text.c_str(), stdout);
}

std::string stages_text() {
  std::string text = "Stages:\n";
  const auto add = [&](std::string_view name, std::string_view what) {
    text += fmt::format("  {:10} {}\n", name, what);
  };
  add(kStages[0].name, kStages[0].what);
  for (const runtime::GraphStage& stage : runtime::graph_stages()) add(stage.name, stage.what);
  for (const Stage& stage : std::span(kStages).subspan(1)) add(stage.name, stage.what);
  return text;
}

}  // namespace

void add_explain(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "explain",
      "Show a training step at any stage of the compiler; takes no memory for the model");
  const auto options = std::make_shared<Options>();
  CLI::Option_group* source = command->add_option_group("program");
  add_model_options(*source, options->model);
  source->get_option("--model")->excludes(
      source->add_option("--graph", options->graph, "File with a graph in text form"));
  command->add_option("--stage", options->stage, "Which stage")->capture_default_str();
  command
      ->add_option("--device", options->device.name,
                   "Whose program: cpu, cuda, cuda:h200, ...; none is needed to show it")
      ->capture_default_str();
  CLI::Option* json = command->add_flag("--json", options->json, "Print JSON");
  command->add_flag("--dot", options->dot, "Print Graphviz: pipe it into `dot -Tsvg`")
      ->excludes(json);
  command->add_option("--svg", options->svg, "Draw the memory plan into a file (stage plan)");
  add_rates_option(*command, options->rates);
  command->footer(stages_text() +
                  "Examples:\n"
                  "  brrr explain --model gpt2-tiny --stage trace\n"
                  "  brrr explain --model gpt2-1558m --stage plan --svg plan.svg\n"
                  "  brrr explain --model gpt2-tiny --stage codegen > kernels.cu\n"
                  "  brrr explain --graph step.txt --stage fuse --dot | dot -Tsvg > step.svg");
  command->callback([options] {
    check(!options->model.model.empty() || !options->graph.empty(),
          "explain: name a program with --model or --graph");
    run_explain(*options);
  });
}

}  // namespace brrr::cli
