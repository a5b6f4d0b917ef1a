// SPDX-License-Identifier: Apache-2.0
//
// A prepared matrix product: offsets of every batch element, and the library's multiplication that
// computes it. The addend, a bias or a residual, is written into the result first and the library
// adds to it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "providers/blas/Methods.h"

namespace dovetail::blas {

class Kernel {
public:
  /// `args` are those of prepare, but for the number of threads. Empty with `reason` on failure.
  static std::unique_ptr<Kernel> make(std::shared_ptr<const Libraries> libraries,
                                      const ProblemReader &problem, const Product &product,
                                      const Method &method, const dvt_prepare_args &args,
                                      uint32_t team, std::string &reason);
  uint64_t workspaceBytes() const { return workspace; }
  dvt_code run(const dvt_run_args &args, std::string &reason) const;

private:
  Kernel(std::shared_ptr<const Libraries> libraries, uint64_t workspace)
      : libraries(std::move(libraries)), workspace(workspace) {}
  bool bind(const ProblemReader &problem, const View &view, const dvt_prepare_args &args,
            Source &source, std::string &reason);
  void fillResult(const float *addend, float *result, const dvt_parallel *parallel) const;

  std::shared_ptr<const Libraries> libraries;
  uint64_t workspace;
  Operands operands;
  std::vector<Dims> inputExtents;
  std::vector<bool> inputConstant;
  Dims outputExtents;
  providers::PackedMemory constantMemory;
  std::unique_ptr<Multiplication> multiplication;
};

} // namespace dovetail::blas
