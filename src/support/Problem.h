// SPDX-License-Identifier: Apache-2.0
//
// A problem: a region of ops made self-contained and canonical, with the one-line text form that is
// its identity in caches, bench files, bug reports and at the plug-in door. This class owns
// everything; ProblemView lends it to providers as the plain structs of provider.h.
//
// Text form, values numbered by first appearance, inputs first:
//   problem(%0: f32[1,64,56,56], %1: const f32[64,64,3,3], %2: f32[] {0.5})
//     %3: f32[1,64,56,56] = conv@22(%0, %1, _) {dilations=[1,1], group=1, kernel_shape=[3,3],
//     pads=[1,1,1,1], strides=[1,1]}; %4: f32[1,64,56,56] = relu@14(%3) return(%4) where N
//     in 1..64/8
// (one line, here broken). `_` is an absent operand; {..} after a type is a literal, {0.5..} one
// that is uniform.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "dovetail/provider.h"
#include "support/Expected.h"
#include "support/Extent.h"

namespace dovetail {

constexpr uint32_t kNoValue = DVT_NO_VALUE;

using AttributeValue =
    std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>>;
/// Sorted by name; ONNX names, defaults filled in.
using AttributeMap = std::map<std::string, AttributeValue, std::less<>>;

struct ProblemValue {
  dvt_type type = DVT_F32;
  std::vector<Extent> extents;
  bool constant = false; ///< same bytes at every run; literals are constant too
  bool uniform = false;  ///< literal holds one element that stands for all
  std::vector<uint8_t>
      literal;            ///< bytes known at compile time, row-major; empty when not a literal
  bool isLiteral = false; ///< an empty tensor's literal has no bytes
  std::vector<int64_t> strides; ///< in elements; empty when dense
  int32_t mayAlias = -1;
};

struct ProblemOp {
  std::string name;
  uint32_t version = 1;
  std::vector<uint32_t> inputs, outputs;
  AttributeMap attributes;
};

class Problem {
public:
  std::vector<ProblemValue> values;
  std::vector<ProblemOp> ops;
  /// Value indices. Inputs: everything not produced inside and not a literal, constants included.
  std::vector<uint32_t> inputs, outputs;
  SymbolRanges ranges;

  /// Renumbers values by first appearance in the text (inputs in their order, literals by first
  /// use, then results in op order), drops unused ones. Called by the builder of a problem once;
  /// parse() results are canonical already.
  void canonicalize();
  std::string text() const;
  static Expected<Problem> parse(std::string_view text);
  /// With the named symbols replaced by numbers.
  Problem specialize(const SymbolValues &values) const;
  bool hasSymbols() const;
  /// Checks indices, single assignment, operands before use. BadInput with a message.
  Status verify() const;
};

/// The plain structs of a problem. The problem must outlive the view unmodified.
class ProblemView {
public:
  explicit ProblemView(const Problem &problem);
  ~ProblemView();
  ProblemView(ProblemView &&) noexcept;
  const dvt_problem *get() const;
  operator const dvt_problem *() const { return get(); }

private:
  struct Storage;
  std::unique_ptr<Storage> storage;
};

/// "f32", "i64", ...; nullptr for a type that has no name here.
const char *typeName(dvt_type type);
/// Nothing for an unknown name: returns DVT_UNDEFINED.
dvt_type parseTypeName(std::string_view name);
/// Bits of one element; 0 for strings.
unsigned typeBits(dvt_type type);
/// Bytes of `elements` elements, 4-bit types rounded up to whole bytes.
uint64_t bytesOf(dvt_type type, int64_t elements);

/// Name of the op or ops of a problem for people: "conv+add+relu".
std::string summary(const Problem &problem);

} // namespace dovetail
