// SPDX-License-Identifier: Apache-2.0
//
// The table of functions that a plug-in gives to the host, made from a class. The class is what the
// provider is; how objects and failures cross the door stands here: as opaque pointers, and as a
// code with a message. No exception crosses it. Header-only, shared by providers, and made of
// nothing but the door and the standard library.
#pragma once

#include <cstdio>
#include <exception>
#include <memory>
#include <new>
#include <string>

#include "dovetail/provider.h"

namespace dovetail::providers {

/// A Provider has, with the arguments and duties of the door's functions of these names,
///   static const char *name();
///   using Kernel = ...;
///   dvt_provider_info info;
///   explicit Provider(const dvt_host *host);
///   dvt_code propose(target, problem, sink, error);
///   dvt_code compile(target, problem, candidate, sink, error);
///   dvt_code prepare(target, problem, candidate, args, std::unique_ptr<Kernel> &made, error);
/// and its Kernel
///   uint64_t workspaceBytes() const;
///   dvt_code run(const dvt_run_args &args, std::string &reason);
/// The provider's name is put before the reason; run may take `dvt_error *error` in its place.
/// Without a compile the table has none. A provider that may fail to be made has
///   static dvt_code create(host, std::unique_ptr<Provider> &made, error);
template <typename Provider> class ProviderTable {
public:
  /// What dvt_provider_entry returns.
  static const dvt_provider_api *get(uint32_t hostVersion) {
    static const dvt_provider_api table = {sizeof(dvt_provider_api),
                                           DVT_PROVIDER_ABI_VERSION,
                                           Provider::name(),
                                           create,
                                           destroy,
                                           info,
                                           propose,
                                           compileIfAny(),
                                           prepare,
                                           workspaceBytes,
                                           run,
                                           destroyKernel};
    return hostVersion == DVT_PROVIDER_ABI_VERSION ? &table : nullptr;
  }

private:
  using Kernel = typename Provider::Kernel;

  static Provider &of(dvt_provider *provider) { return *reinterpret_cast<Provider *>(provider); }

  /// Allocates nothing.
  static dvt_code fail(dvt_error *error, dvt_code code, const char *what) {
    if (error)
      std::snprintf(error->message, sizeof error->message, "%s: %s", Provider::name(), what);
    return code;
  }

  template <typename Body> static dvt_code guarded(dvt_error *error, const Body &body) noexcept {
    try {
      return body();
    } catch (const std::bad_alloc &) {
      return fail(error, DVT_OUT_OF_MEMORY, "out of memory");
    } catch (const std::exception &failure) {
      return fail(error, DVT_FAILED, failure.what());
    } catch (...) {
      return fail(error, DVT_FAILED, "an exception of no known kind");
    }
  }

  static dvt_code create(const dvt_host *host, dvt_provider **provider, dvt_error *error) noexcept {
    *provider = nullptr;
    return guarded(error, [&] {
      std::unique_ptr<Provider> made;
      dvt_code code = DVT_OK;
      if constexpr (requires { &Provider::create; })
        code = Provider::create(host, made, error);
      else
        made = std::make_unique<Provider>(host);
      if (code == DVT_OK)
        *provider = reinterpret_cast<dvt_provider *>(made.release());
      return code;
    });
  }

  static void destroy(dvt_provider *provider) noexcept {
    delete reinterpret_cast<Provider *>(provider);
  }

  static const dvt_provider_info *info(dvt_provider *provider) noexcept {
    return &of(provider).info;
  }

  static dvt_code propose(dvt_provider *provider, const dvt_target *target,
                          const dvt_problem *problem, const dvt_candidate_sink *sink,
                          dvt_error *error) noexcept {
    return guarded(error, [&] { return of(provider).propose(target, problem, sink, error); });
  }

  static constexpr decltype(dvt_provider_api::compile) compileIfAny() {
    if constexpr (requires { &Provider::compile; })
      return [](dvt_provider *provider, const dvt_target *target, const dvt_problem *problem,
                const dvt_candidate *candidate, const dvt_bytes_sink *sink, dvt_error *error) {
        return guarded(
            error, [&] { return of(provider).compile(target, problem, candidate, sink, error); });
      };
    else
      return nullptr;
  }

  static dvt_code prepare(dvt_provider *provider, const dvt_target *target,
                          const dvt_problem *problem, const dvt_candidate *candidate,
                          const dvt_prepare_args *args, dvt_kernel **kernel,
                          dvt_error *error) noexcept {
    *kernel = nullptr;
    return guarded(error, [&] {
      std::unique_ptr<Kernel> made;
      const dvt_code code = of(provider).prepare(target, problem, candidate, args, made, error);
      if (code == DVT_OK)
        *kernel = reinterpret_cast<dvt_kernel *>(made.release());
      return code;
    });
  }

  static uint64_t workspaceBytes(const dvt_kernel *kernel) noexcept {
    return reinterpret_cast<const Kernel *>(kernel)->workspaceBytes();
  }

  static dvt_code run(dvt_kernel *kernel, const dvt_run_args *args, dvt_error *error) noexcept {
    return guarded(error, [&] {
      Kernel &mine = *reinterpret_cast<Kernel *>(kernel);
      if constexpr (requires { mine.run(*args, error); }) {
        return mine.run(*args, error);
      } else {
        std::string reason;
        const dvt_code code = mine.run(*args, reason);
        return code == DVT_OK ? code : fail(error, code, reason.c_str());
      }
    });
  }

  static void destroyKernel(dvt_kernel *kernel) noexcept {
    delete reinterpret_cast<Kernel *>(kernel);
  }
};

} // namespace dovetail::providers
