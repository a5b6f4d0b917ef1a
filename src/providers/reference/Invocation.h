// SPDX-License-Identifier: Apache-2.0
//
// What a kernel sees of the op it computes: operands as tensors or widened numbers, attributes, and
// a way to make results. Whether a result goes to the caller's memory, to a call-back of the caller
// or to a temporary is not the kernel's business.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "Program.h"

namespace dovetail::reference {

class Invocation {
public:
  /// Gives memory for result `index`, or a failure where the caller expected other extents.
  using Allocate = std::function<Status(uint32_t index, const Extents &, Tensor *&)>;
  Invocation(const Program &program, const Operation &operation, std::vector<const Tensor *> inputs,
             const Allocate &allocate, const dvt_parallel *parallel)
      : parallel(parallel), program(program), operation(operation), inputs(std::move(inputs)),
        allocate(allocate) {}

  uint32_t version() const { return operation.version; }
  size_t inputCount() const { return inputs.size(); }
  size_t outputCount() const { return operation.outputs.size(); }
  bool has(size_t input) const { return input < inputs.size() && inputs[input]; }
  bool wants(size_t output) const {
    return output < operation.outputs.size() && operation.outputs[output] != DVT_NO_VALUE;
  }
  /// Operand that is there.
  const Tensor &in(size_t input) const { return *inputs[input]; }
  const Extents &shape(size_t input) const { return inputs[input]->extents; }
  int64_t rank(size_t input) const { return inputs[input]->rank(); }
  NumberKind kind(size_t input) const { return kindOf(inputs[input]->type); }
  template <typename W> std::vector<W> numbers(size_t input) const {
    return reference::numbers<W>(*inputs[input]);
  }
  /// Declared element type of a wanted result.
  dvt_type outputType(size_t output) const {
    return program.values[operation.outputs[output]].type;
  }

  bool hasAttribute(std::string_view name) const;
  int64_t integer(std::string_view name, int64_t fallback) const;
  double real(std::string_view name, double fallback) const;
  std::string_view text(std::string_view name, std::string_view fallback) const;
  /// Nothing where the attribute is absent.
  std::optional<std::vector<int64_t>> integers(std::string_view name) const;
  std::vector<double> reals(std::string_view name) const;

  /// All elements of an operand of integers; bad input where it is of another type.
  Status integerOperand(size_t input, std::vector<int64_t> &values) const;
  /// The one element of an operand of integers.
  Status integerScalar(size_t input, int64_t &value) const;
  /// The one element of any operand as a double.
  Status realScalar(size_t input, double &value) const;
  /// Integers from the operand where it is there, from the attribute otherwise; nothing where
  /// neither is.
  Status integerList(size_t input, std::string_view attribute,
                     std::optional<Extents> &values) const;
  /// Counts a negative axis from the back and checks it.
  Status normalizeAxis(int64_t &axis, int64_t rank) const;
  /// As normalizeAxis for each, and none twice.
  Status normalizeAxes(Extents &axes, int64_t rank) const;
  /// The operand's rank must be at least `least`.
  Status needRank(size_t input, int64_t least) const;

  /// Memory for a wanted result, of the declared type, not cleared.
  Status output(size_t output, const Extents &extents, Tensor *&tensor);
  /// Rounds `values` to the declared type. Does nothing where the result is not wanted.
  template <typename W>
  Status store(size_t output, const Extents &extents, const std::vector<W> &values);

  template <typename... Parts> Status bad(const Parts &...parts) const {
    return {DVT_BAD_INPUT, join(operation.entry->name, ": ", parts...)};
  }
  template <typename... Parts> Status unsupported(const Parts &...parts) const {
    return {DVT_UNSUPPORTED, join("reference: ", operation.entry->name, ": ", parts...)};
  }

  const dvt_parallel *const parallel;

private:
  const Attribute *find(std::string_view name) const;
  const Program &program;
  const Operation &operation;
  std::vector<const Tensor *> inputs;
  const Allocate &allocate;
};

} // namespace dovetail::reference
