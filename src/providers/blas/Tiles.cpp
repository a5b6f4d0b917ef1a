// SPDX-License-Identifier: Apache-2.0
//
// Cuts the larger tile borders first: what neighbours read twice grows with rows plus columns.
#include "providers/blas/Tiles.h"

#include <algorithm>
#include <utility>

#include <omp.h>

namespace dovetail::blas {
namespace {

/// Borders of `parts` about equal parts of `extent`, all but the last multiples of `step`.
std::vector<int> borders(int extent, int parts, int step) {
  const int steps = (extent + step - 1) / step;
  parts = std::clamp(parts, 1, std::max(steps, 1));
  std::vector<int> result;
  for (int i = 0; i <= parts; ++i)
    result.push_back(
        std::min<int64_t>(extent, int64_t(steps) * i / parts * static_cast<int64_t>(step)));
  return result;
}

} // namespace

std::vector<Tile> tilesFor(int64_t batch, int rows, int columns, uint32_t team, int columnStep) {
  std::vector<Tile> tiles;
  if (batch >= static_cast<int64_t>(team)) {
    for (int64_t i = 0; i < static_cast<int64_t>(team); ++i) {
      const int64_t first = batch * i / team, end = batch * (i + 1) / team;
      tiles.push_back({first, end - first, 0, rows, 0, columns});
    }
    return tiles;
  }
  const int parts = static_cast<int>((team + batch - 1) / batch);
  std::vector<int> down, across;
  std::pair<int64_t, int64_t> least;
  for (int p = 1; p <= parts; ++p) {
    std::vector<int> r = borders(rows, p, 8), c = borders(columns, parts / p, columnStep);
    auto widest = [](const std::vector<int> &border) {
      int64_t width = 0;
      for (size_t i = 1; i < border.size(); ++i)
        width = std::max<int64_t>(width, border[i] - border[i - 1]);
      return width;
    };
    // The largest tile is waited for; of equal ones that with the shorter border reads less.
    const std::pair cost(widest(r) * widest(c), widest(r) + widest(c));
    if (p == 1 || cost < least) {
      least = cost;
      down = std::move(r);
      across = std::move(c);
    }
  }
  for (int64_t matrix = 0; matrix < batch; ++matrix)
    for (size_t i = 1; i < down.size(); ++i)
      for (size_t k = 1; k < across.size(); ++k)
        tiles.push_back({matrix, 1, down[i - 1], down[i] - down[i - 1], across[k - 1],
                         across[k] - across[k - 1]});
  return tiles;
}

void spread(const dvt_parallel *parallel, size_t count, const std::function<void(size_t)> &body) {
  auto part = [](void *argument, int64_t begin, int64_t end, uint32_t) {
    const int before = omp_get_max_threads();
    omp_set_num_threads(1);
    for (int64_t i = begin; i < end; ++i)
      (*static_cast<const std::function<void(size_t)> *>(argument))(static_cast<size_t>(i));
    omp_set_num_threads(before);
  };
  void *argument = const_cast<void *>(static_cast<const void *>(&body));
  if (count > 1 && parallel && parallel->threads > 1)
    parallel->run(parallel->context, static_cast<int64_t>(count), part, argument);
  else
    part(argument, 0, static_cast<int64_t>(count), 0);
}

} // namespace dovetail::blas
