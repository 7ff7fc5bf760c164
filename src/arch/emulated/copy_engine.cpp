// The copy engine: boxes of tensors and runs of bytes, between global memory, shared memory and the cluster's. Issued by a thread, carried
// out when the machine gets round to it.
#include <algorithm>
#include <bit>
#include <cstring>

#include "arch/emulated/encoded_tensor.hpp"
#include "arch/emulated/machine.hpp"
#include "arch/emulated/numbers.hpp"

namespace sluice::arch::emulated {
namespace {

constexpr int kPacketBytes = 16;

Machine& machine() { return Machine::here(); }

std::uint64_t span_bytes(const EncodedTensor& t) {
  std::uint64_t bytes = t.extents[0] * t.strides_bytes[0];
  for (int d = 1; d < kDimensions; ++d) bytes += (t.extents[d] - 1) * t.strides_bytes[d];
  return bytes;
}

// PTX ISA, "Swizzling modes": bits 4 to 6 of a shared address are turned by bits 7 to 9.
std::uint32_t swizzled(std::uint32_t address, int swizzle_bytes) {
  const std::uint32_t packets = swizzle_bytes == 0 ? 1 : static_cast<std::uint32_t>(swizzle_bytes) / kPacketBytes;
  return address ^ ((address >> 7 & (packets - 1)) << 4);
}

// f(offset in shared memory from the box's start, global bytes or null if outside, bytes): rows of packets of the box.
template <class F>
void for_each_packet(const EncodedTensor& t, TensorCoordinates at, SharedAddress start, F f) {
  const int size = size_bytes(t.element), row_bytes = t.box[0] * size, per_packet = kPacketBytes / size;
  std::uint32_t row = 0;
  for (int z = 0; z < t.box[2]; ++z)
    for (int y = 0; y < t.box[1]; ++y, ++row)
      for (int x = 0; x < t.box[0]; x += per_packet) {
        const std::uint32_t linear = start + row * static_cast<std::uint32_t>(row_bytes) + static_cast<std::uint32_t>(x * size);
        const std::int64_t at_x = std::int64_t{at.inner} + x, at_y = std::int64_t{at.outer} + y, at_z = std::int64_t{at.batch} + z;
        const bool row_inside =
            at_y >= 0 && at_z >= 0 && static_cast<std::uint64_t>(at_y) < t.extents[1] && static_cast<std::uint64_t>(at_z) < t.extents[2];
        const std::int64_t first = std::clamp<std::int64_t>(-at_x, 0, per_packet);
        const std::int64_t last = row_inside ? std::clamp<std::int64_t>(static_cast<std::int64_t>(t.extents[0]) - at_x, 0, per_packet) : 0;
        std::byte* global = nullptr;
        if (first < last)
          global = t.data + at_x * static_cast<std::int64_t>(t.strides_bytes[0]) + at_y * static_cast<std::int64_t>(t.strides_bytes[1]) +
                   at_z * static_cast<std::int64_t>(t.strides_bytes[2]);
        f(swizzled(linear, t.swizzle_bytes), global, static_cast<int>(first) * size, static_cast<int>(last) * size);
      }
}

void add(Element element, std::byte* to, const std::byte* from, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += static_cast<std::size_t>(size_bytes(element))) {
    if (element == Element::fp32) {
      float a, b;
      std::memcpy(&a, to + i, 4);
      std::memcpy(&b, from + i, 4);
      a += b;
      std::memcpy(to + i, &a, 4);
    } else {
      std::uint16_t a, b;
      std::memcpy(&a, to + i, 2);
      std::memcpy(&b, from + i, 2);
      a = element == Element::bf16 ? float_to_bf16(bf16_to_float(a) + bf16_to_float(b))
                                   : float_to_fp16(fp16_to_float(a) + fp16_to_float(b));
      std::memcpy(to + i, &a, 2);
    }
  }
}

// The bulk groups of the running thread.
BulkThread& bulk_of_thread(const Location& at) {
  Machine& m = machine();
  Thread& me = m.thread();
  if (me.bulk_thread < 0) {
    if (me.cta->bulk.size() == kMostBulkThreads)
      m.fail(at, "is one thread too many of its CTA with bulk groups; " + std::to_string(kMostBulkThreads) + " are emulated");
    me.bulk_thread = static_cast<int>(me.cta->bulk.size());
    const std::uint32_t first = 1 + std::max(m.agent_time(m.agent(*me.cta, kFirstBulkReader + me.bulk_thread)),
                                             m.agent_time(m.agent(*me.cta, kFirstBulkWriter + me.bulk_thread)));
    me.cta->bulk.push_back({.thread = &me, .first = first, .open = first});
  }
  return me.cta->bulk[static_cast<std::size_t>(me.bulk_thread)];
}

void finish_one(std::map<std::uint32_t, int>& groups, std::uint32_t group, BulkThread& bulk) {
  if (--groups[group] == 0) groups.erase(group);
  if (!bulk.waits) return;
  bulk.waits = false;
  machine().wake(bulk.thread);
}

// Bytes on their way from shared to global memory.
struct Outgoing {
  std::byte* to;
  std::vector<std::byte> bytes;
};

// Reads `gather` at some moment, writes what it gave at a later one, within the thread's open bulk group.
void send(std::function<std::vector<Outgoing>()> gather, bool adds, Element element, std::uint32_t site, const Location& at) {
  Machine& m = machine();
  Cta* cta = m.thread().cta;
  BulkThread& bulk = bulk_of_thread(at);
  const std::uint32_t group = bulk.open;
  const auto index = static_cast<std::size_t>(m.thread().bulk_thread);
  bulk.uncommitted = true;
  ++bulk.reading[group];
  ++bulk.writing[group];
  // The cluster may be gone when the writing is over; only a thread that waits for it is told.
  const auto alive = m.thread().cta->alive;
  m.start({.carry_out =
               [cta, index, group, adds, element, site, alive, gather = std::move(gather)] {
                 auto outgoing = gather();
                 finish_one(cta->bulk[index].reading, group, cta->bulk[index]);
                 machine().start({.carry_out =
                                      [cta, index, group, adds, element, alive, outgoing = std::move(outgoing)] {
                                        for (const Outgoing& o : outgoing) {
                                          if (adds)
                                            add(element, o.to, o.bytes.data(), o.bytes.size());
                                          else
                                            std::memcpy(o.to, o.bytes.data(), o.bytes.size());
                                        }
                                        if (*alive) finish_one(cta->bulk[index].writing, group, cta->bulk[index]);
                                      },
                                  .site = site});
               },
           .reads = cta,
           .site = site});
  ++m.statistics.copies;
  m.maybe_yield();
}

// The running thread's open bulk group reads this run of shared memory.
void note_source(SharedAddress source, std::size_t bytes, std::uint32_t site, const Location& at) {
  Machine& m = machine();
  if (!m.diagnoses()) return;
  Thread& me = m.thread();
  const std::uint32_t group = bulk_of_thread(at).open;
  const std::size_t offset = source - kSharedWindow;
  report(me.cta->shadow.check_read(me.warp->clock, false, offset, bytes, true), "starts a copy that ", source, at);
  me.cta->shadow.note_read(me.warp->clock, {.agent = m.agent(*me.cta, kFirstBulkReader + me.bulk_thread), .time = group, .site = site},
                           offset, bytes);
}

// And writes this run of global memory.
void note_target(const std::byte* target, std::size_t bytes, bool adds, std::uint32_t site, const Location& at) {
  Machine& m = machine();
  Machine::Global& g = m.global(target, bytes, true, at);
  if (!m.diagnoses()) return;
  Thread& me = m.thread();
  const auto offset = static_cast<std::size_t>(target - static_cast<const std::byte*>(g.buffer.data));
  const ShadowMemory::Verdict verdict = g.shadow.check_write(me.warp->clock, false, offset, bytes, adds);
  if (verdict.wrong != nullptr)
    m.fail(at, std::string("starts a copy that ") + verdict.wrong + " (byte " + std::to_string(offset) + " of " + g.buffer.name +
                   "); the other side is the " + m.describe(verdict.other));
  g.shadow.note_write(
      {.agent = m.agent(*me.cta, kFirstBulkWriter + me.bulk_thread), .adds = adds, .time = bulk_of_thread(at).open, .site = site}, offset,
      bytes);
}

void note_global_source(const void* source, std::size_t bytes, const Location& at) {
  Machine& m = machine();
  Machine::Global& g = m.global(source, bytes, false, at);
  if (!g.buffer.writable || !m.diagnoses()) return;
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(source) - static_cast<const std::byte*>(g.buffer.data));
  const ShadowMemory::Verdict verdict = g.shadow.check_read(m.thread().warp->clock, false, offset, bytes, false);
  if (verdict.wrong != nullptr)
    m.fail(at, std::string("starts a copy that ") + verdict.wrong + " (byte " + std::to_string(offset) + " of " + g.buffer.name +
                   "); the other side is the " + m.describe(verdict.other));
}

