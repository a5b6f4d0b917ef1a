// SPDX-License-Identifier: Apache-2.0
#include "GraphTruth.h"

#include <gtest/gtest.h>

#include "device/simulated/cudnn/GraphArithmetic.h"

namespace dovetail::test {
namespace {

class Operands : public cudnn_double::GraphMemory {
public:
  Operands(const cudnn::Graph &graph, Memory &memory) : graph(graph), memory(memory) {}
  double load(size_t tensor, int64_t offset) override { return element(tensor, offset); }
  void store(size_t tensor, int64_t offset, double value) override {
    element(tensor, offset) = value;
  }

private:
  double &element(size_t tensor, int64_t offset) {
    std::vector<double> &data = memory[graph.tensors[tensor].value];
    if (static_cast<size_t>(offset) < data.size())
      return data[static_cast<size_t>(offset)];
    ADD_FAILURE() << "tensor " << tensor << " reaches beyond its memory";
    return nowhere;
  }
  const cudnn::Graph &graph;
  Memory &memory;
  double nowhere = 0;
};

} // namespace

void runGraph(const cudnn::Graph &graph, Memory &memory) {
  Operands operands(graph, memory);
  EXPECT_EQ(cudnn_double::runGraph(graph, operands), "");
}

} // namespace dovetail::test
