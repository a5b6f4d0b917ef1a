// SPDX-License-Identifier: Apache-2.0
//
// Runs one candidate of a provider as a hostile host would: guard zones around every buffer it may
// write, garbage in what it must not read, operands in the layouts, strides and aliasing that were
// agreed. Gives row-major results, and everything the provider did beside them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "support/Plugin.h"
#include "support/Problem.h"

namespace dovetail::conformance {

/// A dense row-major tensor.
struct HostTensor {
  dvt_type type = DVT_F32;
  std::vector<int64_t> extents;
  std::vector<uint8_t> bytes;
  int64_t count() const;
};

/// Memory between two zones of a pattern.
class GuardedMemory {
public:
  GuardedMemory() = default;
  /// `bytes` of `fill`, aligned to 64.
  GuardedMemory(uint64_t bytes, uint8_t fill);
  uint8_t *data() const { return start; }
  uint64_t size() const { return bytes; }
  bool intact() const;

private:
  std::vector<uint8_t> memory;
  uint8_t *start = nullptr;
  uint64_t bytes = 0;
};

/// Operands for every input of a problem under `symbols`: seeded, small integers, floats in [-1,
/// 1), or in [0.5, 1.5) where `positive`. Inputs must have extents that `symbols` decides.
std::vector<HostTensor> makeInputs(const Problem &problem, const SymbolValues &symbols,
                                   bool positive);

struct RunOptions {
  uint8_t fill = 0xA5;  ///< of outputs and workspace before the run
  bool inPlace = false; ///< outputs that may alias an input share its memory
};

struct RunResult {
  dvt_code code = DVT_OK;
  std::string message;                 ///< of a code other than DVT_OK
  std::vector<HostTensor> outputs;     ///< row-major
  std::vector<std::string> violations; ///< guard zones, changed inputs, padding that is not zero
};

/// A prepared kernel with its operands. Running it from several threads at once is allowed.
class PreparedCandidate {
public:
  /// `kernel`: what compiling gave. Where the candidate is refused, message() says why and code()
  /// is not DVT_OK.
  PreparedCandidate(const Provider &provider, const Target &target, const Problem &problem,
                    const Candidate &candidate, std::vector<uint8_t> kernel,
                    std::vector<HostTensor> inputs, const SymbolValues &symbols);
  ~PreparedCandidate();
  PreparedCandidate(const PreparedCandidate &) = delete;
  dvt_code code() const { return prepareCode; }
  const std::string &message() const { return prepareMessage; }
  uint64_t workspaceBytes() const;
  RunResult run(const RunOptions &options, uint32_t threads) const;

private:
  GuardedMemory physicalInput(size_t index) const;
  const Provider &provider;
  const Problem &problem;
  Candidate candidate;
  std::vector<uint8_t> kernelBytes;
  std::vector<HostTensor> inputs;
  SymbolValues symbols;
  std::vector<GuardedMemory> constants; ///< empty where the input is not constant
  std::vector<GuardedMemory> lent;      ///< for packed constants
  dvt_kernel *kernel = nullptr;
  dvt_code prepareCode = DVT_OK;
  std::string prepareMessage;
};

/// Largest difference between results relative to the largest finite magnitude of `truth`, and
/// whether special values agree; a sentence where `found` is further away than `bound`, empty
/// otherwise. Integers must be equal, or one apart where `nearInteger`.
std::string compare(const HostTensor &truth, const HostTensor &found, double bound,
                    bool nearInteger);

/// Largest allowed relative difference of a candidate's results: units in the last place of the
/// types and of the numerics class, times the root of the longest sum of the problem.
double errorBound(const Problem &problem, const SymbolValues &symbols, const std::string &numerics);

} // namespace dovetail::conformance