// All of a tensor must be there, but for one that clips boxes at rows of its choice: its second and third direction are the same, and it
// begins before its memory. Of such a one, and of one that is constant in parts, what the box reads.
void note_tensor_source(const EncodedTensor& t, TensorCoordinates from, const Location& at) {
  if (t.strides_bytes[1] != t.strides_bytes[2] && !machine().is_partly_constant(t.data))
    return note_global_source(t.data, span_bytes(t), at);
  for_each_packet(t, from, 0, [&](SharedAddress, const std::byte* global, int first, int last) {
    if (global != nullptr) note_global_source(global + first, static_cast<std::size_t>(last - first), at);
  });
}

// A copy into `target`'s shared memory whose bytes `barrier` there will count.
void receive(Cta& target, SharedAddress destination, std::size_t bytes, MBarrier& barrier, std::uint32_t site, std::function<void()> write,
             Cta* reads, const Location& at) {
  Machine& m = machine();
  if (m.diagnoses()) {
    const Epoch who{
        .agent = m.agent(target, kFirstBarrierCopies + barrier.number), .time = barrier_copy_time(target, barrier), .site = site};
    const std::size_t offset = destination - kSharedWindow;
    report(target.shadow.check_write(m.thread().warp->clock, false, offset, bytes), "starts a copy that ", destination, at);
    target.shadow.note_write(who, offset, bytes);
    if (&target != m.thread().cta) target.remote_accesses[who.agent] = who;
  }
  ++barrier.copies;
  m.start({.carry_out =
               [&target, &barrier, bytes, site, write = std::move(write)] {
                 write();
                 complete_bytes(target, barrier, static_cast<int>(bytes), site);
               },
           .reads = reads,
           .writes = &target,
           .site = site});
  ++m.statistics.copies;
}

