// SPDX-License-Identifier: Apache-2.0
//
// Every line of the table of ops against libonnx's newest definition of the op, and every op of
// ONNX's own domain is either in the table or named here as built into the runtime.
#include <charconv>
#include <set>

#include <gtest/gtest.h>
#include <onnx/defs/schema.h>

#include "graph/OpRegistry.h"
#include "support/OpName.h"

using namespace dovetail;
using namespace dovetail::graph;

namespace {

const onnx::OpSchema *schemaOf(const OpInfo &op) {
  return onnx::OpSchemaRegistry::Schema(std::string(op.onnxName));
}

int bounded(int count) { return count > 1000 ? -1 : count; }

std::string valueText(const onnx::AttributeProto &value) {
  auto join = [](const auto &list) {
    std::string text;
    for (const auto &element : list) {
      if constexpr (std::is_same_v<std::decay_t<decltype(element)>, std::string>)
        text += (text.empty() ? "" : ",") + element;
      else
        text += (text.empty() ? "" : ",") + std::to_string(element);
    }
    return text;
  };
  switch (value.type()) {
  case onnx::AttributeProto::INT:
    return std::to_string(value.i());
  case onnx::AttributeProto::STRING:
    return value.s();
  case onnx::AttributeProto::INTS:
    return join(value.ints());
  case onnx::AttributeProto::STRINGS:
    return join(value.strings());
  default:
    return "?";
  }
}

AttributeType typeOf(onnx::AttributeProto::AttributeType type) {
  switch (type) {
  case onnx::AttributeProto::INT:
    return AttributeType::Int;
  case onnx::AttributeProto::FLOAT:
    return AttributeType::Float;
  case onnx::AttributeProto::STRING:
    return AttributeType::String;
  case onnx::AttributeProto::INTS:
    return AttributeType::Ints;
  case onnx::AttributeProto::FLOATS:
    return AttributeType::Floats;
  case onnx::AttributeProto::STRINGS:
    return AttributeType::Strings;
  default:
    return AttributeType::Tensor;
  }
}

TEST(OpRegistry, CountsAndVersionsAreThoseOfOnnx) {
  for (const OpInfo &op : allOps()) {
    SCOPED_TRACE(op.onnxName);
    const onnx::OpSchema *schema = schemaOf(op);
    ASSERT_NE(schema, nullptr);
    EXPECT_EQ(int(op.version), schema->since_version());
    EXPECT_EQ(op.leastInputs, schema->min_input());
    EXPECT_EQ(op.mostInputs, bounded(schema->max_input()));
    EXPECT_EQ(op.leastOutputs, schema->min_output());
    EXPECT_EQ(op.mostOutputs, bounded(schema->max_output()));
    EXPECT_EQ(op.hasFunctionBody, schema->HasFunction() || schema->HasContextDependentFunction());
    EXPECT_FALSE(schema->Deprecated());
  }
}

TEST(OpRegistry, AttributesAreThoseOfOnnx) {
  for (const OpInfo &op : allOps()) {
    SCOPED_TRACE(op.onnxName);
    const onnx::OpSchema *schema = schemaOf(op);
    ASSERT_NE(schema, nullptr);
    ASSERT_EQ(op.attributes.size(), schema->attributes().size());
    for (const auto &[name, attribute] : schema->attributes()) {
      SCOPED_TRACE(name);
      const OpAttribute *own = op.findAttribute(name);
      ASSERT_NE(own, nullptr);
      EXPECT_EQ(own->type, typeOf(attribute.type));
      EXPECT_EQ(own->required, attribute.required);
      bool hasDefault = attribute.default_value.type() != onnx::AttributeProto::UNDEFINED;
      ASSERT_EQ(own->hasDefault, hasDefault);
      if (hasDefault && own->type == AttributeType::Float) {
        float value = 0;
        std::from_chars(own->defaultText.begin(), own->defaultText.end(), value);
        EXPECT_EQ(value, attribute.default_value.f());
      } else if (hasDefault) {
        EXPECT_EQ(own->defaultText, valueText(attribute.default_value));
      }
    }
  }
}

TEST(OpRegistry, NamesFollowTheRule) {
  for (const OpInfo &op : allOps()) {
    EXPECT_EQ(op.name, snakeCase(op.onnxName));
    EXPECT_EQ(findOp(op.name), &op);
    EXPECT_EQ(findOnnxOp(op.onnxName), &op);
  }
  EXPECT_EQ(findOp("no_such_op"), nullptr);
}

TEST(OpRegistry, NoOpOfOnnxIsForgotten) {
  // Control flow and sequences of bodies and optionals are the runtime's; constants have an op of
  // their own.
  const std::set<std::string> elsewhere = {"Constant", "If",   "Loop",
                                           "Optional", "Scan", "SequenceMap"};
  for (const onnx::OpSchema &schema : onnx::OpSchemaRegistry::get_all_schemas()) {
    if (!schema.domain().empty() || schema.Deprecated() || elsewhere.count(schema.Name()))
      continue;
    EXPECT_NE(findOnnxOp(schema.Name()), nullptr) << schema.Name();
  }
}

TEST(OpRegistry, BroadcastsWhatOnnxBroadcasts) {
  EXPECT_TRUE(findOp("where")->broadcasts);
  EXPECT_FALSE(findOp("relu")->broadcasts);
  EXPECT_TRUE(findOp("reshape")->isShapeOperand(1));
  EXPECT_FALSE(findOp("reshape")->isShapeOperand(0));
  EXPECT_TRUE(findOp("non_zero")->dataDependent);
}

} // namespace
