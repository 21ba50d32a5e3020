#include "brrr/cli/exit_codes.h"

#include <cstdio>

#include "brrr/base/error.h"
#include "brrr/base/join_names.h"
#include "brrr/base/nearest_word.h"
#include "brrr/cli/command_tree.h"

namespace brrr::cli {
namespace {

// The command that was reached, the program itself at first: `brrr data prepare`.
struct Reached {
  const CLI::App* app;
  std::string path;
};
Reached reached_command(const CLI::App& app) {
  Reached reached{&app, "brrr"};
  while (!reached.app->get_subcommands().empty() &&
         !reached.app->get_subcommands().front()->get_name().empty()) {
    reached.app = reached.app->get_subcommands().front();
    reached.path += join_text(" ", reached.app->get_name());
  }
  return reached;
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : options_of(command)) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::vector<std::string> command_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* sub : named_commands(command)) names.push_back(sub->get_name());
  return names;
}

// What is wrong, in a sentence. CLI11 says only that a word was not expected.
std::string message_of(const CLI::App& app, const CLI::ParseError& error) {
  const Reached reached = reached_command(app);
  const std::vector<std::string> unknown = app.remaining(true);
  const std::vector<std::string> commands = command_names(*reached.app);
  if (unknown.empty()) {
    if (commands.empty() || error.get_name() != "RequiredError") return error.what();
    return join_text("a command is needed: one of ", join_names(commands));
  }
  const std::string word = unknown.front().substr(0, unknown.front().find('='));
  const bool is_option = word.starts_with("-");
  const std::string nearest = nearest_word(word, is_option ? option_names(*reached.app) : commands);
  std::string text =
      is_option || commands.empty()
          ? join_text(reached.path, is_option ? " has no option " : " does not take ", word)
          : join_text("there is no command ", reached.path, " ", word);
  if (!nearest.empty()) return text + join_text("; did you mean ", nearest, "?");
  if (!is_option && !commands.empty()) text += join_text("; there are ", join_names(commands));
  return text;
}

}  // namespace

int report_parse_error(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == kSuccess) return app.exit(error);  // --help, --version
  const Reached reached = reached_command(app);
  std::fprintf(stderr, "brrr: %s\nSee %s --help\n", message_of(app, error).c_str(),
               reached.path.c_str());
  return kUserError;
}

}  // namespace brrr::cli
