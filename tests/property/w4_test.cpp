// Of random weights of 4 bits: packed, they are what the source means, and every source packs the same weights to the same bytes.
#include <cstdint>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "sluice/w4.hpp"

#include "../unit/w4_data.hpp"

namespace sluice {
namespace {

using namespace test;

W4Weights random_weights() {
  PackW4Problem p{.n = 8 * *rc::gen::inRange<std::int64_t>(1, 40)};
  p.format = {.group_size = *rc::gen::element(0, 32, 64, 128), .zero_points = *rc::gen::arbitrary<bool>()};
  p.k = (p.format.group_size == 0 ? 8 : 16) * *rc::gen::inRange<std::int64_t>(1, 40);
  p.source = W4Source::awq;  // zero points of 0 to 15, which all sources can store
  p.type = *rc::gen::element(DataType::bf16, DataType::fp16, DataType::e4m3);
  p.type_scales = *rc::gen::element(DataType::bf16, DataType::fp16, DataType::fp32);
  return random_w4_weights(p, *rc::gen::arbitrary<bool>(), *rc::gen::arbitrary<std::uint32_t>());
}

RC_GTEST_PROP(PackedW4, IsWhatEverySourceMeans, ()) {
  W4Weights w = random_weights();
  RC_LOG() << describe(w.problem);
  W4Packed first;
  for (const W4Source source : {W4Source::awq, W4Source::plain, W4Source::gptq}) {
    w.problem.source = source;
    w.problem.zeros_less_one = false;
    W4Packed packed = room_for(w.problem);
    const W4Stored stored = store_w4_weights(w);
    RC_ASSERT(pack_w4_on_cpu(w.problem, arguments_of(w, stored, packed), 1).ok());
    if (first.empty()) first = packed;
    RC_ASSERT(std::memcmp(first.data(), packed.data(), packed.size() * sizeof(W4Line)) == 0);
  }
  const PackW4Problem& p = w.problem;
  const Result<std::vector<float>> weights = unpacked_w4(p, first.data());
  RC_ASSERT(weights.ok());
  for (std::int64_t c = 0; c < p.n; ++c)
    for (std::int64_t k = 0; k < p.k; ++k) RC_ASSERT((*weights)[static_cast<std::size_t>(c * p.k + k)] == w.weight(c, k));
}

}  // namespace
}  // namespace sluice
