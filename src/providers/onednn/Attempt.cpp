// SPDX-License-Identifier: Apache-2.0
//
// What all families share: descriptors in a layout style, post-operations as attributes, and
// settling the layouts that an implementation chose into the text the plug-in door speaks.
#include "providers/onednn/Attempt.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "providers/TeamSizes.h"
#include "providers/onednn/HalfConversion.h"

namespace dovetail::onednn {
namespace {

const View kAbsent;

std::string styleLayout(Style style, size_t rank) {
  std::string text;
  for (size_t i = 0; i < rank; ++i)
    text += static_cast<char>('a' + i);
  switch (style) {
  case Style::Any:
  case Style::RowMajor:
    return "";
  case Style::ChannelsLast:
    return "a" + text.substr(2) + "b";
  case Style::Blocked16:
    return "aB" + text.substr(2) + "16b";
  case Style::Blocked8:
    return "aB" + text.substr(2) + "8b";
  case Style::Blocked4:
    return "aB" + text.substr(2) + "4b";
  }
  return "";
}

/// The style that operands of a candidate are in, as far as its layouts tell.
std::optional<Style> styleOf(const dvt_candidate &candidate, const dvt_problem &problem) {
  std::string_view text;
  auto look = [&](const char *const *layouts, uint32_t count) {
    for (uint32_t i = 0; i < count && layouts && text.empty(); ++i)
      text = layouts[i] ? layouts[i] : "";
  };
  look(candidate.output_layouts, problem.output_count);
  look(candidate.input_layouts, problem.input_count);
  if (text.empty())
    return Style::RowMajor;
  for (auto [ending, style] : {std::pair("16b", Style::Blocked16), std::pair("8b", Style::Blocked8),
                               std::pair("4b", Style::Blocked4)})
    if (text.ends_with(ending))
      return style;
  return text == styleLayout(Style::ChannelsLast, text.size()) ? std::optional(Style::ChannelsLast)
                                                               : std::nullopt;
}

/// Whether some element-wise function comes more than once. Generated code of 2.6 then takes the
/// parameters of one of them for all.
bool appliesTwice(const std::vector<PostOp> &postOps) {
  std::set<dnnl_alg_kind_t> seen;
  return std::any_of(postOps.begin(), postOps.end(), [&](const PostOp &step) {
    return step.kind == PostOp::Kind::Eltwise && !seen.insert(step.algorithm).second;
  });
}

int64_t styleBlock(Style style) {
  return style == Style::Blocked16  ? 16
         : style == Style::Blocked8 ? 8
         : style == Style::Blocked4 ? 4
                                    : 1;
}

} // namespace

const View &Maker::operand(size_t index) const {
  return index < match.operands.size() ? match.operands[index] : kAbsent;
}

Desc Maker::plain(const View &view) const {
  return Desc::strided(library, type(view), view.dims, view.strides);
}

Desc Maker::styled(const View &view, Style style) const {
  const bool mayMove = view.isFree() || isConstant(view);
  if (!mayMove || style == Style::RowMajor)
    return plain(view);
  if (style == Style::Any)
    return Desc::any(library, type(view), view.dims);
  if (view.dims.size() < 3 || view.dims.size() > 5)
    return {};
  return Desc::withLayout(library, type(view), view.dims, styleLayout(style, view.dims.size()));
}

Desc Maker::weights(const View &view) const {
  if (!isConstant(view))
    return plain(view);
  const bool own = view.value == weightsValue;
  return Desc::any(library,
                   own && widenWeights  ? dnnl_f32
                   : own && flipWeights ? dnnl_s8
                                        : type(view),
                   view.dims);
}

std::vector<Style> Maker::propagatingStyles(const View &view) const {
  std::vector<Style> styles{Style::RowMajor};
  if (!view.isFree() || view.dims.size() < 3 || view.dims.size() > 5 || view.dims[1] == 1)
    return styles;
  styles.push_back(Style::ChannelsLast);
  Style blocked = hasAvx512 ? Style::Blocked16 : Style::Blocked8;
  if (view.dims[1] * 2 >= styleBlock(blocked))
    styles.push_back(blocked);
  return inOrder(std::move(styles));
}

std::vector<Style> Maker::inOrder(std::vector<Style> styles) const {
  if (auto found = std::find(styles.begin(), styles.end(), wantedStyle); found != styles.end())
    std::rotate(styles.begin(), found, found + 1);
  return styles;
}

Attributes Maker::attributes(const std::vector<PostOp> &postOps, Style style,
                             std::vector<Argument> &arguments, int accumulate) const {
  dnnl_primitive_attr_t made = nullptr;
  if (kGeneration == 2 && appliesTwice(postOps))
    return {};
  if (library.primitive_attr_create(&made) != dnnl_success)
    return {};
  Attributes result(library, made);
  dnnl_post_ops_t chainHandle = nullptr;
  if (library.primitive_attr_set_scratchpad_mode(made, dnnl_scratchpad_mode_user) != dnnl_success ||
      library.post_ops_create(&chainHandle) != dnnl_success)
    return {};
  PostOps chain(library, chainHandle);
  for (size_t i = 0; i < postOps.size(); ++i) {
    const PostOp &step = postOps[i];
    const int position = static_cast<int>(i);
    dnnl_status_t status = dnnl_invalid_arguments;
    if (position == accumulate) {
      status = library.post_ops_append_sum(chain.get(), 1, 0, dnnl_data_type_undef);
    } else if (step.kind == PostOp::Kind::Eltwise) {
      status = library.post_ops_append_eltwise(chain.get(), step.algorithm, step.alpha, step.beta);
    } else if (step.derived.isPresent()) {
      const auto result =
          std::find_if(arguments.begin(), arguments.end(),
                       [](const Argument &argument) { return argument.id == DNNL_ARG_DST; });
      if (result == arguments.end())
        return {};
      Derived number = step.derived;
      number.rank = result->view.dims.size();
      const Dims ones(number.rank, 1);
      Desc desc = Desc::strided(library, dnnl_f32, ones, ones);
      if (!desc)
        return {};
      status = library.post_ops_append_binary(chain.get(), step.algorithm, desc.get());
      arguments.push_back(
          {DNNL_ARG_ATTR_MULTIPLE_POST_OP(position) | DNNL_ARG_SRC_1, {}, -1, number});
    } else if (step.kind == PostOp::Kind::Binary) {
      // Where it broadcasts along several dimensions, the library finds its elements as if it were
      // dense.
      if (step.operand.wideDims() > 1 && step.operand.dims != match.result.dims &&
          !providers::isDense(step.operand.dims, step.operand.strides))
        return {};
      Desc desc = step.operand.wideDims() > 1 ? styled(step.operand, style) : plain(step.operand);
      if (!desc)
        return {};
      status = library.post_ops_append_binary(chain.get(), step.algorithm, desc.get());
      arguments.push_back(
          {DNNL_ARG_ATTR_MULTIPLE_POST_OP(position) | DNNL_ARG_SRC_1, step.operand, -1});
    } else {
      int mask = 0;
      for (size_t d = 0; d < step.operand.dims.size(); ++d)
        mask |= step.operand.dims[d] > 1 ? 1 << d : 0;
      status = library.post_ops_append_prelu(chain.get(), mask);
      arguments.push_back(
          {DNNL_ARG_ATTR_MULTIPLE_POST_OP(position) | DNNL_ARG_WEIGHTS, step.operand, -1});
    }
    if (status != dnnl_success)
      return {};
  }
  if (library.primitive_attr_set_post_ops(made, chain.get()) != dnnl_success)
    return {};
  return result;
}

bool Maker::hasPRelu() const {
  return std::any_of(match.postOps.begin(), match.postOps.end(),
                     [](const PostOp &step) { return step.kind == PostOp::Kind::PRelu; });
}

bool Maker::isF32(std::initializer_list<const View *> views) const {
  return std::all_of(views.begin(), views.end(), [&](const View *view) {
    return !view->isPresent() || type(*view) == dnnl_f32;
  });
}

bool Maker::isOneFloatType(std::initializer_list<const View *> views) const {
  dnnl_data_type_t common = dnnl_data_type_undef;
  for (const View *view : views) {
    if (!view->isPresent())
      continue;
    const dnnl_data_type_t found = type(*view);
    if ((found != dnnl_f32 && found != dnnl_f16 && found != dnnl_bf16) ||
        (common != dnnl_data_type_undef && common != found))
      return false;
    common = found;
  }
  return true;
}

std::string Maker::numerics(const std::string &variant) const {
  if (isInt8())
    return "int8";
  const dnnl_data_type_t found = operand(0).isPresent() ? type(operand(0)) : dnnl_f32;
  return (found == dnnl_bf16 ? "bf16" : found == dnnl_f16 ? "f16" : "f32") + variant;
}

void Maker::offer(const std::string &family, dnnl_status_t status,
                  dnnl_primitive_desc_t description, std::vector<Argument> arguments,
                  const std::string &numerics) {
  if (status != dnnl_success || !description)
    return;
  Attempt attempt{family, numerics.empty() ? this->numerics() : numerics, {}, {}, {}, {}};
  attempt.stages.push_back({PrimitiveDesc(library, description), std::move(arguments)});
  offer(std::move(attempt));
}

void Maker::offer(Attempt &&attempt) {
  if (stopped)
    return;
  ++made;
  attempt.assumed = assumed;
  attempt.ownsNumbers = ownsNumbers;
  stopped = !sink(std::move(attempt));
}

bool Maker::wants(std::string_view family) const {
  if (wanted.empty())
    return true;
  const std::string_view name = std::string_view(wanted).substr(0, wanted.find(':'));
  // Image to column is an implementation of the direct family.
  return name == family || (name == "gemm" && family == "direct");
}

namespace {

/// Settles the layouts of one implementation; nothing where one cannot be expressed at the door.
class Settler {
public:
  Settler(const Library &library, const ProblemReader &problem, const Match &match)
      : library(library), problem(problem), match(match) {}

