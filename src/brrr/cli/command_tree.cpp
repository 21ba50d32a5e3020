#include "brrr/cli/command_tree.h"

namespace brrr::cli {

std::vector<const CLI::App*> named_commands(const CLI::App& command) {
  return command.get_subcommands([](const CLI::App* sub) { return !sub->get_name().empty(); });
}

std::vector<const CLI::Option*> options_of(const CLI::App& command) {
  std::vector<const CLI::Option*> options = command.get_options();
  const auto groups =
      command.get_subcommands([](const CLI::App* sub) { return sub->get_name().empty(); });
  for (const CLI::App* group : groups) {
    for (const CLI::Option* option : options_of(*group)) {
      if (option != group->get_help_ptr()) options.push_back(option);  // the command has its own
    }
  }
  return options;
}

}  // namespace brrr::cli
