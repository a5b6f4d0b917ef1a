// SPDX-License-Identifier: Apache-2.0
//
// See the header.
#include "codegen/schedule/contraction/RegisterTile.h"

#include <algorithm>
#include <numeric>

namespace dovetail::codegen {

bool fitsRegisters(const Isa &isa, RegisterTile tile) {
  return tile.rows * tile.vectors + tile.vectors + 1 <= isa.vectorRegisters;
}

double stepCycles(const Isa &isa, RegisterTile tile) {
  double perCycle = isa.f32Lanes >= 16 ? 1 : 2;
  double products = tile.rows * tile.vectors / perCycle;
  double loads = isa.f32Lanes >= 16 ? tile.vectors + isa.leftCycles * tile.rows
                                    : 0.5 * tile.vectors + isa.leftCycles * tile.rows;
  constexpr double kLatency = 4;
  return std::max({products, loads, kLatency}) + 0.2;
}

double tiledCycles(const Isa &isa, RegisterTile tile, int64_t rows, int64_t vectors, double steps,
                   double finish) {
  auto tileCost = [&](int64_t r, int64_t v) {
    if (r == 0 || v == 0)
      return 0.0;
    RegisterTile part{unsigned(r), unsigned(v)};
    constexpr double kStart = 12;
    return steps * stepCycles(isa, part) + kStart + finish * double(r * v);
  };
  auto panelCost = [&](int64_t v) {
    return double(rows / tile.rows) * tileCost(tile.rows, v) + tileCost(rows % tile.rows, v);
  };
  return double(vectors / tile.vectors) * panelCost(tile.vectors) +
         panelCost(vectors % tile.vectors);
}

unsigned rowsWithoutConflict(int64_t stride) {
  // Sets repeat every 4 KiB in all first-level caches of 64 sets; 8 ways, one left for the other
  // operand.
  constexpr int64_t kPeriod = 1024, kWays = 7;
  int64_t places = kPeriod / std::gcd(std::max<int64_t>(1, stride), kPeriod);
  return unsigned(std::min<int64_t>(64, places * kWays));
}

std::vector<RegisterTile> rankTiles(const Isa &isa, int64_t rows, int64_t vectors, double steps,
                                    double finish, unsigned maxRows) {
  std::vector<std::pair<double, RegisterTile>> ranked;
  for (unsigned v = 1; v <= 4 && v <= std::max<int64_t>(1, vectors); ++v)
    for (unsigned r = 1; r <= maxRows && r <= std::max<int64_t>(1, rows); ++r)
      if (RegisterTile tile{r, v}; fitsRegisters(isa, tile))
        ranked.push_back({tiledCycles(isa, tile, rows, vectors, steps, finish), tile});
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto &a, const auto &b) { return a.first < b.first; });
  std::vector<RegisterTile> tiles;
  for (const auto &entry : ranked)
    tiles.push_back(entry.second);
  return tiles;
}

} // namespace dovetail::codegen