void check_run(const void* global, int bytes, const Location& at) {
  if (bytes <= 0 || bytes % kPacketBytes != 0)
    machine().fail(at, "copies " + std::to_string(bytes) + " bytes; bulk copies move multiples of 16");
  if (reinterpret_cast<std::uintptr_t>(global) % kPacketBytes != 0)
    machine().fail(at, "copies from or to a global address that is not a multiple of 16");
}

}  // namespace

// There is no L2 here; what counts is who may touch the tensor, and when.
void tma_prefetch(const TensorMap& map, TensorCoordinates from, const Location& at) { note_tensor_source(decode(map, at), from, at); }

void tma_load(void* destination, const TensorMap& map, TensorCoordinates from, Barrier* barrier, std::uint16_t cta_mask,
              const Location& at) {
  Machine& m = machine();
  const EncodedTensor t = decode(map, at);
  note_tensor_source(t, from, at);
  const SharedAddress address = shared_address(destination), barrier_address = shared_address(barrier);
  const std::size_t bytes = std::size_t{t.box[0]} * t.box[1] * t.box[2] * static_cast<std::size_t>(size_bytes(t.element));
  const std::uint32_t site = m.site(at, "copy started");
  if (cta_mask == 0 || cta_mask >> m.launch().ctas_per_cluster != 0)
    m.fail(at, "multicasts to mask " + std::to_string(cta_mask) + " in a cluster of " + std::to_string(m.launch().ctas_per_cluster));
  for (int rank = 0; rank < m.launch().ctas_per_cluster; ++rank) {
    if ((cta_mask >> rank & 1) == 0) continue;
    Cta& target = remote_cta(rank, true, at);
    shared_bytes(target, address, bytes, 128, "copies into", at);
    MBarrier& counted = find_barrier(target, barrier_address, true, at);
    receive(
        target, address, bytes, counted, site,
        [&target, t, from, address] {
          for_each_packet(t, from, address, [&](SharedAddress to, const std::byte* global, int first, int last) {
            std::byte* packet = target.shared + (to - kSharedWindow);
            std::memset(packet, 0, kPacketBytes);
            if (global != nullptr) std::memcpy(packet + first, global + first, static_cast<std::size_t>(last - first));
          });
        },
        nullptr, at);
  }
  m.maybe_yield();
}

