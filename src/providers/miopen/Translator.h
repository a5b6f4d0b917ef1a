// SPDX-License-Identifier: Apache-2.0
//
// One translation under way. The ops are translated in files by family.
#pragma once

#include <optional>
#include <string>

#include "providers/miopen/Form.h"

namespace dovetail::miopen {

using providers::OpReader;
using providers::ProblemReader;

class Translator {
public:
  Translator(const ProblemReader &problem, bool channelsLast, std::string &reason)
      : problem(problem), channelsLast(channelsLast), reason(reason) {}

  /// Whether it worked; the form is then complete.
  bool run();
  Form form;

private:
  bool refuse(const std::string &why) {
    reason = why;
    return false;
  }
  bool checkWhole();
  /// Whether every op reads what the one before gives, and nobody else does.
  bool checkChain();
  static bool reads(const OpReader &op, uint32_t value);
  void chooseLayouts();
  bool translateHead(const OpReader &op);

  bool translateConvolution(const OpReader &op);
  bool translatePool(const OpReader &op);
  bool translateSoftmax(const OpReader &op);
  bool translateBatchNorm(const OpReader &op);
  bool translateLayerNorm(const OpReader &op);
  /// Of an operand where it `isHead`, else in place.
  bool translateActivation(const OpReader &op, bool isHead);
  /// Of a number for each channel or of a tensor to `before`, in place.
  bool translateAddition(const OpReader &op, uint32_t before);
  bool addBias(uint32_t bias, uint32_t before);
  /// Reads pads, strides and dilations; whether the windows are those that the library counts.
  bool readWindow(const OpReader &op, const Dims &window, const Dims &source, const Dims &result,
                  Call &call);

  /// Where an operand is among the problem's inputs; nothing with a reason.
  std::optional<uint32_t> position(uint32_t value);
  std::optional<DataType> typeOf(uint32_t value, bool takesBfloat);
  /// In the form's layout; of one spatial dimension as of two.
  Tensor image(DataType type, Dims dims) const;
  bool addOperand(Call &call, uint32_t value, Tensor tensor);

  const ProblemReader &problem;
  bool channelsLast;
  std::string &reason;
};

/// Type of elements; nothing where no kernel of this provider takes them.
std::optional<DataType> dataType(dvt_type type);
Tensor denseTensor(DataType type, const Dims &dims);

} // namespace dovetail::miopen
