// The kernels of one device's step of a planned run, in launch order: the program that `brrr train` compiles for that
// GPU, and not a model of it.
#pragma once

#include "brrr/cost/kernel_lines.h"
#include "brrr/plan/cluster/run_question.h"
#include "brrr/train/step_spec.h"

namespace brrr::plan {

// The step that `brrr train` would run for this question: its micro-batches, precision, optimizer and recomputation, on
// the tensor- and expert-parallel share of one device. Throws Error for what brrr has no program for: a framework, a bare
// number of parameters, pipeline stages, a GPU that no program can be compiled for.
training::StepSpec run_step(const RunQuestion& question, int64_t micro_batches);

std::vector<cost::KernelLine> run_kernels(const RunAnswer& answer);

}  // namespace brrr::plan