  std::optional<Resolved> run(const Attempt &attempt) {
    Resolved &r = resolved;
    fixed = !attempt.fixedLayouts.empty();
    r.numerics = attempt.numerics;
    r.inputLayouts.assign(problem.raw().input_count, "");
    r.outputLayouts.assign(problem.raw().output_count, "");
    r.algorithm = algorithmOf(library, attempt);
    // What is called so among recurrent ones multiplies by the library's matrix products.
    r.isReference = attempt.family != "recurrent" &&
                    isPlainLoops(implementation(library, attempt.named().description));
    for (const Stage &stage : attempt.stages) {
      r.bindings.emplace_back();
      for (const Argument &argument : stage.arguments)
        if (!bind(stage.description, argument))
          return std::nullopt;
      r.scratchBytes = std::max(
          r.scratchBytes, argumentDesc(library, stage.description, DNNL_ARG_SCRATCHPAD).bytes());
    }
    if (fixed) {
      if (problem.inputPosition(attempt.stages[0].arguments[0].view.value) == 0)
        r.inputLayouts[0] = attempt.fixedLayouts[0];
      r.outputLayouts[0] = attempt.fixedLayouts[1];
    }
    if (attempt.accumulated.isPresent() && !settleAccumulated(attempt))
      return std::nullopt;
    return aliasHolds(attempt) ? std::optional(std::move(resolved)) : std::nullopt;
  }

