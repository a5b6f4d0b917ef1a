// SPDX-License-Identifier: Apache-2.0
//
// What the double of cuDNN objects to: calls in the wrong order, of wrong types and counts, on what
// is not there.
#include <gmock/gmock.h>

#include "DoubleFixture.h"
#include "providers/cudnn/Graph.h"

using namespace dovetail;
using namespace dovetail::test;
using namespace dovetail::cudnn;
using testing::HasSubstr;

namespace {

class CudnnDouble : public CudnnDoubleFixture {
protected:
  void SetUp() override {
    CudnnDoubleFixture::SetUp();
    library = std::make_unique<Library>(kFolder);
    ASSERT_TRUE(library->isLoaded()) << library->missing;
  }
  /// A tensor of three dimensions in memory, or a virtual one.
  Object tensor(Backend &backend, int64_t id, Dims dims, bool isVirtual = false) {
    Object made(backend, DescriptorKind::Tensor);
    made.set(backend, Attribute::TensorDataType, DataType::Float);
    made.set(backend, Attribute::TensorDimensions, dims);
    made.set(backend, Attribute::TensorStrides, providers::denseStrides(dims));
    made.set(backend, Attribute::TensorUniqueId, id);
    made.set(backend, Attribute::TensorByteAlignment, int64_t{16});
    made.set(backend, Attribute::TensorIsVirtual, isVirtual);
    made.finalize(backend, "a tensor");
    return made;
  }
  /// x + y = z, or what is wrong with it.
  std::string sumOf(const Object &x, const Object &y, const Object &z) {
    Backend backend(*library);
    const PointwiseMode add = PointwiseMode::Add;
    Object mode(backend, DescriptorKind::Pointwise);
    mode.set(backend, Attribute::PointwiseMode, AttributeType::PointwiseMode, 1, &add);
    mode.set(backend, Attribute::PointwiseMathType, DataType::Float);
    mode.finalize(backend, "a mode");
    Object sum(backend, DescriptorKind::PointwiseOp);
    sum.set(backend, Attribute::PointwiseOpDescriptor, mode);
    sum.set(backend, Attribute::PointwiseOpX, x);
    sum.set(backend, Attribute::PointwiseOpB, y);
    sum.set(backend, Attribute::PointwiseOpY, z);
    sum.finalize(backend, "a sum");
    Object graph(backend, DescriptorKind::OperationGraph);
    graph.set(backend, Attribute::GraphOps, std::vector<Descriptor>{sum.get()});
    graph.finalize(backend, "the graph");
    return backend.reason();
  }
  std::unique_ptr<Library> library;
};

} // namespace

TEST_F(CudnnDouble, NamesWhatIsWrongWithAnAttribute) {
  Backend backend(*library);
  auto refused = [&](const char *says) {
    EXPECT_THAT(backend.reason(), HasSubstr(says));
    backend.forget();
  };
  Object made(backend, DescriptorKind::Tensor);
  made.finalize(backend, "a tensor");
  refused("BAD_PARAM: cudnnBackendFinalize: a tensor without attribute 901");
  made.set(backend, Attribute::TensorUniqueId, true);
  refused("ATTRIBUTE_TYPE: cudnnBackendSetAttribute: attribute 906 has type 3 and not 2");
  made.set(backend, Attribute::ConfigEngine, int64_t{1});
  refused("a tensor has no attribute 300");
  made.set(backend, Attribute::TensorDimensions, Dims(9, 1));
  refused("SIZE_INSUFFICIENT: cudnnBackendSetAttribute: 9 elements for attribute 902");
  made.set(backend, Attribute::TensorUniqueId, AttributeType::Int64, 1, nullptr);
  refused("NULL_POINTER: cudnnBackendSetAttribute: attribute 906 without values");
  int64_t id = 0, count = 0;
  EXPECT_EQ(library->BackendGetAttribute(made.get(), Attribute::TensorUniqueId,
                                         AttributeType::Int64, 1, &count, &id),
            2004);
  const Object whole = tensor(backend, 7, {1, 2, 3});
  ASSERT_TRUE(backend.ok()) << backend.reason();
  EXPECT_EQ(whole.integer(Attribute::TensorUniqueId, -1), 7);
  whole.set(backend, Attribute::TensorUniqueId, int64_t{8});
  refused("a finalised tensor is not changed any more");
  whole.finalize(backend, "twice");
  refused("a tensor is finalised twice");
  Object op(backend, DescriptorKind::PointwiseOp);
  op.set(backend, Attribute::PointwiseOpX, made);
  refused("NOT_FINALIZED: cudnnBackendSetAttribute: a tensor is given that was not finalised");
  op.set(backend, Attribute::PointwiseOpDescriptor, whole);
  refused("DESCRIPTOR_TYPE: cudnnBackendSetAttribute: a tensor is given for a description of an");
}

