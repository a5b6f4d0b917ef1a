// SPDX-License-Identifier: Apache-2.0
//
// Formulas of the ONNX definitions of Conv, ConvTranspose and the pools.
#include "Window.h"

#include <algorithm>

namespace dovetail::reference {

constexpr int64_t kLimit = int64_t(1) << 31;

Extents spatialOf(const Extents &extents) {
  return extents.size() > 2 ? Extents(extents.begin() + 2, extents.end()) : Extents();
}

/// `count` values of an attribute, or `fallback` for each where it is absent.
static Status listOf(const Invocation &op, std::string_view name, size_t count, int64_t least,
                     int64_t fallback, Extents &values) {
  values = op.integers(name).value_or(Extents());
  if (values.empty())
    values.assign(count, fallback);
  if (values.size() != count)
    return op.bad(name, " has ", values.size(), " elements; ", count, " are needed");
  for (int64_t value : values)
    if (value < least || value > kLimit)
      return op.bad(name, " has element ", value, "; it must be at least ", least);
  return {};
}

static Status planBasics(const Invocation &op, const Extents &input, const Extents &kernel,
                         Window &window) {
  size_t rank = kernel.size();
  window.input = input;
  window.kernel = kernel;
  if (input.size() != rank)
    return op.bad("a kernel of rank ", rank, " on ", input.size(), " spatial dimensions");
  for (int64_t extent : kernel)
    if (extent < 1 || extent > kLimit)
      return op.bad("kernel extents ", textOf(kernel));
  for (int64_t extent : input)
    if (extent > kLimit)
      return op.bad("spatial extents ", textOf(input));
  TRY(listOf(op, "strides", rank, 1, 1, window.strides));
  TRY(listOf(op, "dilations", rank, 1, 1, window.dilations));
  Extents pads;
  TRY(listOf(op, "pads", 2 * rank, -kLimit, 0, pads));
  window.before.assign(pads.begin(), pads.begin() + static_cast<int64_t>(rank));
  window.after.assign(pads.begin() + static_cast<int64_t>(rank), pads.end());
  return {};
}

static void splitPads(bool upper, int64_t total, int64_t &before, int64_t &after) {
  total = std::max<int64_t>(total, 0);
  before = upper ? total / 2 : total - total / 2;
  after = total - before;
}

Status planWindow(const Invocation &op, const Extents &input, const Extents &kernel, Slider slider,
                  Window &window) {
  TRY(planBasics(op, input, kernel, window));
  std::string_view automatic = op.text("auto_pad", "NOTSET");
  bool same = automatic == "SAME_UPPER" || automatic == "SAME_LOWER",
       ceiling = op.integer("ceil_mode", 0);
  if (!same && automatic != "VALID" && automatic != "NOTSET" && !automatic.empty())
    return op.unsupported("auto_pad=", automatic,
                          "; NOTSET, VALID, SAME_UPPER and SAME_LOWER are known");
  for (size_t i = 0; i < kernel.size(); ++i) {
    int64_t extent = (kernel[i] - 1) * window.dilations[i] + 1, stride = window.strides[i];
    if (automatic == "VALID")
      window.before[i] = window.after[i] = 0;
    if (same)
      splitPads(automatic == "SAME_UPPER",
                ((input[i] + stride - 1) / stride - 1) * stride + extent - input[i],
                window.before[i], window.after[i]);
    int64_t room = input[i] + window.before[i] + window.after[i] - extent;
    if (slider == Slider::Pool && room > -stride)
      room = std::max<int64_t>(room, 0);
    if (room < 0)
      return op.bad("a window of ", extent, " on ", input[i], " elements with pads ",
                    window.before[i], " and ", window.after[i]);
    int64_t count = (room + (ceiling ? stride - 1 : 0)) / stride + 1;
    // A window that ceil_mode adds must start inside the operand or the padding before it.
    if (ceiling && (count - 1) * stride >= input[i] + window.before[i])
      --count;
    window.output.push_back(std::max<int64_t>(count, 0));
  }
  return {};
}

Status planTransposedWindow(const Invocation &op, const Extents &operand, const Extents &kernel,
                            Window &window) {
  TRY(planBasics(op, operand, kernel, window));
  size_t rank = kernel.size();
  Extents extra;
  TRY(listOf(op, "output_padding", rank, 0, 0, extra));
  std::string_view automatic = op.text("auto_pad", "NOTSET");
  Extents wanted = op.integers("output_shape").value_or(Extents());
  if (wanted.size() == rank + 2)
    wanted.erase(wanted.begin(), wanted.begin() + 2);
  if (!wanted.empty() && wanted.size() != rank)
    return op.bad("output_shape has ", wanted.size(), " elements; ", rank, " are needed");
  bool same = automatic == "SAME_UPPER" || automatic == "SAME_LOWER";
  window.output = operand;
  for (size_t i = 0; i < rank; ++i) {
    int64_t full =
        window.strides[i] * (operand[i] - 1) + extra[i] + (kernel[i] - 1) * window.dilations[i] + 1;
    if (automatic == "VALID")
      window.before[i] = window.after[i] = 0;
    if (!wanted.empty() || same) {
      int64_t result = wanted.empty() ? operand[i] * window.strides[i] : wanted[i];
      // Whatever is not SAME_UPPER takes the larger half of the padding at the beginning.
      splitPads(automatic == "SAME_UPPER", full - result, window.before[i], window.after[i]);
      window.input[i] = result;
    } else {
      window.input[i] = full - window.before[i] - window.after[i];
    }
    if (window.input[i] < 0)
      return op.bad("pads ", window.before[i], " and ", window.after[i], " of ", full, " elements");
  }
  return {};
}

} // namespace dovetail::reference
