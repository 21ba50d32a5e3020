// A run as one page: facts, both regimes as sentences, charts, samples and settings. The page needs nothing
// besides itself, so it opens offline and can be mailed.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "brrr/report/run_charts.h"

namespace brrr::report {

// RUN/report.html from what the folder holds, finished or still running.
void write_run_report(const std::filesystem::path& run_folder);

// `config` is the text of the settings.
std::string run_report_html(const runs::RunLog& run, const std::string& config);

// Several runs beside each other.
std::string compared_report_html(const std::vector<NamedRun>& runs);

}  // namespace brrr::report
