#include "brrr/plan/cluster/run_kernels.h"

#include "brrr/base/error.h"
#include "brrr/plan/cluster/planned_optimizer.h"

namespace brrr::plan {

training::StepSpec run_step(const RunQuestion& q, int64_t micro_batches) {
  if (!q.model) fail("a number of parameters has no graph, and so no kernels; give --model");
  check(q.system.is_tuned() && q.system.fuse,
        "kernels are those of brrr's own program; leave --framework and --unfused out");
  check(q.layout.pp == 1 && q.layout.cp == 1,
        "kernels are listed for a device that has all layers and whole sequences; leave --pp and "
        "--cp out");
  training::StepSpec spec = training::on_paper(
      training::default_step(tensor_shard(*q.model, q.layout.tp), q.micro_batch, q.seq,
                             compiler::parse_target(join_text("cuda:", q.gpu))));
  spec.accumulate = micro_batches;
  spec.optimizer = planned_optimizer(q.optimizer).rule;
  spec.expert_devices = q.layout.ep;
  spec.pipeline.precision.policy = q.precision;
  spec.pipeline.remat.policy = q.recompute;
  return spec;
}

std::vector<cost::KernelLine> run_kernels(const RunAnswer& a) {
  const RunQuestion& q = a.question;
  const runtime::PlannedProgram program = training::plan_step(run_step(q, a.micro_batches));
  return cost::kernel_lines(program.kernels, program.plan, run_rates(q));
}

}  // namespace brrr::plan
