#pragma once

#include <vector>

namespace sluice::gpu_tests {

// Launches as many clusters of so many CTAs as run at once, an SM for each CTA: on which SMs does each of them run? Empty if none fits.
std::vector<std::vector<int>> sms_of_clusters(int ctas);

}  // namespace sluice::gpu_tests
