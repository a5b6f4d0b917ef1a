// SPDX-License-Identifier: Apache-2.0
//
// What kernels took at their places in runs of the whole model. A trial times a kernel alone;
// beside others it finds other caches, threads that spin or sleep, and memory that was just written
// elsewhere. Plans are chosen again with these times in place of those of the trials.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "support/Plugin.h"

namespace dovetail::plan {

class StepTimes {
public:
  /// A step that computes `problem` by `candidate` took `micros`; its trial had given `alone`.
  void add(const std::string &problem, const Candidate &candidate, double micros, double alone);
  /// Mean over the places seen. Of a kernel not seen yet: `alone`, scaled as those seen were.
  double of(const std::string &problem, const Candidate &candidate, double alone) const;
  bool empty() const { return places.empty(); }

private:
  struct Place {
    double micros = 0;
    int count = 0;
  };
  std::map<std::pair<std::string, std::string>, Place> places; ///< by problem and candidate
  double allMicros = 0, allAlone = 0;
};

} // namespace dovetail::plan
