// SPDX-License-Identifier: Apache-2.0
//
// Element-wise ops as the main op: one tensor (with scalars known when compiling) or two with
// broadcasting.
#include "providers/onednn/Attempt.h"

namespace dovetail::onednn {
namespace {

bool makeEltwise(Maker &maker, const View &source, const std::vector<EltwiseStep> &steps) {
  const Library &library = maker.library;
  const View &result = maker.match.result;
  std::vector<PostOp> postOps = maker.match.postOps;
  for (size_t i = steps.size(); i-- > 1;)
    postOps.insert(postOps.begin(),
                   {PostOp::Kind::Eltwise, steps[i].algorithm, steps[i].alpha, steps[i].beta, {}});
  if (source.dims != result.dims)
    return maker.refuse(std::string(maker.op().name()) + ": a scalar operand broadcasts the other");
  for (Style style : maker.propagatingStyles(source)) {
    std::vector<Argument> arguments{{DNNL_ARG_SRC, source, -1}, {DNNL_ARG_DST, result, -1}};
    const Attributes attributes = maker.attributes(postOps, style, arguments);
    const Desc from = maker.styled(source, style), to = maker.styled(result, style);
    if (!from || !to || !attributes)
      continue;
    dnnl_primitive_desc_t made = nullptr;
    dnnl_status_t status = library.eltwise_forward_primitive_desc_create(
        &made, library.engine, dnnl_forward_inference, steps[0].algorithm, from.get(), to.get(),
        steps[0].alpha, steps[0].beta, attributes.get());
    maker.offer("eltwise", status, made, std::move(arguments));
  }
  return true;
}

bool makeBinary(Maker &maker, dnnl_alg_kind_t algorithm) {
  const Library &library = maker.library;
  const View &result = maker.match.result;
  const std::string name(maker.op().name());
  const size_t rank = result.dims.size();
  View first = maker.operand(0), second = maker.operand(1);
  if (first.dims.size() > rank || second.dims.size() > rank)
    return maker.refuse(name + ": operand ranks do not agree with the result");
  if (maker.problem.rank(maker.op().output(0)) > 0) {
    first = first.dims.size() == rank ? first : first.withRank(rank);
    second = second.dims.size() == rank ? second : second.withRank(rank);
  }
  const bool commutes = algorithm != dnnl_binary_sub && algorithm != dnnl_binary_div;
  if (first.dims != result.dims && second.dims == result.dims && commutes)
    std::swap(first, second);
  for (Style style : maker.propagatingStyles(result)) {
    // A row of numbers per channel is the same in every layout; which of the two forms an
    // implementation wants varies.
    for (bool secondStyled : {true, false}) {
      if (!secondStyled && second.wideDims() > 1)
        continue;
      std::vector<Argument> arguments{
          {DNNL_ARG_SRC_0, first, -1}, {DNNL_ARG_SRC_1, second, -1}, {DNNL_ARG_DST, result, -1}};
      const Attributes attributes = maker.attributes(maker.match.postOps, style, arguments);
      const Desc a = maker.styled(first, style),
                 b = secondStyled ? maker.styled(second, style) : maker.plain(second),
                 to = maker.styled(result, style);
      if (!a || !b || !to || !attributes)
        continue;
      dnnl_primitive_desc_t made = nullptr;
      dnnl_status_t status = library.binary_primitive_desc_create(
          &made, library.engine, algorithm, a.get(), b.get(), to.get(), attributes.get());
      maker.offer("binary", status, made, std::move(arguments));
    }
  }
  return true;
}

/// x or slope * x, with a slope that broadcasts to x.
bool makePRelu(Maker &maker) {
  const Library &library = maker.library;
  const View &source = maker.operand(0), &result = maker.match.result;
  if (maker.operand(1).dims.size() > source.dims.size() || source.dims != result.dims)
    return maker.refuse("p_relu: the slope must broadcast to the operand");
  const View slope = maker.operand(1).dims.size() == source.dims.size()
                         ? maker.operand(1)
                         : maker.operand(1).withRank(source.dims.size());
  for (Style style : maker.propagatingStyles(source)) {
    std::vector<Argument> arguments{
        {DNNL_ARG_SRC, source, -1}, {DNNL_ARG_WEIGHTS, slope, -1}, {DNNL_ARG_DST, result, -1}};
    const Attributes attributes = maker.attributes(maker.match.postOps, style, arguments);
    const Desc from = maker.styled(source, style), weights = maker.weights(slope),
               to = maker.styled(result, style);
    if (!from || !weights || !to || !attributes)
      continue;
    dnnl_primitive_desc_t made = nullptr;
    dnnl_status_t status = library.prelu_forward_primitive_desc_create(
        &made, library.engine, dnnl_forward_inference, from.get(), weights.get(), to.get(),
        attributes.get());
    maker.offer("prelu", status, made, std::move(arguments));
  }
  return true;
}

} // namespace

bool makePointwise(Maker &maker) {
  const OpReader op = maker.op();
  const std::string name(op.name());
  for (const View &view : maker.match.operands)
    if (!maker.isOneFloatType({&view, &maker.match.result}))
      return maker.refuse(name + ": operands of one type among f32, f16 and bf16 are supported");
  for (uint32_t i = 0; i < op.inputCount(); ++i) {
    if (!op.hasInput(i) || maker.problem.uniform(op.input(i)))
      continue;
    std::vector<EltwiseStep> steps = eltwiseSteps(maker.problem, op, op.input(i));
    if (!steps.empty())
      return makeEltwise(maker, maker.operand(i), steps);
  }
  if (name == "p_relu" && op.hasInput(1))
    return maker.isF32({&maker.operand(1)}) ? makePRelu(maker)
                                            : maker.refuse("p_relu: f32 slopes are supported");
  const dnnl_alg_kind_t algorithm = binaryAlgorithm(name);
  if (algorithm == dnnl_alg_kind_undef || op.inputCount() != 2 || !op.hasInput(0) ||
      !op.hasInput(1))
    return maker.refuse(name + " is not among this library's ops");
  return makeBinary(maker, algorithm);
}

} // namespace dovetail::onednn
