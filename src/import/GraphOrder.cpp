// SPDX-License-Identifier: Apache-2.0
//
// A depth-first walk from the outputs, with a stack of its own: graphs may be a million nodes deep.
// A node whose bodies use values of the enclosing graph depends on them as on its inputs.
#include "import/GraphOrder.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include <onnx/onnx_pb.h>

namespace dovetail::importer {
namespace {

using Names = std::unordered_set<std::string>;

/// Adds the names that `graph` uses and does not define itself.
void addFreeNames(const onnx::GraphProto &graph, std::vector<std::string> &names);

void addUsedNames(const onnx::NodeProto &node, std::vector<std::string> &names) {
  for (const std::string &input : node.input())
    if (!input.empty())
      names.push_back(input);
  for (const onnx::AttributeProto &attribute : node.attribute()) {
    if (attribute.has_g())
      addFreeNames(attribute.g(), names);
    for (const onnx::GraphProto &graph : attribute.graphs())
      addFreeNames(graph, names);
  }
}

void addFreeNames(const onnx::GraphProto &graph, std::vector<std::string> &names) {
  Names defined;
  for (const onnx::ValueInfoProto &input : graph.input())
    defined.insert(input.name());
  for (const onnx::TensorProto &tensor : graph.initializer())
    defined.insert(tensor.name());
  for (const onnx::SparseTensorProto &tensor : graph.sparse_initializer())
    defined.insert(tensor.values().name());
  for (const onnx::NodeProto &node : graph.node())
    defined.insert(node.output().begin(), node.output().end());
  std::vector<std::string> used;
  for (const onnx::NodeProto &node : graph.node())
    addUsedNames(node, used);
  for (const onnx::ValueInfoProto &output : graph.output())
    used.push_back(output.name());
  for (std::string &name : used)
    if (!defined.count(name))
      names.push_back(std::move(name));
}

struct Visit {
  int node;
  std::vector<std::string> uses;
  size_t next = 0;
};

} // namespace

std::string nodeLabel(const onnx::NodeProto &node) {
  if (!node.name().empty())
    return node.name();
  for (const std::string &output : node.output())
    if (!output.empty())
      return node.op_type() + " producing " + output;
  return node.op_type();
}

Expected<std::vector<const onnx::NodeProto *>>
orderNodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto> &nodes,
           const std::vector<std::string> &outputs,
           const std::function<bool(const std::string &)> &isKnown) {
  std::unordered_map<std::string, int> producers;
  for (int i = 0; i < nodes.size(); ++i)
    for (const std::string &output : nodes.Get(i).output()) {
      if (output.empty())
        continue;
      auto [known, isNew] = producers.emplace(output, i);
      if (!isNew)
        return badInput("value '{}' is produced by both '{}' and '{}'", output,
                        nodeLabel(nodes.Get(known->second)), nodeLabel(nodes.Get(i)));
      if (isKnown(output))
        return badInput("value '{}' is produced by '{}' but is also an input or initializer",
                        output, nodeLabel(nodes.Get(i)));
    }

  enum class Mark : uint8_t { None, Open, Done };
  std::vector<Mark> marks(size_t(nodes.size()), Mark::None);
  std::vector<int> order;
  std::vector<Visit> stack;
  auto open = [&](int node) {
    Visit visit{node, {}};
    addUsedNames(nodes.Get(node), visit.uses);
    marks[size_t(node)] = Mark::Open;
    stack.push_back(std::move(visit));
  };

  for (const std::string &output : outputs) {
    auto producer = producers.find(output);
    if (producer == producers.end()) {
      if (!isKnown(output))
        return badInput("output '{}' is produced by no node, input or initializer", output);
      continue;
    }
    if (marks[size_t(producer->second)] == Mark::None)
      open(producer->second);
    while (!stack.empty()) {
      Visit &visit = stack.back();
      if (visit.next == visit.uses.size()) {
        marks[size_t(visit.node)] = Mark::Done;
        order.push_back(visit.node);
        stack.pop_back();
        continue;
      }
      const std::string &name = visit.uses[visit.next++];
      auto found = producers.find(name);
      if (found == producers.end()) {
        if (!isKnown(name))
          return badInput("node '{}' ({}) uses the value '{}', which no node, input or initializer "
                          "produces",
                          nodeLabel(nodes.Get(visit.node)), nodes.Get(visit.node).op_type(), name);
        continue;
      }
      Mark mark = marks[size_t(found->second)];
      if (mark == Mark::Open) {
        auto start = std::find_if(stack.begin(), stack.end(),
                                  [&](const Visit &other) { return other.node == found->second; });
        std::string path;
        for (auto step = start; step != stack.end() && step - start < 8; ++step)
          path += "'" + nodeLabel(nodes.Get(step->node)) + "' needs ";
        return badInput("the graph has a cycle: {}'{}'", path, nodeLabel(nodes.Get(found->second)));
      }
      if (mark == Mark::None)
        open(found->second); // `visit` is dangling from here on
    }
  }
  // The walk's order is valid; the file's is nicer to read where it is valid, too.
  std::vector<int> given = order;
  std::sort(given.begin(), given.end());
  std::vector<bool> ready(size_t(nodes.size()), false);
  bool valid = true;
  for (int node : given) {
    std::vector<std::string> uses;
    addUsedNames(nodes.Get(node), uses);
    for (const std::string &name : uses) {
      auto found = producers.find(name);
      valid &= found == producers.end() || ready[size_t(found->second)];
    }
    ready[size_t(node)] = true;
  }
  std::vector<const onnx::NodeProto *> result;
  for (int node : valid ? given : order)
    result.push_back(&nodes.Get(node));
  return result;
}

} // namespace dovetail::importer
