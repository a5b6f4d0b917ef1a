// SPDX-License-Identifier: Apache-2.0
//
// Every op-set difference: a model in an old form imports to the ops its newest form has.
#include "ModelBuilder.h"

#include <gmock/gmock.h>

namespace dovetail::importer {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string upgraded(int opSet, const std::string &graph) {
  return importedText(graphModel(graph, opSet));
}

/// The same graph text from two forms of a model.
void expectSame(int oldSet, const std::string &oldGraph, int newSet, const std::string &newGraph) {
  std::string older = upgraded(oldSet, oldGraph);
  EXPECT_THAT(older, Not(HasSubstr("error")));
  EXPECT_EQ(older, upgraded(newSet, newGraph));
}

TEST(Upgrade, AttributesThatBecameOperands) {
  expectSame(
      9, "g (float[6,4] x) => (float[2,4] y) { y = Slice <starts=[1], ends=[3], axes=[0]> (x) }",
      13,
      R"(g (float[6,4] x) => (float[2,4] y) {
                  s = Constant <value_ints=[1]> () e = Constant <value_ints=[3]> () a = Constant <value_ints=[0]> ()
                  y = Slice (x, s, e, a) })");
  expectSame(
      11, "g (float[3,1] x) => (float[3] y) { y = Squeeze <axes=[1]> (x) }", 13,
      "g (float[3,1] x) => (float[3] y) { a = Constant <value_ints=[1]> () y = Squeeze (x, a) }");
  expectSame(11, "g (float[3] x) => (float[3,1] y) { y = Unsqueeze <axes=[-1]> (x) }", 13,
             "g (float[3] x) => (float[3,1] y) { a = Constant <value_ints=[-1]> () y = Unsqueeze "
             "(x, a) }");
  expectSame(11, "g (float[6] x) => (float[2] y, float[4] z) { y, z = Split <split=[2,4]> (x) }",
             13,
             "g (float[6] x) => (float[2] y, float[4] z) { a = Constant <value_ints=[2,4]> () y, z "
             "= Split (x, a) }");
  expectSame(11, "g (float[6] x) => (float[3] y, float[3] z) { y, z = Split (x) }", 18,
             "g (float[6] x) => (float[3] y, float[3] z) { y, z = Split <num_outputs=2> (x) }");
  expectSame(13, "g (float[2,3] x) => (float[2,1] y) { y = ReduceMax <axes=[1]> (x) }", 18,
             "g (float[2,3] x) => (float[2,1] y) { a = Constant <value_ints=[1]> () y = ReduceMax "
             "(x, a) }");
  expectSame(11, "g (float[2,3] x) => (float[2] y) { y = ReduceSum <axes=[1], keepdims=0> (x) }",
             13,
             R"(g (float[2,3] x) => (float[2] y) {
                  a = Constant <value_ints=[1]> () y = ReduceSum <keepdims=0> (x, a) })");
  expectSame(9, "g (float[8] x) => (float[3] y, int64[3] z) { y, z = TopK <k=3> (x) }", 12,
             "g (float[8] x) => (float[3] y, int64[3] z) { k = Constant <value_ints=[3]> () y, z = "
             "TopK (x, k) }");
  expectSame(10, "g (float[8] x) => (float[8] y) { y = Clip <min=0.0, max=6.0> (x) }", 12,
             R"(g (float[8] x) => (float[8] y) {
                  a = Constant <value_float=0.0> () b = Constant <value_float=6.0> () y = Clip (x, a, b) })");
  expectSame(10, "g (float[2] x) => (float[5] y) { y = Pad <pads=[1,2], value=1.5> (x) }", 12,
             R"(g (float[2] x) => (float[5] y) {
                  a = Constant <value_ints=[1,2]> () b = Constant <value_float=1.5> () y = Pad (x, a, b) })");
}

TEST(Upgrade, OldClipHasBoundsBothWays) {
  EXPECT_THAT(upgraded(7, "g (float[8] x) => (float[8] y) { y = Clip <min=0.0> (x) }"),
              AllOf(HasSubstr("dense<0.000000e+00>"), HasSubstr("dense<3.40282347E+38>")));
}

