// Threads: who they are, what warps do together, and barriers that count threads.
#include <algorithm>
#include <bit>
#include <cstring>

#include "arch/emulated/machine.hpp"
#include "arch/emulated/numbers.hpp"

namespace sluice::arch::emulated {
namespace {

Machine& machine() { return Machine::here(); }
Thread& self() { return machine().thread(); }

// One thread more has come to a barrier of `threads`. True for the last, which releases the others.
bool arrive(NamedBarrier& barrier, int threads, bool releases, const Location& at) {
  Machine& m = machine();
  Thread& me = self();
  if (barrier.arrived == 0) barrier.expected = threads;
  if (barrier.expected != threads)
    m.fail(at, "comes to a barrier of " + std::to_string(threads) + " threads at which others expect " + std::to_string(barrier.expected));
  ++barrier.arrived;
  // Warps arrive as one: what they know counts when their last lane is here.
  if (int& lanes = barrier.by_warp[me.warp]; ++lanes % kWarpThreads == 0) m.publish(*me.warp, barrier.gathering, releases);
  if (barrier.arrived < barrier.expected) return false;
  for (const auto& [warp, lanes] : barrier.by_warp)
    if (lanes % kWarpThreads != 0) m.publish(*warp, barrier.gathering, releases);
  barrier.by_warp.clear();
  barrier.published = barrier.gathering;
  barrier.arrived = 0;
  ++barrier.generation;
  m.wake_all(barrier.waiters);
  return true;
}

std::string progress(const NamedBarrier& barrier, const std::string& name) {
  return name + " (" + std::to_string(barrier.arrived) + " of " + std::to_string(barrier.expected) + " threads are there)";
}

// This lane's next collective. Lanes meet by the number of their calls, and may come one after the other.
std::shared_ptr<WarpCollective> join_collective(WarpCollective::Kind kind, const Location& at) {
  Thread& me = self();
  Warp& warp = *me.warp;
  const std::uint64_t number = me.collective_calls++;
  while (warp.first_collective + warp.collectives.size() <= number) {
    warp.collectives.push_back(std::make_shared<WarpCollective>());
    warp.collectives.back()->kind = kind;
    warp.collectives.back()->at = at;
  }
  std::shared_ptr<WarpCollective> c = warp.collectives[number - warp.first_collective];
  if (c->kind != kind || c->at.line() != at.line() || std::strcmp(c->at.file_name(), at.file_name()) != 0)
    machine().fail(at, "does for a whole warp what other lanes of it do at line " + std::to_string(c->at.line()) +
                           ": the warp has diverged before an instruction that needs all of it");
  ++c->arrived;
  while (!warp.collectives.empty() && warp.collectives.front()->arrived == kWarpThreads) {
    warp.collectives.pop_front();
    ++warp.first_collective;
  }
  return c;
}

// Until all lanes are there; the last one finishes before it lets the others go on.
template <class Finish>
void meet(WarpCollective& c, const char* what, const Location& at, Finish finish) {
  if (c.arrived < kWarpThreads) {
    c.waiters.push_back(&self());
    machine().wait(at, [&c, what] { return "the other lanes of its warp: " + std::to_string(c.arrived) + " of 32 have come to " + what; });
    return;
  }
  finish();
  machine().wake_all(c.waiters);
}

std::size_t lane_of_warp(int lane, const Location& at) {
  if (lane < 0 || lane >= kWarpThreads) machine().fail(at, "asks for the value of lane " + std::to_string(lane) + "; a warp has 0 to 31");
  return static_cast<std::size_t>(lane);
}

}  // namespace

int thread_in_cta() { return self().number; }
int cta_in_cluster() { return self().cta->rank; }
int cluster_in_grid() { return self().cta->cluster->number; }
int cta_in_grid() { return cluster_in_grid() * machine().launch().ctas_per_cluster + cta_in_cluster(); }
int ctas_in_grid() { return machine().launch().clusters * machine().launch().ctas_per_cluster; }
int clusters_in_grid() { return machine().launch().clusters; }
int sm_number() { return self().cta->place; }

bool elect_one(const Location& at) {
  const std::shared_ptr<WarpCollective> c = join_collective(WarpCollective::Kind::elect, at);
  meet(*c, "elect_one", at, [&] { c->elected = static_cast<int>(machine().random(kWarpThreads)); });
  return c->elected == self().number % kWarpThreads;
}

float shuffle_xor(float value, int mask, const Location& at) {
  const std::shared_ptr<WarpCollective> c = join_collective(WarpCollective::Kind::shuffle, at);
  const int lane = self().number % kWarpThreads;
  c->words[static_cast<std::size_t>(lane)][0] = std::bit_cast<std::uint32_t>(value);
  meet(*c, "shuffle_xor", at, [] {});
  return std::bit_cast<float>(c->words[lane_of_warp(lane ^ mask, at)][0]);
}

std::array<int, kWarpThreads> values_of_lanes(int value, const char* what, const Location& at) {
  const std::shared_ptr<WarpCollective> c = join_collective(WarpCollective::Kind::shuffle, at);
  c->words[static_cast<std::size_t>(self().number % kWarpThreads)][0] = static_cast<std::uint32_t>(value);
  meet(*c, what, at, [] {});
  std::array<int, kWarpThreads> values;
  for (std::size_t lane = 0; lane < values.size(); ++lane) values[lane] = static_cast<int>(c->words[lane][0]);
  return values;
}

int value_of_lane(int value, int lane, const Location& at) { return values_of_lanes(value, "from_lane", at)[lane_of_warp(lane, at)]; }

void sync_warp(const Location& at) {
  const std::shared_ptr<WarpCollective> c = join_collective(WarpCollective::Kind::sync, at);
  meet(*c, "sync_warp", at, [] {});
}

// The lanes need no result and do not wait: the last one carries it out.
void store_matrices(SharedAddress row, const std::uint32_t* matrices, int count, bool transposed, const Location& at) {
  const std::shared_ptr<WarpCollective> shared = join_collective(WarpCollective::Kind::store_matrices, at);
  WarpCollective& c = *shared;
  const auto lane = static_cast<std::size_t>(self().number % kWarpThreads);
  c.rows[lane] = row;
  std::copy_n(matrices, count, c.words[lane].begin());
  if (c.arrived < kWarpThreads) return;
  // Lane 4 r + j holds elements 2 j and 2 j + 1 of row r of each matrix; transposed, of column r.
  for (int i = 0; i < count; ++i)
    for (int r = 0; r < 8; ++r) {
      std::uint16_t elements[8];
      for (int e = 0; e < 8; ++e) {
        const int fragment_row = transposed ? e : r, fragment_column = transposed ? r : e;
        const std::uint32_t word = c.words[4 * static_cast<std::size_t>(fragment_row) + static_cast<std::size_t>(fragment_column) / 2]
                                          [static_cast<std::size_t>(i)];
        elements[e] = static_cast<std::uint16_t>(word >> (16 * (fragment_column % 2)));
      }
      store_shared(c.rows[8 * static_cast<std::size_t>(i) + static_cast<std::size_t>(r)], elements, sizeof elements, at);
    }
}

void load_matrices(SharedAddress row, std::uint32_t (&matrices)[4], bool transposed, const Location& at) {
  const std::shared_ptr<WarpCollective> c = join_collective(WarpCollective::Kind::load_matrices, at);
  const auto lane = static_cast<std::size_t>(self().number % kWarpThreads);
  c->rows[lane] = row;
  meet(*c, "ldmatrix", at, [&] {
    for (std::size_t i = 0; i < 4; ++i)
      for (std::size_t r = 0; r < 8; ++r) {
        std::uint16_t elements[8];
        load_shared(c->rows[8 * i + r], elements, sizeof elements, at);
        // Element e of row r goes to lane 4 r + e / 2; transposed, to lane 4 e + r / 2.
        for (std::size_t e = 0; e < 8; ++e) {
          std::uint32_t& word = c->words[transposed ? 4 * e + r / 2 : 4 * r + e / 2][i];
          const std::size_t half = transposed ? r % 2 : e % 2;
          word = (word & (half == 0 ? 0xffff0000u : 0xffffu)) | std::uint32_t{elements[e]} << (16 * half);
        }
      }
  });
  std::copy_n(c->words[lane].begin(), 4, matrices);
}

std::uint32_t transpose_matrix(std::uint32_t word, const Location& at) {
  const std::shared_ptr<WarpCollective> c = join_collective(WarpCollective::Kind::transpose, at);
  const auto lane = static_cast<std::size_t>(self().number % kWarpThreads), row = lane / 4, pair = lane % 4;
  c->words[lane][0] = word;
  meet(*c, "movmatrix", at, [] {});
  const auto element = [&](std::size_t r, std::size_t column) { return c->words[4 * r + column / 2][0] >> (16 * (column % 2)) & 0xffff; };
  return element(2 * pair, row) | element(2 * pair + 1, row) << 16;
}

// Lane 4 g + j holds of A rows g and g + 8, of B column g, both at k = 2 j, 2 j + 1 and those plus 8; and of D columns 2 j and 2 j + 1.
void mma(Numbers numbers, float (&d)[4], const std::uint32_t (&a)[4], std::array<std::uint32_t, 2> b, const Location& at) {
  const std::shared_ptr<WarpCollective> c = join_collective(WarpCollective::Kind::mma, at);
  const auto lane = static_cast<std::size_t>(self().number % kWarpThreads), g = lane / 4, j = lane % 4;
  std::copy_n(a, 4, c->words[lane].begin());
  std::copy_n(b.begin(), 2, c->words[lane].begin() + 4);
  meet(*c, "mma", at, [] {});
  const auto number = [numbers](std::uint32_t word, std::size_t half) {
    const auto bits = static_cast<std::uint16_t>(word >> (16 * half));
    return numbers == Numbers::bf16 ? bf16_to_float(bits) : fp16_to_float(bits);
  };
  for (std::size_t k = 0; k < 16; ++k) {
    const std::size_t from = k % 8 / 2, half = k % 2, upper = k / 8;
    const float rows[] = {number(c->words[4 * g + from][2 * upper], half), number(c->words[4 * g + from][2 * upper + 1], half)};
    for (std::size_t column = 0; column < 2; ++column) {
      const float factor = number(c->words[4 * (2 * j + column) + from][4 + upper], half);
      for (std::size_t row = 0; row < 2; ++row) d[2 * row + column] += rows[row] * factor;
    }
  }
}

void named_barrier(int id, int threads, bool waits, const Location& at) {
  Machine& m = machine();
  Thread& me = self();
  if (id < 0 || id > 15) m.fail(at, "uses named barrier " + std::to_string(id) + "; there are 0 to 15");
  if (threads % kWarpThreads != 0) m.fail(at, "comes to a barrier of " + std::to_string(threads) + " threads, not a multiple of 32");
  NamedBarrier& barrier = me.cta->named[static_cast<std::size_t>(id)];
  const std::uint32_t generation = barrier.generation;
  const bool last = arrive(barrier, threads, true, at);
  if (!waits) return m.maybe_yield();
  if (!last) {
    barrier.waiters.push_back(&me);
    m.wait(at, [&barrier, id] { return progress(barrier, id == 0 ? "the CTA's barrier" : "named barrier " + std::to_string(id)); });
  }
  m.acquire(*me.warp, barrier.published, &barrier, generation);
  m.maybe_yield();
}

void sync_cta(const Location& at) { named_barrier(0, machine().launch().threads_per_cta, true, at); }

void cluster_arrive(bool releases, const Location& at) {
  Thread& me = self();
  if (me.cluster_arrivals != me.cluster_waits) machine().fail(at, "arrives twice at the cluster's barrier without waiting between");
  ++me.cluster_arrivals;
  arrive(me.cta->cluster->barrier, machine().launch().threads_per_cta * machine().launch().ctas_per_cluster, releases, at);
  machine().maybe_yield();
}

void cluster_wait(const Location& at) {
  Machine& m = machine();
  Thread& me = self();
  NamedBarrier& barrier = me.cta->cluster->barrier;
  if (me.cluster_arrivals != me.cluster_waits + 1) m.fail(at, "waits at the cluster's barrier without having arrived");
  const std::uint32_t generation = me.cluster_waits++;
  if (barrier.generation == generation) {
    barrier.waiters.push_back(&me);
    m.wait(at, [&barrier] { return progress(barrier, "the cluster's barrier"); });
  }
  m.acquire(*me.warp, barrier.published, &barrier, generation);
}

void set_register_limit(int registers, const Location& at) {
  if (registers % 8 != 0 || registers < 24 || registers > 256)
    machine().fail(at, "sets a register limit of " + std::to_string(registers) + "; it must be a multiple of 8 from 24 to 256");
  // The launch has given all threads the same number: as many as an SM has for them, but no more than an instruction can name.
  constexpr int kOfSm = 65536, kUnit = 8, kMost = 255 / kUnit * kUnit;
  Machine& m = machine();
  Thread& me = self();
  const int at_launch = std::min(kOfSm / m.launch().threads_per_cta / kUnit * kUnit, kMost);
  const int more = registers - (me.registers == 0 ? at_launch : me.registers);
  Cta& cta = *me.cta;
  while (cta.spare_registers < more) {
    cta.register_waiters.push_back(&me);
    m.wait(at, [&cta, more] {
      return std::to_string(more) + " more registers, of which others have handed over " + std::to_string(cta.spare_registers);
    });
  }
  me.registers = registers;
  cta.spare_registers -= more;
  if (more < 0) m.wake_all(cta.register_waiters);
}

void note_role(const char* role) { self().role = role; }

void note_barrier(const Barrier* barrier, const char* name, int index) {
  Cta& cta = *self().cta;
  if (const auto found = cta.barriers.find(shared_address(barrier)); found != cta.barriers.end()) {
    found->second.name = name;
    found->second.index = index;
  }
}

void note_work(int tile_m, int tile_n, int group, int k_begin, int k_end) {
  self().work = {tile_m, tile_n, group, k_begin, k_end};
  self().has_work = true;
}

}  // namespace sluice::arch::emulated
