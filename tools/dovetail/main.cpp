// SPDX-License-Identifier: Apache-2.0
//
// The command line: subcommands and their exit codes.
#include "CommandLine.h"

int main(int argc, char **argv) {
  CLI::App app("Dovetail: compiles ONNX models to the cheapest mix of library kernels and its own, "
               "and runs them.",
               "dovetail");
  app.require_subcommand(1);
  app.set_version_flag("--version", DOVETAIL_VERSION);
  int exitCode = 0;
  dovetail::cli::addModelCommands(app, exitCode);
  dovetail::cli::addProblem(app, exitCode);
  dovetail::cli::addCheck(app, exitCode);
  dovetail::cli::addTuning(app, exitCode);
  dovetail::cli::addTuneRun(app, exitCode);
  dovetail::cli::addDoctor(app, exitCode);
  return dovetail::cli::runCommandLine(app, argc, argv, exitCode);
}
