#include <cstdio>
#include <exception>
#include <filesystem>

#include "brrr/base/error.h"
#include "brrr/cli/commands.h"
#include "brrr/cli/environment.h"
#include "brrr/cli/exit_codes.h"

int main(int argc, char** argv) {
  brrr::cli::read_environment();
  CLI::App app{"brrr trains and runs neural networks and can say what the work costs"};
  app.set_version_flag("--version", BRRR_VERSION);
  app.require_subcommand(1);
  app.footer(
      "Examples:\n"
      "  brrr train               learn to write stories, in three minutes\n"
      "  brrr train book.txt      learn from a text of your own\n"
      "  brrr generate runs/stories --prompt 'Once upon a time'   write text with a model\n"
      "  brrr eval runs/stories --stories                         how well it predicts\n"
      "  brrr models              the models that have a name, with exact sizes\n"
      "  brrr ops                 every op with its formula\n"
      "  brrr sweep gelu softmax  hold ops against their definitions on this machine\n"
      "  brrr explain --model gpt2-tiny --stage plan   where every byte of a step lives\n"
      "  brrr profile --model gpt2-tiny                what bounds a step, and what would help\n"
      "  brrr doctor runs/stories                      how a run learns, and what to do next\n"
      "  brrr napkin train --help what a run would take, before it is paid for\n"
      "  brrr devices             what this machine has, with measured peaks\n"
      "  brrr dtypes --json       element types for a program to read\n"
      "  brrr tokenize --help     make tokenizers, encode, decode, count\n"
      "  source <(brrr completion bash)   complete commands and options in this shell\n\n"
      "Ends with 0 when all went well, 2 where arguments, files or settings are wrong (the "
      "message\n"
      "says which), and 1 where brrr itself failed or a check did not hold.");
  brrr::cli::add_bench(app);
  brrr::cli::add_calibrate(app);
  brrr::cli::add_compare(app);
  brrr::cli::add_completion(app);
  brrr::cli::add_data(app);
  brrr::cli::add_devices(app);
  brrr::cli::add_doctor(app);
  brrr::cli::add_dtypes(app);
  brrr::cli::add_eval(app);
  brrr::cli::add_explain(app);
  brrr::cli::add_generate(app);
  brrr::cli::add_ladder(app);
  brrr::cli::add_models(app);
  brrr::cli::add_napkin(app);
  brrr::cli::add_ops(app);
  brrr::cli::add_profile(app);
  brrr::cli::add_sweep(app);
  brrr::cli::add_tokenize(app);
  brrr::cli::add_train(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return brrr::cli::report_parse_error(app, error);
  } catch (const brrr::Error& error) {
    std::fprintf(stderr, "brrr: %s\n", error.what());
    return brrr::cli::kUserError;
  } catch (const std::filesystem::filesystem_error& error) {  // a path that cannot be used
    std::fprintf(stderr, "brrr: %s\n", error.what());
    return brrr::cli::kUserError;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "brrr: %s\n", error.what());
    return brrr::cli::kFailure;
  }
  // What was printed may still wait in a buffer, and a full disk shows only here.
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    std::perror("brrr: the output cannot be written");
    return brrr::cli::kFailure;
  }
  return brrr::cli::kSuccess;
}
