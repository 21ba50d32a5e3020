// brrr completion: what a shell needs to complete commands and options, made from the parser itself, so
// that it knows what the program knows.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "brrr/base/error.h"
#include "brrr/cli/command_tree.h"
#include "brrr/cli/commands.h"

namespace brrr::cli {
namespace {

struct OptionFacts {
  std::vector<std::string> names;    // "--json", "-h"
  std::vector<std::string> choices;  // the only values there are; empty: anything, or none
  std::string description;
  bool takes_value = false;
};

// One command by its words: "", "data", "data prepare".
struct CommandFacts {
  std::string path, description;
  std::vector<CommandFacts> commands;
  std::vector<OptionFacts> options;
  std::vector<std::string> choices;  // of a positional argument that has only some values
  std::string name() const { return path.substr(path.rfind(' ') + 1); }
};

// CLI11 puts them into the name of the type: "TEXT:{bpe,char,byte}".
std::vector<std::string> choices_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const size_t open = type.find('{'), close = type.find('}');
  std::vector<std::string> choices;
  if (open == std::string::npos || close == std::string::npos) return choices;
  for (size_t at = open + 1; at <= close;) {
    const size_t end = std::min(type.find(',', at), close);
    choices.push_back(type.substr(at, end - at));
    at = end + 1;
  }
  return choices;
}

CommandFacts facts_of(const CLI::App& app, const std::string& path) {
  CommandFacts facts{.path = path, .description = app.get_description()};
  for (const CLI::Option* option : options_of(app)) {
    OptionFacts own{.choices = choices_of(*option),
                    .description = option->get_description(),
                    .takes_value = option->get_items_expected_max() > 0};
    for (const std::string& name : option->get_snames()) own.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) own.names.push_back("--" + name);
    if (own.names.empty()) {
      facts.choices.insert(facts.choices.end(), own.choices.begin(), own.choices.end());
    } else {
      facts.options.push_back(std::move(own));
    }
  }
  for (const CLI::App* sub : named_commands(app))
    facts.commands.push_back(
        facts_of(*sub, path.empty() ? sub->get_name() : join_text(path, " ", sub->get_name())));
  return facts;
}

// Every command, the program itself first.
void flatten(const CommandFacts& facts, std::vector<const CommandFacts*>& all) {
  all.push_back(&facts);
  for (const CommandFacts& sub : facts.commands) flatten(sub, all);
}
std::vector<const CommandFacts*> all_commands(const CommandFacts& root) {
  std::vector<const CommandFacts*> all;
  flatten(root, all);
  return all;
}

std::string joined(const std::vector<std::string>& words, std::string_view between = " ") {
  std::string text;
  for (const std::string& word : words) text += join_text(text.empty() ? "" : between, word);
  return text;
}
std::vector<std::string> option_words(const CommandFacts& facts) {
  std::vector<std::string> words;
  for (const OptionFacts& option : facts.options)
    words.insert(words.end(), option.names.begin(), option.names.end());
  return words;
}
std::vector<std::string> plain_words(const CommandFacts& facts) {
  std::vector<std::string> words = facts.choices;
  for (const CommandFacts& sub : facts.commands) words.push_back(sub.name());
  return words;
}

// In single quotes of a shell.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

// ---- bash and zsh --------------------------------------------------------------------------------------
// Both walk the words before the cursor as far as they name commands, and then look the place up.

// 'data'|'data prepare'|...: words that lead to a command.
std::string path_pattern(const CommandFacts& root) {
  std::vector<std::string> paths;
  for (const CommandFacts* facts : all_commands(root)) {
    if (!facts->path.empty()) paths.push_back(quoted(facts->path));
  }
  return joined(paths, "|");
}

// 'data prepare') ... ;; for every command, with what `line` makes of it.
template <typename Line>
std::string cases_by_path(const CommandFacts& root, Line line) {
  std::string text;
  for (const CommandFacts* facts : all_commands(root))
    text += join_text("    ", quoted(facts->path), ") ", line(*facts), " ;;\n");
  return text;
}

std::string values_by_option(const CommandFacts& root, std::string_view give) {
  std::string text;
  for (const CommandFacts* facts : all_commands(root)) {
    for (const OptionFacts& option : facts->options) {
      if (option.choices.empty()) continue;
      for (const std::string& name : option.names)
        text += join_text("    ", quoted(join_text(facts->path, " ", name)), ") ", give, "(",
                          joined(option.choices), ") ;;\n");
    }
  }
  return text;
}

std::string bash_script(const CommandFacts& root) {
  return join_text(
      "# bash completion of brrr; load it with: source <(brrr completion bash)\n"
      "_brrr() {\n"
      "  local word path= previous= plain= options= values=() i\n"
      "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
      "    word=${path:+$path }${COMP_WORDS[i]}\n"
      "    case $word in\n      ",
      path_pattern(root),
      ") path=$word ;;\n"
      "    esac\n"
      "  done\n"
      "  word=${COMP_WORDS[COMP_CWORD]}\n"
      "  previous=${COMP_WORDS[COMP_CWORD - 1]}\n"
      "  case \"$path $previous\" in\n",
      values_by_option(root, "values="),
      "  esac\n"
      "  case $path in\n",
      cases_by_path(root,
                    [](const CommandFacts& facts) {
                      return join_text("plain=", quoted(joined(plain_words(facts))),
                                       " options=", quoted(joined(option_words(facts))));
                    }),
      "  esac\n"
      "  if ((${#values[@]})); then\n"
      "    COMPREPLY=($(compgen -W \"${values[*]}\" -- \"$word\"))\n"
      "  elif [[ $word == -* ]]; then\n"
      "    COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n"
      "  elif [[ $plain ]]; then\n"
      "    COMPREPLY=($(compgen -W \"$plain\" -- \"$word\"))\n"
      "  else\n"
      "    COMPREPLY=($(compgen -f -- \"$word\"))\n"
      "  fi\n"
      "}\n"
      "complete -o filenames -F _brrr brrr\n");
}