TEST(Upgrade, SoftmaxBefore13TakesTheTensorAsAMatrix) {
  std::string text = upgraded(11, "g (float[2,3,4] x) => (float[2,3,4] y) { y = Softmax (x) }");
  EXPECT_THAT(
      text,
      AllOf(HasSubstr(
                "dvt.flatten(%arg0) {axis = 1 : i64} : (tensor<2x3x4xf32>) -> tensor<2x12xf32>"),
            HasSubstr("dvt.softmax"), HasSubstr("dvt.reshape")));
  EXPECT_THAT(
      upgraded(11, "g (float[2,3,4] x) => (float[2,3,4] y) { y = LogSoftmax <axis=2> (x) }"),
      AllOf(HasSubstr("dvt.log_softmax(%arg0) {axis = -1 : i64}"), Not(HasSubstr("flatten"))));
}

TEST(Upgrade, DropoutAndIdentityVanish) {
  std::string text = upgraded(
      9, "g (float[2] x) => (float[2] y, float[2] m) { i = Identity (x) y, m = Dropout (i) }");
  EXPECT_THAT(text, AllOf(Not(HasSubstr("dropout")), Not(HasSubstr("identity")),
                          HasSubstr("return %arg0")));
  EXPECT_THAT(upgraded(13, "g (float[2] x, bool t) => (float[2] y) { y = Dropout (x, , t) }"),
              HasSubstr("training mode"));
}

TEST(Upgrade, UpsampleIsResize) {
  std::string text =
      upgraded(9, R"(g (float[1,1,2,2] x) => (float[1,1,4,4] y) <float[4] s = {1.0,1.0,2.0,2.0}> {
                                      y = Upsample <mode="nearest"> (x, s) })");
  EXPECT_THAT(text, AllOf(HasSubstr("dvt.resize"),
                          HasSubstr("coordinate_transformation_mode = \"asymmetric\""),
                          HasSubstr("nearest_mode = \"floor\""), HasSubstr("tensor<1x1x4x4xf32>")));
  std::string both =
      upgraded(10, R"(g (float[1,1,2,4] x) => (float[1,1,4,2] y) <float[4] s = {1.0,1.0,2.0,0.5}> {
                                       y = Resize <mode="nearest"> (x, s) })");
  EXPECT_THAT(both, AllOf(HasSubstr("nearest_mode = \"ceil\""), HasSubstr("tensor<1x1x2x2xf32>"),
                          HasSubstr("nearest_mode = \"floor\""), HasSubstr("tensor<1x1x4x2xf32>")));
}

TEST(Upgrade, EmptyOperandsOfResizeAreAbsent) {
  std::string text = upgraded(11, R"(g (float[1,1,2,2] x) => (float[1,1,4,4] y)
                                       <float[0] e = {}, int64[4] z = {1,1,4,4}> { y = Resize (x, e, e, z) })");
  EXPECT_THAT(text, AllOf(HasSubstr("(tensor<1x1x2x2xf32>, none, none, tensor<4xi64>)"),
                          Not(HasSubstr("error"))));
}

TEST(Upgrade, AutomaticPaddingIsWorkedOut) {
  auto conv = [](const char *extents, const char *attributes) {
    return upgraded(11, std::string("g (float[1,1,") + extents +
                            "] x, float[1,1,3,3] w) => (float[1,1,A,B] y) { y = Conv <" +
                            attributes + "> (x, w) }");
  };
  EXPECT_THAT(conv("8,7", "auto_pad=\"SAME_UPPER\", strides=[2,2]"),
              HasSubstr("pads = array<i64: 0, 1, 1, 1>"));
  EXPECT_THAT(conv("8,7", "auto_pad=\"SAME_LOWER\", strides=[2,2]"),
              HasSubstr("pads = array<i64: 1, 1, 0, 1>"));
  EXPECT_THAT(conv("8,7", "auto_pad=\"VALID\""),
              AllOf(HasSubstr("pads = array<i64: 0, 0, 0, 0>"), Not(HasSubstr("auto_pad"))));
  EXPECT_THAT(conv("H,W", "auto_pad=\"SAME_UPPER\""),
              AllOf(HasSubstr("pads = array<i64: 1, 1, 1, 1>"), Not(HasSubstr("auto_pad"))));
  EXPECT_THAT(conv("H,W", "auto_pad=\"SAME_UPPER\", strides=[2,2]"),
              HasSubstr("auto_pad = \"SAME_UPPER\""));
  EXPECT_THAT(conv("8,8", "auto_pad=\"SOME\""), HasSubstr("auto_pad 'SOME'"));
}

