// SPDX-License-Identifier: Apache-2.0
//
// Puts what was counted into GoogleTest's own report (--gtest_output=json:FILE), where
// scripts/device-report reads it: properties such as "sm_90.assembled".
#include <gtest/gtest.h>

#include "ImageCheck.h"

namespace dovetail::test {
namespace {

class RecordCounts : public testing::Environment {
public:
  void TearDown() override {
    for (const auto &[architecture, counts] : imageCounts()) {
      auto record = [&](const char *what, uint64_t number) {
        testing::Test::RecordProperty(architecture + "." + what, int(number));
      };
      record("kernels", counts.kernels);
      record("entries", counts.entries);
      record("assembled", counts.assembled);
      record("disassembled", counts.disassembled);
      record("matrix_kernels", counts.matrixKernels);
    }
  }
};

[[maybe_unused]] const testing::Environment *const registered =
    testing::AddGlobalTestEnvironment(new RecordCounts);

} // namespace
} // namespace dovetail::test
