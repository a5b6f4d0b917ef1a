// SPDX-License-Identifier: Apache-2.0
//
// From a product of views to the library's operands; and kernels, which are a few lines of text.
#include "providers/blaslt/Form.h"

#include <algorithm>
#include <cstdio>
#include <numeric>

namespace dovetail::blaslt {
namespace {

using providers::Dims;
using providers::Matrix;
using providers::Product;
using providers::View;

constexpr uint32_t kHostAlignment = 64; ///< bytes, what the host promises where it says no strides
/// Enough for a sum that is cut into eight parts in f32, within what the library's makers advise.
constexpr uint64_t kPartsOfSums = 8, kMostWorkspace = uint64_t(32) << 20;
constexpr int64_t kMostCalls = 32;
constexpr size_t kMostKernelBytes = 8192;
constexpr std::string_view kKernelMark = "dovetail matrix product ";
constexpr int kKernelFormat = 1;

/// Of a dimension of the result's, in elements; 0 where the operand repeats.
int64_t strideOf(const View &view, size_t dimension) {
  return view.dims[dimension] == 1 ? 0 : view.strides[dimension];
}

/// Elements between the matrices of a batch over the dimensions from `first` on of the result's
/// `extents`; nothing where they lie at unequal ones.
std::optional<int64_t> batchStride(const View &view, const Dims &extents, size_t first) {
  int64_t stride = 0, count = 1;
  bool any = false;
  for (size_t i = extents.size() - 2; i-- > first;) {
    if (extents[i] == 1)
      continue;
    const int64_t own = strideOf(view, i);
    if (!any)
      stride = own;
    else if (own != stride * count)
      return std::nullopt;
    any = true;
    count *= extents[i];
  }
  return stride;
}

/// Elements to each combination of the first `count` dimensions of the result's `extents`.
std::vector<int64_t> startsOf(const View &view, const Dims &extents, size_t count) {
  std::vector<int64_t> starts{0};
  for (size_t i = 0; i < count; ++i) {
    std::vector<int64_t> finer;
    for (int64_t start : starts)
      for (int64_t k = 0; k < extents[i]; ++k)
        finer.push_back(start + k * strideOf(view, i));
    starts = std::move(finer);
  }
  return starts;
}

class Translation {
public:
  Translation(const ProblemReader &problem, const Product &product, std::string &reason)
      : problem(problem), product(product), reason(reason) {}

  std::optional<Form> run() {
    Form form;
    form.type = problem.type(problem.raw().outputs[0]);
    form.rows = product.columns();
    form.columns = product.rows();
    form.depth = product.depth();
    form.alpha = product.alpha;
    cutBatch();
    form.batch = providers::product(product.c.dims, outer, product.c.dims.size() - 2);
    if (providers::product(product.c.dims, 0, outer) > kMostCalls) {
      refuse("the matrices of the batch do not lie at equal distances, and there are too many");
      return std::nullopt;
    }
    if (!place(product.b, form.a) || !place(product.a, form.b) || !place(product.c, form.d) ||
        !addTo(form, product.addend, product.beta) || !addTo(form, product.second, product.gamma))
      return std::nullopt;
    form.epilogue = epilogueOf(form);
    const uint64_t sums = static_cast<uint64_t>(form.rows) * static_cast<uint64_t>(form.columns) *
                          static_cast<uint64_t>(form.batch);
    form.workspaceBytes = std::min(kMostWorkspace, sums * sizeof(float) * kPartsOfSums);
    form.layouts = providers::layoutsOf(problem, product);
    return form;
  }

private:
  bool refuse(const std::string &why) {
    reason = why;
    return false;
  }

  /// As many of the inner dimensions of the batch as lie at equal distances in all operands are one
  /// batch; the outer ones are calls.
  void cutBatch() {
    const Dims &extents = product.c.dims;
    auto isWhole = [&](const View &view) {
      return view.dims.size() != extents.size() || batchStride(view, extents, outer).has_value();
    };
    for (outer = 0; outer + 2 < extents.size(); ++outer)
      if (isWhole(product.a) && isWhole(product.b) && isWhole(product.c) &&
          (!product.addend || isWhole(*product.addend)) &&
          (!product.second || isWhole(*product.second)))
        break;
  }

  uint32_t epilogueOf(const Form &form) const {
    uint32_t parts = 0;
    if (form.bias.isPresent())
      parts |= kBias;
    if (product.activation == providers::Activation::Relu)
      parts |= kRelu;
    if (product.activation == providers::Activation::Gelu)
      parts |= kGelu;
    return parts ? parts : uint32_t{kDefault};
  }

  bool isInMemory(uint32_t value) {
    return problem.inputPosition(value) >= 0 || problem.outputPosition(value) >= 0 ||
           refuse("an operand whose elements are a part of the problem is not supported");
  }

  uint32_t alignmentOf(uint32_t value, const std::vector<int64_t> &starts) const {
    const auto element = static_cast<int64_t>(providers::elementBytes(problem.type(value)));
    // Where views begin inside a larger tensor is known to the runtime only.
    int64_t alignment = problem.value(value).strides ? element : kHostAlignment;
    for (int64_t start : starts)
      alignment = std::gcd(alignment, start * element);
    return static_cast<uint32_t>(alignment);
  }

