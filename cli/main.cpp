// sluice: plan, look at and run matrix products.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "session.hpp"
#include "sluice/emulator.hpp"
#include "sluice/run.hpp"
#include "sluice/version.hpp"

namespace sluice::cli {
namespace {

Outcome show_version(const Session& session) {
  if (session.json)
    print_json({{"name", "sluice"},
                {"version", version()},
                {"built_with_cuda", built_with_cuda()},
                {"built_with_emulator", built_with_emulator()}});
  else
    fmt::print("sluice {} ({} CUDA kernels, {} the emulator)\n", version(), built_with_cuda() ? "with" : "without",
               built_with_emulator() ? "with" : "without");
  return 0;
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) names.push_back(command->get_name());
  return names;
}

bool wants_json(int argc, char** argv) {
  return std::any_of(argv + 1, argv + argc, [](const char* word) { return std::strcmp(word, "--json") == 0; });
}

// The words no option took, in the order they were typed.
std::string unexpected_words(const CLI::App& app) {
  std::vector<std::string> words = app.remaining(true);
  const auto flag = std::find_if(words.begin(), words.end(), [](const std::string& word) { return word[0] == '-'; });
  return flag != words.end() ? fmt::format("no option is called {}", *flag)
                             : fmt::format("nothing is known about '{}'", fmt::join(words, " "));
}

// CLI11 says what is wrong with the command line; we add the way out.
Error usage_error(const CLI::App& app, const CLI::ParseError& problem, int argc, char** argv) {
  const std::vector<std::string> names = command_names(app);
  const std::string known = fmt::format("commands are {}", fmt::join(names, ", "));
  const char* const* command = std::find_if(argv + 1, argv + argc, [](const char* word) { return word[0] != '-'; });
  if (command == argv + argc) return {ErrorCode::invalid_argument, fmt::format("{}; {}; see `sluice --help`", problem.what(), known)};
  if (std::find(names.begin(), names.end(), *command) == names.end())
    return {ErrorCode::invalid_argument, fmt::format("no command is called '{}'; {}", *command, known)};
  const bool unexpected = problem.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError);
  return {ErrorCode::invalid_argument,
          fmt::format("{}; see `sluice {} --help`", unexpected ? unexpected_words(app) : problem.what(), *command)};
}

int run_command_line(int argc, char** argv) {
  CLI::App app{"Sluice multiplies matrices on NVIDIA Hopper GPUs without leaving multiprocessors idle.", "sluice"};
  Session session;
  // Read ahead of the parser, so that a command line it refuses is answered in JSON too.
  session.json = wants_json(argc, argv);
  bool wants_version = false;
  app.add_flag("--version", wants_version, "Print the version");
  app.add_flag("--json", session.json, "Print the answer (and any error) as JSON on stdout");
  app.require_subcommand(0, 1);

  add_devices_command(app, session);
  add_list_command(app, session);
  add_plan_command(app, session);
  add_explain_command(app, session);
  add_simulate_command(app, session);
  add_trace_command(app, session);
  add_gemm_command(app, session);
  add_quantize_command(app, session);
  add_pack_command(app, session);
  add_bench_command(app, session);
  add_bench_quantize_command(app, session);
  add_bench_pack_command(app, session);
  add_histogram_command(app, session);
  add_attention_command(app, session);
  add_bench_histogram_command(app, session);
  add_bench_attention_command(app, session);
  add_tune_command(app, session);
  add_calibrate_command(app, session);

  try {
    app.parse(argc, argv);
    if (wants_version) session.action = [&session] { return show_version(session); };
    if (!session.action) throw CLI::RequiredError("a command");
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& problem) {
    return report(usage_error(app, problem, argc, argv), session.json);
  }
  const Outcome outcome = session.action();
  return outcome ? *outcome : report(outcome.error(), session.json);
}

}  // namespace
}  // namespace sluice::cli

int main(int argc, char** argv) {
  using namespace sluice;
  try {
    return cli::run_command_line(argc, argv);
  } catch (const std::bad_alloc&) {
    return cli::report({ErrorCode::out_of_memory, "out of host memory; the matrices and their result must fit in it"},
                       cli::wants_json(argc, argv));
  } catch (const std::exception& problem) {
    return cli::report({ErrorCode::internal, problem.what()}, cli::wants_json(argc, argv));
  }
}
