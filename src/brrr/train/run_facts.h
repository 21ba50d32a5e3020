// run.json from what is known before the first step.
#pragma once

#include "brrr/run/run_log.h"
#include "brrr/train/auto_size.h"
#include "brrr/train/corpus.h"
#include "brrr/train/plan.h"

namespace brrr::training {

runs::RunFacts facts_of_run(const ResolvedRun& run, const Corpus& corpus, const TrainPlan& plan);

}  // namespace brrr::training
