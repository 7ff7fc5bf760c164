// wgmma: descriptors decoded, operands read at some moment between issue and wait, accumulators poisoned in between.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <numeric>

#include "arch/emulated/machine.hpp"
#include "arch/emulated/numbers.hpp"

namespace sluice::arch::emulated {
namespace {

constexpr int kRows = 64;
constexpr int kDepthBytes = 32;  // of K in one instruction
constexpr int kPacketBytes = 16;
constexpr float kInFlight = std::bit_cast<float>(kInFlightBits);

Machine& machine() { return Machine::here(); }

bool is_8_bit(Numbers n) { return n == Numbers::e4m3 || n == Numbers::e5m2; }
int depth(Numbers n) { return is_8_bit(n) ? kDepthBytes : kDepthBytes / 2; }

// PTX ISA, "Matrix Descriptor Format".
struct Descriptor {
  SharedAddress start;
  std::uint32_t leading_bytes;
  std::uint32_t stride_bytes;
  std::uint32_t swizzle_bytes;  // 16: none
};

Descriptor decode(std::uint64_t bits, const Location& at) {
  const auto field = [bits](int shift) { return static_cast<std::uint32_t>(bits >> shift & 0x3fff) << 4; };
  if ((bits >> 49 & 7) != 0)
    machine().fail(at, "uses a matrix descriptor with a base offset, which is not emulated: start at a multiple of 1024 bytes");
  constexpr std::uint32_t kSwizzles[] = {16, 128, 64, 32};
  return {field(0), field(16), field(32), kSwizzles[bits >> 62]};
}

// Where the 16-byte packets of an operand lie. K-major: two for each vector. Otherwise: 8 vectors each, for each of the elements of K.
std::vector<SharedAddress> packets(const Descriptor& d, Major major, int vectors, const Location& at) {
  std::vector<SharedAddress> all;
  const auto push = [&](std::uint32_t address) { all.push_back(address ^ ((address >> 7 & (d.swizzle_bytes / kPacketBytes - 1)) << 4)); };
  if (major == Major::k) {
    const bool plain = d.swizzle_bytes == kPacketBytes;
    for (int v = 0; v < vectors; ++v)
      for (std::uint32_t half = 0; half < 2; ++half)
        push(d.start + static_cast<std::uint32_t>(v / 8) * d.stride_bytes + static_cast<std::uint32_t>(v % 8) * d.swizzle_bytes +
             half * (plain ? d.leading_bytes : kPacketBytes));
    return all;
  }
  if (d.swizzle_bytes != 128)
    machine().fail(at, "multiplies an operand whose vectors are contiguous with a swizzle of " + std::to_string(d.swizzle_bytes) +
                           " bytes; only 128 is emulated");
  for (std::uint32_t k = 0; k < 16; ++k)
    for (std::uint32_t block = 0; block < static_cast<std::uint32_t>(vectors) / 8; ++block)
      push(d.start + block / 8 * d.leading_bytes + k / 8 * d.stride_bytes + k % 8 * 128 + block % 8 * kPacketBytes);
  return all;
}

float number(Numbers type, const std::byte* from) {
  if (is_8_bit(type)) {
    const auto bits = std::to_integer<std::uint8_t>(*from);
    return type == Numbers::e4m3 ? e4m3_to_float(bits) : e5m2_to_float(bits);
  }
  std::uint16_t bits;
  std::memcpy(&bits, from, sizeof bits);
  if (type == Numbers::bf16) return bf16_to_float(bits);
  static const std::vector<float> table = [] {
    std::vector<float> all(65536);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = fp16_to_float(static_cast<std::uint16_t>(i));
    return all;
  }();
  return table[bits];
}

// Where an element stands in a matrix whose rows follow one another.
std::size_t flat(int row, int columns, int column) {
  return static_cast<std::size_t>(row) * static_cast<std::size_t>(columns) + static_cast<std::size_t>(column);
}

// An operand as floats, `depth` for each vector.
std::vector<float> gather(const Cta& cta, const std::vector<SharedAddress>& from, Numbers type, Major major, int vectors) {
  const int size = is_8_bit(type) ? 1 : 2, per_packet = kPacketBytes / size, k_elems = depth(type);
  std::vector<float> all(static_cast<std::size_t>(vectors * k_elems));
  for (std::size_t i = 0; i < from.size(); ++i) {
    const std::byte* packet = cta.shared + (from[i] - kSharedWindow);
    for (int e = 0; e < per_packet; ++e) {
      const int index = static_cast<int>(i), blocks = vectors / 8;
      const int vector = major == Major::k ? index / 2 : index % blocks * 8 + e;
      const int k = major == Major::k ? index % 2 * per_packet + e : index / blocks;
      all[flat(vector, k_elems, k)] = number(type, packet + e * size);
    }
  }
  return all;
}

// P from registers: register r of a lane holds two (four) neighbouring elements of K of row lane / 4 + 8 (r % 2), beginning at
// element 2 (4) (lane % 4) + 8 (16) (r / 2).
std::vector<float> gather_registers(const WgmmaOp& op) {
  const Numbers type = op.shape.p;
  const int size = is_8_bit(type) ? 1 : 2, per_word = 4 / size, k_elems = depth(type);
  std::vector<float> all(static_cast<std::size_t>(kRows * k_elems));
  for (int thread = 0; thread < kWarpgroupThreads; ++thread)
    for (int r = 0; r < 4; ++r) {
      const std::uint32_t word = op.p_registers[static_cast<std::size_t>(thread)][static_cast<std::size_t>(r)];
      std::byte bytes[4];
      std::memcpy(bytes, &word, sizeof word);
      const int row = thread / 32 * 16 + thread % 32 / 4 + 8 * (r % 2);
      const int k = per_word * (thread % 4) + 4 * per_word * (r / 2);
      for (int e = 0; e < per_word; ++e) all[flat(row, k_elems, k + e)] = number(type, bytes + e * size);
    }
  return all;
}

void multiply_exact(const std::vector<float>& p, const std::vector<float>& q, int k_elems, int columns, float* sums) {
  std::vector<float> q_rows(q.size());  // by K, so that the inner loop runs along memory
  for (int n = 0; n < columns; ++n)
    for (int k = 0; k < k_elems; ++k) q_rows[flat(k, columns, n)] = q[flat(n, k_elems, k)];
  for (int row = 0; row < kRows; ++row)
    for (int k = 0; k < k_elems; ++k) {
      const float factor = p[flat(row, k_elems, k)];
      const float* from = q_rows.data() + k * columns;
      float* to = sums + row * columns;
      for (int n = 0; n < columns; ++n) to[n] += factor * from[n];
    }
}

// Terms are aligned to the largest and cut off below its 14th bit. Aligned they are numbers below 2^14, so that integers add them exactly.
void multiply_14_bits(const std::vector<float>& p, const std::vector<float>& q, int columns, float* sums) {
  constexpr int kFractionBits = 13, kDepth = kDepthBytes;
  constexpr std::uint32_t kMagnitude = 0x7fffffff, kInfinity = 0x7f800000;
  for (int row = 0; row < kRows; ++row)
    for (int n = 0; n < columns; ++n) {
      const float* from_p = p.data() + row * kDepth;
      const float* from_q = q.data() + n * kDepth;
      float& sum = sums[row * columns + n];
      float terms[kDepth + 1];  // a product of two numbers of 8 bits is one of 24
      for (int k = 0; k < kDepth; ++k) terms[k] = from_p[k] * from_q[k];
      terms[kDepth] = sum;
      std::int32_t largest = 0;  // numbers without their signs are ordered as their bits are
      for (const float term : terms)
        largest = std::max(largest, static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(term) & kMagnitude));
      if (largest >= static_cast<std::int32_t>(kInfinity)) {
        sum = std::accumulate(std::begin(terms), std::end(terms), 0.0f);
        continue;
      }
      if (largest == 0) {
        sum = 0;
        continue;
      }
      const int shift = kFractionBits - std::ilogb(std::bit_cast<float>(largest));
      const double aligned = std::scalbn(1.0, shift);
      std::int32_t total = 0;
      for (const float term : terms) total += static_cast<std::int32_t>(term * aligned);
      sum = static_cast<float>(std::scalbn(static_cast<double>(total), -shift));
    }
}

void carry_out(const Warpgroup& group, const WgmmaOp& op) {
  const WgmmaShape& s = op.shape;
  const std::vector<float> p = op.p_in_registers
                                   ? gather_registers(op)
                                   : gather(*group.cta, packets(decode(op.p, op.at), s.p_major, kRows, op.at), s.p, s.p_major, kRows);
  const std::vector<float> q = gather(*group.cta, packets(decode(op.q, op.at), s.q_major, s.columns, op.at), s.q, s.q_major, s.columns);
  if (!s.adds) std::fill(op.accumulator->values.begin(), op.accumulator->values.end(), 0.0f);
  if (is_8_bit(s.p) && machine().options().fp8 == Fp8Accumulation::hopper)
    multiply_14_bits(p, q, s.columns, op.accumulator->values.data());
  else
    multiply_exact(p, q, depth(s.p), s.columns, op.accumulator->values.data());
  ++machine().statistics.multiplications;
}

// One after the other, as they were issued.
void start_next(Warpgroup& group) {
  machine().start({.carry_out =
                       [&group] {
                         carry_out(group, group.ops.front());
                         group.ops.pop_front();
                         ++group.first_op;
                         machine().wake_all(group.waiters);
                         if (group.first_op < group.issued) start_next(group);
                       },
                   .reads = group.cta,
                   .site = group.site});
}

// The last of 128 threads has issued it: what it reads must be there for all four warps, and stay.
void check_operand(Warpgroup& group, std::uint64_t descriptor, Major major, int vectors, const Location& at) {
  Machine& m = machine();
  Thread& me = m.thread();
  Cta& cta = *group.cta;
  const Epoch who{.agent = m.agent(cta, kFirstTensorCore + group.number),
                  .time = group.first_time + 1 + static_cast<std::uint32_t>(me.groups_committed),
                  .site = group.site};
  for (const SharedAddress address : packets(decode(descriptor, at), major, vectors, at)) {
    shared_bytes(cta, address, kPacketBytes, kPacketBytes, "multiplies", at);
    if (!m.diagnoses()) continue;
    const std::size_t offset = address - kSharedWindow;
    for (int w = 0; w < 4; ++w) {
      const Clock& clock = cta.warps[flat(group.number, 4, w)].clock;
      report(cta.shadow.check_read(clock, false, offset, kPacketBytes, !m.launch().multiplies_unwritten), "starts a wgmma that ", address,
             at);
    }
    cta.shadow.note_read(me.warp->clock, who, offset, kPacketBytes);
  }
}

// Values of a thread's registers in an accumulator: register 4 j + 2 h + e is row 16 w + 8 h + lane / 4, column 8 j + 2 (lane % 4) + e.
float& element(Accumulator& a, int thread, int r) {
  const int row = thread / 32 * 16 + r / 2 % 2 * 8 + thread % 32 / 4, column = r / 4 * 8 + thread % 4 * 2 + r % 2;
  return a.values[flat(row, a.columns, column)];
}

// The registers leave the thread's hands: their values go to the tensor cores, and a pattern stands in their place.
std::shared_ptr<Accumulator> hand_over(Thread& me, float* d, int columns, std::uint64_t op, const Location& at) {
  for (InFlight& f : me.in_flight)
    if (f.registers == d) {
      f.last_op = op;
      return f.accumulator;
    }
  if (!me.wgmma_fenced) machine().fail(at, "starts a wgmma on registers that it has written since its last wgmma_fence");
  std::shared_ptr<Accumulator>& shared = me.warpgroup->accumulators[me.accumulator_uses++];
  if (!shared) {
    shared = std::make_shared<Accumulator>();
    shared->columns = columns;
    shared->values.resize(flat(kRows, columns, 0));
  }
  if (shared->columns != columns) machine().fail(at, "starts a wgmma of another width than the other threads of its warpgroup");
  const int thread = me.number % kWarpgroupThreads;
  for (int r = 0; r < columns / 2; ++r) {
    element(*shared, thread, r) = d[r];
    d[r] = kInFlight;
  }
  me.in_flight.push_back({d, shared, op});
  return shared;
}

void take_back(Thread& me, const InFlight& f, const Location& at) {
  const int thread = me.number % kWarpgroupThreads;
  for (int r = 0; r < f.accumulator->columns / 2; ++r) {
    if (std::bit_cast<std::uint32_t>(f.registers[r]) != kInFlightBits)
      machine().fail(at, "finds that an accumulator was written while wgmma still worked on it: no wgmma_wait lay between");
    f.registers[r] = element(*f.accumulator, thread, r);
  }
  if (++f.accumulator->returned < kWarpgroupThreads) return;
  std::erase_if(me.warpgroup->accumulators, [&](const auto& entry) { return entry.second == f.accumulator; });
}

WgmmaOp& issue(WgmmaShape shape, float* d, std::uint64_t p, const std::uint32_t* p_registers, std::uint64_t q, const Location& at) {
  Machine& m = machine();
  Thread& me = m.thread();
  Warpgroup& group = *me.warpgroup;
  const std::uint64_t number = me.wgmma_calls++;
  if (number - group.first_op == group.ops.size()) {
    group.ops.emplace_back();
    WgmmaOp& fresh = group.ops.back();
    fresh.shape = shape;
    fresh.p_in_registers = p_registers != nullptr;
    fresh.p = p;
    fresh.q = q;
    fresh.at = at;
  }
  WgmmaOp& op = group.ops[number - group.first_op];
  if (op.shape != shape || op.p != p || op.q != q)
    m.fail(at,
           "starts a wgmma that differs from that of the other threads of its warpgroup (at line " + std::to_string(op.at.line()) + ")");
  op.accumulator = hand_over(me, d, shape.columns, number, at);
  if (p_registers != nullptr) {
    std::array<std::uint32_t, 4>& held = op.p_registers[static_cast<std::size_t>(me.number % kWarpgroupThreads)];
    std::copy_n(p_registers, 4, held.begin());
    me.fragments_in_flight.push_back({p_registers, held, number});
  }
  if (++op.arrived < kWarpgroupThreads) return op;
  group.site = m.site(at, "wgmma");
  if (!op.p_in_registers) check_operand(group, p, shape.p_major, kRows, at);
  check_operand(group, q, shape.q_major, shape.columns, at);
  if (++group.issued == group.first_op + 1) start_next(group);
  return op;
}

}  // namespace

