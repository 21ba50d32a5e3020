// What the charts of a run show, as data that the script of a page draws (report/assets/charts.js).
//
//   [{"title": "Loss", "x": {"label": "step"}, "y": {"label": "loss (nats)", "log": false},
//     "series": [{"name": "validation", "colour": 1, "style": "dots", "points": [[50, 3.1], ...]}],
//     "marks": [{"x": 400, "text": "best"}]}, ...]
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "brrr/run/learning_regime.h"
#include "brrr/run/run_log.h"

namespace brrr::report {

std::string run_charts_json(const runs::RunLog& run, const runs::LearningRegime& learning);

// The losses of several runs, one chart for training and one for validation.
struct NamedRun {
  std::string name;
  runs::RunLog run;
};
std::string compared_charts_json(const std::vector<NamedRun>& runs);

using Points = std::vector<std::pair<double, double>>;
// At most `most` points: of each stretch the lowest and the highest, so that no spike is lost.
Points thinned(const Points& points, size_t most);

}  // namespace brrr::report
