// SPDX-License-Identifier: Apache-2.0
//
// The tensors that a kernel was made for, and whether those that a run brings are such.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/schedule/ProblemReader.h"
#include "dovetail/provider.h"

namespace dovetail::native {

class TensorShapes {
public:
  struct Shape {
    dvt_type type;
    std::vector<int64_t> extents; ///< -1 where symbolic
  };
  /// Of the problem's inputs, then of its outputs. The problem is needed during the call only.
  explicit TensorShapes(const codegen::ProblemReader &problem);

  uint32_t inputs() const { return inputCount; }
  uint32_t count() const { return static_cast<uint32_t>(shapes.size()); }
  uint32_t dimensions() const { return dimensionCount; } ///< of all together
  bool isStatic() const { return allStatic; }
  const Shape &operator[](uint32_t tensor) const { return shapes[tensor]; }
  const dvt_tensor &of(const dvt_run_args &args, uint32_t tensor) const {
    return tensor < inputCount ? args.inputs[tensor] : args.outputs[tensor - inputCount];
  }

  /// Whether the tensors of a run are those, dense, and with memory on the device or beside it;
  /// inputs for which `given` has memory need none. DVT_BAD_INPUT with a message otherwise.
  dvt_code check(const dvt_run_args &args, bool onDevice, const std::vector<const void *> &given,
                 dvt_error *error) const;

private:
  /// A shape once more, in few lines of the cache: every run goes through all of them.
  struct Border {
    dvt_type type;
    uint32_t rank;
    uint32_t first; ///< of its extents in `wanted`
  };
  bool fits(const dvt_tensor &tensor, const Border &border, bool hasMemory, bool onDevice) const;
  dvt_code refuse(const dvt_run_args &args, uint32_t tensor, dvt_error *error) const;

  std::vector<Shape> shapes;
  std::vector<Border> borders;
  std::vector<int64_t> wanted; ///< extents of all, one tensor after the other
  uint32_t inputCount, dimensionCount = 0;
  bool allStatic = true;
};

} // namespace dovetail::native
