// What every command shares: the flag --json, how an answer is printed and how an error ends the program.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "sluice/error.hpp"

namespace sluice::cli {

using Json = nlohmann::ordered_json;

inline constexpr int kExitFailure = 1;  // a run-time failure or a failed check
inline constexpr int kExitUsage = 2;    // the command line or a file does not say what it should

// The exit code, or why there is none.
using Outcome = Result<int>;

struct Session {
  bool json = false;
  std::function<Outcome()> action;  // of the command that was chosen, run after the command line has been read
};

// A subcommand with --json and its own options as `Options`. `run` is called with them when the user chose it.
template <class Options>
CLI::App* add_command(CLI::App& app, Session& session, const std::string& name, const std::string& description,
                      const std::shared_ptr<Options>& options, Outcome (*run)(const Options&, const Session&)) {
  CLI::App* command = app.add_subcommand(name, description);
  command->add_flag("--json", session.json, "Print the answer (and any error) as JSON on stdout");
  command->callback([&session, options, run] { session.action = [&session, options, run] { return run(*options, session); }; });
  return command;
}

// For options that must be above 0.
CLI::Validator above_zero();

void print_json(const Json& answer);
// Whichever of the two the user asked for.
void print_answer(const Session& session, const Json& json, const std::vector<std::string>& lines);

// To stderr as "sluice: MESSAGE"; with --json also to stdout, so that stdout always holds one JSON document. Returns the exit code.
int report(const Error& error, bool json);

Json parse_json(const std::string& text);  // of text that Sluice itself wrote

Result<std::string> read_text_file(const std::string& path);
Status write_text_file(const std::string& path, const std::string& text);
Status check_folder_of(const std::string& path);  // whether the folder that a file is to go into is there

void add_devices_command(CLI::App& app, Session& session);
void add_list_command(CLI::App& app, Session& session);
void add_plan_command(CLI::App& app, Session& session);
void add_explain_command(CLI::App& app, Session& session);
void add_simulate_command(CLI::App& app, Session& session);
void add_trace_command(CLI::App& app, Session& session);
void add_gemm_command(CLI::App& app, Session& session);
void add_quantize_command(CLI::App& app, Session& session);
void add_pack_command(CLI::App& app, Session& session);
void add_bench_command(CLI::App& app, Session& session);
void add_bench_quantize_command(CLI::App& app, Session& session);
void add_bench_pack_command(CLI::App& app, Session& session);
void add_attention_command(CLI::App& app, Session& session);
void add_histogram_command(CLI::App& app, Session& session);
void add_bench_histogram_command(CLI::App& app, Session& session);
void add_bench_attention_command(CLI::App& app, Session& session);
void add_tune_command(CLI::App& app, Session& session);
void add_calibrate_command(CLI::App& app, Session& session);

}  // namespace sluice::cli