void tma_store(const TensorMap& map, TensorCoordinates to, SharedAddress source, bool adds, const Location& at) {
  Machine& m = machine();
  Cta* cta = m.thread().cta;
  const EncodedTensor t = decode(map, at);
  const std::size_t bytes = std::size_t{t.box[0]} * t.box[1] * t.box[2] * static_cast<std::size_t>(size_bytes(t.element));
  shared_bytes(*cta, source, bytes, 128, "copies from", at);
  if (t.extents[0] * t.strides_bytes[0] % kPacketBytes != 0)
    m.fail(at, "stores into a tensor whose rows of " + std::to_string(t.extents[0] * t.strides_bytes[0]) +
                   " bytes end inside a packet of 16: the copy engine would overwrite what lies behind them");
  const std::uint32_t site = m.site(at, adds ? "reducing copy started" : "copy started");
  note_source(source, bytes, site, at);
  // Only what is written must be there: a tensor that clips boxes at rows of its choice says that it begins before its memory.
  for_each_packet(t, to, source, [&](SharedAddress, const std::byte* global, int first, int last) {
    if (global != nullptr) note_target(global + first, static_cast<std::size_t>(last - first), adds, site, at);
  });
  send(
      [cta, t, to, source] {
        std::vector<Outgoing> outgoing;
        for_each_packet(t, to, source, [&](SharedAddress from, std::byte* global, int first, int last) {
          const std::byte* packet = cta->shared + (from - kSharedWindow);
          if (global != nullptr) outgoing.push_back({global + first, {packet + first, packet + last}});
        });
        return outgoing;
      },
      adds, t.element, site, at);
}

void bulk_prefetch(const void* source, int bytes, const Location& at) {
  check_run(source, bytes, at);
  note_global_source(source, static_cast<std::size_t>(bytes), at);
}

void bulk_load(SharedAddress destination, const void* source, int bytes, Barrier* barrier, const Location& at) {
  Machine& m = machine();
  Cta& cta = *m.thread().cta;
  const auto size = static_cast<std::size_t>(bytes);
  check_run(source, bytes, at);
  note_global_source(source, size, at);
  std::byte* to = shared_bytes(cta, destination, size, kPacketBytes, "copies into", at);
  receive(
      cta, destination, size, find_barrier(cta, shared_address(barrier), true, at), m.site(at, "copy started"),
      [to, source, size] { std::memcpy(to, source, size); }, nullptr, at);
  m.maybe_yield();
}

void bulk_store(void* destination, SharedAddress source, int bytes, bool adds, const Location& at) {
  Machine& m = machine();
  Cta& cta = *m.thread().cta;
  const auto size = static_cast<std::size_t>(bytes);
  check_run(destination, bytes, at);
  const std::byte* from = shared_bytes(cta, source, size, kPacketBytes, "copies from", at);
  const std::uint32_t site = m.site(at, adds ? "reducing copy started" : "copy started");
  auto* to = static_cast<std::byte*>(destination);
  note_source(source, size, site, at);
  note_target(to, size, adds, site, at);
  send([from, to, size] { return std::vector<Outgoing>{{to, {from, from + size}}}; }, adds, Element::fp32, site, at);
}