  /// The name of an implementation, without what is known of its team.
  static std::string algorithmOf(const Library &library, const Attempt &attempt) {
    const std::string name = implementation(library, attempt.named().description);
    return (isImageToColumn(attempt, name) ? "gemm" : attempt.family) + ":" + name;
  }

  /// A convolution that unfolds the image and multiplies matrices is of a family of its own.
  static bool isImageToColumn(const Attempt &attempt, const std::string &name) {
    return attempt.family == "direct" && name.find("gemm") != std::string::npos &&
           name.find("brgemm") == std::string::npos;
  }

private:
  static bool isPlainLoops(const std::string &name) {
    return name.rfind("ref", 0) == 0 || name.find(":ref") != std::string::npos;
  }

  /// Elements that are only copied may go under another type of their size, which `desc` states.
  Desc plainOf(const View &view, const Desc &desc) const {
    dnnl_data_type_t type = desc ? desc.type() : dataType(problem.type(view.value));
    return Desc::strided(library, type, view.dims, view.strides);
  }

  bool bind(const PrimitiveDesc &description, const Argument &argument) {
    Binding binding{argument.id,
                    argument.view,
                    argument.temporary,
                    argumentDesc(library, description, argument.id),
                    {},
                    false,
                    argument.derived,
                    argument.flipSign,
                    argument.widen,
                    argument.widen ? match.grids.at(argument.view.value) : Grid{},
                    false,
                    0,
                    argument.assembled};
    if (argument.derived.isPresent()) {
      Dims dims(argument.derived.rank, 1);
      dims.back() = argument.derived.count;
      binding.desc =
          Desc::strided(library, argument.derived.type, dims, providers::denseStrides(dims));
      if (!binding.desc)
        return false;
    } else if (argument.assembled) {
      // Its own bytes go with the preparing; what the primitive wants is always a copy.
      const Assembled &assembled = *argument.assembled;
      binding.plain = Desc::strided(library, dnnl_f32, assembled.dims, assembled.strides);
      if (!binding.plain || !binding.desc)
        return false;
      binding.needsPacking = resolved.packs = true;
      resolved.packedBytes += binding.desc.bytes();
    } else if (argument.temporary < 0) {
      binding.plain = plainOf(argument.view, binding.desc);
      if (!binding.desc)
        binding.desc = binding.plain; // PReLU slopes have no descriptor of their own
      if (fixed)
        binding.plain = binding.desc;
      if (!binding.plain || !settleWidth(binding) || !settle(binding))
        return false;
    } else if (!binding.desc) {
      return false;
    } else {
      const size_t number = static_cast<size_t>(argument.temporary);
      if (resolved.temporaryBytes.size() <= number)
        resolved.temporaryBytes.resize(number + 1);
      uint64_t &bytes = resolved.temporaryBytes[number];
      bytes = std::max(bytes, (binding.desc.bytes() + 63) / 64 * 64);
    }
    resolved.bindings.back().push_back(std::move(binding));
    return true;
  }

