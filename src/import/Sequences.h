// SPDX-License-Identifier: Apache-2.0
//
// Sequences and optionals while a model is imported. A sequence whose elements are known one by one
// is a list of values and leaves no trace in the graph. Any other is packed into tensors: elements
// of the same extents are stacked up along a new first axis, others lie flat one behind the other
// beside a table of their extents. So a sequence whose length only the run tells is made of values
// whose extents only the run tells, and plans, frames and providers know of tensors only.
// Names of the model mean tokens then: values of type none, with what they stand for kept here.
#pragma once

#include <optional>
#include <vector>

#include "llvm/ADT/DenseMap.h"

#include "import/OpEmitter.h"

namespace dovetail::importer {

struct Sequence {
  enum class Form : uint8_t {
    Listed,  ///< `values` are the elements
    Stacked, ///< one value, [length, extents of an element...]
    Ragged,  ///< two values: all elements flat, and i64[length, rank] with their extents
  };
  dvt_type type = DVT_F32;
  Form form = Form::Listed;
  Values values;
};

/// What a border of control flow needs to know to hand a sequence over.
struct SequenceForm {
  bool isEmpty = true; ///< always without elements, whose rank is therefore unknown
  dvt_type type = DVT_F32;
  bool isStacked = false;
  graph::Shape element; ///< of each element where stacked; else only the rank counts
  /// Of all elements, where they differ in it: each is then a value of its own.
  std::vector<size_t> ranks{};
  bool operator==(const SequenceForm &other) const;
  bool isListed() const { return !ranks.empty(); }
  size_t valueCount() const { return isListed() ? ranks.size() : isEmpty ? 0 : isStacked ? 1 : 2; }
};

struct Optional {
  std::optional<bool> known; ///< whether there is an element
  mlir::Value has;           ///< bool[]; null where known
  mlir::Value element;       ///< a tensor or a token; null where known to be none
};

class Sequences {
public:
  explicit Sequences(OpEmitter &emitter) : emitter(emitter) {}

  mlir::Value token(Sequence sequence);
  mlir::Value token(Optional optional);
  /// What a value stands for; null where it is no token of that kind.
  const Sequence *sequence(mlir::Value value) const;
  const Optional *optional(mlir::Value value) const;
  bool isToken(mlir::Value value) const { return sequence(value) || optional(value); }
  /// "a sequence", "an optional"
  const char *kindOf(mlir::Value value) const {
    return sequence(value) ? "a sequence" : "an optional";
  }

  Expected<SequenceForm> formOf(const Sequence &sequence) const;
  Expected<SequenceForm> join(const SequenceForm &a, const SequenceForm &b) const;
  /// Fails where elements differ in their number of dimensions and so do not fit into one tensor.
  Status checkPackable(const SequenceForm &form, const char *what) const;
  /// The sequence as the values of a form that takes it in, emitted where the builder stands.
  Expected<Values> valuesIn(const Sequence &sequence, const SequenceForm &form);
  Sequence fromValues(const SequenceForm &form, llvm::ArrayRef<mlir::Value> values) const;

  Expected<mlir::Value> at(const Sequence &sequence, mlir::Value index);
  Expected<mlir::Value> length(const Sequence &sequence); ///< i64[]
  /// `position` null: behind the last.
  Expected<Sequence> insert(const Sequence &sequence, mlir::Value element, mlir::Value position);
  /// `position` null: the last.
  Expected<Sequence> erase(const Sequence &sequence, mlir::Value position);
  /// Of a sequence that is not ragged.
  Expected<mlir::Value> concat(const Sequence &sequence, int64_t axis, bool newAxis);
  /// Slices of extent 1 along the axis, without it unless it is kept.
  Expected<Sequence> slices(mlir::Value tensor, int64_t axis, bool keep);

  mlir::Value zeros(dvt_type type, llvm::ArrayRef<int64_t> extents);
  Expected<mlir::Value> scalarOf(mlir::Value value, const char *what); ///< one element as i64[]

private:
  Expected<Sequence> packed(const Sequence &sequence);
  Expected<Sequence> ragged(const Sequence &sequence);
  std::optional<int64_t> knownIndex(mlir::Value index) const;
  /// A position counted from the front, i64[1]; one that is none of the sequence, or with
  /// `pastLast` the place behind it, is an error when running.
  Expected<mlir::Value> checkedPosition(const char *op, mlir::Value position, mlir::Value length,
                                        bool pastLast);
  /// Of extents at hand that an op makes no sense with: a branch with it may never be taken.
  template <typename... Args>
  Error contradiction(const char *op, fmt::format_string<Args...> format, Args &&...args) {
    emitter.shapesContradict = true;
    return emitter.fail(op, format, std::forward<Args>(args)...);
  }
  Expected<mlir::Value> slice(mlir::Value tensor, mlir::Value from, mlir::Value to);
  /// For a ragged sequence, i64[length + 1]: where each element begins.
  Expected<mlir::Value> starts(const Sequence &sequence);

  OpEmitter &emitter;
  llvm::DenseMap<mlir::Value, Sequence> sequences;
  llvm::DenseMap<mlir::Value, Optional> optionals;
};

} // namespace dovetail::importer