  bool place(const View &view, Operand &operand) {
    const std::optional<Matrix> matrix = providers::asMatrix(view);
    const std::optional<int64_t> stride = batchStride(view, product.c.dims, outer);
    if (!matrix || !stride)
      return refuse("the rows or matrices of an operand do not lie at equal distances");
    std::vector<int64_t> starts = startsOf(view, product.c.dims, outer);
    const uint32_t alignment = alignmentOf(view.value, starts);
    operand = {view.value, matrix->transposed, matrix->leading,
               *stride,    std::move(starts),  alignment};
    return isInMemory(view.value);
  }

  /// An element for each column of the result, row after row the same.
  bool isBias(const View &view) const {
    const size_t last = view.dims.size() - 1;
    return view.dims[last] == product.columns() &&
           (view.strides[last] == 1 || view.dims[last] == 1) &&
           providers::product(view.dims, 0, last) == 1;
  }

  bool addTo(Form &form, const std::optional<View> &view, float factor) {
    if (!view || factor == 0)
      return true;
    if (!form.bias.isPresent() && factor == 1 && form.batch == 1 && isBias(*view)) {
      form.bias = {view->value, false, 1, 0, {}, alignmentOf(view->value, {})};
      return isInMemory(view->value);
    }
    if (form.c.isPresent())
      return refuse("beside a vector of an element for each column one addend is supported");
    if (view->dims != product.c.dims)
      return refuse("an addend with the result's extents is supported, or without a batch one with "
                    "an element for each column");
    form.beta = factor;
    return place(*view, form.c) &&
           (!form.c.isTransposed || refuse("a transposed addend is not supported"));
  }

  const ProblemReader &problem;
  const Product &product;
  std::string &reason;
  size_t outer = 0; ///< dimensions of the batch that are calls
};

const char *typeText(dvt_type type) {
  return type == DVT_F16 ? "f16" : type == DVT_BF16 ? "bf16" : "f32";
}

std::string operandText(const char *name, const Operand &operand) {
  if (!operand.isPresent())
    return {};
  std::string text = std::string(" ") + name + "=%" + std::to_string(operand.value) +
                     (operand.isTransposed ? "^T" : "") + "/" + std::to_string(operand.leading) +
                     "/" + std::to_string(operand.batchStride) + "@" +
                     std::to_string(operand.alignment);
  for (int64_t start : operand.starts)
    if (operand.starts.size() > 1)
      text += "+" + std::to_string(start);
  return text;
}

/// Exactly; hexadecimal.
std::string numberText(float number) {
  char text[64];
  std::snprintf(text, sizeof text, "%a", static_cast<double>(number));
  return text;
}

/// Cuts a line off `text`.
std::string_view nextLine(std::string_view &text) {
  const size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  return line;
}

} // namespace

std::string Form::numerics() const { return isTf32 ? "tf32" : typeText(type); }

std::string Form::text() const {
  return algorithm() + " " + numerics() + " " + std::to_string(batch) + "*" + std::to_string(rows) +
         "x" + std::to_string(columns) + "x" + std::to_string(depth) + operandText("a", a) +
         operandText("b", b) + operandText("c", c) + operandText("d", d) +
         operandText("bias", bias) + " alpha=" + numberText(alpha) + " beta=" + numberText(beta) +
         " epilogue=" + std::to_string(epilogue) + " workspace=" + std::to_string(workspaceBytes);
}

std::vector<Form> findForms(const ProblemReader &problem, std::string &reason) {
  const providers::ProductRules rules{{DVT_F32, DVT_F16, DVT_BF16}, true, true};
  std::vector<Form> forms;
  for (const Product &product : providers::matchProducts(problem, rules, reason)) {
    if (!providers::mayShareResult(problem, product))
      reason = "the result may not share this operand's memory";
    else if (std::optional<Form> form = Translation(problem, product, reason).run())
      forms.push_back(std::move(*form));
  }
  return forms;
}

std::string kernelOf(const Form &form) {
  return std::string(kKernelMark) + std::to_string(kKernelFormat) + "\n" + dialect().library +
         "\n" + form.text() + "\n";
}

bool checkKernel(std::string_view kernel, const Form &form, std::string &reason) {
  if (kernel.size() > kMostKernelBytes || !kernel.starts_with(kKernelMark)) {
    reason = "these bytes are no kernel of this provider";
    return false;
  }
  const std::string_view format = nextLine(kernel).substr(kKernelMark.size());
  if (format != std::to_string(kKernelFormat)) {
    reason = "the kernel is of format " + std::string(format.substr(0, 16)) + ", format " +
             std::to_string(kKernelFormat) + " is supported; compile the model again";
    return false;
  }
  const std::string_view library = nextLine(kernel), text = nextLine(kernel);
  if (library != dialect().library || !kernel.empty()) {
    reason = "these bytes are no kernel of this provider";
    return false;
  }
  if (text == form.text())
    return true;
  reason = "the kernel is of another product: '" + std::string(text) + "' instead of '" +
           form.text() + "'";
  return false;
}

} // namespace dovetail::blaslt
