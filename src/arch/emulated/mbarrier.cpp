// mbarriers: phases that end when all arrivals and all bytes are in.
#include "arch/emulated/machine.hpp"

namespace sluice::arch::emulated {
namespace {

constexpr std::int64_t kMostBytes = (1 << 20) - 1;  // PTX ISA, "Tracking asynchronous operations by the mbarrier object"

Machine& machine() { return Machine::here(); }

std::string state(const MBarrier& b) {
  return title(b) + ", in its phase " + std::to_string(b.phase) + " with " + std::to_string(b.expected - b.pending) + " of " +
         std::to_string(b.expected) + " arrivals and " + std::to_string(b.bytes) + " bytes to come";
}

// True, and the next phase begins, when all is in.
bool complete_if_done(Cta& cta, MBarrier& b) {
  if (b.pending > 0 || b.bytes != 0) return true;
  if (b.copies > 0) return false;
  Machine& m = machine();
  ++b.phase;
  b.pending = b.expected;
  if (b.gathering.empty()) b.gathering = m.new_clock();
  const std::uint16_t copies = m.agent(cta, kFirstBarrierCopies + b.number);
  b.gathering.order(copies) = b.gathering.visible(copies) = barrier_copy_time(cta, b) - 1;
  b.published = b.gathering;
  m.wake_all(b.waiters);
  return true;
}

std::string too_few_bytes(const MBarrier& b) {
  return "ends a phase of " + title(b) + " while " + std::to_string(b.copies) +
         " more copies that it counts are under way: fewer bytes were expected than they bring";
}

void arrive(Cta& cta, MBarrier& b, int bytes, bool releases, const Location& at) {
  Machine& m = machine();
  if (b.pending == 0) m.fail(at, "arrives once more than expected at " + state(b));
  m.publish(*m.thread().warp, b.gathering, releases);
  b.bytes += bytes;
  --b.pending;
  if (b.pending == 0 && b.bytes < 0)
    m.fail(at, "completes the arrivals of " + title(b) + ", but " + std::to_string(-b.bytes) +
                   " more bytes have come than were expected: on a GPU its phase never ends");
  if (!complete_if_done(cta, b)) m.fail(at, too_few_bytes(b));
}

}  // namespace

std::string title(const MBarrier& b) {
  return b.name != nullptr ? std::string(b.name) + "[" + std::to_string(b.index) + "]" : "barrier " + std::to_string(b.number);
}

// Copies that a barrier's phase n counts happen at time n + 1 of its agent, whatever CTA had the place before.
std::uint32_t barrier_copy_time(const Cta& cta, const MBarrier& b) {
  return machine().agent_time(machine().agent(cta, kFirstBarrierCopies + b.number)) + b.phase + 1;
}

MBarrier& find_barrier(Cta& cta, std::uint32_t offset, bool remote, const Location& at) {
  Machine& m = machine();
  const auto found = cta.barriers.find(offset);
  if (found == cta.barriers.end()) m.fail(at, "uses a barrier that was never initialised, at shared address " + std::to_string(offset));
  MBarrier& b = found->second;
  if (!m.diagnoses()) return b;
  Warp& warp = *m.thread().warp;
  if (!warp.clock.ordered(b.initialised))
    m.fail(at, "uses " + title(b) + " without knowing that it is initialised: no barrier of the CTA or cluster lies between. See the " +
                   m.describe(b.initialised.site));
  if ((remote || !warp.clock.sees(b.initialised)) && !b.init_fenced)
    m.fail(at, "uses " + title(b) + " from another CTA or with the copy engine, and no fence_barrier_init has followed the " +
                   m.describe(b.initialised.site));
  return b;
}

void complete_bytes(Cta& cta, MBarrier& b, int bytes, std::uint32_t site) {
  b.bytes -= bytes;
  --b.copies;
  if (b.bytes < -kMostBytes) machine().fail_at(site, "brings more bytes than " + state(b) + " can count");
  if (b.pending == 0 && b.bytes < 0)
    machine().fail_at(
        site, "brings " + std::to_string(-b.bytes) + " bytes more than were expected to " + title(b) + ": on a GPU its phase never ends");
  if (!complete_if_done(cta, b)) machine().fail_at(site, too_few_bytes(b));
}

void barrier_init(Barrier* barrier, int arrivals, const Location& at) {
  Machine& m = machine();
  Cta& cta = *m.thread().cta;
  const std::uint32_t offset = shared_address(barrier);
  if (offset % sizeof(Barrier) != 0) m.fail(at, "puts a barrier at shared address " + std::to_string(offset) + ", not a multiple of 8");
  if (arrivals <= 0) m.fail(at, "initialises a barrier for " + std::to_string(arrivals) + " arrivals");
  if (static_cast<int>(cta.barriers.size()) == kMostBarriers)
    m.fail(at, "initialises more than " + std::to_string(kMostBarriers) + " barriers, the most that are emulated");
  if (cta.barriers.contains(offset)) m.fail(at, "initialises a barrier a second time");
  MBarrier& b = cta.barriers[offset];
  b.number = static_cast<int>(cta.barriers.size()) - 1;
  b.offset = offset;
  b.expected = b.pending = arrivals;
  b.initialised = m.access(*m.thread().warp, m.site(at, "initialisation"));
  cta.shadow.note_write(b.initialised, offset - kSharedWindow, sizeof(Barrier));
  cta.shadow.reserve(offset - kSharedWindow, sizeof(Barrier));
}

void fence_barrier_init() {
  Thread& me = machine().thread();
  for (auto& [offset, b] : me.cta->barriers)
    if (b.initialised.agent == me.warp->agent) b.init_fenced = true;
}

void barrier_arrive(Barrier* barrier, int expect_bytes, const Location& at) {
  Machine& m = machine();
  Cta& cta = *m.thread().cta;
  MBarrier& b = find_barrier(cta, shared_address(barrier), false, at);
  if (b.bytes + expect_bytes > kMostBytes) m.fail(at, "expects more bytes than " + state(b) + " can count");
  arrive(cta, b, expect_bytes, true, at);
  m.maybe_yield();
}

void barrier_arrive_in_cluster(Barrier* barrier, int cta, bool releases, const Location& at) {
  Machine& m = machine();
  Cta& target = remote_cta(cta, false, at);
  arrive(target, find_barrier(target, shared_address(barrier), &target != m.thread().cta, at), 0, releases, at);
  m.maybe_yield();
}

void barrier_wait(Barrier* barrier, std::uint32_t parity, const Location& at) {
  Machine& m = machine();
  Thread& me = m.thread();
  MBarrier& b = find_barrier(*me.cta, shared_address(barrier), false, at);
  while ((b.phase & 1) == (parity & 1)) {
    b.waiters.push_back(&me);
    m.wait(at, [&b, parity] { return "the end of a phase of parity " + std::to_string(parity & 1) + " of " + state(b); });
  }
  m.acquire(*me.warp, b.published, &b, b.phase);
}

bool barrier_has_ended(Barrier* barrier, std::uint32_t parity, const Location& at) {
  Machine& m = machine();
  Thread& me = m.thread();
  const MBarrier& b = find_barrier(*me.cta, shared_address(barrier), false, at);
  if ((b.phase & 1) == (parity & 1)) return false;
  m.acquire(*me.warp, b.published, &b, b.phase);
  return true;
}

}  // namespace sluice::arch::emulated
