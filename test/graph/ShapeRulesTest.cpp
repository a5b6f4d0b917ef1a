// SPDX-License-Identifier: Apache-2.0
//
// Shape rules. On static extents libonnx is the truth; with extents made symbolic, the expressions
// must give the same numbers for the same values of the symbols. Elements of small tensors and what
// libonnx leaves open are checked against numbers worked out by hand.
#include <gtest/gtest.h>

#include "ShapeCase.h"

using namespace dovetail;
using namespace dovetail::graph;

namespace {

std::string text(const ValueFacts &facts) {
  return std::string(facts.type == DVT_UNDEFINED ? "none" : typeName(facts.type)) +
         shapeText(facts.shape);
}

/// The extents after the symbols have their values.
std::string evaluated(ValueFacts facts, const SymbolValues &symbols) {
  for (Extent &extent : facts.shape)
    extent = extent.substitute(symbols);
  return text(facts);
}

/// Whether `given` is `known` except where that has a question mark.
bool agrees(const std::string &given, const std::string &known) {
  if (known.empty())
    return true;
  size_t i = 0;
  for (char letter : known) {
    if (letter == '?') {
      while (i < given.size() && given[i] != ',' && given[i] != ']')
        ++i;
      continue;
    }
    if (i >= given.size() || given[i] != letter)
      return false;
    ++i;
  }
  return i == given.size();
}

class AgainstOnnx : public testing::TestWithParam<const char *> {};

TEST_P(AgainstOnnx, StaticAndSymbolic) {
  ShapeCase shapeCase = ShapeCase::parse(GetParam());
  Expected<std::vector<ValueFacts>> numbers = shapeCase.infer(false),
                                    symbols = shapeCase.infer(true);
  ASSERT_TRUE(numbers) << numbers.error().message;
  ASSERT_TRUE(symbols) << symbols.error().message;
  std::vector<std::string> truth = inferByOnnx(shapeCase);
  ASSERT_EQ(truth.size(), numbers->size());
  for (size_t i = 0; i < truth.size(); ++i) {
    EXPECT_TRUE(agrees(text((*numbers)[i]), truth[i]))
        << "result " << i << " is " << text((*numbers)[i]) << ", libonnx says " << truth[i];
    EXPECT_EQ(evaluated((*symbols)[i], shapeCase.symbols), text((*numbers)[i]))
        << "symbolic: " << text((*symbols)[i]);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Pointwise, AgainstOnnx,
    testing::Values("Add(f32[N=2,1,4], f32[3,1])", "Add(f32[], f32[A=5,B=1])",
                    "Where(bool[A=3,1], f32[4], f32[2,1,1])", "Less(i64[A=3], i64[1])",
                    "Pow(f32[A=2,3], i64[])", "PRelu(f32[A=2,3,4], f32[3,1])",
                    "Clip(f32[A=2], f32[], f32[])", "Cast(f32[A=2]) to=7", "IsNaN(f32[A=2,3])",
                    "Max(f32[3,1], f32[1,B=4], f32[2,1,1])", "Mod(i64[A=4], i64[])",
                    "BitShift(u8[A=3], u8[1]) direction=LEFT", "CastLike(f32[A=3], i64[])",
                    "Swish(f32[A=3])", "Gelu(f32[A=3,B=4])", "Not(bool[A=3])",
                    "Reciprocal(f32[A=3,0])", "Equal(i64[A=3], i64[A=3])"));

INSTANTIATE_TEST_SUITE_P(Reduction, AgainstOnnx,
                         testing::Values("ReduceMean(f32[A=2,B=3,C=4], i64[1]{-1})",
                                         "ReduceSum(f32[A=2,B=3], i64[1]{0}) keepdims=0",
                                         "ReduceMax(f32[A=2,B=3])",
                                         "ReduceMin(f32[A=2,B=3]) keepdims=0",
                                         "ReduceSum(f32[A=2,B=3], _) noop_with_empty_axes=1",
                                         "ReduceL2(f32[A=2,B=3,C=4], i64[2]{0,2}) keepdims=0",
                                         "ArgMax(f32[A=2,B=3]) axis=-1",
                                         "ArgMin(f32[A=2,B=3]) axis=0 keepdims=0",
                                         "CumSum(f32[A=2,B=3], i64[]{1})"));

INSTANTIATE_TEST_SUITE_P(
    Contraction, AgainstOnnx,
    testing::Values("MatMul(f32[A=2,1,3,K=4], f32[5,K=4,B=6])", "MatMul(f32[K=4], f32[K=4])",
                    "MatMul(f32[K=4], f32[2,K=4,B=3])", "MatMul(f32[2,A=3,K=4], f32[K=4])",
                    "Gemm(f32[K=3,M=2], f32[N=5,K=3], f32[N=5]) transA=1 transB=1",
                    "MatMulInteger(u8[M=2,3], i8[3,N=4])", "Det(f32[B=2,3,3])",
                    "Einsum(f32[B=2,H=3,S=4,D=5], f32[B=2,H=3,T=6,D=5]) equation=bhsd,bhtd->bhst",
                    "Einsum(f32[A=2,B=3]) equation=ij->ji",
                    "Einsum(f32[A=2,B=3], f32[B=3]) equation=ij,j",
                    "Einsum(f32[A=2,5,3], f32[3,4]) equation=...j,jk->...k"));

INSTANTIATE_TEST_SUITE_P(
    Windows, AgainstOnnx,
    testing::Values(
        "Conv(f32[N=1,3,H=224,W=223], f32[64,3,7,7]) strides=2,2 pads=3,3,3,3 kernel_shape=7,7",
        "Conv(f32[N=1,8,H=10,W=11], f32[16,2,3,3], f32[16]) group=4 dilations=2,2",
        "Conv(f32[N=1,3,H=10,W=11], f32[4,3,3,3]) auto_pad=SAME_UPPER strides=2,2",
        "Conv(f32[N=1,3,H=10,W=11], f32[4,3,3,3]) auto_pad=VALID strides=2,3",
        "Conv(f32[N=1,3,L=10], f32[4,3,5]) pads=4,0", "Conv(f32[1,2,D=5,H=6,W=7], f32[3,2,2,2,2])",
        "ConvTranspose(f32[N=1,4,H=5,W=6], f32[4,3,2,2]) strides=2,2",
        "ConvTranspose(f32[N=1,4,H=5,W=6], f32[4,3,3,3]) strides=2,2 pads=1,1,1,1 "
        "output_padding=1,1 group=2",
        "ConvTranspose(f32[N=1,4,5,6], f32[4,3,3,3]) strides=2,2 output_shape=10,12",
        "MaxPool(f32[N=1,3,H=112,W=112]) kernel_shape=3,3 strides=2,2 pads=1,1,1,1 /2",
        "MaxPool(f32[N=1,3,H=5,W=6]) kernel_shape=2,2 strides=2,2 ceil_mode=1",
        "MaxPool(f32[N=1,3,H=1,W=6]) kernel_shape=2,2 strides=2,2",
        "AveragePool(f32[N=1,3,H=5,W=1]) kernel_shape=2,5 strides=2,3 pads=0,1,0,1",
        "MaxPool(f32[N=1,3,H=4,W=5]) kernel_shape=1,1 strides=3,3 pads=0,0,2,2 ceil_mode=1",
        "AveragePool(f32[N=1,3,H=7,W=8]) kernel_shape=3,2 strides=3,2 ceil_mode=1 "
        "pads=1,1,1,1",
        "AveragePool(f32[N=1,3,H=7,W=8]) kernel_shape=3,3 auto_pad=SAME_LOWER strides=2,2",
        "GlobalAveragePool(f32[N=2,C=3,4,5])", "LpPool(f32[N=1,3,H=9]) kernel_shape=2",
        "RoiAlign(f32[1,C=3,8,8], f32[R=5,4], i64[R=5]) output_height=7 output_width=6",
        "MaxRoiPool(f32[1,C=3,8,8], f32[R=5,5]) pooled_shape=2,2",
        "ConvInteger(u8[N=1,3,H=8,W=8], u8[4,3,3,3])",
        "QLinearConv(u8[N=1,3,H=8,W=8], f32[], u8[], u8[4,3,3,3], f32[], u8[], f32[], u8[])"));

INSTANTIATE_TEST_SUITE_P(
    Normalization, AgainstOnnx,
    testing::Values("Softmax(f32[A=2,B=3]) axis=1",
                    "BatchNormalization(f32[N=2,3,H=4], f32[3], f32[3], f32[3], f32[3])",
                    "LayerNormalization(f32[N=2,S=5,8], f32[8], f32[8]) /3",
                    "RMSNormalization(f32[N=2,S=5,8], f32[8])",
                    "GroupNormalization(f32[N=2,8,H=4], f32[8], f32[8]) num_groups=4",
                    "InstanceNormalization(f32[N=2,8,H=4], f32[8], f32[8])",
                    "LRN(f32[N=2,8,H=4,W=5]) size=3"));

INSTANTIATE_TEST_SUITE_P(
    Attention, AgainstOnnx,
    testing::Values("Attention(f32[B=2,H=3,S=4,8], f32[B=2,H=3,T=6,8], f32[B=2,H=3,T=6,10])",
                    "Attention(f32[B=2,S=4,24], f32[B=2,T=6,24], f32[B=2,T=6,30]) q_num_heads=3 "
                    "kv_num_heads=3",
                    "Attention(f32[2,3,4,8], f32[2,3,6,8], f32[2,3,6,8], _, f32[2,3,5,8], "
                    "f32[2,3,5,8]) /3",
                    "RotaryEmbedding(f32[B=2,H=3,S=4,8], f32[B=2,S=4,4], f32[B=2,S=4,4])"));

INSTANTIATE_TEST_SUITE_P(Views, AgainstOnnx,
                         testing::Values("Reshape(f32[A=2,B=3,C=4], i64[2]{0,-1})",
                                         "Reshape(f32[2,A=3,4], i64[3]{4,0,-1})",
                                         "Reshape(f32[2,3], i64[2]{3,2}) allowzero=1",
                                         "Squeeze(f32[A=2,1,B=3], i64[1]{1})",
                                         "Squeeze(f32[1,A=2,1])",
                                         "Unsqueeze(f32[A=2,B=3], i64[2]{0,-1})",
                                         "Flatten(f32[A=2,B=3,C=4]) axis=2",
                                         "Flatten(f32[A=2,B=3]) axis=0", "Identity(f32[A=2])",
                                         "Dropout(f32[A=2,B=3]) /2"));

INSTANTIATE_TEST_SUITE_P(
    Movement, AgainstOnnx,
    testing::Values(
        "Transpose(f32[A=2,B=3,C=4]) perm=2,0,1", "Transpose(f32[A=2,B=3])",
        "Concat(f32[A=2,B=3], f32[A=2,C=4]) axis=1", "Split(f32[A=6,B=4]) num_outputs=2 axis=0 /2",
        "Split(f32[7,B=4]) num_outputs=3 /3", "Split(f32[A=6,10], i64[2]{3,7}) axis=1 /2",
        "Slice(f32[A=20,B=10], i64[1]{1}, i64[1]{9223372036854775807}, i64[1]{0})",
        "Slice(f32[A=20,B=10], i64[2]{0,-3}, i64[2]{-2,1000}, i64[2]{0,1}, i64[2]{3,1})",
        "Slice(f32[A=20], i64[1]{-1}, i64[1]{-1000}, i64[1]{0}, i64[1]{-2})",
        "Slice(f32[A=20], i64[1]{5}, i64[1]{3})", "Slice(f32[A=5], i64[1]{2}, i64[1]{8})",
        "Pad(f32[A=2,B=3], i64[4]{0,1,2,3})", "Pad(f32[A=2,B=3], i64[2]{1,-1}, _, i64[1]{-1})",
        "Expand(f32[A=3,1], i64[3]{2,1,6})", "Tile(f32[A=2,B=3], i64[2]{2,3})",
        "DepthToSpace(f32[N=1,8,H=2,W=3]) blocksize=2",
        "SpaceToDepth(f32[N=1,2,H=4,W=6]) blocksize=2", "Trilu(f32[A=3,B=4])",
        "CenterCropPad(f32[A=20,B=10], i64[2]{10,12})",
        "GridSample(f32[N=1,C=2,4,5], f32[N=1,H=6,W=7,2])",
        "AffineGrid(f32[2,2,3], i64[4]{2,3,5,6})", "Col2Im(f32[1,10,12], i64[2]{4,4}, i64[2]{1,5})",
        "ReverseSequence(f32[A=4,B=5], i64[B=5])"));

INSTANTIATE_TEST_SUITE_P(Indexing, AgainstOnnx,
                         testing::Values("Gather(f32[A=5,B=6], i64[C=2,D=3]) axis=1",
                                         "Gather(f32[A=5,B=6], i64[]) axis=0",
                                         "GatherElements(f32[A=5,B=6], i64[C=2,B=6])",
                                         "GatherND(f32[A=5,B=6,7], i64[C=2,2])",
                                         "GatherND(f32[A=5,B=6,7], i64[A=5,1]) batch_dims=1",
                                         "ScatterND(f32[A=5,B=6], i64[2,1], f32[2,B=6])",
                                         "ScatterElements(f32[A=5,B=6], i64[2,3], f32[2,3])",
                                         "TopK(f32[A=5,B=6], i64[1]{3}) axis=0 /2",
                                         "OneHot(i64[A=5], i64[1]{7}, f32[2])",
                                         "OneHot(i64[A=5,B=2], i64[]{7}, f32[2]) axis=1"));

INSTANTIATE_TEST_SUITE_P(
    Others, AgainstOnnx,
    testing::Values("Resize(f32[N=1,C=3,H=5,W=7], _, f32[4]{1,1,2,0.5})",
                    "Resize(f32[N=1,C=3,H=5,W=7], _, _, i64[4]{1,3,10,9})",
                    "Resize(f32[N=1,C=3,H=10,W=7], _, f32[2]{0.7,1.5}) axes=2,3",
                    "Resize(f32[1,3,20,10], _, _, i64[2]{7,8}) axes=2,3 "
                    "keep_aspect_ratio_policy=not_larger",
                    "Resize(f32[1,3,20,10], _, _, i64[2]{7,8}) axes=2,3 "
                    "keep_aspect_ratio_policy=not_smaller",
                    "Shape(f32[A=2,B=3,C=4])", "Shape(f32[2,3,4]) start=1", "Size(f32[A=2,B=3])",
                    "ConstantOfShape(i64[3]{2,3,4})", "Range(i64[]{3}, i64[]{10}, i64[]{4})",
                    "Range(f32[]{10}, f32[]{4}, f32[]{-2.5})", "EyeLike(f32[A=3,B=4]) dtype=7",
                    "HannWindow(i64[]{10})", "RandomNormal() shape=2,3 dtype=1",
                    "RandomUniformLike(f32[A=3])", "Multinomial(f32[A=3,5]) sample_size=4",
                    "QuantizeLinear(f32[A=3], f32[], u8[])",
                    "DequantizeLinear(u8[A=3], f32[], u8[])",
                    "DynamicQuantizeLinear(f32[A=3,B=4]) /3",
                    "LSTM(f32[T=7,N=2,5], f32[1,32,5], f32[1,32,8]) hidden_size=8 /3",
                    "GRU(f32[N=2,T=7,5], f32[2,24,5], f32[2,24,8]) hidden_size=8 "
                    "direction=bidirectional layout=1 /2",
                    "DFT(f32[A=2,N=8,1], _, i64[]{1}) onesided=1",
                    "STFT(f32[A=2,N=128,1], i64[]{8}, f32[16]) onesided=1",
                    "NegativeLogLikelihoodLoss(f32[A=2,5,B=3], i64[A=2,B=3]) reduction=none",
                    "SoftmaxCrossEntropyLoss(f32[A=2,5], i64[A=2]) /2"));

std::string elementsText(const std::optional<Elements> &elements) {
  if (!elements)
    return "unknown";
  std::string result;
  for (const std::optional<Extent> &element : *elements)
    result += (result.empty() ? "" : " ") + (element ? element->text() : std::string("?"));
  return result;
}

ValueFacts tracked(Elements elements, dvt_type type = DVT_I64) {
  ValueFacts facts;
  facts.type = type;
  facts.shape = {int64_t(elements.size())};
  facts.elements = std::move(elements);
  return facts;
}

std::vector<ValueFacts> run(std::string_view op, std::vector<ValueFacts> operands,
                            AttributeMap attributes = {}, size_t results = 1,
                            SymbolRanges ranges = {}) {
  InferContext context(*findOp(op), "", attributes, std::move(operands), results, ranges);
  Status status = inferShapes(context);
  EXPECT_TRUE(status) << status.error().message;
  return context.takeResults();
}

ValueFacts tensor(Shape shape, dvt_type type = DVT_F32) {
  ValueFacts facts;
  facts.type = type;
  facts.shape = std::move(shape);
  return facts;
}

const Extent N = Extent::symbol("N"), H = Extent::symbol("H"), W = Extent::symbol("W");

TEST(ShapeArithmetic, FlattenOfSymbolicExtents) {
  // Shape -> Gather -> Concat(., -1) -> Reshape, as exporters write it.
  ValueFacts shape = run("shape", {tensor({N, 3, H, W})})[0];
  EXPECT_EQ(elementsText(shape.elements), "N 3 H W");
  ValueFacts first = run("gather", {shape, tracked({Extent(0)})})[0];
  ValueFacts wanted = run("concat", {first, tracked({Extent(-1)})}, {{"axis", int64_t(0)}})[0];
  EXPECT_EQ(elementsText(wanted.elements), "N -1");
  EXPECT_EQ(text(run("reshape", {tensor({N, 3, H, W}), wanted})[0]), "f32[N,3*H*W]");
}

TEST(ShapeArithmetic, Follows) {
  ValueFacts a = tracked({N, H, Extent(4)}), b = tracked({Extent(2), Extent(2), Extent(3)});
  EXPECT_EQ(elementsText(run("mul", {a, b})[0].elements), "2*N 2*H 12");
  EXPECT_EQ(elementsText(run("add", {a, b})[0].elements), "N+2 H+2 7");
  EXPECT_EQ(elementsText(run("div", {a, b})[0].elements), "floordiv(N,2) floordiv(H,2) 1");
  EXPECT_EQ(elementsText(run("slice", {a, tracked({Extent(-1)}), tracked({Extent(-5)}),
                                       tracked({Extent(0)}), tracked({Extent(-1)})})[0]
                             .elements),
            "4 H N");
  ValueFacts table = tracked({1, N, 3, 4, 5, 6}); // [3,2], as what exporters make of paddings
  table.shape = {3, 2};
  EXPECT_EQ(elementsText(run("slice", {table, tracked({Extent(-1)}), tracked({Extent(-9)}),
                                       tracked({Extent(0)}), tracked({Extent(-1)})})[0]
                             .elements),
            "5 6 3 4 1 N");
  EXPECT_EQ(elementsText(run("slice", {table, tracked({Extent(1)}), tracked({Extent(2)}),
                                       tracked({Extent(1)}), tracked({Extent(1)})})[0]
                             .elements),
            "N 4 6");
  EXPECT_EQ(
      elementsText(run("transpose", {table}, {{"perm", std::vector<int64_t>{1, 0}}})[0].elements),
      "1 3 5 N 4 6");
  EXPECT_EQ(elementsText(run("cast", {a}, {{"to", int64_t(DVT_I32)}})[0].elements), "N H 4");
  EXPECT_EQ(elementsText(run("reduce_prod", {a}, {{"keepdims", int64_t(0)}})[0].elements), "4*H*N");
  std::vector<ValueFacts> parts =
      run("split", {a, tracked({Extent(1), Extent(2)})}, {{"axis", int64_t(0)}}, 2);
  EXPECT_EQ(elementsText(parts[1].elements), "H 4");
}

TEST(ShapeArithmetic, SelectsByKnownConditions) {
  // Expand with -1 for "keep": where(shape == -1, ones, shape).
  ValueFacts shape = tracked({N, Extent(-1), Extent(4)}), minus = tracked({Extent(-1)}),
             one = tracked({Extent(1)});
  ValueFacts isMinus = run("equal", {shape, minus})[0];
  EXPECT_EQ(elementsText(isMinus.elements), "0 1 0");
  EXPECT_EQ(elementsText(run("where", {isMinus, one, shape})[0].elements), "N 1 4");
  // N may be 4 or not.
  EXPECT_EQ(elementsText(run("equal", {tracked({N}), tracked({Extent(4)})})[0].elements), "?");
}

TEST(ShapeArithmetic, TruncatesOnlyWhereSignsAreKnown) {
  EXPECT_EQ(elementsText(run("div", {tracked({Extent(-7)}), tracked({Extent(2)})})[0].elements),
            "-3");
  EXPECT_EQ(elementsText(run("div", {tracked({N - 5}), tracked({Extent(2)})})[0].elements), "?");
}

TEST(Symbolic, BroadcastDoesNotAssume) {
  // Two symbols may be equal or either may be 1.
  ValueFacts sum = run("add", {tensor({N}), tensor({H})})[0];
  EXPECT_EQ(sum.shape[0].evaluate({{"N", 1}, {"H", 7}}), 7);
  EXPECT_EQ(sum.shape[0].evaluate({{"N", 7}, {"H", 1}}), 7);
  // A data-dependent extent may be 0, and 0 against 1 is 0.
  SymbolRanges ranges{{"N", {0, 100, 1}}};
  ValueFacts maybeEmpty = run("add", {tensor({N}), tensor({H})}, {}, 1, ranges)[0];
  EXPECT_EQ(maybeEmpty.shape[0].evaluate({{"N", 0}, {"H", 1}}), 0);
  EXPECT_EQ(maybeEmpty.shape[0].evaluate({{"N", 5}, {"H", 5}}), 5);
}

TEST(Symbolic, SliceClampsAtTheEnd) {
  ValueFacts sliced = run(
      "slice", {tensor({N}), tracked({Extent(2)}), tracked({Extent(10)}), tracked({Extent(0)})})[0];
  for (auto [extent, length] : {std::pair{1, 0}, {2, 0}, {5, 3}, {10, 8}, {50, 8}})
    EXPECT_EQ(sliced.shape[0].evaluate({{"N", extent}}), length) << extent;
}

TEST(Symbolic, DataDependentExtentsAreNew) {
  std::vector<ValueFacts> found = run("non_zero", {tensor({N, 4})});
  EXPECT_EQ(text(found[0]), "i64[2,non_zero.0]");
}

TEST(Symbolic, WindowsThatMayNotFitAreRequirements) {
  AttributeMap window{{"kernel_shape", std::vector<int64_t>{2, 3}},
                      {"strides", std::vector<int64_t>{2, 1}}};
  InferContext context(*findOp("max_pool"), "pool", window, {tensor({N, 8, H, 40})}, 1, {});
  ASSERT_TRUE(inferShapes(context));
  // The window of 2 has a place on an image of 1, as its stride is 2.
  Extent height = context.takeResults()[0].shape[2];
  for (auto [extent, places] : {std::pair{1, 1}, {2, 1}, {3, 1}, {4, 2}, {7, 3}})
    EXPECT_EQ(height.evaluate({{"H", extent}}), places) << extent;
  EXPECT_TRUE(context.takeRequirements().empty()) << "an image has at least one row";

  InferContext convolution(*findOp("conv"), "conv", {},
                           {tensor({N, 8, H, W}), tensor({4, 8, 3, 1})}, 1, {});
  ASSERT_TRUE(inferShapes(convolution));
  std::vector<Requirement> &needed = convolution.takeRequirements();
  ASSERT_EQ(needed.size(), 1u);
  EXPECT_EQ(holds(needed[0], {{"H", 3}}), true);
  EXPECT_EQ(holds(needed[0], {{"H", 2}}), false);
  EXPECT_EQ(holds(needed[0], {{"W", 2}}), std::nullopt);
  EXPECT_NE(violation(needed[0], {{"H", 2}}).find("Conv 'conv': the padded image along axis 2"),
            std::string::npos);
}

TEST(Symbolic, OperandsThatMayNotFitAreRequirements) {
  auto needed = [](const char *op, std::vector<ValueFacts> operands) {
    InferContext context(*findOp(op), "", {}, std::move(operands), 1, {});
    EXPECT_TRUE(inferShapes(context));
    return context.takeRequirements();
  };
  EXPECT_TRUE(needed("add", {tensor({N, H}), tensor({N, 1})}).empty());
  std::vector<Requirement> broadcast = needed("add", {tensor({N}), tensor({H})});
  ASSERT_EQ(broadcast.size(), 1u);
  EXPECT_EQ(holds(broadcast[0], {{"N", 3}, {"H", 1}}), true);
  EXPECT_EQ(holds(broadcast[0], {{"N", 3}, {"H", 2}}), false);
  std::vector<Requirement> inner = needed("mat_mul", {tensor({2, N}), tensor({H, 3})});
  ASSERT_EQ(inner.size(), 1u);
  EXPECT_EQ(holds(inner[0], {{"N", 3}, {"H", 3}}), true);
  EXPECT_EQ(holds(inner[0], {{"N", 3}, {"H", 1}}), false);
}

TEST(Refusals, NameWhatIsWrong) {
  auto message = [](const char *textCase) {
    Expected<std::vector<ValueFacts>> facts = ShapeCase::parse(textCase).infer(false);
    return facts ? std::string("accepted") : facts.error().message;
  };
  EXPECT_NE(message("Conv(f32[1,3,8,8], f32[4,2,3,3])").find("channels"), std::string::npos);
  EXPECT_NE(message("Add(f32[2,3], f32[4])").find("broadcast"), std::string::npos);
  EXPECT_NE(message("Reshape(f32[2,3], i64[1]{5})").find("reshape"), std::string::npos);
  EXPECT_NE(message("MatMul(f32[2,3], f32[4,2])").find("inner"), std::string::npos);
  EXPECT_NE(message("Transpose(f32[2,3]) perm=0,0").find("twice"), std::string::npos);
  EXPECT_NE(message("Softmax(f32[2,3]) axis=2").find("axis 2"), std::string::npos);
  EXPECT_NE(message("Concat(f32[2,3], f32[3,3]) axis=1").find("differ"), std::string::npos);
  EXPECT_NE(message("Squeeze(f32[2,3], i64[1]{0})").find("squeezed"), std::string::npos);
  EXPECT_NE(message("MaxPool(f32[1,2,8,8]) kernel_shape=2 strides=2,2").find("kernel_shape"),
            std::string::npos);
  EXPECT_NE(message("Conv(f32[1,2,8,2], f32[4,2,3,3])").find("axis 3 has extent 2, at least 3"),
            std::string::npos);
  EXPECT_NE(message("MaxPool(f32[1,2,1,8]) kernel_shape=3,1 strides=2,2").find("axis 2"),
            std::string::npos);
  EXPECT_NE(message("LSTM(f32[7,2,5], f32[1,31,5], f32[1,32,8]) /3").find("weights and inputs"),
            std::string::npos);
  EXPECT_NE(message("GRU(f32[7,2,5], f32[1,24,5], f32[1,24,8], f32[1,47]) /2").find("biases"),
            std::string::npos);
  EXPECT_NE(message("RNN(f32[7,2,5], f32[1,8,5], f32[1,8,8], _, i32[3]) /2").find("lengths"),
            std::string::npos);
  EXPECT_NE(message("ConvTranspose(f32[1,2,1,8], f32[2,4,1,1]) pads=1,0,1,0").find("axis 2"),
            std::string::npos);
}

TEST(Rules, EveryTensorOpHasOne) {
  for (const OpInfo &op : allOps())
    if (op.kind != OpKind::Sequence && op.kind != OpKind::Text) {
      EXPECT_NE(findShapeRule(op.name), nullptr) << op.name;
    }
}

} // namespace
