// SPDX-License-Identifier: Apache-2.0
//
// Convolutions of one to three spatial dimensions, grouped and dilated, and pools of one or two.
#include <algorithm>
#include <limits>

#include "providers/miopen/Translator.h"

namespace dovetail::miopen {

bool Form::mayTransform() const {
  const Call &call = calls.front();
  auto isOne = [](int64_t number) { return number == 1; };
  const Dims &weights = call.tensors[1].dims;
  return call.groups == 1 && std::all_of(call.dilations.begin(), call.dilations.end(), isOne) &&
         !std::all_of(weights.begin() + 2, weights.end(), isOne);
}

namespace {

uint64_t convolutionWorkspace(const Call &call) {
  const Tensor &x = call.tensors[0], &w = call.tensors[1], &y = call.result;
  auto count = [](const Dims &dims, size_t from) {
    return static_cast<uint64_t>(providers::product(dims, from, dims.size()));
  };
  // A column of the window's elements for each element of an image of the result; and all operands
  // and the result in f32.
  const uint64_t unfolded = static_cast<uint64_t>(call.groups) * count(w.dims, 1) *
                            count(y.dims, 2) * elementBytes(x.type),
                 rearranged = 4 * (count(x.dims, 0) + count(w.dims, 0) + count(y.dims, 0));
  constexpr uint64_t kLeast = uint64_t(1) << 20, kMost = uint64_t(1) << 30;
  return std::clamp(std::max(unfolded, rearranged), kLeast, kMost);
}

} // namespace

uint64_t workspaceBound(const Form &form) {
  const Call &call = form.calls.front();
  if (call.kind == Call::Kind::LayerNorm)
    return 2 * rowNumbersBytes(call);
  return form.isConvolution() ? convolutionWorkspace(call) : 0;
}

bool Translator::readWindow(const OpReader &op, const Dims &window, const Dims &source,
                            const Dims &result, Call &call) {
  const std::string name(op.name());
  const size_t spatial = window.size();
  call.window = window;
  call.strides = op.integers("strides", Dims(spatial, 1));
  call.dilations = op.integers("dilations", Dims(spatial, 1));
  call.pads = op.integers("pads", Dims(2 * spatial, 0));
  if (call.strides.size() != spatial || call.dilations.size() != spatial ||
      call.pads.size() != 2 * spatial || source.size() != spatial + 2 ||
      result.size() != spatial + 2)
    return refuse(name + ": window and extents do not agree");
  // The library pads both sides alike. Where that gives as many windows, they are the same ones.
  call.pads.resize(spatial);
  for (size_t i = 0; i < spatial; ++i) {
    constexpr int64_t kMost = std::numeric_limits<int32_t>::max(); // the library takes ints
    const auto [least, most] =
        std::minmax({window[i], call.strides[i], call.dilations[i], call.pads[i]});
    if (most > kMost)
      return refuse(name + ": windows, strides, dilations and pads of more than 2^31 - 1 are not "
                           "supported");
    if (least < 0 || window[i] < 1 || call.strides[i] < 1 || call.dilations[i] < 1)
      return refuse(name + ": a window of this form is not supported");
    const int64_t reach = (window[i] - 1) * call.dilations[i] + 1,
                  room = source[i + 2] + 2 * call.pads[i] - reach;
    if (room < 0 || room / call.strides[i] + 1 != result[i + 2])
      return refuse(name + ": padding of this form is not supported");
  }
  if (spatial == 1) {
    call.window.insert(call.window.begin(), 1);
    call.strides.insert(call.strides.begin(), 1);
    call.dilations.insert(call.dilations.begin(), 1);
    call.pads.insert(call.pads.begin(), 0);
  }
  return true;
}

bool Translator::translateConvolution(const OpReader &op) {
  form.family = "convolution";
  Call call;
  call.kind = Call::Kind::Convolution;
  if (!op.hasInput(0) || !op.hasInput(1))
    return refuse("conv: an operand is missing");
  const Dims source = problem.extents(op.input(0)), weights = problem.extents(op.input(1)),
             result = problem.extents(op.output(0));
  if (source.size() < 3 || source.size() > 5 || weights.size() != source.size())
    return refuse("conv: one to three spatial dimensions are supported");
  if (!readWindow(op, Dims(weights.begin() + 2, weights.end()), source, result, call))
    return false;
  call.groups = op.integer("group", 1);
  if (call.groups < 1 || weights[1] * call.groups != source[1] || weights[0] != result[1] ||
      weights[0] % call.groups != 0)
    return refuse("conv: the weights do not fit the channels");
  const std::optional<DataType> type = typeOf(op.input(0), true);
  if (!type)
    return false;
  if (problem.type(op.input(1)) != problem.type(op.input(0)) ||
      problem.type(op.output(0)) != problem.type(op.input(0)))
    return refuse("conv: operands and result of one type are supported");
  if (!addOperand(call, op.input(0), image(*type, source)) ||
      !addOperand(call, op.input(1), image(*type, weights)))
    return false;
  call.result = image(*type, result);
  form.calls.push_back(std::move(call));
  return !op.hasInput(2) || addBias(op.input(2), op.output(0));
}

bool Translator::translatePool(const OpReader &op) {
  form.family = "pooling";
  const std::string name(op.name());
  if (!op.hasInput(0))
    return refuse(name + ": an operand is missing");
  const Dims source = problem.extents(op.input(0)), result = problem.extents(op.output(0));
  if (source.size() < 3 || source.size() > 4)
    return refuse(name + ": one or two spatial dimensions are supported");
  Dims window(source.begin() + 2, source.end());
  if (!name.starts_with("global"))
    window = op.integers("kernel_shape", {});
  Call call;
  call.kind = Call::Kind::Pool;
  call.pooling = name.find("max") != std::string::npos     ? PoolingMode::Max
                 : op.integer("count_include_pad", 0) != 0 ? PoolingMode::AverageInclusive
                                                           : PoolingMode::Average;
  if (window.size() + 2 != source.size() || op.integer("storage_order", 0) != 0)
    return refuse(name + ": a window of this form is not supported");
  if (!readWindow(op, window, source, result, call))
    return false;
  if (std::any_of(call.dilations.begin(), call.dilations.end(), [](int64_t d) { return d != 1; }))
    return refuse(name + ": dilated windows are not supported");
  const std::optional<DataType> type = typeOf(op.input(0), false);
  if (!type || !addOperand(call, op.input(0), image(*type, source)))
    return false;
  call.result = image(*type, result);
  form.calls.push_back(std::move(call));
  return true;
}

} // namespace dovetail::miopen