  /// Where the primitive takes f32 and the host has 16-bit floats.
  bool settleWidth(Binding &binding) {
    const uint32_t value = binding.view.value;
    const dvt_type type = problem.type(value);
    if ((type != DVT_F16 && type != DVT_BF16) || binding.desc.type() != dnnl_f32)
      return true;
    if (problem.isConstant(value)) {
      binding.widen = true;
      return true;
    }
    if (problem.value(value).strides)
      return false;
    binding.converts = true;
    binding.place = resolved.convertedBytes;
    resolved.convertedBytes += (binding.desc.bytes() + 63) / 64 * 64;
    return true;
  }

  bool settle(Binding &binding) {
    const uint32_t value = binding.view.value;
    std::string text;
    if (!binding.desc.isEquivalent(binding.plain)) {
      if (problem.isConstant(value)) {
        binding.needsPacking = true;
        resolved.packs = true;
        resolved.packedBytes += binding.desc.bytes();
        // 2.6 has layouts of bytes, with sums beside them, into which it cannot bring all others.
        if (kGeneration == 2 && resolved.numerics == "int8" &&
            !canReorder(library, binding.plain, binding.desc))
          return false;
      } else {
        std::optional<std::string> layout;
        if (binding.view.isFree())
          layout = binding.desc.layout(binding.view.axes);
        if (!layout)
          return false;
        text = *layout;
      }
    }
    if ((binding.widen || binding.flipSign) && !binding.needsPacking) {
      resolved.packs = true;
      resolved.packedBytes += binding.desc.bytes();
    }
    if (problem.isLiteral(value) || problem.isConstant(value))
      return true;
    int32_t in = problem.inputPosition(value), out = problem.outputPosition(value);
    std::string &slot = in >= 0 ? resolved.inputLayouts[static_cast<size_t>(in)]
                                : resolved.outputLayouts[static_cast<size_t>(out)];
    // A value used twice must have one layout.
    auto [before, isNew] = seen.try_emplace(value, text);
    slot = text;
    return isNew || before->second == text;
  }