TEST_F(CudnnDouble, NamesWhatIsWrongWithAGraph) {
  Backend backend(*library);
  const Object x = tensor(backend, 1, {1, 2, 3}), y = tensor(backend, 2, {1, 1, 3}),
               z = tensor(backend, 3, {1, 2, 3}), same = tensor(backend, 2, {1, 2, 3}),
               odd = tensor(backend, 4, {1, 2, 4}), nowhere = tensor(backend, 5, {1, 2, 3}, true);
  ASSERT_TRUE(backend.ok()) << backend.reason();
  EXPECT_EQ(sumOf(x, y, z), "");
  EXPECT_THAT(sumOf(x, odd, z), HasSubstr("[1,2,4] does not broadcast to [1,2,3]"));
  EXPECT_THAT(sumOf(same, y, z), HasSubstr("two tensors have the id 2"));
  EXPECT_THAT(sumOf(nowhere, y, z), HasSubstr("the virtual tensor 5 is read before it is given"));
  EXPECT_THAT(sumOf(x, y, nowhere), testing::IsEmpty());
}

TEST_F(CudnnDouble, NamesWhatIsNotThere) {
  Descriptor descriptor = nullptr;
  LibraryHandle handle = nullptr;
  ASSERT_EQ(library->BackendCreateDescriptor(DescriptorKind::Tensor, &descriptor), 0);
  ASSERT_EQ(library->BackendDestroyDescriptor(descriptor), 0);
  EXPECT_NE(library->BackendFinalize(descriptor), 0);
  EXPECT_THAT(library->lastError(), HasSubstr("is no descriptor; it may have been destroyed"));
  EXPECT_EQ(library->lastError(), "") << "it is told once";
  ASSERT_EQ(library->Create(&handle), 0);
  ASSERT_EQ(library->Destroy(handle), 0);
  EXPECT_NE(library->SetStream(handle, nullptr), 0);
  EXPECT_THAT(library->describe(2000), "CUDNN_STATUS_BAD_PARAM: cudnnSetStream: there is no such "
                                       "handle");
  EXPECT_NE(library->BackendCreateDescriptor(static_cast<DescriptorKind>(14), &descriptor), 0);
}

TEST_F(CudnnDouble, NamesWhatIsWrongWithAVariantPack) {
  Backend backend(*library);
  Object pack(backend, DescriptorKind::VariantPack);
  void *const pointers[] = {&backend, &backend};
  pack.set(backend, Attribute::PackUniqueIds, std::vector<int64_t>{1, 1, 2});
  pack.set(backend, Attribute::PackDataPointers, AttributeType::VoidPointer, 2, pointers);
  pack.finalize(backend, "binding memory");
  EXPECT_THAT(backend.reason(), HasSubstr("2 pointers for 3 ids"));
  backend.forget();
  pack.set(backend, Attribute::PackUniqueIds, std::vector<int64_t>{1, 1});
  pack.finalize(backend, "binding memory");
  EXPECT_THAT(backend.reason(), HasSubstr("an id is there twice"));
}
