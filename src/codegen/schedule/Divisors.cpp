// SPDX-License-Identifier: Apache-2.0
#include "codegen/schedule/Divisors.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

namespace dovetail::codegen {
namespace {

bool isFloat(dvt_type type) { return isFloatType(type) || type == DVT_F64; }

/// Whether the result has no other elements than operand 0.
bool onlyMoves(std::string_view name) {
  for (const char *known :
       {"identity", "reshape", "flatten", "squeeze", "unsqueeze", "transpose", "expand", "slice"})
    if (name == known)
      return true;
  return false;
}

/// The value that the elements of `value` come from.
uint32_t originOf(const ProblemReader &problem, uint32_t value) {
  for (uint32_t steps = 0; steps < problem.opCount(); ++steps) {
    int producer = problem.producerOf(value);
    if (producer < 0 || !onlyMoves(problem.op(producer).name))
      break;
    std::optional<uint32_t> from = ProblemReader::input(problem.op(producer), 0);
    if (!from)
      break;
    value = *from;
  }
  return value;
}

template <typename T> std::optional<int64_t> zeroAmong(const void *integers, int64_t count) {
  const T *begin = static_cast<const T *>(integers), *end = begin + count;
  const T *found = std::find(begin, end, T(0));
  return found == end ? std::nullopt : std::optional<int64_t>(found - begin);
}

} // namespace

std::optional<int64_t> findZero(dvt_type type, const void *integers, int64_t count) {
  switch (elementBytes(type)) {
  case 1:
    return zeroAmong<uint8_t>(integers, count);
  case 2:
    return zeroAmong<uint16_t>(integers, count);
  case 4:
    return zeroAmong<uint32_t>(integers, count);
  case 8:
    return zeroAmong<uint64_t>(integers, count);
  default:
    return std::nullopt;
  }
}

std::vector<uint32_t> divisorInputs(const ProblemReader &problem, std::string *refusal) {
  std::vector<uint32_t> inputs;
  for (uint32_t i = 0; i < problem.opCount(); ++i) {
    const dvt_op &op = problem.op(i);
    std::string_view name = op.name;
    std::optional<uint32_t> operand = ProblemReader::input(op, 1);
    if ((name != "div" && name != "mod") || !operand || isFloat(problem.value(*operand).type))
      continue;
    uint32_t origin = originOf(problem, *operand);
    const dvt_value &divisor = problem.value(origin);
    if (int input = problem.inputOf(origin); input >= 0) {
      inputs.push_back(uint32_t(input));
      continue;
    }
    bool literal = problem.isLiteral(origin) && divisor.literal;
    unsigned bytes = elementBytes(divisor.type);
    // Literals need not be aligned.
    std::vector<uint64_t> copy(literal ? divisor.literal_bytes / 8 + 1 : 0);
    if (literal)
      std::memcpy(copy.data(), divisor.literal, divisor.literal_bytes);
    bool safe = literal && bytes &&
                !findZero(divisor.type, copy.data(), int64_t(divisor.literal_bytes / bytes));
    if (!safe && refusal)
      *refusal = fmt::format("{} of integers by what {}, where nothing could refuse a zero", name,
                             literal ? "holds one" : "is computed in the same kernel");
  }
  return inputs;
}

} // namespace dovetail::codegen
