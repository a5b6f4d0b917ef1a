// SPDX-License-Identifier: Apache-2.0
#include "ModelBuilder.h"

using namespace dovetail::importer;

TEST(Smoke, Print) {
  printf("%s\n", importedText(graphModel("g (float[N,3] x) => (float[N,3] y) { y = Relu(x) }")).c_str());
}
