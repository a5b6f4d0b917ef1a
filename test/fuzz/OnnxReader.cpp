// SPDX-License-Identifier: Apache-2.0
//
// Bytes as an ONNX model: the importer gives a graph, which it has verified, or a message. Valid
// models are damaged in ways that a bad disk, a bad exporter or an attacker might.
#include <random>

#include "fuzz/FuzzTarget.h"
#include "import/ModelBuilder.h"
#include "import/ModelTexts.h"

namespace dovetail::importer {
namespace {

using fuzz::Random;

uint64_t importedCount = 0;

size_t pick(Random &random, size_t count) { return random() % count; }

std::string damaged(std::string bytes, const std::string &other, Random &random) {
  size_t edits = 1 + pick(random, 4);
  for (size_t i = 0; i < edits && !bytes.empty(); ++i) {
    size_t at = pick(random, bytes.size());
    size_t length = std::min(bytes.size() - at, 1 + pick(random, 12));
    switch (pick(random, 7)) {
    case 0:
      bytes[at] = char(bytes[at] ^ (1 << pick(random, 8)));
      break;
    case 1:
      bytes[at] = char(random());
      break;
    case 2:
      bytes.resize(at);
      break;
    case 3:
      bytes.erase(at, length);
      break;
    case 4:
      bytes.insert(at, bytes.substr(pick(random, bytes.size()), length));
      break;
    case 5: { // a number made large, negative or zero
      constexpr unsigned char patterns[] = {0x00, 0x7f, 0x80, 0xff};
      for (size_t k = 0; k < length; ++k)
        bytes[at + k] = char(patterns[pick(random, 4)]);
      break;
    }
    default:
      bytes.insert(at, other.substr(pick(random, other.size()), 1 + pick(random, 40)));
    }
  }
  return bytes;
}

/// Every third model is damaged as a message instead, so that it gets past the parser.
std::string rewritten(onnx::ModelProto model, Random &random) {
  onnx::GraphProto &graph = *model.mutable_graph();
  for (size_t i = 0; i < 1 + pick(random, 3); ++i) {
    onnx::NodeProto &node = *graph.mutable_node(int(pick(random, size_t(graph.node_size()))));
    constexpr const char *names[] = {"x", "y", "w", "", "s", "b", "nowhere"};
    constexpr const char *ops[] = {
        "Conv",    "MatMul", "Reshape", "Add",    "Slice",     "Pad",    "Gather",
        "Softmax", "Resize", "Split",   "Expand", "Transpose", "LSTM",   "TopK",
        "Gemm",    "Cast",   "Where",   "Concat", "ReduceSum", "Einsum", "ConvTranspose"};
    switch (pick(random, 8)) {
    case 0:
      if (node.input_size())
        node.set_input(int(pick(random, size_t(node.input_size()))),
                       names[pick(random, std::size(names))]);
      break;
    case 1:
      node.add_input(names[pick(random, std::size(names))]);
      break;
    case 2:
      node.set_op_type(ops[pick(random, std::size(ops))]);
      break;
    case 3:
      if (node.attribute_size()) {
        onnx::AttributeProto &attribute =
            *node.mutable_attribute(int(pick(random, size_t(node.attribute_size()))));
        int64_t value = pick(random, 2) ? int64_t(random()) : int64_t(pick(random, 9)) - 4;
        attribute.ints_size() ? attribute.set_ints(0, value) : attribute.set_i(value);
      }
      break;
    case 4:
      if (graph.input_size()) {
        auto &type =
            *graph.mutable_input(int(pick(random, size_t(graph.input_size()))))->mutable_type();
        type.mutable_tensor_type()->set_elem_type(int(pick(random, 30)));
      }
      break;
    case 5:
      if (graph.input_size()) {
        auto &shape = *graph.mutable_input(int(pick(random, size_t(graph.input_size()))))
                           ->mutable_type()
                           ->mutable_tensor_type()
                           ->mutable_shape();
        if (shape.dim_size() && pick(random, 2))
          shape.mutable_dim(0)->set_dim_value(pick(random, 2) ? int64_t(random())
                                                              : int64_t(pick(random, 4)));
        else
          shape.add_dim();
      }
      break;
    case 6:
      if (graph.initializer_size()) {
        onnx::TensorProto &tensor =
            *graph.mutable_initializer(int(pick(random, size_t(graph.initializer_size()))));
        if (tensor.int64_data_size())
          tensor.set_int64_data(0, int64_t(random()));
        else
          tensor.add_dims(int64_t(pick(random, 5)));
      }
      break;
    default:
      model.mutable_opset_import(0)->set_version(int64_t(1 + pick(random, 28)));
    }
  }
  return model.SerializeAsString();
}

} // namespace
} // namespace dovetail::importer

using namespace dovetail;

std::vector<std::string> fuzz::seeds() {
  std::vector<std::string> files;
  for (const importer::ModelText &text : importer::modelTexts())
    files.push_back(importer::graphModel(text.graph, text.opSet).SerializeAsString());
  return files;
}

uint64_t fuzz::accepted() { return importer::importedCount; }

void fuzz::mutate(std::string &bytes, Random &random) {
  static const std::vector<std::string> others = seeds();
  onnx::ModelProto model;
  if (random() % 3 == 0 && model.ParseFromString(bytes) && model.graph().node_size() &&
      model.opset_import_size())
    bytes = importer::rewritten(std::move(model), random);
  else
    bytes = importer::damaged(std::move(bytes), others[random() % others.size()], random);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  // A context keeps what it has seen; a new one now and then keeps memory small.
  static std::unique_ptr<mlir::MLIRContext> context;
  static unsigned uses = 0;
  if (uses++ % 2000 == 0)
    context = std::make_unique<mlir::MLIRContext>();
  auto bytes = std::make_shared<const std::string>(reinterpret_cast<const char *>(data), size);
  auto module = importer::importOnnx(*bytes, bytes, *context);
  importer::importedCount += bool(module);
  if (!module) {
    fuzz::require(!module.error().message.empty(), "refused without a message");
    fuzz::require(module.error().kind != ErrorKind::Internal, module.error().message.c_str());
  }
  return 0;
}
