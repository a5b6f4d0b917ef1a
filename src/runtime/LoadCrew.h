// SPDX-License-Identifier: Apache-2.0
//
// Threads that share the work of loading a model: checking constants, which can begin before
// plug-ins are there, and making kernels ready. They are plain threads, not an OpenMP team, since
// libraries ask whether they are called inside one and make other kernels there. They end with the
// crew.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <vector>

#include <pthread.h>

namespace dovetail {

/// For one owner, whose jobs must not throw.
class LoadCrew {
public:
  /// `helpers` threads beside the owner's, or as many as can be had; none is started before there
  /// is a job.
  explicit LoadCrew(uint32_t helpers) : helpers(helpers) {}
  /// Jobs that were not begun are dropped.
  ~LoadCrew();
  LoadCrew(const LoadCrew &) = delete;
  LoadCrew &operator=(const LoadCrew &) = delete;

  using Job = std::function<void()>;
  /// Behind the jobs that are there.
  void add(Job job) { add(later, std::move(job)); }
  /// Before all that were given to add and not begun, behind others given to this.
  void addSoon(Job job) { add(soon, std::move(job)); }
  /// The calling thread works, too; returns when all jobs are done.
  void finish();
  /// Threads, the owner's included.
  uint32_t size() const { return helpers + 1; }

private:
  void add(std::deque<Job> &queue, Job job);
  /// Takes and does a job; false where there is none. `lock` holds the mutex before and after.
  bool work(std::unique_lock<std::mutex> &lock);
  void help();

  const uint32_t helpers;
  std::vector<pthread_t> threads;
  std::mutex mutex; ///< guards what follows
  std::condition_variable changed;
  std::deque<Job> soon, later;
  uint32_t busy = 0; ///< jobs under way
  bool ends = false;
};

} // namespace dovetail
