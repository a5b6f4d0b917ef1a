// SPDX-License-Identifier: Apache-2.0
//
// The command line: subcommands and their exit codes.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>

#include "CommandLine.h"

int main(int argc, char **argv) {
  CLI::App app("Dovetail: compiles ONNX models to the cheapest mix of library kernels and its own, "
               "and runs them.");
  app.require_subcommand(1);
  app.set_version_flag("--version", DOVETAIL_VERSION);
  int exitCode = 0;
  dovetail::cli::addModelCommands(app, exitCode);
  dovetail::cli::addProblem(app, exitCode);
  dovetail::cli::addCheck(app, exitCode);
  dovetail::cli::addDoctor(app, exitCode);
  std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  if (dovetail::Status status = dovetail::cli::checkArguments(app, arguments); !status)
    return dovetail::cli::fail(status.error());
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    if (error.get_exit_code() == 0) // --help and --version
      return app.exit(error);
    auto used = app.get_subcommands();
    std::string reason = error.what();
    std::replace(reason.begin(), reason.end(), '\n', ' ');
    return dovetail::cli::fail(
        dovetail::badInput("{}; 'dovetail {}--help' tells what there is", reason,
                           used.empty() ? "" : used.front()->get_name() + " "));
  } catch (const std::bad_alloc &) {
    std::fprintf(stderr, "dovetail: error: out of memory\n");
    return 3;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "dovetail: error: %s\n", error.what());
    return 4;
  }
  return exitCode;
}
