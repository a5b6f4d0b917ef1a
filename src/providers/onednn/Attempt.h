// SPDX-License-Identifier: Apache-2.0
//
// From a recognised problem to oneDNN primitive descriptors: for every layout style that makes
// sense a descriptor is created, and every implementation behind it is visited. Proposing and
// preparing walk the same list, so what was proposed is found again by name.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "providers/onednn/Match.h"

namespace dovetail::onednn {

/// How activations are laid out.
enum class Style { Any, RowMajor, ChannelsLast, Blocked16, Blocked8, Blocked4 };

/// A constant made of the problem's constants while preparing, such as gates in another order.
struct Assembled {
  std::vector<uint32_t> values; ///< f32 constants it is made of
  Dims dims, strides;           ///< of what `make` gives
  std::function<std::vector<float>(const std::vector<const float *> &)> make;
};

/// What an execution argument of a primitive is bound to.
struct Argument {
  int id = 0; ///< DNNL_ARG_*
  View view;  ///< the value it stands for
  int32_t temporary =
      -1; ///< or an intermediate of this number, in the layout the primitives agreed on
  Derived derived = {};  ///< or this
  bool flipSign = false; ///< a constant of u8 that the primitive gets as s8, 128 less
  bool widen = false;    ///< a quantised constant that the primitive gets as f32
  std::shared_ptr<const Assembled> assembled = nullptr; ///< or this
};

/// One primitive.
struct Stage {
  PrimitiveDesc description;
  std::vector<Argument> arguments;
};

/// One way to serve the problem; one stage's implementations are stepped through, the others are
/// fixed.
struct Attempt {
  std::string family;
  std::string numerics = "f32";
  std::vector<Stage> stages;
  /// The problem's result is first a copy of this value, then added to (a sum post-operation).
  View accumulated;
  /// Constants that are not part of the problem and must hold these numbers; prepare refuses when
  /// they do not.
  std::vector<std::pair<uint32_t, std::vector<double>>> assumed;
  /// Layouts that the problem itself states, first operand and result; empty where the
  /// implementation chooses.
  std::vector<std::string> fixedLayouts;
  /// The stage that gives the attempt its name; the last one by default.
  std::optional<size_t> namedStage = std::nullopt;
  /// The primitives hold numbers of the problem's constants, and serve no other kernel.
  bool ownsNumbers = false;

  const Stage &named() const { return namedStage ? stages[*namedStage] : stages.back(); }
};

/// An argument with its final layout.
struct Binding {
  int id = 0;
  View view;
  int32_t temporary = -1;
  Desc desc;  ///< what the primitive wants
  Desc plain; ///< the value's bytes as the host hands them over; empty for temporaries
  bool needsPacking = false; ///< a constant whose desc is not plain
  Derived derived = {};      ///< as in Argument
  bool flipSign = false;     ///< as in Argument
  bool widen = false;        ///< as in Argument
  Grid grid = {};            ///< of the constant, where it is widened
  /// 16-bit floats of the host that the primitive gets, or gives, as f32 in the workspace from byte
  /// `place` on.
  bool converts = false;
  uint64_t place = 0;
  std::shared_ptr<const Assembled> assembled = nullptr; ///< as in Argument
};

/// An implementation with everything settled.
struct Resolved {
  std::string algorithm, numerics;
  std::vector<std::string> inputLayouts, outputLayouts;
  std::vector<std::vector<Binding>> bindings; ///< for each stage
  std::vector<uint64_t> temporaryBytes; ///< of each intermediate, rounded up to whole cache lines
  uint64_t convertedBytes = 0; ///< of operands and results in f32, in front of intermediates
  uint64_t scratchBytes = 0, packedBytes = 0;
  uint32_t threads = 1; ///< of its team
  bool packs = false;
  bool isReference = false; ///< oneDNN's plain loops
  uint64_t workspaceBytes() const { return temporaryPlace(temporaryBytes.size()) + scratchBytes; }
  /// Where an intermediate starts; the scratchpad lies behind the last one.
  uint64_t temporaryPlace(size_t number) const;
};

/// Called for every attempt; it steps through the implementations. Returns false to stop.
using AttemptSink = std::function<bool(Attempt &&)>;

/// Everything attempt makers need.
class Maker {
public:
  Maker(const Library &library, const ProblemReader &problem, const Match &match, bool hasAvx512,
        AttemptSink sink)
      : library(library), problem(problem), match(match), hasAvx512(hasAvx512),
        sink(std::move(sink)) {}

