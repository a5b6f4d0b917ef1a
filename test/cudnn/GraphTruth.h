// SPDX-License-Identifier: Apache-2.0
//
// Graphs for cuDNN interpreted over memory in the layouts that they state. So translations are held
// to the problem's truth without a device.
#pragma once

#include <map>
#include <vector>

#include "providers/cudnn/Graph.h"

namespace dovetail::test {

/// Contents of the problem's values that lie in memory, by value; results are sized by the caller.
using Memory = std::map<uint32_t, std::vector<double>>;

/// Runs the graph's operations in order. Failures are recorded as gtest's.
void runGraph(const cudnn::Graph &graph, Memory &memory);

} // namespace dovetail::test
