// SPDX-License-Identifier: Apache-2.0
//
// A provider whose proposals are mostly nonsense; one is sound.
#include <cstring>

#include "providers/Stateless.h"

using namespace stateless;

namespace {

const dvt_provider_info information{sizeof(dvt_provider_info), "lying", "1.0", nullptr, 0, 1, 0};

dvt_candidate sound() {
  dvt_candidate c{};
  c.struct_size = sizeof(c);
  c.algorithm = "plain";
  c.numerics = "f32";
  c.estimate_micros = -5;
  return c;
}

const dvt_provider_info *info(dvt_provider *) { return &information; }

dvt_code propose(dvt_provider *, const dvt_target *, const dvt_problem *problem,
                 const dvt_candidate_sink *sink, dvt_error *error) {
  auto offer = [&](auto change) {
    dvt_candidate c = sound();
    change(c);
    sink->candidate(sink->context, &c);
  };
  offer([](dvt_candidate &) {});
  offer([](dvt_candidate &) {}); // twice
  offer([](dvt_candidate &c) { c.algorithm = nullptr; });
  offer([](dvt_candidate &c) { c.algorithm = "two words"; });
  offer([](dvt_candidate &c) { c.numerics = nullptr; });
  offer([](dvt_candidate &c) { c.struct_size = 4; });
  offer([](dvt_candidate &c) { c.packing = dvt_packing(77); });
  offer([](dvt_candidate &c) { c.workspace_bytes = UINT64_MAX - 1; });
  offer([](dvt_candidate &c) { c.memory = dvt_memory_kind(2); });
  offer([](dvt_candidate &c) {
    c.algorithm = "elsewhere";
    c.memory = DVT_MEMORY_DEVICE;
  });
  const char *wrong[] = {"aBcd16b", "??"};
  offer([&](dvt_candidate &c) { c.input_layouts = wrong; });
  offer([&](dvt_candidate &c) { c.output_layouts = wrong + 1; });
  sink->candidate(sink->context, nullptr);
  sink->refusal(sink->context, nullptr, nullptr);
  std::strcpy(error->message, "had nothing more");
  return DVT_UNSUPPORTED;
}

dvt_code compile(dvt_provider *, const dvt_target *, const dvt_problem *, const dvt_candidate *c,
                 const dvt_bytes_sink *sink, dvt_error *error) {
  if (std::strcmp(c->algorithm, "plain") != 0) {
    std::memset(error->message, 'x', sizeof(error->message)); // not terminated
    return DVT_UNSUPPORTED;
  }
  sink->bytes(sink->context, "ab", 2);
  sink->bytes(sink->context, "c", 1);
  return DVT_OK;
}
dvt_code prepare(dvt_provider *, const dvt_target *, const dvt_problem *, const dvt_candidate *,
                 const dvt_prepare_args *, dvt_kernel **, dvt_error *) {
  return DVT_FAILED;
}
uint64_t workspaceBytes(const dvt_kernel *) { return 0; }
dvt_code run(dvt_kernel *, const dvt_run_args *, dvt_error *) { return DVT_FAILED; }
void destroyKernel(dvt_kernel *) {}

const dvt_provider_api api{sizeof(dvt_provider_api),
                           DVT_PROVIDER_ABI_VERSION,
                           "lying",
                           create,
                           destroy,
                           info,
                           propose,
                           compile,
                           prepare,
                           workspaceBytes,
                           run,
                           destroyKernel};

} // namespace

extern "C" const dvt_provider_api *dvt_provider_entry(uint32_t) { return &api; }
