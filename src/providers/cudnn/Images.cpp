// SPDX-License-Identifier: Apache-2.0
//
// Convolutions of one to three spatial dimensions, grouped and dilated, and pools.
#include <algorithm>

#include "providers/cudnn/Translator.h"

namespace dovetail::cudnn {
namespace {

/// The attributes of a window into `operation`; whether they agree with the extents.
bool readWindow(Translator &to, const OpReader &op, Dims kernel, const Dims &source,
                const Dims &result, Operation &operation) {
  const size_t spatial = kernel.size();
  Dims strides = op.integers("strides", Dims(spatial, 1)),
       dilations = op.integers("dilations", Dims(spatial, 1)),
       pads = op.integers("pads", Dims(2 * spatial, 0));
  if (strides.size() != spatial || dilations.size() != spatial || pads.size() != 2 * spatial ||
      source.size() != spatial + 2 || result.size() != spatial + 2)
    return to.refuse(std::string(op.name()) + ": window and extents do not agree");
  Dims post(pads.begin() + static_cast<ptrdiff_t>(spatial), pads.end());
  pads.resize(spatial);
  for (size_t i = 0; i < spatial; ++i) {
    const int64_t reach = (kernel[i] - 1) * dilations[i] + 1;
    const int64_t room = source[i + 2] + pads[i] + post[i] - reach;
    if (strides[i] < 1 || dilations[i] < 1 || pads[i] < 0 || post[i] < 0 || room < 0 ||
        room / strides[i] + 1 != result[i + 2])
      return to.refuse(std::string(op.name()) +
                       ": windows that begin or end outside the padding are not supported");
  }
  if (spatial == 1) { // the graph has two
    strides.insert(strides.begin(), 1);
    dilations.insert(dilations.begin(), 1);
    pads.insert(pads.begin(), 0);
    post.insert(post.begin(), 0);
    kernel.insert(kernel.begin(), 1);
  }
  operation.strides = strides;
  operation.dilations = dilations;
  operation.prePads = pads;
  operation.postPads = post;
  operation.window = kernel;
  return true;
}

} // namespace

bool translateConvolution(Translator &to, const OpReader &op) {
  to.graph.family = "implicit-gemm";
  Operation made;
  made.kind = Operation::Kind::Convolution;
  const Dims source = to.problem.extents(op.input(0)), weights = to.problem.extents(op.input(1)),
             extents = to.problem.extents(op.output(0));
  if (source.size() < 3 || source.size() > 5 || weights.size() != source.size())
    return to.refuse("conv: one to three spatial dimensions are supported");
  if (!readWindow(to, op, Dims(weights.begin() + 2, weights.end()), source, extents, made))
    return false;
  const int64_t groups = op.integer("group", 1);
  if (groups < 1 || weights[1] * groups != source[1] || weights[0] % groups != 0)
    return to.refuse("conv: the weights do not fit the channels");
  made.operands = {to.operand(op.input(0)), to.operand(op.input(1))};
  if (made.operands[0] == Operation::kAbsent || made.operands[1] == Operation::kAbsent)
    return false;
  if (to.graph.tensors[made.operands[0]].number || to.graph.tensors[made.operands[1]].number)
    return to.refuse("conv: an image and weights in memory are supported, not one number for all");
  to.alignType(made.operands[0], made.operands[1]);
  to.alignType(made.operands[1], made.operands[0]);
  if (!op.hasInput(2)) {
    made.result = to.result(op.output(0));
    to.append(made);
    return made.result != Operation::kAbsent;
  }
  if (to.problem.rank(op.input(2)) != 1 || to.problem.producer(op.input(2)) >= 0)
    return to.refuse("conv: the bias is no vector in memory");
  // One number for each channel.
  Dims shape(source.size(), 1);
  shape[1] = extents[1];
  const std::optional<View> bias = to.memory(op.input(2)).reshaped(shape);
  const std::optional<View> placed = bias ? to.place(*bias) : std::nullopt;
  if (!placed)
    return to.refuse("conv: the bias does not lie densely");
  const size_t addend = to.operand(*placed), result = to.result(op.output(0));
  if (addend == Operation::kAbsent || result == Operation::kAbsent)
    return false;
  made.result = to.temporary(to.dimsOf(result));
  to.append(made);
  to.pointwise(PointwiseMode::Add, {made.result, addend}, result);
  return true;
}

bool translatePool(Translator &to, const OpReader &op) {
  to.graph.family = "pooling";
  const std::string_view name = op.name();
  const Dims source = to.problem.extents(op.input(0)), extents = to.problem.extents(op.output(0));
  if (source.size() < 3 || source.size() > 5)
    return to.refuse(std::string(name) + ": one to three spatial dimensions are supported");
  Operation made;
  made.kind = Operation::Kind::Resample;
  const bool isMax = name.find("max") != std::string_view::npos;
  made.resample = isMax                                     ? ResampleMode::Max
                  : op.integer("count_include_pad", 0) != 0 ? ResampleMode::MeanWithPadding
                                                            : ResampleMode::MeanWithoutPadding;
  Dims kernel(source.begin() + 2, source.end());
  if (!name.starts_with("global"))
    kernel = op.integers("kernel_shape", {});
  if (kernel.size() + 2 != source.size() || op.integer("storage_order", 0) != 0)
    return to.refuse(std::string(name) + ": a window of this form is not supported");
  if (!readWindow(to, op, kernel, source, extents, made))
    return false;
  for (int64_t dilation : made.dilations)
    if (dilation != 1)
      return to.refuse(std::string(name) + ": dilated windows are not supported");
  made.operands = {to.operand(op.input(0))};
  made.result = to.result(op.output(0));
  if (made.operands[0] == Operation::kAbsent || made.result == Operation::kAbsent)
    return false;
  to.append(made);
  return true;
}

} // namespace dovetail::cudnn