  const Library &library;
  const ProblemReader &problem;
  const Match &match;
  const bool hasAvx512;

  OpReader op() const { return problem.op(match.mainOp); }
  const View &operand(size_t index) const;
  /// What primitives take a value as.
  dnnl_data_type_t type(const View &view) const {
    const dnnl_data_type_t found = dataType(problem.type(view.value));
    return wide && (found == dnnl_f16 || found == dnnl_bf16) ? dnnl_f32 : found;
  }
  /// As the host hands the value over when the layout is row-major.
  Desc plain(const View &view) const;
  /// In the given style where the view may have another layout than row-major, plain otherwise.
  /// Empty where the style makes no sense for its dimensions.
  Desc styled(const View &view, Style style) const;
  /// Weights: oneDNN's choice for constants, plain otherwise.
  Desc weights(const View &view) const;
  /// The same styles, the one that what is looked for is in first: its implementations are found
  /// without going through those of the others.
  std::vector<Style> inOrder(std::vector<Style> styles) const;
  /// Styles for ops that keep the layout they are given.
  std::vector<Style> propagatingStyles(const View &view) const;
  /// Attributes with the post-operations from `first` on; appends their arguments. `accumulate` is
  /// the index of a post-operation to be done as a sum, or -1.
  Attributes attributes(const std::vector<PostOp> &postOps, Style style,
                        std::vector<Argument> &arguments, int accumulate = -1) const;
  /// For contractions: whether all operands are of one type of floats, or source and weights are
  /// quantised with parameters that oneDNN has a form for. `weightsAxis`: of the weights' value,
  /// along which scales may differ. False with `reason` filled.
  bool readContraction(const View &source, const View &weights, const View &result,
                       int weightsAxis);
  /// One constant scale, which is no extreme number as far as is known, and one constant zero
  /// point.
  bool hasOrdinaryScale(const Grid &grid) const;
  bool isZero(uint32_t value) const;
  bool isInt8() const { return match.isQuantized() && !widenWeights; }
  /// Whether only the weights are quantised, and become f32 when they are packed.
  bool widensWeights() const { return widenWeights; }
  /// Whether the second operand of a matrix product is u8 and computed at run time. oneDNN takes s8
  /// only, so a stage in front has to subtract 128.
  bool shiftsWeights() const { return shiftWeights; }
  /// That stage: from the operand into temporary 0, which then has `to`. False where there is none.
  bool addShift(const View &weights, const Desc &to, Attempt &attempt) const;
  /// After readContraction: scales and zero points as attributes and arguments. `weightsMask`: of
  /// the dimensions that `weightsAxis` is in oneDNN's terms. `resultMask`: of the result's that it
  /// becomes.
  bool addGrids(const Attributes &attributes, int weightsMask, int resultMask,
                std::vector<Argument> &arguments) const;
  /// Whether scales, and the bias divided by them, are to be numbers of the primitive: in 2.x.
  bool usesOutputScales() const { return kGeneration == 2 && isInt8(); }
  /// After readContraction, where usesOutputScales(): computes these numbers for a result of
  /// `channels`, and changes `postOps` so that they end on the result's grid. While proposing,
  /// others stand in for those that are not known. False with `reason` filled; true, with nothing
  /// done, in 3.x.
  bool settleScales(const std::optional<View> &bias, int64_t channels,
                    std::vector<PostOp> &postOps);
  /// After settleScales: the scales as an attribute. `resultMask`: as in addGrids.
  bool addOutputScales(const Attributes &attributes, int resultMask) const;
  /// After settleScales: a bias divided by scales, or integers as they are.
  Argument outputBiasArgument(const View &bias) const;
  /// Whether what is added to all of a channel can be the bias.
  bool mayBeBias(const View &view) const { return !usesOutputScales() || isConstant(view); }
  /// After readContraction: arguments of the contraction's weights and bias.
  Argument weightsArgument(const View &weights) const;
  Argument biasArgument(const View &bias) const;
  Desc biasDesc(const View &bias) const;
  /// Whether the views that are present are all f32.
  bool isF32(std::initializer_list<const View *> views) const;
  /// Whether they are all of one type among f32, f16 and bf16.
  bool isOneFloatType(std::initializer_list<const View *> views) const;
  /// Class of rounding: "int8", or the type of the main op's operands followed by `variant`.
  std::string numerics(const std::string &variant = "") const;
  /// Only the contractions run PReLU after themselves; others offer it and then fail.
  bool hasPRelu() const;
  bool isConstant(const View &view) const {
    return view.isPresent() && problem.isConstant(view.value);
  }
  /// Offers a single primitive; nothing happens when `status` is a failure. Its class of rounding
  /// is numerics() where none is given.
  void offer(const std::string &family, dnnl_status_t status, dnnl_primitive_desc_t description,
             std::vector<Argument> arguments, const std::string &numerics = "");
  void offer(Attempt &&attempt);
  /// For every attempt offered from here on, see Attempt::assumed.
  std::vector<std::pair<uint32_t, std::vector<double>>> assumed;
  /// Those of prepare, with the constants; null while proposing.
  const dvt_prepare_args *prepareArgs = nullptr;
  /// Why nothing can be made of the main op; returned by makers.
  bool refuse(const std::string &why) {
    if (reason.empty())
      reason = why;
    return false;
  }
  /// Whether attempts of this family have a place among what is looked for.
  bool wants(std::string_view family) const;
  bool stopped = false;
  bool wide = false;  ///< 16-bit floats are widened before the primitive runs, and rounded after it
  std::string wanted; ///< algorithm that is looked for; empty for all
  std::optional<Style> wantedStyle = std::nullopt; ///< of what is looked for, as far as is known
  std::string reason;
  size_t made = 0;

private:
  AttemptSink sink;
  /// Values of the contraction's operands, set by readContraction.
  uint32_t sourceValue = DVT_NO_VALUE, weightsValue = DVT_NO_VALUE;
  bool flipWeights = false, widenWeights = false, shiftWeights = false;
  std::vector<float> outputScales, outputBias; ///< set by settleScales
  bool ownsNumbers = false;                    ///< as in Attempt
};

/// The numbers of a constant of the problem, row-major; nothing where it came without bytes. `args`
/// are those of prepare, or null.
std::optional<std::vector<double>> numbersOf(const ProblemReader &problem, uint32_t value,
                                             const dvt_prepare_args *args);

/// Whether an implementation of this name may sum products of bytes in 16 bits, where they
/// saturate.
bool maySaturate(const Library &library, const std::string &implementation,
                 const dvt_target &target);

/// One maker for each family of ops. They return false, with maker.reason filled, for what the
/// family cannot do.
bool makeConvolution(Maker &maker);
bool makeMatMul(Maker &maker);
bool makeAttention(Maker &maker);
bool makePooling(Maker &maker);
bool makeSoftmax(Maker &maker);
bool makeNormalization(Maker &maker);
bool makeReduction(Maker &maker);
bool makeResampling(Maker &maker);
bool makeConcat(Maker &maker);
bool makeReorder(Maker &maker);
bool makePointwise(Maker &maker);
bool makeRequantization(Maker &maker);
bool makeQuantizedSum(Maker &maker);
bool makeRecurrent(Maker &maker);

/// Visits every implementation of every attempt, always in the same order; where `wanted` is not
/// null, only those of algorithms of its name, and first those that are likely to have its layouts;
/// `args` are then those of prepare.
/// `visit` gets the attempt, to make primitives of,
/// and returns false to stop. Returns false with `reason` when the problem has no form this
/// provider knows.
using ResolvedVisitor = std::function<bool(const Attempt &, const Resolved &)>;
bool visitImplementations(const Library &library, const ProblemReader &problem,
                          const dvt_target &target, uint32_t threads, const dvt_candidate *wanted,
                          const dvt_prepare_args *args, const ResolvedVisitor &visit,
                          std::string &reason);

} // namespace dovetail::onednn
