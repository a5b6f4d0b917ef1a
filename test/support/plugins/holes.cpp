// SPDX-License-Identifier: Apache-2.0
//
// A provider whose function table is empty.
#include "dovetail/provider.h"

namespace {
const dvt_provider_api api{sizeof(dvt_provider_api),
                           DVT_PROVIDER_ABI_VERSION,
                           "holes",
                           nullptr,
                           nullptr,
                           nullptr,
                           nullptr,
                           nullptr,
                           nullptr,
                           nullptr,
                           nullptr,
                           nullptr};
}

extern "C" const dvt_provider_api *dvt_provider_entry(uint32_t) { return &api; }