  /// The accumulated operand must have the result's layout, for it is copied there.
  bool settleAccumulated(const Attempt &attempt) {
    int32_t in = problem.inputPosition(attempt.accumulated.value);
    const View *result = nullptr;
    for (const Argument &argument : attempt.stages.back().arguments)
      if (argument.id == DNNL_ARG_DST)
        result = &argument.view;
    if (in < 0 || problem.isConstant(attempt.accumulated.value) || !result ||
        result->axes != attempt.accumulated.axes ||
        result->strides != attempt.accumulated.strides || seen.count(attempt.accumulated.value))
      return false;
    resolved.inputLayouts[static_cast<size_t>(in)] = resolved.outputLayouts[0];
    return true;
  }

  /// Where the host may put the result over an operand, only implementations that work in place
  /// will do.
  bool aliasHolds(const Attempt &attempt) const {
    int32_t alias = problem.value(problem.raw().outputs[0]).may_alias;
    if (alias < 0 || alias >= static_cast<int32_t>(problem.raw().input_count))
      return true;
    uint32_t value = problem.raw().inputs[alias];
    if (attempt.accumulated.isPresent())
      return attempt.accumulated.value == value;
    static const char *const inPlace[] = {"eltwise", "binary", "softmax", "batch_normalization",
                                          "layer_normalization"};
    bool works = std::any_of(std::begin(inPlace), std::end(inPlace),
                             [&](const char *f) { return attempt.family == f; });
    const std::vector<Binding> &bindings = resolved.bindings.back();
    for (const Binding &binding : bindings)
      if (binding.view.value == value && binding.id != DNNL_ARG_SRC)
        return false;
    return works && attempt.stages.size() == 1 &&
           resolved.inputLayouts[static_cast<size_t>(alias)] == resolved.outputLayouts[0];
  }

