// Ordinary accesses to shared and global memory: bounds, alignment, order.
#include <bit>
#include <cstring>

#include "arch/emulated/machine.hpp"

namespace sluice::arch::emulated {
namespace {

Machine& machine() { return Machine::here(); }

void read_shared(Cta& cta, SharedAddress address, void* to, std::size_t bytes, const Location& at) {
  Machine& m = machine();
  const std::byte* from = shared_bytes(cta, address, bytes, bytes, "reads", at);
  if (m.diagnoses()) {
    Warp& warp = *m.thread().warp;
    const std::size_t offset = address - kSharedWindow;
    const Epoch who = m.access(warp, m.site(at, "read"));
    report(cta.shadow.check_read(warp.clock, true, offset, bytes, true), "", address, at);
    cta.shadow.note_read(warp.clock, who, offset, bytes);
  }
  std::memcpy(to, from, bytes);
}

}  // namespace

std::byte* dynamic_shared_memory() { return machine().thread().cta->shared; }

SharedAddress shared_address(const void* pointer) {
  const Cta& cta = *machine().thread().cta;
  const std::ptrdiff_t offset = static_cast<const std::byte*>(pointer) - cta.shared;
  if (offset < 0 || offset > static_cast<std::ptrdiff_t>(cta.shared_bytes))
    machine().fail(Location::current(), "takes the shared address of something that does not lie in its CTA's shared memory");
  return static_cast<SharedAddress>(offset) + kSharedWindow;
}

std::byte* shared_bytes(Cta& cta, SharedAddress address, std::size_t bytes, std::size_t alignment, const char* what, const Location& at) {
  const std::size_t offset = std::size_t{address} - kSharedWindow;
  if (address < kSharedWindow || offset + bytes > cta.shared_bytes)
    machine().fail(at, std::string(what) + " " + std::to_string(bytes) + " bytes at byte " +
                           std::to_string(static_cast<std::ptrdiff_t>(offset)) + " of shared memory, outside the CTA's " +
                           std::to_string(cta.shared_bytes));
  if (address % alignment != 0)
    machine().fail(at,
                   std::string(what) + " shared address " + std::to_string(address) + ", not a multiple of " + std::to_string(alignment));
  return cta.shared + offset;
}

void report(const ShadowMemory::Verdict& verdict, const char* what, SharedAddress address, const Location& at) {
  if (verdict.wrong == nullptr) return;
  Machine& m = machine();
  m.fail(at, std::string(what) + verdict.wrong + " (shared byte " + std::to_string(address - kSharedWindow) + ")" +
                 (verdict.other != 0 ? "; the other side is the " + m.describe(verdict.other) : ""));
}

void store_shared(SharedAddress address, const void* from, int bytes, const Location& at) {
  Machine& m = machine();
  Cta& cta = *m.thread().cta;
  const auto size = static_cast<std::size_t>(bytes);
  std::byte* to = shared_bytes(cta, address, size, size, "writes", at);
  if (m.diagnoses()) {
    Warp& warp = *m.thread().warp;
    const std::size_t offset = address - kSharedWindow;
    const Epoch who = m.access(warp, m.site(at, "store"));
    report(cta.shadow.check_write(warp.clock, true, offset, size), "", address, at);
    cta.shadow.note_write(who, offset, size);
  }
  std::memcpy(to, from, size);
}

void load_shared(SharedAddress address, void* to, int bytes, const Location& at) {
  read_shared(*machine().thread().cta, address, to, static_cast<std::size_t>(bytes), at);
}

std::uint32_t atomic_add_shared(SharedAddress address, std::uint32_t value, const Location& at) {
  Machine& m = machine();
  Cta& cta = *m.thread().cta;
  std::byte* const to = shared_bytes(cta, address, sizeof value, sizeof value, "adds to", at);
  if (m.diagnoses()) {
    Warp& warp = *m.thread().warp;
    const std::size_t offset = address - kSharedWindow;
    report(cta.shadow.check_write(warp.clock, true, offset, sizeof value, true), "", address, at);
    Epoch who = m.access(warp, m.site(at, "addition"));
    who.adds = true;
    cta.shadow.note_write(who, offset, sizeof value);
  }
  std::uint32_t before = 0;
  std::memcpy(&before, to, sizeof before);
  const std::uint32_t after = before + value;
  std::memcpy(to, &after, sizeof after);
  return before;
}

Cta& remote_cta(int rank, bool by_copy, const Location& at) {
  Machine& m = machine();
  Thread& me = m.thread();
  if (rank < 0 || rank >= m.launch().ctas_per_cluster)
    m.fail(at, "reaches into CTA " + std::to_string(rank) + " of a cluster of " + std::to_string(m.launch().ctas_per_cluster));
  Cta& target = *me.cta->cluster->ctas[static_cast<std::size_t>(rank)];
  if (&target == me.cta) return target;
  if (target.unfinished == 0) m.fail(at, "reaches into the shared memory of CTA " + std::to_string(rank) + ", which has ended");
  if (!by_copy) target.remote_accesses[me.warp->agent] = m.access(*me.warp, m.site(at, "access"));
  return target;
}

namespace {
constexpr int kRankShift = 24;
}

ClusterAddress in_cta(SharedAddress address, int cta) { return ClusterAddress{static_cast<std::uint32_t>(cta) << kRankShift | address}; }

Place place_of(ClusterAddress address, bool by_copy, const Location& at) {
  const auto bits = static_cast<std::uint32_t>(address);
  return {&remote_cta(static_cast<int>(bits >> kRankShift), by_copy, at), bits & ((1u << kRankShift) - 1)};
}

void load_cluster(ClusterAddress address, void* to, int bytes, const Location& at) {
  const Place place = place_of(address, false, at);
  read_shared(*place.cta, place.address, to, static_cast<std::size_t>(bytes), at);
}

void fence_shared_for_async() { machine().fence_proxy(*machine().thread().warp); }
void fence_global_for_async() { machine().fence_proxy(*machine().thread().warp); }

void check_global(const void* address, std::size_t bytes, bool writes, const Location& at) {
  Machine& m = machine();
  Machine::Global& g = m.global(address, bytes, writes, at);
  if (bytes > 1 && reinterpret_cast<std::uintptr_t>(address) % bytes != 0 && (bytes & (bytes - 1)) == 0)
    m.fail(at, std::string(writes ? "writes" : "reads") + " " + std::to_string(bytes) + " bytes of " + g.buffer.name +
                   " at an address that is not a multiple of that");
  if (!g.buffer.writable || !m.diagnoses()) return;
  Warp& warp = *m.thread().warp;
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(address) - static_cast<const std::byte*>(g.buffer.data));
  const Epoch who = m.access(warp, m.site(at, writes ? "store" : "read"));
  const ShadowMemory::Verdict verdict =
      writes ? g.shadow.check_write(warp.clock, true, offset, bytes) : g.shadow.check_read(warp.clock, true, offset, bytes, false);
  if (verdict.wrong != nullptr)
    m.fail(at, std::string(verdict.wrong) + " (byte " + std::to_string(offset) + " of " + g.buffer.name + "); the other side is the " +
                   m.describe(verdict.other));
  if (writes)
    g.shadow.note_write(who, offset, bytes);
  else
    g.shadow.note_read(warp.clock, who, offset, bytes);
}

void check_poison(float value, const Location& at) {
  if (std::bit_cast<std::uint32_t>(value) == kInFlightBits)
    machine().fail(at, "uses an accumulator while wgmma still work on it: no wgmma_wait lies between");
}

}  // namespace sluice::arch::emulated
