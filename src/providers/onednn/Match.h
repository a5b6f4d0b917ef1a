// SPDX-License-Identifier: Apache-2.0
//
// Recognises the problems a single oneDNN primitive can serve: transposes and reshapes that only
// change how an operand is looked at, one main op, then element-wise ops that become the
// primitive's post-operations. Dequantisations of operands and a quantisation at the end become
// scales and zero points. What does not fit is refused with the op that stands in the way.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "providers/OperandView.h"
#include "providers/onednn/Api.h"

namespace dovetail::onednn {

using providers::OpReader;
using providers::ProblemReader;
using providers::View;

/// How integers stand for numbers: (integer - zero) * scale. Either may be absent.
struct Grid {
  uint32_t scale = DVT_NO_VALUE, zero = DVT_NO_VALUE;
  /// Of the value, along which scales and zero points differ; -1 where there is one for all.
  int axis = -1;
};

/// A vector that a primitive wants beside its operands, made of small values of the problem: a
/// number and products. Each value has one element or `count`.
struct Derived {
  struct Term {
    double sign = 1;
    /// Absent ones are 1.
    uint32_t base = DVT_NO_VALUE, factor = DVT_NO_VALUE, otherFactor = DVT_NO_VALUE,
             divisor = DVT_NO_VALUE;
  };
  dnnl_data_type_t type = dnnl_data_type_undef; ///< f32 or s32; undefined: no such vector
  int64_t count = 1;
  double shift = 0;
  std::vector<Term> terms;
  size_t rank = 1; ///< dimensions that the primitive wants it to have
  bool isPresent() const { return type != dnnl_data_type_undef; }
};

/// An element-wise step after the main op.
struct PostOp {
  enum class Kind { Eltwise, Binary, PRelu } kind = Kind::Eltwise;
  dnnl_alg_kind_t algorithm = dnnl_alg_kind_undef;
  float alpha = 0, beta = 0;
  View operand; ///< Binary and PRelu: in the dimensions of the main op's result, 1 where broadcast
  Derived derived = {}; ///< Binary: a number instead of the operand
};

/// A step that combines every element with a number.
inline PostOp numberStep(dnnl_alg_kind_t algorithm, std::vector<Derived::Term> terms) {
  return {PostOp::Kind::Binary, algorithm, 0, 0, {}, {dnnl_f32, 1, 0, std::move(terms), 1}};
}

struct Match {
  uint32_t mainOp = 0;
  std::vector<View> operands; ///< of the main op, absent ones included
  View result;                ///< the problem's output in the dimensions of the main op's result
  std::vector<View>
      results; ///< of a recurrent op, each in its own dimensions; absent ones included
  std::vector<PostOp> postOps;
  std::map<uint32_t, Grid> grids; ///< of the problem's inputs that are quantised
  std::optional<Grid> resultGrid;
  /// The bias is integers on a grid whose scales are the products of the operands' scales.
  bool integerBias = false;
  bool isQuantized() const { return !grids.empty() || resultGrid; }
  std::string summary; ///< "transpose+mat_mul+add"
};

bool isRecurrent(std::string_view name);

/// Nothing where the problem has another form, with `reason` filled.
std::optional<Match> matchProblem(const ProblemReader &problem, std::string &reason);

/// An op of one tensor, as oneDNN's element-wise primitive computes it; scalar operands must be
/// literals. `current` is the operand that is the tensor. Empty where there is none or no number.
struct EltwiseStep {
  dnnl_alg_kind_t algorithm;
  float alpha, beta;
};
/// As many steps as it takes (selu and reverse division take two); empty where the op has no such
/// form.
std::vector<EltwiseStep> eltwiseSteps(const ProblemReader &problem, const OpReader &op,
                                      uint32_t current);

/// Algorithm of a binary op; undefined where it has none.
dnnl_alg_kind_t binaryAlgorithm(std::string_view name);

} // namespace dovetail::onednn
