// SPDX-License-Identifier: Apache-2.0
//
// The table that is made from a class: what is in it, and that nothing a class throws gets past it.
#include <cstring>
#include <stdexcept>

#include <gtest/gtest.h>

#include "providers/ProviderTable.h"

using dovetail::providers::ProviderTable;

namespace {

/// Without a compile; its kernels fail with a reason.
struct Plain {
  struct Kernel {
    uint64_t workspaceBytes() const { return 192; }
    dvt_code run(const dvt_run_args &args, std::string &reason) const {
      reason = "no operands";
      return args.input_count ? DVT_OK : DVT_BAD_INPUT;
    }
  };
  static constexpr const char *name() { return "plain"; }
  explicit Plain(const dvt_host *) {}
  dvt_code propose(const dvt_target *, const dvt_problem *, const dvt_candidate_sink *,
                   dvt_error *) {
    return DVT_UNSUPPORTED;
  }
  dvt_code prepare(const dvt_target *, const dvt_problem *, const dvt_candidate *candidate,
                   const dvt_prepare_args *, std::unique_ptr<Kernel> &made, dvt_error *) {
    made = std::make_unique<Kernel>();
    return candidate ? DVT_OK : DVT_BAD_INPUT;
  }
  dvt_provider_info info = {sizeof(dvt_provider_info), name(), "1", nullptr, 0, 0, 0};
};

/// Throws wherever it can, but for create when it is given a host.
struct Throwing {
  struct Kernel {
    uint64_t workspaceBytes() const { return 0; }
    dvt_code run(const dvt_run_args &, dvt_error *) { throw 1; }
  };
  static constexpr const char *name() { return "throwing"; }
  static dvt_code create(const dvt_host *host, std::unique_ptr<Throwing> &made, dvt_error *) {
    if (!host)
      throw std::bad_alloc();
    made = std::make_unique<Throwing>();
    return DVT_OK;
  }
  dvt_code propose(const dvt_target *, const dvt_problem *, const dvt_candidate_sink *,
                   dvt_error *) {
    throw std::runtime_error("it broke");
  }
  dvt_code compile(const dvt_target *, const dvt_problem *, const dvt_candidate *,
                   const dvt_bytes_sink *, dvt_error *) {
    throw std::bad_alloc();
  }
  dvt_code prepare(const dvt_target *, const dvt_problem *, const dvt_candidate *candidate,
                   const dvt_prepare_args *, std::unique_ptr<Kernel> &made, dvt_error *) {
    made = std::make_unique<Kernel>();
    return candidate ? DVT_OK : throw std::runtime_error("no candidate");
  }
  dvt_provider_info info = {sizeof(dvt_provider_info), name(), "1", nullptr, 0, 0, 0};
};

template <typename T> T *notNull() { return reinterpret_cast<T *>(uintptr_t(64)); }

TEST(ProviderTable, HasWhatTheClassHas) {
  const dvt_provider_api *api = ProviderTable<Plain>::get(DVT_PROVIDER_ABI_VERSION);
  ASSERT_TRUE(api);
  EXPECT_EQ(api->struct_size, sizeof(dvt_provider_api));
  EXPECT_EQ(api->abi_version, DVT_PROVIDER_ABI_VERSION);
  EXPECT_STREQ(api->name, "plain");
  EXPECT_FALSE(api->compile);
  EXPECT_TRUE(ProviderTable<Throwing>::get(DVT_PROVIDER_ABI_VERSION)->compile);
  EXPECT_FALSE(ProviderTable<Plain>::get(DVT_PROVIDER_ABI_VERSION + 1));
}

TEST(ProviderTable, HandsObjectsOver) {
  const dvt_provider_api &api = *ProviderTable<Plain>::get(DVT_PROVIDER_ABI_VERSION);
  dvt_error error{};
  dvt_provider *provider = nullptr;
  ASSERT_EQ(api.create(nullptr, &provider, &error), DVT_OK);
  EXPECT_STREQ(api.info(provider)->version, "1");
  EXPECT_EQ(api.propose(provider, nullptr, nullptr, nullptr, &error), DVT_UNSUPPORTED);
  dvt_kernel *kernel = notNull<dvt_kernel>();
  EXPECT_EQ(api.prepare(provider, nullptr, nullptr, nullptr, nullptr, &kernel, &error),
            DVT_BAD_INPUT);
  EXPECT_FALSE(kernel);
  const dvt_candidate candidate{};
  ASSERT_EQ(api.prepare(provider, nullptr, nullptr, &candidate, nullptr, &kernel, &error), DVT_OK);
  EXPECT_EQ(api.workspace_bytes(kernel), 192u);
  dvt_run_args args{};
  EXPECT_EQ(api.run(kernel, &args, &error), DVT_BAD_INPUT);
  EXPECT_STREQ(error.message, "plain: no operands");
  EXPECT_EQ(api.run(kernel, &args, nullptr), DVT_BAD_INPUT);
  args.input_count = 1;
  EXPECT_EQ(api.run(kernel, &args, &error), DVT_OK);
  api.destroy_kernel(kernel);
  api.destroy(provider);
}

TEST(ProviderTable, EndsExceptions) {
  const dvt_provider_api &api = *ProviderTable<Throwing>::get(DVT_PROVIDER_ABI_VERSION);
  dvt_error error{};
  dvt_provider *provider = notNull<dvt_provider>();
  EXPECT_EQ(api.create(nullptr, &provider, &error), DVT_OUT_OF_MEMORY);
  EXPECT_STREQ(error.message, "throwing: out of memory");
  EXPECT_FALSE(provider);
  const dvt_host host{};
  ASSERT_EQ(api.create(&host, &provider, &error), DVT_OK);
  EXPECT_EQ(api.propose(provider, nullptr, nullptr, nullptr, &error), DVT_FAILED);
  EXPECT_STREQ(error.message, "throwing: it broke");
  EXPECT_EQ(api.compile(provider, nullptr, nullptr, nullptr, nullptr, nullptr), DVT_OUT_OF_MEMORY);
  dvt_kernel *kernel = notNull<dvt_kernel>();
  EXPECT_EQ(api.prepare(provider, nullptr, nullptr, nullptr, nullptr, &kernel, &error), DVT_FAILED);
  EXPECT_STREQ(error.message, "throwing: no candidate");
  EXPECT_FALSE(kernel);
  const dvt_candidate candidate{};
  ASSERT_EQ(api.prepare(provider, nullptr, nullptr, &candidate, nullptr, &kernel, &error), DVT_OK);
  const dvt_run_args args{};
  error = {};
  EXPECT_EQ(api.run(kernel, &args, &error), DVT_FAILED);
  EXPECT_EQ(std::strncmp(error.message, "throwing: ", 10), 0);
  api.destroy_kernel(kernel);
  api.destroy(provider);
}

} // namespace
