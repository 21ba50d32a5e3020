// The commands of the program, one file each. A command adds itself to the parser and runs when chosen.
#pragma once

#include <CLI/CLI.hpp>

namespace brrr::cli {

void add_bench(CLI::App& app);
void add_calibrate(CLI::App& app);
void add_compare(CLI::App& app);
void add_completion(CLI::App& app);
void add_data(CLI::App& app);
void add_devices(CLI::App& app);
void add_doctor(CLI::App& app);
void add_dtypes(CLI::App& app);
void add_eval(CLI::App& app);
void add_explain(CLI::App& app);
void add_generate(CLI::App& app);
void add_ladder(CLI::App& app);
void add_models(CLI::App& app);
void add_napkin(CLI::App& app);
void add_ops(CLI::App& app);
void add_profile(CLI::App& app);
void add_sweep(CLI::App& app);
void add_tokenize(CLI::App& app);
void add_train(CLI::App& app);

}  // namespace brrr::cli