TEST(Upgrade, TransposedConvolutionsGetTheirPaddingFromTheOutput) {
  EXPECT_THAT(upgraded(11, R"(g (float[1,1,3,3] x, float[1,1,3,3] w) => (float[1,1,A,B] y) {
                                y = ConvTranspose <strides=[3,2], output_shape=[10,8]> (x, w) })"),
              AllOf(HasSubstr("output_padding = array<i64: 1, 1>"),
                    HasSubstr("pads = array<i64: 0, 0, 0, 0>"), HasSubstr("tensor<1x1x10x8xf32>"),
                    Not(HasSubstr("output_shape"))));
  EXPECT_THAT(upgraded(11, R"(g (float[1,1,H,W] x, float[1,1,3,3] w) => (float[1,1,A,B] y) {
                                y = ConvTranspose <strides=[2,2], auto_pad="SAME_UPPER"> (x, w) })"),
              AllOf(HasSubstr("pads = array<i64: 0, 0, 1, 1>"),
                    HasSubstr("[\"1\", \"1\", \"2*H\", \"2*W\"]")));
}

TEST(Upgrade, NormalizationsOfOldForm) {
  EXPECT_THAT(upgraded(8, R"(g (float[1,2,3] x, float[2] s) => (float[1,2,3] y) {
                               y = BatchNormalization <spatial=1> (x, s, s, s, s) })"),
              HasSubstr("training_mode = 0"));
  EXPECT_THAT(upgraded(8, R"(g (float[1,2,3] x, float[2,3] s) => (float[1,2,3] y) {
                               y = BatchNormalization <spatial=0> (x, s, s, s, s) })"),
              HasSubstr("spatial=0"));
  EXPECT_THAT(upgraded(8, R"(g (float[1,2,3] x, float[2] s) => (float[1,2,3] y, float[2] m) {
                               y, m, v, n, o = BatchNormalization (x, s, s, s, s) })"),
              HasSubstr("training form"));
  EXPECT_THAT(upgraded(18, R"(g (float[1,4,3] x, float[2] s) => (float[1,4,3] y) {
                                y = GroupNormalization <num_groups=2> (x, s, s) })"),
              AllOf(HasSubstr("dvt.expand"),
                    HasSubstr("(tensor<1x4x3xf32>, tensor<4xf32>, tensor<4xf32>)")));
}

TEST(Upgrade, DefaultsThatChanged) {
  EXPECT_THAT(
      upgraded(
          16,
          "g (float[1,1,2,2] x, float[1,2,2,2] i) => (float[1,1,2,2] y) { y = GridSample (x, i) }"),
      HasSubstr("mode = \"linear\""));
  EXPECT_THAT(upgraded(10, R"(g (float[1,1,8,8] x, float[2,4] r, int64[2] b) => (float[2,1,1,1] y) {
                                y = RoiAlign (x, r, b) })"),
              HasSubstr("coordinate_transformation_mode = \"output_half_pixel\""));
  EXPECT_THAT(upgraded(21, "g (float[2,3] x) => (float[3,2] y) { y = Transpose (x) }"),
              HasSubstr("perm = array<i64: 1, 0>"));
  EXPECT_THAT(
      upgraded(10, "g (float[2] x) => (float[2] y) { s = Shape (x) y = ConstantOfShape (s) }"),
      HasSubstr("value = dense<0.000000e+00> : tensor<1xf32>"));
  EXPECT_THAT(upgraded(17, "g (float[1,8,2] x) => (float[1,8,2] y) { y = DFT (x) }"),
              HasSubstr("dense<1> : tensor<i64>"));
}

} // namespace
} // namespace dovetail::importer
