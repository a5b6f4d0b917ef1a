// SPDX-License-Identifier: Apache-2.0
//
// Plans as files. A file is a header, then sections: all kernels, the weights (page-aligned, used
// where they are mapped, never copied), the table that describes the plan, and what was measured.
// The digest covers table and kernels; the table holds a digest of each constant, which
// whoever uses the constants checks. What was measured is outside the digest and may be left out.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "artifact/Plan.h"
#include "support/File.h"
#include "support/Hash.h"

namespace dovetail {

struct ArtifactOptions {
  bool measured = true; ///< write the reports and timings, too
};

/// Writes atomically; constants stream from where they are mapped. Refuses a plan that checkPlan
/// refuses.
Status writeArtifact(const Plan &plan, const std::string &path,
                     const ArtifactOptions &options = {});

struct Artifact {
  Plan plan; ///< constants point into `file`
  std::shared_ptr<MappedFile> file;
  std::string digest;            ///< of table and kernels, hex
  std::vector<Problem> problems; ///< the plan's, parsed
  std::vector<Digest> constantDigests;
  std::vector<uint64_t> constantGaps;         ///< bytes of padding after each
  uint64_t kernelOffset = 0, kernelBytes = 0; ///< of the kernels' section in the file

  /// Lets kernels run where the file is mapped; false where there are none or the system does not.
  bool makeKernelsExecutable() const {
    return file && file->makeExecutable(kernelOffset, kernelBytes);
  }

  /// BadInput where the bytes of a constant, or the padding after it, are not those that were
  /// written. Reads all of them; any thread may call it.
  Status checkConstant(uint32_t index) const;
};

struct ReadOptions {
  /// The words of the reports (what else was on offer for each region), which only people need.
  bool alternatives = true;
};

/// BadInput with one message for a file that is cut short, altered, of another format version or no
/// artifact at all. The plan is checked by checkPlan, so that its indices and sizes can be relied
/// on.
Expected<Artifact> readArtifact(const std::string &path, const ReadOptions &options = {});
Expected<Artifact> readArtifact(std::shared_ptr<MappedFile> file, const ReadOptions &options = {});

} // namespace dovetail
