// SPDX-License-Identifier: Apache-2.0
//
// A provider built for another version of the door.
#include "dovetail/provider.h"

namespace {
const dvt_provider_api api{sizeof(dvt_provider_api),
                           999,
                           "old",
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