void wgmma_fence() { machine().thread().wgmma_fenced = true; }

void wgmma(WgmmaShape shape, float* d, std::uint64_t p_descriptor, std::uint64_t q_descriptor, const Location& at) {
  issue(shape, d, p_descriptor, nullptr, q_descriptor, at);
}

void wgmma(WgmmaShape shape, float* d, const std::uint32_t (&p)[4], std::uint64_t q_descriptor, const Location& at) {
  issue(shape, d, 0, p, q_descriptor, at);
}

void wgmma_commit(const Location& at) {
  Machine& m = machine();
  Thread& me = m.thread();
  std::vector<std::uint64_t>& ends = me.warpgroup->group_ends;
  if (me.groups_committed == ends.size()) ends.push_back(me.wgmma_calls);
  if (ends[me.groups_committed] != me.wgmma_calls) m.fail(at, "commits other wgmma to a group than the other threads of its warpgroup");
  ++me.groups_committed;
  m.maybe_yield();
}

void wgmma_wait(int groups, const Location& at) {
  Machine& m = machine();
  Thread& me = m.thread();
  Warpgroup& group = *me.warpgroup;
  if (me.groups_committed <= static_cast<std::uint64_t>(groups)) return;
  const std::uint64_t over = me.groups_committed - static_cast<std::uint64_t>(groups), end = group.group_ends[over - 1];
  while (group.first_op < end) {
    group.waiters.push_back(&me);
    m.wait(at, [&group] {
      const int issued = group.ops.empty() ? 0 : group.ops.front().arrived;
      return "wgmma: " + std::to_string(issued) + " of 128 threads have issued the next one";
    });
  }
  std::uint32_t& time = me.warp->clock.order(m.agent(*me.cta, kFirstTensorCore + group.number));
  time = std::max(time, group.first_time + static_cast<std::uint32_t>(over));
  for (const InFlight& f : me.in_flight)
    if (f.last_op < end) {
      take_back(me, f, at);
      me.wgmma_fenced = false;
    }
  std::erase_if(me.in_flight, [&](const InFlight& f) { return f.last_op < end; });
  for (const FragmentInFlight& f : me.fragments_in_flight)
    if (f.op < end && !std::equal(f.held.begin(), f.held.end(), f.registers))
      m.fail(at, "finds that registers were written while wgmma still read P from them: no wgmma_wait lay between");
  std::erase_if(me.fragments_in_flight, [&](const FragmentInFlight& f) { return f.op < end; });
}

}  // namespace sluice::arch::emulated
