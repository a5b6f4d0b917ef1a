// SPDX-License-Identifier: Apache-2.0
//
// Operands of trials, and how far results may lie from the truth.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "Execution.h"
#include "support/Literal.h"

namespace dovetail::conformance {

namespace {

bool isReal(dvt_type type) {
  return type == DVT_F32 || type == DVT_F64 || type == DVT_F16 || type == DVT_BF16;
}

template <typename T> T load(const std::vector<uint8_t> &bytes, int64_t index) {
  T value;
  std::memcpy(&value, bytes.data() + static_cast<size_t>(index) * sizeof(T), sizeof(T));
  return value;
}

double numberAt(const HostTensor &tensor, int64_t index) {
  const std::vector<uint8_t> &bytes = tensor.bytes;
  switch (tensor.type) {
  case DVT_F32:
    return load<float>(bytes, index);
  case DVT_F64:
    return load<double>(bytes, index);
  case DVT_F16:
    return halfToFloat(load<uint16_t>(bytes, index));
  case DVT_BF16:
    return bfloatToFloat(load<uint16_t>(bytes, index));
  case DVT_I8:
    return load<int8_t>(bytes, index);
  case DVT_I16:
    return load<int16_t>(bytes, index);
  case DVT_U16:
    return load<uint16_t>(bytes, index);
  case DVT_I32:
    return load<int32_t>(bytes, index);
  case DVT_U32:
    return load<uint32_t>(bytes, index);
  case DVT_I64:
    return static_cast<double>(load<int64_t>(bytes, index));
  case DVT_U64:
    return static_cast<double>(load<uint64_t>(bytes, index));
  case DVT_U4:
  case DVT_I4: {
    int nibble = bytes[static_cast<size_t>(index / 2)] >> (index % 2 * 4) & 15;
    return tensor.type == DVT_I4 && nibble > 7 ? nibble - 16 : nibble;
  }
  default:
    return bytes[static_cast<size_t>(index)];
  }
}

template <typename T> void append(std::vector<uint8_t> &bytes, T value) {
  auto *from = reinterpret_cast<const uint8_t *>(&value);
  bytes.insert(bytes.end(), from, from + sizeof value);
}

void appendNoise(dvt_type type, bool positive, std::mt19937_64 &random,
                 std::vector<uint8_t> &bytes) {
  double unit = static_cast<double>(random() >> 11) * 0x1p-53,
         real = positive ? 0.5 + unit : 2 * unit - 1;
  switch (type) {
  case DVT_F32:
    return append(bytes, static_cast<float>(real));
  case DVT_F64:
    return append(bytes, real);
  case DVT_F16:
    return append(bytes, floatToHalf(static_cast<float>(real)));
  case DVT_BF16:
    return append(bytes, floatToBfloat(static_cast<float>(real)));
  case DVT_I32:
  case DVT_U32:
    // 0 and 1 are indices into any axis but the shortest.
    return append(bytes, static_cast<int32_t>(positive ? 1 : random() % 2));
  case DVT_I64:
  case DVT_U64:
    return append(bytes, static_cast<int64_t>(positive ? 1 : random() % 2));
  case DVT_I16:
  case DVT_U16:
    return append(bytes, static_cast<uint16_t>(random() % 1000));
  case DVT_BOOL:
    return append(bytes, static_cast<uint8_t>(random() % 2));
  default:
    return append(bytes, static_cast<uint8_t>(random()));
  }
}

/// Unit in the last place of the arithmetic, relative.
double unitOf(dvt_type type) {
  switch (type) {
  case DVT_F64:
    return 0x1p-53;
  case DVT_F16:
    return 0x1p-11;
  case DVT_BF16:
    return 0x1p-8;
  default:
    return 0x1p-24;
  }
}

double unitOf(const std::string &numerics) {
  auto begins = [&](const char *prefix) { return numerics.rfind(prefix, 0) == 0; };
  // Winograd's transforms amplify rounding by two orders of magnitude.
  double factor = numerics.find("winograd") != std::string::npos ? 256 : 1;
  return factor * (begins("bf16")                    ? 0x1p-8
                   : begins("f16") || begins("tf32") ? 0x1p-11
                   : begins("f64")                   ? 0x1p-53
                                                     : 0x1p-24);
}

/// Whether some op picks along a dimension of extent 1, where 0 is the only index.
bool indexesSingles(const Problem &problem, const SymbolValues &symbols) {
  return std::any_of(problem.ops.begin(), problem.ops.end(), [&](const ProblemOp &op) {
    if (op.inputs.empty() || (op.name.rfind("gather", 0) != 0 && op.name.rfind("scatter", 0) != 0))
      return false;
    const std::vector<Extent> &extents = problem.values[op.inputs[0]].extents;
    return std::any_of(extents.begin(), extents.end(), [&](const Extent &extent) {
      return extent.evaluate(symbols).value_or(1) < 2;
    });
  });
}

} // namespace

std::vector<HostTensor> makeInputs(const Problem &problem, const SymbolValues &symbols,
                                   bool positive) {
  std::vector<HostTensor> inputs;
  std::mt19937_64 random(1234567);
  bool onlyFirst = indexesSingles(problem, symbols);
  for (uint32_t index : problem.inputs) {
    const ProblemValue &value = problem.values[index];
    HostTensor tensor = {value.type, {}, {}};
    for (const Extent &extent : value.extents)
      tensor.extents.push_back(extent.evaluate(symbols).value_or(1));
    uint64_t bytes = bytesOf(value.type, tensor.count());
    if (onlyFirst && (value.type == DVT_I32 || value.type == DVT_I64))
      tensor.bytes.resize(bytes);
    while (tensor.bytes.size() < bytes)
      appendNoise(value.type, positive, random, tensor.bytes);
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

std::string compare(const HostTensor &truth, const HostTensor &found, double bound,
                    bool nearInteger) {
  if (truth.extents != found.extents)
    return "the extents differ from the reference's";
  double largest = 0, worst = 0;
  int64_t at = -1, count = truth.count();
  for (int64_t i = 0; i < count; ++i)
    if (double magnitude = std::fabs(numberAt(truth, i)); std::isfinite(magnitude))
      largest = std::max(largest, magnitude);
  for (int64_t i = 0; i < count; ++i) {
    double a = numberAt(truth, i), b = numberAt(found, i);
    double difference = std::fabs(a - b);
    if (a == b || (std::isnan(a) && std::isnan(b)))
      continue;
    if (!isReal(truth.type))
      difference =
          difference <= (nearInteger ? 1 : 0) ? 0 : std::numeric_limits<double>::infinity();
    else if (std::isnan(difference) || std::isinf(a) != std::isinf(b))
      difference = std::numeric_limits<double>::infinity();
    if (difference > worst) {
      worst = difference;
      at = i;
    }
  }
  if (at < 0 || worst <= bound * largest)
    return {};
  return fmt::format(
      "element {} of {}: found {}, the reference has {}; the difference relative to the largest "
      "magnitude {} is {:.3g}, allowed is {:.3g}",
      at, count, numberAt(found, at), numberAt(truth, at), largest,
      worst / std::max(largest, 1e-300), bound);
}

double errorBound(const Problem &problem, const SymbolValues &symbols,
                  const std::string &numerics) {
  double unit = unitOf(numerics);
  for (const ProblemValue &value : problem.values)
    if (isReal(value.type))
      unit = std::max(unit, unitOf(value.type));
  auto countOf = [&](const ProblemValue &value) {
    double count = 1;
    for (const Extent &extent : value.extents)
      count *= static_cast<double>(std::max<int64_t>(extent.evaluate(symbols).value_or(1), 1));
    return count;
  };
  // Terms of the longest sum: a window of weights, a row of a matrix, or at most the operand.
  // Errors of random signs grow with its root.
  auto contains = [](const std::string &text, std::initializer_list<const char *> words) {
    return std::any_of(words.begin(), words.end(),
                       [&](const char *word) { return text.find(word) != std::string::npos; });
  };
  auto firstExtent = [&](uint32_t value) {
    const std::vector<Extent> &extents = problem.values[value].extents;
    int64_t extent = extents.empty() ? 1 : extents[0].evaluate(symbols).value_or(1);
    return static_cast<double>(std::max<int64_t>(extent, 1));
  };
  double longest = 1;
  for (const ProblemOp &op : problem.ops) {
    std::vector<double> counts;
    for (uint32_t input : op.inputs)
      counts.push_back(input == kNoValue ? 1 : countOf(problem.values[input]));
    if (counts.empty())
      continue;
    const ProblemValue &first = problem.values[op.inputs[0]];
    double terms = 1;
    if (contains(op.name, {"conv"}) && counts.size() > 1)
      terms = counts[1] / firstExtent(op.inputs[1]);
    else if (contains(op.name, {"mat_mul", "gemm"}) && !first.extents.empty())
      for (size_t i = first.extents.size() > 1 ? first.extents.size() - 2 : 0;
           i < first.extents.size(); ++i)
        terms =
            std::max(terms, static_cast<double>(first.extents[i].evaluate(symbols).value_or(1)));
    else if (contains(op.name, {"norm", "softmax", "reduce", "pool", "attention", "lstm", "gru",
                                "rnn", "einsum", "cum_", "mean", "dft", "lrn", "loss"}))
      terms = *std::max_element(counts.begin(), counts.end());
    longest = std::max(longest, terms);
  }
  // Libraries' functions are good to some tens of units in the last place.
  return unit * (96 + 8 * std::sqrt(longest)) * static_cast<double>(problem.ops.size());
}

} // namespace dovetail::conformance
