// SPDX-License-Identifier: Apache-2.0
//
// LSTM, GRU and RNN: tails of vectors, tiles and chunks of steps, extents known at run time, and
// what is refused. The options of ONNX in all combinations are the business of test/recurrent.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "NativeCheck.h"

namespace dovetail::test {
namespace {

struct Net {
  std::string op = "lstm", direction = "forward", attributes = "input_forget=0", steps = "5";
  std::string batch = "3", lengths = "";
  int input = 7, hidden = 9, layout = 0;
  const char *constant = "const ";
};

std::string textOf(const Net &net) {
  const int gates = net.op == "lstm" ? 4 : net.op == "gru" ? 3 : 1;
  const int sides = net.direction == "bidirectional" ? 2 : 1;
  const std::string side = std::to_string(sides);
  const std::string x = net.layout ? fmt::format("{},{}", net.batch, net.steps)
                                   : fmt::format("{},{}", net.steps, net.batch);
  const std::string y = net.layout ? fmt::format("{},{},{}", net.batch, net.steps, side)
                                   : fmt::format("{},{},{}", net.steps, side, net.batch);
  const std::string state =
      net.layout ? fmt::format("{},{}", net.batch, side) : fmt::format("{},{}", side, net.batch);
  std::string operands =
      fmt::format("%0: f32[{0},{1}], %1: {2}f32[{3},{4},{1}], %2: {2}f32[{3},{4},"
                  "{5}], %3: {2}f32[{3},{6}], %4: f32[{7},{5}]",
                  x, net.input, net.constant, sides, gates * net.hidden, net.hidden,
                  2 * gates * net.hidden, state);
  if (!net.lengths.empty())
    operands += fmt::format(", %5: i32[{}]{}", net.batch, net.lengths == "run" ? "" : net.lengths);
  return fmt::format("problem({}) %6: f32[{},{}], %7: f32[{},{}] = {}@22(%0, %1, %2, %3, {}, %4) "
                     "{{direction=\"{}\", hidden_size={}, layout={}, {}}} return(%6, %7)",
                     operands, y, net.hidden, state, net.hidden, net.op,
                     net.lengths.empty() ? "_" : "%5", net.direction, net.hidden, net.layout,
                     net.attributes);
}

CheckResult check(const Net &net, std::vector<SymbolValues> bindings = {{}}) {
  CheckOptions options;
  options.bindings = std::move(bindings);
  // Small enough for states to forget; lengths are drawn from the same range.
  options.low = -0.4;
  options.high = 0.4;
  if (net.lengths == "run")
    options.high = 1;
  options.relative = options.absolute = 1e-5;
  CheckResult result = checkNative(textOf(net), options);
  EXPECT_FALSE(result.candidates.empty()) << textOf(net);
  return result;
}

const char *const kDirections[] = {"forward", "reverse", "bidirectional"};
const std::pair<const char *, const char *> kOps[] = {{"lstm", "input_forget=0"},
                                                      {"gru", "linear_before_reset=0"},
                                                      {"gru", "linear_before_reset=1"},
                                                      {"rnn", "activations=\"Tanh,Tanh\""}};

TEST(Recurrent, Directions) {
  for (auto [op, attributes] : kOps)
    for (const char *direction : kDirections)
      for (int layout : {0, 1})
        check({.op = op, .direction = direction, .attributes = attributes, .layout = layout});
}

TEST(Recurrent, HiddenUnitsAndSequencesAroundTiles) {
  for (auto [op, attributes] : kOps)
    for (auto [batch, hidden] : {std::pair{"1", 1}, {"1", 64}, {"2", 33}, {"8", 20}, {"25", 16}})
      check({.op = op, .attributes = attributes, .batch = batch, .input = 3, .hidden = hidden});
}

TEST(Recurrent, MoreStepsThanAChunk) {
  for (const char *direction : kDirections)
    check({.direction = direction, .steps = "101", .batch = "2"});
}

TEST(Recurrent, SequenceLengths) {
  for (auto [op, attributes] : kOps)
    for (const char *direction : kDirections) {
      Net net{.op = op, .direction = direction, .attributes = attributes};
      for (const char *lengths : {" {5,0,3}", "run"}) {
        net.lengths = lengths;
        check(net);
      }
    }
}

TEST(Recurrent, RunTimeExtents) {
  for (auto [op, attributes] : kOps)
    for (const char *direction : kDirections)
      for (int layout : {0, 1})
        check({.op = op,
               .direction = direction,
               .attributes = attributes,
               .steps = "T",
               .batch = "N",
               .lengths = "run",
               .layout = layout},
              {{{"T", 1}, {"N", 1}}, {{"T", 13}, {"N", 2}}, {{"T", 3}, {"N", 19}}});
}

TEST(Recurrent, ThreadsWithoutTasksTakeTheInputBeforehand) {
  CheckResult result = check({.steps = "20", .batch = "1"});
  bool whole = false;
  for (const std::string &candidate : result.candidates)
    whole |= candidate.find(":whole") != std::string::npos;
  EXPECT_TRUE(whole);
}

TEST(Recurrent, Refusals) {
  Net net;
  net.constant = "";
  EXPECT_NE(refusalOf(textOf(net)).find("computed at run time"), std::string::npos);
  net.constant = "const ";
  net.lengths = " {5,6,1}";
  EXPECT_NE(refusalOf(textOf(net)).find("sequence length 6 is outside [0, 5]"), std::string::npos);
}

} // namespace
} // namespace dovetail::test