// Words with what they mean, as _describe wants them: 'word:meaning'.
std::string described(const std::string& word, const std::string& meaning) {
  std::string escaped;
  for (char c : word) escaped += c == ':' ? std::string("\\:") : std::string(1, c);
  return quoted(join_text(escaped, ":", meaning));
}

std::string zsh_script(const CommandFacts& root) {
  const auto plain = [](const CommandFacts& facts) {
    std::vector<std::string> words;
    for (const std::string& choice : facts.choices) words.push_back(described(choice, ""));
    for (const CommandFacts& sub : facts.commands)
      words.push_back(described(sub.name(), sub.description));
    return joined(words);
  };
  const auto options = [](const CommandFacts& facts) {
    std::vector<std::string> words;
    for (const OptionFacts& option : facts.options) {
      for (const std::string& name : option.names)
        words.push_back(described(name, option.description));
    }
    return joined(words);
  };
  return join_text(
      "#compdef brrr\n"
      "# zsh completion of brrr; load it with: source <(brrr completion zsh)\n"
      "_brrr() {\n"
      "  local place= word i\n"
      "  local -a plain options values\n"
      "  for ((i = 2; i < CURRENT; i++)); do\n"
      "    word=${place:+$place }${words[i]}\n"
      "    case $word in\n      (",
      path_pattern(root),
      ") place=$word ;;\n"
      "    esac\n"
      "  done\n"
      "  case \"$place ${words[CURRENT - 1]}\" in\n",
      values_by_option(root, "values="),
      "  esac\n"
      "  case $place in\n",
      cases_by_path(root,
                    [&](const CommandFacts& facts) {
                      return join_text("plain=(", plain(facts), ") options=(", options(facts), ")");
                    }),
      "  esac\n"
      "  if (( $#values )); then\n"
      "    compadd -- $values\n"
      "  elif [[ ${words[CURRENT]} == -* ]]; then\n"
      "    _describe option options\n"
      "  elif (( $#plain )); then\n"
      "    _describe command plain\n"
      "  else\n"
      "    _files\n"
      "  fi\n"
      "}\n"
      "compdef _brrr brrr\n");
}

// ---- fish ------------------------------------------------------------------------------------------------
std::string fish_script(const CommandFacts& root) {
  std::string text =
      "# fish completion of brrr; load it with: brrr completion fish | source\n"
      "# True where the words before the cursor, options apart, begin with these and name no "
      "command "
      "below.\n"
      "function __brrr_at\n"
      "  set -l words (string match -v -- '-*' (commandline -opc))[2..]\n"
      "  set -l below $argv[1]\n"
      "  set -l path $argv[2..]\n"
      "  test (count $words) -ge (count $path); or return 1\n"
      "  for i in (seq (count $path))\n"
      "    test \"$words[$i]\" = \"$path[$i]\"; or return 1\n"
      "  end\n"
      "  test -n \"$below\"; or return 0\n"
      "  set -l next (math (count $path) + 1)\n"
      "  not contains -- \"$words[$next]\" (string split ' ' -- $below)\n"
      "end\n";
  for (const CommandFacts* facts : all_commands(root)) {
    std::vector<std::string> below;
    for (const CommandFacts& sub : facts->commands) below.push_back(sub.name());
    const std::string at = quoted(join_text("__brrr_at \"", joined(below), "\" ", facts->path));
    const std::string line = join_text("complete -c brrr -n ", at);
    for (const CommandFacts& sub : facts->commands)
      text += join_text(line, " -f -a ", sub.name(), " -d ", quoted(sub.description), "\n");
    if (!facts->choices.empty())
      text += join_text(line, " -f -a ", quoted(joined(facts->choices)), "\n");
    for (const OptionFacts& option : facts->options) {
      text += line;
      for (const std::string& name : option.names)
        text += name.starts_with("--") ? join_text(" -l ", name.substr(2))
                                       : join_text(" -s ", name.substr(1));
      if (!option.choices.empty()) text += join_text(" -x -a ", quoted(joined(option.choices)));
      if (option.choices.empty() && option.takes_value) text += " -r";
      text += join_text(" -d ", quoted(option.description), "\n");
    }
  }
  return text;
}

}  // namespace

void add_completion(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("completion", "Print what a shell needs to complete brrr's commands");
  const auto shell = std::make_shared<std::string>();
  command->add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->footer(
      "Examples:\n"
      "  source <(brrr completion bash)        in ~/.bashrc\n"
      "  source <(brrr completion zsh)         in ~/.zshrc, behind compinit\n"
      "  brrr completion fish > ~/.config/fish/completions/brrr.fish");
  command->callback([shell, &app] {
    const CommandFacts root = facts_of(app, "");
    std::fputs((*shell == "bash"  ? bash_script(root)
                : *shell == "zsh" ? zsh_script(root)
                                  : fish_script(root))
                   .c_str(),
               stdout);
  });
}

}  // namespace brrr::cli
