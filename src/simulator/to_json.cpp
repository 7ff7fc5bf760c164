#include <nlohmann/json.hpp>

#include "sluice/simulate.hpp"

namespace sluice {

std::string to_json(const Simulation& simulation) {
  nlohmann::ordered_json pieces = nlohmann::ordered_json::array();
  for (const SimulatedPiece& piece : simulation.pieces)
    pieces.push_back({{"worker", piece.worker},
                      {"sm", piece.sm},
                      {"tile_m", piece.tile.tile_m},
                      {"tile_n", piece.tile.tile_n},
                      {"group", piece.tile.group},
                      {"k_begin", piece.tile.k_begin},
                      {"k_end", piece.tile.k_end},
                      {"split_tile", piece.tile.split_tile},
                      {"peer", piece.tile.peer},
                      {"peers", piece.tile.peers},
                      {"begin", piece.begin},
                      {"end", piece.end},
                      {"done", piece.done}});
  const nlohmann::ordered_json json = {{"what", simulation.what},
                                       {"how", simulation.how},
                                       {"sm_count", simulation.sm_count},
                                       {"worker_count", simulation.worker_count},
                                       {"workers_per_cta", simulation.workers_per_cta},
                                       {"cluster_m", simulation.cluster_m},
                                       {"cluster_n", simulation.cluster_n},
                                       {"k_tiles", simulation.k_tiles},
                                       {"output_tiles", simulation.output_tiles},
                                       {"uncovered_k_tiles", simulation.uncovered_k_tiles},
                                       {"repeated_k_tiles", simulation.repeated_k_tiles},
                                       {"waves", simulation.waves},
                                       {"makespan", simulation.makespan},
                                       {"utilisation", simulation.utilisation},
                                       {"waiting", simulation.waiting},
                                       {"pieces", pieces}};
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace sluice
