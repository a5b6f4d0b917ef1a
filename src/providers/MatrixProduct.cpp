// SPDX-License-Identifier: Apache-2.0
//
// Walks the ops of a problem: views of operands, the product, then scales, additions, transposes
// of the result and an activation at the end.
#include "providers/MatrixProduct.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include "providers/OpVersions.h"

namespace dovetail::providers {
namespace {

View matrixTransposed(const View &view) {
  std::vector<size_t> order(view.dims.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return view.permuted(order);
}

bool isReshape(std::string_view name) {
  return name == "reshape" || name == "flatten" || name == "squeeze" || name == "unsqueeze" ||
         name == "identity";
}

std::optional<std::vector<size_t>> permutation(const OpReader &op, size_t rank) {
  Dims perm(rank);
  for (size_t i = 0; i < rank; ++i)
    perm[i] = static_cast<int64_t>(rank - 1 - i);
  perm = op.integers("perm", perm);
  std::vector<bool> seen(rank);
  for (int64_t axis : perm) {
    if (perm.size() != rank || axis < 0 || axis >= static_cast<int64_t>(rank) ||
        seen[static_cast<size_t>(axis)])
      return std::nullopt;
    seen[static_cast<size_t>(axis)] = true;
  }
  return std::vector<size_t>(perm.begin(), perm.end());
}

class Matcher {
public:
  Matcher(const ProblemReader &problem, const ProductRules &rules, std::string &reason)
      : problem(problem), rules(rules), reason(reason) {}

  std::vector<Product> run() {
    if (!checkWhole())
      return {};
    uint32_t index = 0;
    for (; index < problem.opCount() && isView(index); ++index)
      if (!takeView(index))
        return {};
    if (index == problem.opCount()) {
      reason = "no matrix product";
      return {};
    }
    const uint32_t main = index;
    const OpReader op = problem.op(main);
    const std::string name(op.name());
    if (name != "mat_mul" && name != "gemm" && name != "conv") {
      reason = name + " is no matrix product";
      return {};
    }
    for (uint32_t i = 0; i < op.inputCount(); ++i)
      if (op.hasInput(i) && problem.producer(op.input(i)) >= 0 && !views.count(op.input(i))) {
        reason = "an op other than a transpose feeds " + name;
        return {};
      }
    current = op.output(0);
    order.resize(problem.rank(current));
    std::iota(order.begin(), order.end(), size_t{0});
    for (++index; index < problem.opCount(); ++index)
      if (!takeTail(index))
        return {};
    if (problem.outputPosition(current) < 0) {
      refuse("the last op's value is not the problem's result");
      return {};
    }
    View result = inMainOrder(external(current));
    if (name == "conv")
      return convolution(op, result);
    return multiplication(op, result, name == "gemm");
  }

private:
  bool refuse(const std::string &why) {
    reason = why;
    return false;
  }

  bool checkWhole() {
    if (std::optional<std::string> unknown = unknownDefinition(problem))
      return refuse(*unknown);
    if (std::optional<std::string> symbol = problem.symbolicExtent())
      return refuse("extents known only at run time (" + *symbol + "); late-bound");
    if (problem.opCount() == 0 || problem.raw().output_count != 1)
      return refuse("one result is supported, found " + std::to_string(problem.raw().output_count));
    for (uint32_t v = 0; v < problem.raw().value_count; ++v) {
      if (product(problem.extents(v)) == 0)
        return refuse("empty tensors are not supported");
      const bool matters = problem.outputPosition(v) >= 0 || problem.inputPosition(v) >= 0;
      if (matters && !checkType(problem.type(v)))
        return false;
      if (problem.value(v).strides)
        for (int64_t stride : problem.strides(v))
          if (stride <= 0)
            return refuse("operands with strides of 0 or below are not supported");
    }
    return true;
  }

  bool checkType(dvt_type type) {
    if (std::find(rules.types.begin(), rules.types.end(), type) == rules.types.end())
      return refuse(rules.types.size() == 1 ? "f32 operands are supported"
                                            : "operands of f32, f16 or bf16 are supported");
    if (type != problem.type(problem.raw().outputs[0]))
      return refuse("operands and result of one type are supported");
    return true;
  }

  View external(uint32_t value) const {
    if (auto found = views.find(value); found != views.end())
      return found->second;
    View view{value, problem.extents(value), problem.strides(value), {}};
    return view.dims.empty() ? View{value, {1}, {1}, {}} : view;
  }

  bool isView(uint32_t index) const {
    OpReader op = problem.op(index);
    return (op.name() == "transpose" || isReshape(op.name())) && op.hasInput(0) &&
           (problem.producer(op.input(0)) < 0 || views.count(op.input(0)));
  }

  bool takeView(uint32_t index) {
    OpReader op = problem.op(index);
    View view = external(op.input(0));
    if (op.name() == "transpose") {
      std::optional<std::vector<size_t>> perm = permutation(op, problem.rank(op.input(0)));
      if (!perm || perm->empty())
        return refuse("transpose: perm is no permutation of the axes");
      view = view.permuted(*perm);
    } else {
      Dims to = problem.extents(op.output(0));
      std::optional<View> reshaped = view.reshaped(to.empty() ? Dims{1} : to);
      if (!reshaped)
        return refuse(std::string(op.name()) + " of a transposed operand needs a copy");
      view = *reshaped;
    }
    views[op.output(0)] = view;
    return true;
  }

  /// A view in the dimensions of the current value, in those of the product's result.
  View inMainOrder(const View &view) const {
    std::vector<size_t> inverse(order.size());
    for (size_t i = 0; i < order.size(); ++i)
      inverse[order[i]] = i;
    return order.empty() ? view : view.permuted(inverse);
  }

  bool takeTail(uint32_t index) {
    OpReader op = problem.op(index);
    const std::string name(op.name());
    if (problem.outputPosition(current) >= 0 || problem.uses(current) != 1)
      return isView(index) ? takeView(index)
                           : refuse("the value before " + name +
                                    " is used more than once or is a result, too");
    if (isView(index))
      return takeView(index);
    const bool isLeft = op.input(0) == current, isRight = op.input(1) == current;
    if (isLeft == isRight)
      return refuse(name + " does not continue the product");
    if (name == "transpose") {
      std::optional<std::vector<size_t>> perm = permutation(op, order.size());
      if (!perm)
        return refuse("transpose: perm is no permutation of the axes");
      std::vector<size_t> composed(order.size());
      for (size_t i = 0; i < perm->size(); ++i)
        composed[i] = order[(*perm)[i]];
      order = composed;
      current = op.output(0);
      return true;
    }
    if (activation != Activation::None)
      return refuse(name + " after the activation is not supported");
    if (rules.takesActivation && (name == "relu" || name == "gelu"))
      return takeActivation(op);
    return takeArithmetic(op, isLeft);
  }

  /// A scale or an addition; `isLeft`: the value so far is the left operand.
  bool takeArithmetic(const OpReader &op, bool isLeft) {
    const std::string name(op.name());
    const uint32_t other = op.input(isLeft ? 1 : 0);
    if (op.inputCount() != 2 || other == DVT_NO_VALUE ||
        problem.extents(op.output(0)) != problem.extents(current))
      return refuseTail(name);
    const std::optional<double> scalar = problem.uniform(other);
    if (scalar && (name == "mul" || (name == "div" && isLeft && *scalar != 0))) {
      const float factor = static_cast<float>(name == "mul" ? *scalar : 1 / *scalar);
      alpha *= factor;
      beta *= factor;
      gamma *= factor;
    } else if ((name == "add" || name == "sub") && (!addend || takesOneMore()) &&
               (problem.producer(other) < 0 || views.count(other))) {
      View view = external(other);
      if (view.dims.size() > std::max<size_t>(order.size(), 1))
        return refuse(name + " broadcasts the product");
      if (name == "sub" && !isLeft) {
        alpha = -alpha;
        beta = -beta;
      }
      (addend ? gamma : beta) = name == "sub" && isLeft ? -1.0f : 1.0f;
      (addend ? second : addend) = inMainOrder(view.withRank(order.size()));
    } else {
      return refuseTail(name);
    }
    current = op.output(0);
    return true;
  }

  bool takesOneMore() const { return rules.takesSecond && !second; }
  bool refuseTail(const std::string &name) {
    return refuse(name + (rules.takesSecond
                              ? ": only scales, two additions, an activation and transposes are "
                                "done after the product"
                              : ": only a scale, an addition and transposes are done after the "
                                "product"));
  }

  bool takeActivation(const OpReader &op) {
    if (op.name() == "gelu" && op.string("approximate", "none") != "tanh")
      return refuse("gelu: only the form with tanh is supported, found the one with erf");
    activation = op.name() == "gelu" ? Activation::Gelu : Activation::Relu;
    current = op.output(0);
    return true;
  }

  Product make(const View &a, const View &b, const View &c) const {
    return Product{a, b, c, addend, second, alpha, beta, gamma, activation, {}};
  }

  std::vector<Product> multiplication(const OpReader &op, View result, bool gemm) {
    Product p = make(external(op.input(0)), external(op.input(1)), result);
    if (gemm) {
      if (p.a.dims.size() != 2 || p.b.dims.size() != 2)
        return none("gemm: matrices are supported");
      p.a = op.integer("transA", 0) ? matrixTransposed(p.a) : p.a;
      p.b = op.integer("transB", 0) ? matrixTransposed(p.b) : p.b;
      const float ownBeta = static_cast<float>(op.number("beta", 1));
      if (op.hasInput(2) && ownBeta != 0) {
        if (p.addend && !takesOneMore())
          return none("gemm with an addend and one more addition");
        const View own = external(op.input(2));
        if (own.dims.size() > 2)
          return none("gemm: the addend has more than two dimensions");
        addFirst(p, own.withRank(2), ownBeta * alpha);
      }
      p.alpha *= static_cast<float>(op.number("alpha", 1));
    } else {
      restoreVectors(p);
      const size_t rank = p.c.dims.size();
      if (p.a.dims.size() > rank || p.b.dims.size() > rank)
        return none("mat_mul: operand ranks do not agree with the result");
      p.a = p.a.withRank(rank);
      p.b = p.b.withRank(rank);
    }
    return agrees(p) ? std::vector{p} : none(std::string(op.name()) + ": extents do not agree");
  }

  /// An addend that comes before those found so far.
  static void addFirst(Product &p, const View &view, float factor) {
    if (p.addend) {
      p.second = p.addend;
      p.gamma = p.beta;
    }
    p.addend = view;
    p.beta = factor;
  }

  /// One-dimensional operands of mat_mul get the dimension they miss, and so does the result.
  static void restoreVectors(Product &p) {
    const bool vectorA = p.a.dims.size() == 1, vectorB = p.b.dims.size() == 1;
    auto insert = [&](size_t position) {
      p.c = p.c.withAxis(position);
      for (std::optional<View> *extra : {&p.addend, &p.second})
        if (*extra)
          *extra = (*extra)->withAxis(position);
    };
    if (vectorB) {
      p.b = p.b.withAxis(1);
      // A scalar result is shown as one dimension already.
      insert(vectorA ? 0 : p.c.dims.size());
    } else if (vectorA) {
      insert(p.c.dims.size() - 1);
    }
    if (vectorA)
      p.a = p.a.withAxis(0);
  }

  std::vector<Product> none(const std::string &why) {
    reason = why;
    return {};
  }

  static bool agrees(const Product &p) {
    const size_t rank = p.c.dims.size();
    if (rank < 2 || p.a.dims[rank - 1] != p.b.dims[rank - 2] || p.rows() != p.a.dims[rank - 2] ||
        p.columns() != p.b.dims[rank - 1])
      return false;
    for (size_t i = 0; i + 2 < rank; ++i)
      if (p.c.dims[i] != std::max(p.a.dims[i], p.b.dims[i]) ||
          (p.a.dims[i] != p.b.dims[i] && p.a.dims[i] != 1 && p.b.dims[i] != 1))
        return false;
    for (const std::optional<View> *extra : {&p.addend, &p.second})
      for (size_t i = 0; *extra && i < rank; ++i)
        if ((*extra)->dims[i] != 1 && (*extra)->dims[i] != p.c.dims[i])
          return false;
    return true;
  }

  std::vector<Product> convolution(const OpReader &op, const View &result) {
    const View source = external(op.input(0)), weights = external(op.input(1));
    const size_t rank = source.dims.size(), spatial = rank - 2;
    const int64_t groups = op.integer("group", 1);
    auto allAre = [&](const char *attribute, size_t count, int64_t wanted) {
      const Dims found = op.integers(attribute, Dims(count, wanted));
      return std::all_of(found.begin(), found.end(), [&](int64_t x) { return x == wanted; });
    };
    if (rank < 3 || weights.dims.size() != rank || result.dims.size() != rank || groups < 1 ||
        product(weights.dims, 2, weights.dims.size()) != 1 || !allAre("strides", spatial, 1) ||
        !allAre("pads", 2 * spatial, 0) ||
        Dims(source.dims.begin() + 2, source.dims.end()) !=
            Dims(result.dims.begin() + 2, result.dims.end()))
      return none("conv: only 1x1 kernels with stride 1 and no pads are matrix products");
    const int64_t images = source.dims[0], in = source.dims[1], out = result.dims[1],
                  pixels = product(source.dims, 2, source.dims.size());
    if (in % groups || out % groups || weights.dims[0] != out || weights.dims[1] != in / groups)
      return none("conv: extents do not agree");
    if (op.hasInput(2) && addend && !takesOneMore())
      return none("conv with bias and one more addition");
    const std::optional<View> a = weights.reshaped({1, groups, out / groups, in / groups}),
                              b = source.reshaped({images, groups, in / groups, pixels}),
                              c = result.reshaped({images, groups, out / groups, pixels});
    if (!a || !b || !c)
      return none("conv: dense operands are supported");
    std::vector<Product> found{make(*a, *b, *c)};
    auto placed = [&](const View &extra) -> std::optional<View> {
      if (extra.dims == result.dims)
        return extra.reshaped(c->dims);
      return product(extra.dims) == out && (extra.dims.size() == 1 || extra.dims[1] == out)
                 ? extra.reshaped({1, groups, out / groups, 1})
                 : std::nullopt;
    };
    for (std::optional<View> *extra : {&found[0].addend, &found[0].second}) {
      if (!*extra)
        continue;
      *extra = placed(**extra);
      if (!*extra)
        return none("conv: an addend per channel or of the result's extents is supported");
    }
    if (op.hasInput(2)) {
      const std::optional<View> bias = placed(external(op.input(2)));
      if (!bias)
        return none("conv: a bias per channel is supported");
      addFirst(found[0], *bias, alpha);
    }
    if (groups == 1)
      addChannelsLast(found, source, weights, result, images * pixels);
    return found;
  }

  /// With pixels as rows: y[pixels, out] = x[pixels, in] w^T, operands laid out channels last.
  void addChannelsLast(std::vector<Product> &found, const View &source, const View &weights,
                       const View &result, int64_t rows) const {
    const int64_t in = source.dims[1], out = result.dims[1];
    if (out == 1 || in == 1 || !isWhole(source.value) || !isWhole(result.value) ||
        problem.isConstant(source.value))
      return;
    const std::optional<View> flat = weights.reshaped({out, in});
    if (!flat)
      return;
    Product p = found[0];
    p.a = View{source.value, {rows, in}, {in, 1}, {}};
    p.b = matrixTransposed(*flat);
    p.c = View{result.value, {rows, out}, {out, 1}, {}};
    std::string last = "a";
    for (size_t i = 2; i < source.dims.size(); ++i)
      last += static_cast<char>('a' + i);
    last += 'b';
    p.layouts = {{source.value, last}, {result.value, last}};
    for (std::optional<View> *extra : {&p.addend, &p.second})
      if (*extra && !toChannelsLast(p, *extra, found[0].c.dims, last))
        return;
    found.push_back(std::move(p));
  }

  /// An addend of `p`, as it is beside images of `extents`, beside the rows of pixels.
  bool toChannelsLast(Product &p, std::optional<View> &extra, const Dims &extents,
                      const std::string &layout) const {
    const int64_t out = p.columns();
    if (extra->dims != extents || product(extra->dims) == out) {
      extra = extra->reshaped({1, out});
      return extra.has_value();
    }
    if (!isWhole(extra->value) || problem.isConstant(extra->value) || extra->value == p.a.value)
      return false;
    p.layouts.emplace_back(extra->value, layout);
    extra = View{extra->value, p.c.dims, p.c.strides, {}};
    return true;
  }

  /// Not a view of another shape, and not strided.
  bool isWhole(uint32_t value) const {
    return !problem.value(value).strides && views.empty() && isIdentityOrder();
  }
  bool isIdentityOrder() const { return std::is_sorted(order.begin(), order.end()); }

  const ProblemReader &problem;
  const ProductRules &rules;
  std::string &reason;
  std::map<uint32_t, View> views;
  uint32_t current = DVT_NO_VALUE;
  std::vector<size_t> order; ///< axis of the product's result for each axis of `current`
  std::optional<View> addend, second;
  float alpha = 1;           ///< all scales so far
  float beta = 1, gamma = 1; ///< scales since the first and the second addition
  Activation activation = Activation::None;
};

/// The batch as rows, where the right operand is one matrix for all.
std::optional<Product> withBatchAsRows(const Product &p) {
  const size_t leading = p.c.dims.size() - 1;
  if (leading < 2 || product(p.b.dims, 0, p.b.dims.size() - 2) != 1)
    return std::nullopt;
  Product flat = p;
  const std::optional<View> a = p.a.collapsed(leading), c = p.c.collapsed(leading),
                            b = p.b.collapsed(leading - 1);
  if (!a || !b || !c || a->dims[0] != c->dims[0])
    return std::nullopt;
  flat.a = *a;
  flat.c = *c;
  flat.b = View{b->value, {b->dims[1], b->dims[2]}, {b->strides[1], b->strides[2]}, {}};
  for (std::optional<View> *extra : {&flat.addend, &flat.second})
    if (*extra) {
      *extra = (*extra)->collapsed(leading);
      if (!*extra || ((*extra)->dims[0] != 1 && (*extra)->dims[0] != c->dims[0]))
        return std::nullopt;
    }
  return flat;
}

} // namespace

int64_t Product::batch() const { return product(c.dims, 0, c.dims.size() - 2); }

std::optional<Matrix> asMatrix(const View &view) {
  const size_t rank = view.dims.size();
  const int64_t rows = view.dims[rank - 2], columns = view.dims[rank - 1];
  const int64_t rowStride = view.strides[rank - 2], columnStride = view.strides[rank - 1];
  if (columnStride == 1 || columns == 1) {
    const int64_t leading = rows == 1 ? columns : rowStride;
    if (leading >= columns)
      return Matrix{false, leading};
  }
  if (rowStride == 1 || rows == 1) {
    const int64_t leading = columns == 1 ? rows : columnStride;
    if (leading >= rows)
      return Matrix{true, leading};
  }
  return std::nullopt;
}

Product transposedProduct(const Product &product) {
  Product result = product;
  result.a = matrixTransposed(product.b);
  result.b = matrixTransposed(product.a);
  result.c = matrixTransposed(product.c);
  for (std::optional<View> *extra : {&result.addend, &result.second})
    if (*extra)
      *extra = matrixTransposed(**extra);
  return result;
}

std::vector<Product> matchProducts(const ProblemReader &problem, const ProductRules &rules,
                                   std::string &reason) {
  std::vector<Product> found = Matcher(problem, rules, reason).run(), usable;
  for (Product &p : found) {
    if (std::optional<Product> flat = withBatchAsRows(p))
      p = *flat;
    if (std::optional<Matrix> c = asMatrix(p.c); c && c->transposed)
      p = transposedProduct(p);
    const std::optional<Matrix> a = asMatrix(p.a), b = asMatrix(p.b), c = asMatrix(p.c);
    constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
    if (!a || !b || !c || c->transposed) {
      reason = "the operands' strides are none that BLAS takes";
      continue;
    }
    if (std::max({p.rows(), p.columns(), p.depth(), a->leading, b->leading, c->leading,
                  p.batch()}) > kMost) {
      reason = "extents beyond 32 bits are not supported";
      continue;
    }
    usable.push_back(std::move(p));
  }
  return usable;
}

bool mayShareResult(const ProblemReader &problem, const Product &product) {
  const int32_t alias = problem.value(problem.raw().outputs[0]).may_alias;
  if (alias < 0 || alias >= static_cast<int32_t>(problem.raw().input_count))
    return true;
  const uint32_t value = problem.raw().inputs[alias];
  size_t uses = 0;
  bool fits = product.a.value != value && product.b.value != value;
  for (const std::optional<View> *extra : {&product.addend, &product.second})
    if (*extra && (*extra)->value == value) {
      ++uses;
      fits &= (*extra)->dims == product.c.dims && (*extra)->strides == product.c.strides;
    }
  return fits && uses == 1;
}

ProductLayouts layoutsOf(const ProblemReader &problem, const Product &product) {
  ProductLayouts layouts{std::vector<std::string>(problem.raw().input_count),
                         std::vector<std::string>(1)};
  for (const auto &[value, layout] : product.layouts) {
    if (int32_t in = problem.inputPosition(value); in >= 0)
      layouts.in[static_cast<size_t>(in)] = layout;
    if (problem.outputPosition(value) >= 0)
      layouts.out[0] = layout;
  }
  return layouts;
}

} // namespace dovetail::providers
