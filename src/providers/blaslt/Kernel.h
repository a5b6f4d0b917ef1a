// SPDX-License-Identifier: Apache-2.0
//
// A product on a device, ready to run: descriptors, and the algorithm that the library's heuristics
// put first. The device and its context are the host's: whatever is current in the calling thread
// is used.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "providers/LibraryObject.h"
#include "providers/blaslt/Driver.h"
#include "providers/blaslt/Form.h"
#include "providers/blaslt/Library.h"

namespace dovetail::blaslt {

using Descriptor = providers::Owned<void *>;

class Kernel {
public:
  /// Null with `code` and `reason` where the library has no algorithm for the form on this device.
  /// `drivers`: as in dvt_host.
  static std::unique_ptr<Kernel> make(std::shared_ptr<OpenedHandle> handle, const Form &form,
                                      const ProblemReader &problem, const std::string &drivers,
                                      dvt_code &code, std::string &reason);

  uint64_t workspaceBytes() const { return reserved; }
  /// Enqueues the work on the stream of `args`. May be called by several threads at once.
  dvt_code run(const dvt_run_args &args, std::string &reason);

private:
  /// Where an operand's address comes from.
  struct Place {
    bool isResult = false;
    uint32_t position = 0;
    bool isPresent = false;
    std::vector<int64_t> starts; ///< bytes to what each call takes; empty: the same for all
  };
  enum Role { A, B, C, D, Bias, kRoles };
  using Addresses = std::array<void *, kRoles>;
  struct Algorithm {
    std::vector<uint64_t> words; ///< the library's struct
    uint64_t workspace = 0;      ///< bytes
  };

  explicit Kernel(std::shared_ptr<OpenedHandle> handle) : handle(std::move(handle)) {}
  const Library &library() const { return handle->library(); }
  void describe(Calls &calls, const Form &form);
  void describeMatmul(Calls &calls, const Form &form);
  Descriptor layout(Calls &calls, const Form &form, const Operand &operand, int64_t rows,
                    int64_t columns) const;
  /// What the heuristics may choose from.
  Descriptor preference(Calls &calls, const Form &form) const;
  /// What the library says will run, best first; empty with `reason` where there is nothing.
  std::vector<Algorithm> find(Calls &calls, const Form &form, std::string &reason) const;
  /// The number of the fastest; nothing with `reason`.
  std::optional<size_t> fastest(const Form &form, const std::vector<Algorithm> &among,
                                const std::string &drivers, std::string &reason);
  void keep(Algorithm chosen);
  void locate(const Form &form, const ProblemReader &problem);
  void multiply(Calls &calls, const Addresses &data, const Algorithm &with, void *scratch,
                DeviceStream stream);
  dvt_code address(const dvt_run_args &args, Role role, void *&data, std::string &reason) const;

  std::shared_ptr<OpenedHandle> handle; ///< outlives the descriptors
  Descriptor matmul;
  std::array<Descriptor, 4> layouts; ///< of a, b, c and d; without an addend c is as d
  std::array<Place, kRoles> places;
  Algorithm algorithm;
  float alpha = 1, beta = 0;
  uint64_t reserved = 0; ///< bytes of workspace with what aligning takes
  size_t callCount = 1;
  uint32_t inputCount = 0, outputCount = 0;
  std::mutex mutex; ///< around the bias, which is a part of the descriptor
  const void *bias = nullptr;
};

} // namespace dovetail::blaslt
