// SPDX-License-Identifier: Apache-2.0
//
// Sizes for free extents: by their places, by what the user says, and so that the model makes
// sense.
#include <gtest/gtest.h>

#include "plan/TypicalSizes.h"

namespace dovetail::plan {
namespace {

using Relation = Requirement::Relation;

Extent symbol(const char *name) { return Extent::symbol(name); }

uint32_t addInput(OpTable &table, std::vector<Extent> extents) {
  TableValue value;
  value.extents = std::move(extents);
  value.name = "input" + std::to_string(table.values.size());
  table.values.push_back(std::move(value));
  table.inputs.push_back(static_cast<uint32_t>(table.values.size() - 1));
  return table.inputs.back();
}

void addValue(OpTable &table, std::vector<Extent> extents) {
  addInput(table, std::move(extents));
  table.inputs.pop_back();
}

SymbolValues sizesOf(const OpTable &table, const SymbolValues &given = {}) {
  auto sizes = typicalSizes(table, given);
  EXPECT_TRUE(sizes) << sizes.error().message;
  return sizes ? *sizes : SymbolValues();
}

void expectHolds(const OpTable &table, const SymbolValues &sizes) {
  for (const Requirement &requirement : table.requirements)
    EXPECT_TRUE(holds(requirement, sizes) == true) << violation(requirement, sizes);
}

TEST(TypicalSizes, followFromPlaces) {
  OpTable table;
  addInput(table, {symbol("batch"), 3, symbol("H"), symbol("W")});
  addInput(table, {symbol("batch"), symbol("length")});
  addInput(table, {symbol("count")});
  addValue(table, {symbol("found")});
  SymbolValues sizes = sizesOf(table);
  EXPECT_EQ(
      sizes,
      (SymbolValues{
          {"batch", 1}, {"H", 128}, {"W", 128}, {"length", 64}, {"count", 64}, {"found", 64}}));
  EXPECT_EQ(sizesText(usableSizes(table, sizes)),
            "H=128, W=128, batch=1, count=64, found=64, length=64");
  EXPECT_EQ(lastingSymbols(table), (std::set<std::string>{"batch", "H", "W", "length", "count"}));
}

TEST(TypicalSizes, areInsideTheRanges) {
  OpTable table;
  addInput(table, {symbol("N"), symbol("A"), symbol("B"), symbol("C")});
  table.ranges = {{"N", {4, 1000, 4}}, {"A", {1, 30, 1}}, {"B", {200, 900, 7}}, {"C", {1, 900, 5}}};
  EXPECT_EQ(sizesOf(table), (SymbolValues{{"N", 4}, {"A", 30}, {"B", 203}, {"C", 125}}));
}

TEST(TypicalSizes, makeRequirementsHold) {
  OpTable table;
  addInput(table, {symbol("batch"), symbol("past"), symbol("length")});
  addInput(table, {symbol("batch"), symbol("total")});
  addInput(table, {symbol("side"), symbol("a"), symbol("b")});
  addInput(table, {symbol("fixed"), symbol("joined")});
  table.requirements = {
      {Relation::Equal, symbol("total"), symbol("past") + symbol("length"), "attention"},
      {Relation::Equal, symbol("fixed"), 10, "addition"},
      {Relation::Broadcast, symbol("joined"), 24, "product"},
      {Relation::AtLeast, Extent::floorDiv(symbol("side"), 2), 37, "window"},
      {Relation::Equal, Extent::mod(symbol("a"), 12), 0, "reshape"},
      {Relation::Equal, symbol("a") * symbol("b"), 480, "reshape"}};
  SymbolValues sizes = sizesOf(table);
  expectHolds(table, sizes);
  EXPECT_EQ(sizes["fixed"], 10);
  sizes = sizesOf(table, {{"total", 50}, {"a", 24}});
  expectHolds(table, sizes);
  EXPECT_EQ(sizes["total"], 50);
  EXPECT_EQ(sizes["b"], 20);
}

TEST(TypicalSizes, followChainsFromWhatIsGiven) {
  OpTable table;
  addInput(table, {symbol("a")});
  addInput(table, {symbol("b")});
  addInput(table, {symbol("c")});
  addInput(table, {symbol("d")});
  table.requirements = {{Relation::Equal, symbol("a"), symbol("b"), "first"},
                        {Relation::Equal, symbol("b"), symbol("c"), "second"},
                        {Relation::Equal, symbol("c"), symbol("d") + 3, "third"}};
  for (int64_t given : {10, 1000}) {
    SymbolValues sizes = sizesOf(table, {{"a", given}});
    expectHolds(table, sizes);
    EXPECT_EQ(sizes["a"], given);
  }
}

TEST(TypicalSizes, leaveNoExtentNegativeOrEmpty) {
  OpTable table;
  addInput(table, {symbol("N"), symbol("L")});
  addValue(table, {symbol("L") - 300});
  addValue(table, {Extent::floorDiv(symbol("N"), 16)});
  SymbolValues sizes = sizesOf(table);
  EXPECT_GT(sizes["L"], 300);
  EXPECT_GE(sizes["N"], 16);
}

TEST(TypicalSizes, areLeftOutWhereNothingHolds) {
  OpTable table;
  addInput(table, {symbol("N"), symbol("M")});
  table.requirements = {{Relation::Equal, symbol("N"), 10, "this"},
                        {Relation::Equal, symbol("N"), 11, "that"}};
  SymbolValues sizes = usableSizes(table, sizesOf(table));
  EXPECT_EQ(sizes, (SymbolValues{{"M", 64}}));
}

TEST(TypicalSizes, serveTheModelBeforeItsBranches) {
  OpTable table, branch, other;
  addInput(table, {symbol("N"), symbol("M")});
  table.requirements = {{Relation::Equal, symbol("N"), 10, "model"}};
  addInput(branch, {symbol("N"), symbol("K")});
  branch.requirements = {{Relation::Equal, symbol("N"), 20, "branch"},
                         {Relation::Equal, symbol("K"), symbol("M") + 1, "branch"}};
  addInput(other, {symbol("N")});
  table.bodies = {branch, other};
  SymbolValues sizes = usableSizes(table, sizesOf(table));
  EXPECT_EQ(sizes, (SymbolValues{{"N", 10}, {"M", 64}, {"K", 65}}));
  EXPECT_EQ(usableSizes(branch, sizes), (SymbolValues{{"M", 64}, {"K", 65}}));
  EXPECT_EQ(usableSizes(other, sizes), sizes);
}

TEST(TypicalSizes, refuseNonsense) {
  OpTable table;
  addInput(table, {symbol("N"), symbol("M")});
  table.ranges["M"] = {8, 64, 8};
  table.requirements = {{Relation::Equal, symbol("N"), 10, "Add 'a'"}};
  for (auto [name, size, says] :
       {std::tuple{"Q", 3, "'Q', which is none of the open dimensions: M, N"},
        std::tuple{"M", 3, "it is a multiple of 8 from 8 to 64"},
        std::tuple{"N", 11, "Add 'a': N = 11 and 10 must be equal"}}) {
    auto sizes = typicalSizes(table, {{name, size}});
    ASSERT_FALSE(sizes) << name;
    EXPECT_EQ(sizes.error().kind, ErrorKind::BadInput);
    EXPECT_NE(sizes.error().message.find(says), std::string::npos) << sizes.error().message;
  }
}

TEST(TypicalSizes, ofGrowingStatesDoNotLast) {
  OpTable table;
  addInput(table, {symbol("past"), 1, 4});
  addInput(table, {symbol("batch"), 4});
  table.states = {{0, 0, true, {}}};
  EXPECT_EQ(lastingSymbols(table), (std::set<std::string>{"batch"}));
  EXPECT_EQ(sizesOf(table), (SymbolValues{{"batch", 1}, {"past", 64}}));
}

} // namespace
} // namespace dovetail::plan
