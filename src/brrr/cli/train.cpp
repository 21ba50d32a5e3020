// brrr train: text, or the embedded stories, become a model.
#include <fmt/format.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>

#include "brrr/base/thread_pool.h"
#include "brrr/cli/commands.h"
#include "brrr/cli/device_option.h"
#include "brrr/cli/model_options.h"
#include "brrr/cli/rates_option.h"
#include "brrr/cli/train_view.h"
#include "brrr/kernels/cuda/gemm/gemm_cuda.h"
#include "brrr/train/session.h"
#include "brrr/train/trainer.h"

namespace brrr::cli {
namespace {

struct Arguments {
  std::vector<std::string> files;
  std::string config, out, algorithms;
  std::map<std::string, std::string, std::less<>> given;  // settings by key
  RatesOption rates;
  int threads = 0;
  bool resume = false, dry_run = false, kernels = false, json = false;
  DeviceOption device;
};

// ---- signals: the step in hand is finished and saved; a second signal ends the program at once -------
std::atomic<bool> stop_requested = false;
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may set it");

void request_stop(int) { stop_requested = true; }

void listen_for_signals() {
  struct sigaction action = {};
  action.sa_handler = request_stop;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int signal : {SIGINT, SIGTERM}) sigaction(signal, &action, nullptr);
}

// ---- from arguments to a request ------------------------------------------------------------------
runs::TrainConfig config_of(const Arguments& arguments, const std::filesystem::path& folder) {
  runs::TrainConfig config = arguments.resume           ? training::settings_of_run(folder)
                             : arguments.config.empty() ? runs::TrainConfig{}
                                                        : runs::read_config(arguments.config);
  for (const auto& [key, value] : arguments.given) runs::set_setting(config, key, value);
  if (!arguments.files.empty()) config.data.files = arguments.files;
  return config;
}

std::filesystem::path folder_of(const Arguments& arguments) {
  if (!arguments.out.empty()) return arguments.out;
  check(!arguments.resume, "--resume goes on with the run in a folder; name it with --out");
  runs::DataConfig data;
  if (!arguments.config.empty()) data = runs::read_config(arguments.config).data;
  if (!arguments.files.empty()) data.files = arguments.files;
  return training::free_run_folder(data);
}

void run_train(const Arguments& arguments) {
  const compiler::Target target = arguments.device.target();
  check(arguments.dry_run || !compiler::is_planned_only(target), "--device ", arguments.device.name,
        ": this machine has no such GPU; --dry-run plans the run for it");
  const DeviceScope scope(compiler::is_planned_only(target) ? Device::cpu() : target.device());
  check(
      !arguments.resume || arguments.config.empty(),
      "--resume has the settings of the run itself; change single ones by flags, not by --config");
  check(arguments.threads >= 0, "--threads ", arguments.threads, ": at least 1 is needed");
  if (arguments.threads > 0) set_num_threads(arguments.threads);
  if (!arguments.algorithms.empty())
    kernels::gemm_choices().pin(read_file(arguments.algorithms), arguments.algorithms);
  const std::filesystem::path folder = folder_of(arguments);
  TrainView view({.folder = folder, .json = arguments.json, .kernels = arguments.kernels});
  training::RunRequest request{
      .config = config_of(arguments, folder),
      .folder = folder,
      .target = target,
      .rates =
          [&,
           rates = std::optional<hardware::Rates>()]() mutable {  // measured once, asked for twice
            if (!rates)
              rates = find_or_measure_rates(arguments.rates, target, view.measure_notes());
            return *rates;
          },
      .resume = arguments.resume};
  // Tensor cores multiply bf16 many times faster than f32.
  const bool is_open = !arguments.resume && arguments.config.empty() &&
                       arguments.given.find("train.precision") == arguments.given.end();
  if (is_open && target.has_tensor_cores())
    request.config.train.precision = compiler::Precision::bf16_mixed;
  if (arguments.dry_run) {
    view.show_plan(training::plan_run(request));
    return;
  }
  training::PreparedRun prepared = training::prepare_run(request);
  view.show_start(prepared);
  listen_for_signals();
  training::Trainer trainer(prepared.run, prepared.corpus, prepared.plan,
                            {.folder = folder,
                             .brrr_version = BRRR_VERSION,
                             .peak_flops = prepared.machine.peak_flops,
                             .stop = &stop_requested},
                            view.observer());
  if (arguments.resume) trainer.resume();
  const training::TrainOutcome outcome = trainer.run();
  view.show_end(outcome, [&](int64_t number) {
    return trainer.write_sample(number, runs::resolved(prepared.run.config.model.context));
  });
}

}  // namespace

void add_train(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "train", "Train a language model on text files, or on the embedded stories");
  const auto arguments = std::make_shared<Arguments>();
  command->add_option("files", arguments->files,
                      "Text files, or token files of `brrr data prepare`; none: embedded stories");
  command->add_option("--out", arguments->out, "Folder of the run (runs/NAME)");
  command->add_flag("--resume", arguments->resume, "Go on with the run in --out");
  command->add_option("--config", arguments->config, "TOML file with settings; flags come on top");
  command->add_option("--algorithms", arguments->algorithms,
                      "On a GPU: algorithms.txt of another run, to compute its bits again");
  command->add_flag("--dry-run", arguments->dry_run,
                    "Print plan, memory, time and disk; train nothing");
  command->add_flag("--kernels", arguments->kernels, "With --dry-run: list the kernels of a step")
      ->needs("--dry-run");
  command->add_option("--threads", arguments->threads, "Threads (all cores that may be used)");
  command->add_flag("--json", arguments->json, "Print JSON at the end and no progress");
  add_rates_option(*command, arguments->rates);
  add_device_option(*command, arguments->device);
  for (const runs::SettingInfo& setting : runs::config_settings()) {
    if (setting.flag.empty()) continue;
    command
        ->add_option_function<std::string>(
            std::string(setting.flag),
            [arguments, key = std::string(setting.key)](const std::string& value) {
              arguments->given[key] = value;
            },
            std::string(setting.help))
        ->group(std::string(setting.key.substr(0, setting.key.find('.'))));
  }
  command->footer(
      "Examples:\n"
      "  brrr train                                    three minutes, embedded stories\n"
      "  brrr train book.txt                           sizes chosen from the text and this "
      "machine\n"
      "  brrr train book.txt --minutes 60 --out runs/book\n"
      "  brrr train book.txt code.txt --weights 7,3    seven rows of ten from the book\n"
      "  brrr train --out runs/book --resume --steps 20000\n"
      "  brrr train book.txt --dry-run                 what it would need");
  command->callback([arguments] {
    try {
      run_train(*arguments);
    } catch (const std::filesystem::filesystem_error& error) {
      fail(error.what());  // a folder that cannot be made or read is nothing that brrr did wrong
    }
  });
}

}  // namespace brrr::cli
