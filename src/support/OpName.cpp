// SPDX-License-Identifier: Apache-2.0
//
// The rule for '_' and the few names that it does not give or that cannot be turned back by
// capitalising words.
#include "support/OpName.h"

namespace dovetail {

namespace {

struct Names {
  std::string_view onnx, snake;
};

// Names that the rule of snakeCase would break apart.
constexpr Names kExceptions[] = {{"IsNaN", "is_nan"}};

// Names whose words are not simply capitalised; the rule of snakeCase gives them.
constexpr Names kAcronyms[] = {{"LRN", "lrn"},
                               {"LSTM", "lstm"},
                               {"GRU", "gru"},
                               {"RNN", "rnn"},
                               {"DFT", "dft"},
                               {"STFT", "stft"},
                               {"GatherND", "gather_nd"},
                               {"ScatterND", "scatter_nd"},
                               {"RMSNormalization", "rms_normalization"}};

bool isUpper(char c) { return c >= 'A' && c <= 'Z'; }
bool isLower(char c) { return c >= 'a' && c <= 'z'; }
bool isDigit(char c) { return c >= '0' && c <= '9'; }

} // namespace

std::string snakeCase(std::string_view onnxOp) {
  for (const Names &names : kExceptions)
    if (names.onnx == onnxOp)
      return std::string(names.snake);
  std::string out;
  for (size_t i = 0; i < onnxOp.size(); ++i) {
    char c = onnxOp[i];
    if (isUpper(c) && i > 0) {
      char before = onnxOp[i - 1];
      bool lowerFollows = i + 1 < onnxOp.size() && isLower(onnxOp[i + 1]);
      if (isLower(before) || isDigit(before) || (isUpper(before) && lowerFollows))
        out += '_';
    }
    out += isUpper(c) ? char(c - 'A' + 'a') : c;
  }
  return out;
}

std::string onnxName(std::string_view opName) {
  for (const Names &names : kExceptions)
    if (names.snake == opName)
      return std::string(names.onnx);
  for (const Names &names : kAcronyms)
    if (names.snake == opName)
      return std::string(names.onnx);
  std::string out;
  bool start = true;
  for (char c : opName) {
    if (c == '_') {
      start = true;
      continue;
    }
    out += start && isLower(c) ? char(c - 'a' + 'A') : c;
    start = false;
  }
  return out;
}

} // namespace dovetail