void bulk_copy_to_cluster(ClusterAddress destination, SharedAddress source, int bytes, ClusterAddress barrier, const Location& at) {
  Machine& m = machine();
  Cta& cta = *m.thread().cta;
  const auto size = static_cast<std::size_t>(bytes);
  check_run(nullptr, bytes, at);
  const Place to = place_of(destination, true, at), counted = place_of(barrier, true, at);
  if (to.cta != counted.cta) m.fail(at, "copies into one CTA and counts in another");
  const std::byte* from = shared_bytes(cta, source, size, kPacketBytes, "copies from", at);
  std::byte* target = shared_bytes(*to.cta, to.address, size, kPacketBytes, "copies into", at);
  MBarrier& b = find_barrier(*to.cta, counted.address, true, at);
  const std::uint32_t site = m.site(at, "copy started");
  if (m.diagnoses()) {
    report(cta.shadow.check_read(m.thread().warp->clock, false, source - kSharedWindow, size, true), "starts a copy that ", source, at);
    cta.shadow.note_read(m.thread().warp->clock,
                         {.agent = m.agent(*to.cta, kFirstBarrierCopies + b.number), .time = barrier_copy_time(*to.cta, b), .site = site},
                         source - kSharedWindow, size);
  }
  receive(
      *to.cta, to.address, size, b, site, [from, target, size] { std::memcpy(target, from, size); }, &cta, at);
  m.maybe_yield();
}

void store_async(ClusterAddress destination, const void* from, int bytes, ClusterAddress barrier, const Location& at) {
  Machine& m = machine();
  const auto size = static_cast<std::size_t>(bytes);
  const Place to = place_of(destination, true, at), counted = place_of(barrier, true, at);
  if (to.cta != counted.cta) m.fail(at, "stores into one CTA and counts in another");
  std::byte* target = shared_bytes(*to.cta, to.address, size, size, "stores into", at);
  MBarrier& b = find_barrier(*to.cta, counted.address, true, at);
  const std::vector<std::byte> value(static_cast<const std::byte*>(from), static_cast<const std::byte*>(from) + size);
  receive(
      *to.cta, to.address, size, b, m.site(at, "asynchronous store"), [target, value] { std::memcpy(target, value.data(), value.size()); },
      nullptr, at);
  m.maybe_yield();
}

void bulk_commit() {
  Thread& me = machine().thread();
  if (me.bulk_thread < 0) return;
  BulkThread& bulk = me.cta->bulk[static_cast<std::size_t>(me.bulk_thread)];
  ++bulk.open;
  bulk.uncommitted = false;
}

void bulk_wait(int groups, bool read_only, const Location& at) {
  Machine& m = machine();
  Thread& me = m.thread();
  if (me.bulk_thread < 0) return;
  const auto index = static_cast<std::size_t>(me.bulk_thread);
  const auto bulk = [&]() -> BulkThread& { return me.cta->bulk[index]; };
  const std::uint32_t last = bulk().open - 1 - static_cast<std::uint32_t>(groups);  // the newest that must be over
  if (bulk().open - bulk().first <= static_cast<std::uint32_t>(groups)) return;
  const auto busy = [&](const std::map<std::uint32_t, int>& copies) { return !copies.empty() && copies.begin()->first <= last; };
  while (busy(bulk().reading) || (!read_only && busy(bulk().writing))) {
    bulk().waits = true;
    m.wait(at, [] { return std::string("its bulk copies"); });
  }
  Clock& clock = me.warp->clock;
  const auto raise = [&](std::uint32_t& time) { time = std::max(time, last); };
  raise(clock.order(m.agent(*me.cta, kFirstBulkReader + me.bulk_thread)));
  if (read_only) return;
  const std::uint16_t writer = m.agent(*me.cta, kFirstBulkWriter + me.bulk_thread);
  raise(clock.order(writer));
  raise(clock.visible(writer));
}

}  // namespace sluice::arch::emulated
