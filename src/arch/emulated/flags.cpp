// Global memory that synchronises: flags, counters, fences, and the order of kernels in a stream.
#include "arch/emulated/machine.hpp"

namespace sluice::arch::emulated {
namespace {

Machine& machine() { return Machine::here(); }
bool acquires(FlagAccess a) { return a == FlagAccess::acquire || a == FlagAccess::acq_rel; }
bool releases(FlagAccess a) { return a == FlagAccess::release || a == FlagAccess::acq_rel; }

void saw(Flag& flag, FlagAccess access) {
  Machine& m = machine();
  Warp& warp = *m.thread().warp;
  if (flag.released.empty()) return;
  if (acquires(access)) return m.acquire(warp, flag.released);
  if (!warp.fence_acquire) warp.fence_acquire = std::make_unique<Clock>(m.new_clock());
  warp.fence_acquire->join(flag.released);
  warp.clock.join_order(flag.released);
}

void left(Flag& flag, FlagAccess access) {
  Machine& m = machine();
  Warp& warp = *m.thread().warp;
  m.publish(warp, flag.released, releases(access));
  if (!releases(access) && warp.fence_release) flag.released.join(*warp.fence_release);
  m.wake_all(flag.waiters);
  m.yield();
}

// A flag of one word or two.
template <class Word>
Flag& flag_at(const Word* address, bool writes, const Location& at) {
  if (reinterpret_cast<std::uintptr_t>(address) % sizeof(Word) != 0)
    machine().fail(at, "uses a flag at an address that is not a multiple of " + std::to_string(sizeof(Word)));
  machine().global(address, sizeof *address, writes, at);
  return machine().flag(address);
}

template <class Word>
Word load(const Word* flag, FlagAccess access, const Location& at) {
  saw(flag_at(flag, false, at), access);
  const Word value = *flag;
  machine().yield();  // who polls waits for others
  return value;
}

template <class Word>
void store(Word* flag, Word value, FlagAccess access, const Location& at) {
  Flag& f = flag_at(flag, true, at);
  *flag = value;
  left(f, access);
}

template <class Word, class Change>
Word change(Word* flag, FlagAccess access, const Location& at, const Change& changed) {
  Flag& f = flag_at(flag, true, at);
  saw(f, access);
  const Word before = *flag;
  *flag = changed(before);
  left(f, access);
  return before;
}
template <class Word>
Word add(Word* flag, Word value, FlagAccess access, const Location& at) {
  return change(flag, access, at, [value](Word before) { return before + value; });
}

}  // namespace

std::uint32_t load_flag(const std::uint32_t* flag, FlagAccess access, const Location& at) { return load(flag, access, at); }
std::uint64_t load_long_flag(const std::uint64_t* flag, const Location& at) { return load(flag, FlagAccess::relaxed, at); }

void store_flag(std::uint32_t* flag, std::uint32_t value, FlagAccess access, const Location& at) { store(flag, value, access, at); }
void store_long_flag(std::uint64_t* flag, std::uint64_t value, const Location& at) { store(flag, value, FlagAccess::relaxed, at); }

std::uint32_t add_to_flag(std::uint32_t* flag, std::uint32_t value, FlagAccess access, const Location& at) {
  return add(flag, value, access, at);
}
std::uint32_t or_to_flag(std::uint32_t* flag, std::uint32_t bits, const Location& at) {
  return change(flag, FlagAccess::relaxed, at, [bits](std::uint32_t before) { return before | bits; });
}
std::uint64_t add_to_long_flag(std::uint64_t* flag, std::uint64_t value, const Location& at) {
  return add(flag, value, FlagAccess::relaxed, at);
}

void wait_for_flag(const std::uint32_t* flag, std::uint32_t value, const Location& at) {
  Machine& m = machine();
  Flag& f = flag_at(flag, false, at);
  while (*flag != value) {
    f.waiters.push_back(&m.thread());
    m.wait(at, [flag, value] { return "a flag to become " + std::to_string(value) + "; it is " + std::to_string(*flag); });
  }
  saw(f, FlagAccess::acquire);
}

void store_published(std::uint32_t* to, const std::array<std::uint32_t, 4>& words, const Location& at) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    Flag& f = flag_at(to + i, true, at);
    to[i] = words[i];
    machine().wake_all(f.waiters);
  }
  machine().maybe_yield();
}

std::array<std::uint32_t, 4> load_published(const std::uint32_t* from, std::uint32_t nothing, const Location& at) {
  Machine& m = machine();
  std::array<std::uint32_t, 4> words;
  for (std::size_t i = 0; i < words.size(); ++i) {
    Flag& f = flag_at(from + i, false, at);
    while (from[i] == nothing) {
      f.waiters.push_back(&m.thread());
      m.wait(at, [] { return std::string("words that another CTA is to publish"); });
    }
    words[i] = from[i];
  }
  return words;
}

void note_global_addition(const void* sum, std::size_t bytes, const Location& at) {
  Machine& m = machine();
  Machine::Global& g = m.global(sum, bytes, true, at);
  if (!m.diagnoses()) return;
  Warp& warp = *m.thread().warp;
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(sum) - static_cast<const std::byte*>(g.buffer.data));
  const ShadowMemory::Verdict verdict = g.shadow.check_write(warp.clock, true, offset, bytes, true);
  if (verdict.wrong != nullptr)
    m.fail(at, std::string("adds to what it must not: it ") + verdict.wrong + " (byte " + std::to_string(offset) + " of " + g.buffer.name +
                   "); the other side is the " + m.describe(verdict.other));
  Epoch who = m.access(warp, m.site(at, "addition"));
  who.adds = true;
  g.shadow.note_write(who, offset, bytes);
}

void atomic_add_float(float* sum, float value, const Location& at) {
  check_poison(value, at);
  note_global_addition(sum, sizeof *sum, at);
  *sum += value;
}

void fence_global() {
  Machine& m = machine();
  Warp& warp = *m.thread().warp;
  if (warp.fence_acquire) warp.clock.join(*warp.fence_acquire);
  warp.fence_release = std::make_unique<Clock>(warp.clock);
  warp.published = true;
}

void wait_for_predecessor(const Location&) { machine().thread().predecessor_done = true; }
void allow_successor() { machine().thread().cta->successor_may_begin = true; }

std::uint64_t clock_cycles() { return machine().statistics.steps; }

}  // namespace sluice::arch::emulated
