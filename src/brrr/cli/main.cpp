#include <cstdio>
#include <exception>

#include "brrr/base/error.h"
#include "brrr/cli/commands.h"

int main(int argc, char** argv) {
  CLI::App app{"brrr trains and runs neural networks and can say what the work costs"};
  app.set_version_flag("--version", BRRR_VERSION);
  app.require_subcommand(1);
  app.footer(
      "Examples:\n"
      "  brrr ops                 every op with its formula\n"
      "  brrr sweep gelu softmax  hold ops against their definitions on this machine\n"
      "  brrr explain --model gpt2-tiny --stage plan   where every byte of a step lives\n"
      "  brrr profile --model gpt2-tiny                what bounds a step, and what would help\n"
      "  brrr doctor runs/stories                      how a run learns, and what to do next\n"
      "  brrr devices             what this machine has, with measured peaks\n"
      "  brrr dtypes --json       element types for a program to read\n"
      "  brrr tokenize --help     make tokenizers, encode, decode, count");
  brrr::cli::add_bench(app);
  brrr::cli::add_calibrate(app);
  brrr::cli::add_compare(app);
  brrr::cli::add_data(app);
  brrr::cli::add_devices(app);
  brrr::cli::add_doctor(app);
  brrr::cli::add_dtypes(app);
  brrr::cli::add_explain(app);
  brrr::cli::add_ops(app);
  brrr::cli::add_profile(app);
  brrr::cli::add_sweep(app);
  brrr::cli::add_tokenize(app);
  brrr::cli::add_train(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "brrr: %s\n", error.what());
    return 1;
  }
  return 0;
}