  const Library &library;
  const ProblemReader &problem;
  const Match &match;
  Resolved resolved;
  bool fixed = false;
  std::map<uint32_t, std::string> seen;
};

bool make(Maker &maker) {
  const std::string_view name = maker.op().name();
  auto is = [&](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (is({"conv", "conv_transpose"}))
    return makeConvolution(maker);
  if (is({"mat_mul", "gemm"}))
    return makeMatMul(maker);
  if (isRecurrent(name))
    return makeRecurrent(maker);
  if (is({"q_linear_conv", "conv_integer"}))
    return makeConvolution(maker);
  if (is({"q_linear_mat_mul", "mat_mul_integer"}))
    return makeMatMul(maker);
  if (is({"quantize_linear", "dequantize_linear"}))
    return makeRequantization(maker);
  if (maker.match.isQuantized())
    return makeQuantizedSum(maker);
  if (maker.hasPRelu())
    return maker.refuse("p_relu after " + std::string(name) + " is not supported");
  if (is({"attention"}))
    return makeAttention(maker);
  if (is({"max_pool", "average_pool", "global_average_pool", "global_max_pool"}))
    return makePooling(maker);
  if (is({"softmax", "log_softmax"}))
    return makeSoftmax(maker);
  if (is({"layer_normalization", "batch_normalization", "instance_normalization"}))
    return makeNormalization(maker);
  if (name.rfind("reduce_", 0) == 0)
    return makeReduction(maker);
  if (is({"resize"}))
    return makeResampling(maker);
  if (is({"concat"}))
    return makeConcat(maker);
  if (is({"dvt_reorder", "transpose"}))
    return makeReorder(maker);
  return makePointwise(maker);
}

/// Implementations that are not what they are asked for, or known to give wrong results.
bool isMisleading(const Library &library, const ProblemReader &problem, const Attempt &attempt,
                  const Match &match) {
  const std::string name = implementation(library, attempt.stages.back().description);
  // Some generations answer a request for Winograd with what they have for a direct one.
  if (attempt.family == "winograd")
    return name.find("wino") == std::string::npos;
  // Its pass over the sums goes by way of f32, whether there is something to do or not.
  if (attempt.numerics == "int8" && name == "gemm:jit" &&
      problem.type(match.result.value) == DVT_I32)
    return true;
  const bool readsWide =
      std::any_of(match.postOps.begin(), match.postOps.end(), [](const PostOp &step) {
        return step.kind == PostOp::Kind::Binary && step.operand.wideDims() > 1;
      });
  // Two implementations read an operand as large as the result at wrong places in layouts other
  // than row-major: convolution by image to column in 2.6, and the simple resampling of 3.2.
  return readsWide && ((kGeneration == 2 && Settler::isImageToColumn(attempt, name)) ||
                       (attempt.family == "resampling" && name.find("simple") == 0));
}

} // namespace

uint64_t Resolved::temporaryPlace(size_t number) const {
  uint64_t place = convertedBytes;
  for (size_t i = 0; i < number && i < temporaryBytes.size(); ++i)
    place += temporaryBytes[i];
  return place;
}

namespace {

/// Whether a contraction of 16-bit floats is also offered as one of f32 with conversions around it:
/// where the library can compute in f32 only, that is all there is.
bool mayWiden(const ProblemReader &problem, const Match &match, const dvt_target &target) {
  const OpReader op = problem.op(match.mainOp);
  const std::string_view name = op.name();
  if (name != "conv" && name != "conv_transpose" && name != "mat_mul" && name != "gemm")
    return false;
  const dvt_type type = problem.type(op.output(0));
  const bool hasBfloat = target.features && std::strstr(target.features, "avx512_bf16");
  return (type == DVT_F16 && convertsHalves(target)) || (type == DVT_BF16 && !hasBfloat);
}

constexpr const char *kWide = ":wide";

} // namespace

bool visitImplementations(const Library &library, const ProblemReader &problem,
                          const dvt_target &target, uint32_t threads,
                          const dvt_candidate *candidate, const dvt_prepare_args *args,
                          const ResolvedVisitor &visit, std::string &reason) {
  const std::string wanted = candidate ? candidate->algorithm : "";
  std::optional<Match> match = matchProblem(problem, reason);
  if (!match)
    return false;
  NoPrimitiveCache noCache(library);
  const bool hasAvx512 = target.features && std::strstr(target.features, "avx512f");
  for (uint32_t size : providers::teamSizes(problem, target.threads)) {
    const uint32_t used = size == 1 || threads == 0 ? size : threads;
    TeamSize team(used);
    const std::string suffix = providers::teamSuffix(size, target.threads);
    if (!wanted.empty() &&
        (suffix.empty() ? wanted.ends_with(":serial") : !wanted.ends_with(suffix)))
      continue;
    std::string width;
    Maker maker(library, problem, *match, hasAvx512, [&](Attempt &&attempt) {
      do {
        if (isMisleading(library, problem, attempt, *match))
          continue;
        if (!wanted.empty() && Settler::algorithmOf(library, attempt) + width + suffix != wanted)
          continue;
        std::optional<Resolved> resolved = Settler(library, problem, *match).run(attempt);
        if (!resolved)
          continue;
        if (attempt.numerics == "int8" && attempt.family != "reorder" &&
            attempt.family != "binary" && attempt.family != "pooling" &&
            maySaturate(library, implementation(library, attempt.stages.back().description),
                        target))
          continue;
        resolved->algorithm += width + suffix;
        resolved->threads = used;
        if (!visit(attempt, *resolved))
          return false;
      } while (library.primitive_desc_next_impl(attempt.named().description.get()) == dnnl_success);
      return true;
    });
    maker.wanted = wanted;
    maker.prepareArgs = args;
    if (candidate)
      maker.wantedStyle = styleOf(*candidate, problem.raw());
    bool made = make(maker);
    if (made && !maker.stopped && mayWiden(problem, *match, target)) {
      maker.wide = true;
      width = kWide;
      made = make(maker);
    }
    if (!made) {
      reason = maker.reason;
      return false;
    }
    if (maker.made == 0) {
      reason = match->summary + ": oneDNN " + library.versionText +
               " has no implementation for these operands";
      return false;
    }
    if (maker.stopped)
      break;
  }
  return true;
}

} // namespace dovetail::onednn
