// SPDX-License-Identifier: Apache-2.0
//
// dovetail tune-run and doctor in a program of their own, for machines without LLVM.
#include "CommandLine.h"

int main(int argc, char **argv) {
  CLI::App app("Measures kernels that 'dovetail tune-export' compiled on another machine.",
               "dovetail-tune");
  app.require_subcommand(1);
  app.set_version_flag("--version", DOVETAIL_VERSION);
  int exitCode = 0;
  dovetail::cli::addTuneRun(app, exitCode);
  dovetail::cli::addDoctor(app, exitCode);
  return dovetail::cli::runCommandLine(app, argc, argv, exitCode);
}
