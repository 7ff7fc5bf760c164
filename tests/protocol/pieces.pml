/* How the pieces of a tile meet: what the dispatcher and the consumers of src/kernel do with flags, sums and the counter of tickets, for
 * every interleaving. docs/protocol.md says what is left out.
 *
 * schedules.pml is written by the test from the schedulers' own code (schedule_table.cpp): cases, each a list of items and who takes them.
 * One run of the checker goes through all cases, and for each through every number of places from 1 to as many as there are CTAs.
 * A name in capitals that nothing here defines is a bug planted by the test.
 */
#include "schedules.pml"

#define NONE 255 /* there is no more work */
#define PARTS 2  /* consumer warpgroups that hold a part of a tile each, with a flag and a place of their own */

#define PEERS peers[first_item + item]
#define PEER peer[first_item + item]
#define PLACE(which) (PARTS * (first_place[first_item + item] + (which) * place_step[first_item + item]) + part)
#define SUMS_OF(which) (tile[first_item + item] * MOST_PEERS + (which) + 1)

/* The case, and how many CTAs the device holds at once. */
byte number, resident;
short first_item;
byte items, units, consumers, slots;
bool tickets, pingpong, overlap;

/* The workspace. */
byte counter;
byte flag[MOST_FLAGS * PARTS];
byte sums[MOST_PLACES * PARTS]; /* 0: nothing that is still to be read */

byte finished[MOST_TILES * PARTS];

/* Launches follow one another in one workspace. With overlap the CTAs of the next may start when all of the one before have started. */
byte starting;  /* the launch whose CTAs start, */
byte next_unit; /* and which of them is next: they start in the order of their numbers */
byte launch;    /* the launch at work: all before it are over */
byte ended;     /* CTAs of it that are */

/* The places for CTAs, and who is there. They are all alike, so that a CTA starts in the first that is free. */
byte busy; /* a bit for each */
byte launch_of[MOST_UNITS], out[MOST_UNITS];
bit turn[MOST_UNITS];
chan to[MOST_UNITS * 2] = [MOST_SLOTS] of { byte };

#define LOWER ((1 << place) - 1)
#define RING(consumer) to[2 * place + (consumer)]
#ifdef STARTS_BEFORE_THE_PREDECESSOR_HAS_ENDED
#define PREDECESSOR_HAS_ENDED true
#else
#define PREDECESSOR_HAS_ENDED (launch == launch_of[place])
#endif
/* A slot of the ring is free again when all consumers have released it. */
#define ROOM (len(RING(0)) < slots && len(RING(1)) < slots)

inline put(what) {
  RING(0) ! what;
  if
  :: consumers == 2 -> RING(1) ! what
  :: else
  fi
}

inline pass_over_empty_items() {
  do
  :: item < items && PEERS == 0 -> item = item + units
  :: else -> break
  od
}

#ifdef ITEMS_BACKWARDS
#define ITEM_OF(ticket) (items - 1 - (ticket))
#else
#define ITEM_OF(ticket) (ticket)
#endif

/* Nobody but the dispatcher knows whether a ticket is in its hand or in the ring already: it draws when there is room, and puts at once. */
inline draw_and_put() {
#ifdef TICKETS_DRAWN_IN_TWO_STEPS
  item = counter;
  atomic {
    ROOM -> counter = item + 1;
#else
  atomic {
    ROOM -> item = counter; counter++;
#endif
    if
#ifdef COUNTER_RESET_BY_THE_FIRST_TO_FIND_NOTHING
    :: item == items -> counter = 0
#elif !defined(COUNTER_NOT_RESET)
    :: item == items + units - 1 -> counter = 0
#endif
    :: else
    fi;
    if
    :: item >= items -> item = 0; break
    :: else -> item = ITEM_OF(item)
    fi;
    if
    :: PEERS > 0 -> put(item)
    :: else
    fi;
    item = 0
  }
}

inline check_what_a_launch_leaves() {
  assert(counter == 0);
  for (i in flag) { assert(flag[i] == 0) }
  for (i in sums) { assert(sums[i] == 0) }
  for (i : 0 .. PARTS * tiles[number] - 1) {
    assert(finished[i] == 1 || (i % PARTS == 1 && (consumers == 1 || pingpong)));
    finished[i] = 0
  }
  i = 0
}

proctype Dispatcher(byte place) {
  byte item, i;
  do
  :: atomic {
       starting < LAUNCHES && (busy & LOWER) == LOWER && (overlap || starting == launch) ->
       busy = busy | (1 << place);
#ifdef CTAS_START_IN_REVERSE
       item = units - 1 - next_unit;
#else
       item = next_unit;
#endif
       launch_of[place] = starting;
       next_unit++;
       if
       :: next_unit == units -> next_unit = 0; starting++
       :: else
       fi;
       if
       :: !tickets -> pass_over_empty_items()
       :: else
       fi
     }
     if
     :: tickets ->
        PREDECESSOR_HAS_ENDED;
        do
        :: draw_and_put()
        od
     :: else ->
        do
        :: atomic { item < items && ROOM -> put(item); item = item + units; pass_over_empty_items() }
        :: item >= items -> break
        od
     fi;
     atomic { ROOM -> put(NONE); item = 0 }
     d_step {
       out[place] == consumers ->
       out[place] = 0;
       turn[place] = 0;
       busy = busy & ~(1 << place);
       ended++;
       if
       :: ended == units -> check_what_a_launch_leaves(); ended = 0; launch++
       :: else
       fi
     }
  :: starting == LAUNCHES -> break
  od
}

#ifdef ONE_FLAG_FOR_BOTH_PARTS
#define FLAG flag[PARTS * flag_of[first_item + item]]
#else
#define FLAG flag[PARTS * flag_of[first_item + item] + part]
#endif

#ifdef FIRST_PIECE_COLLECTS
#define COLLECTS (PEER == 0)
#define FIRST_LEFT 1
#else
#define COLLECTS (PEER == PEERS - 1)
#define FIRST_LEFT 0
#endif

inline finish() {
  finished[PARTS * tile[first_item + item] + part]++;
  assert(finished[PARTS * tile[first_item + item] + part] == 1);
  item = 0
}

inline write_sums() {
  assert(sums[PLACE(PEER)] == 0);
  sums[PLACE(PEER)] = SUMS_OF(PEER)
}

/* The count publishes the sums (acq_rel): who sees it sees them, and so both are one step. */
inline leave() {
#if defined(COUNT_OVERTAKES_SUMS)
  FLAG++;
  d_step { write_sums(); item = 0 }
#elif defined(COUNTED_IN_TWO_STEPS)
  d_step { write_sums(); i = FLAG };
  d_step { FLAG = i + 1; i = 0; item = 0 }
#else
  d_step { write_sums(); FLAG++; item = 0 }
#endif
}

inline collect() {
#ifdef FLAG_RESET_BEFORE_THE_WAIT
  FLAG = 0;
#endif
#ifdef WAITS_FOR_ONE_PIECE
  FLAG >= 1;
#elif !defined(DOES_NOT_WAIT)
  FLAG == PEERS - 1;
#endif
#if !defined(FLAG_RESET_BEFORE_THE_WAIT) && !defined(FLAG_NOT_RESET)
  FLAG = 0;
#endif
  d_step {
    for (i : FIRST_LEFT .. FIRST_LEFT + PEERS - 2) {
      assert(sums[PLACE(i)] == SUMS_OF(i));
      sums[PLACE(i)] = 0
    }
    i = 0;
    finish()
  }
}

proctype Consumer(byte place, me) {
  byte item, i;
  byte part = (pingpong -> 0 : me);
  bit n; /* work tiles so far, odd or even */
end:
  do
  :: atomic { /* multiplies: in pingpong when its turn has come, which it then passes on */
       PREDECESSOR_HAS_ENDED && nempty(RING(me)) && (!pingpong || n != me || turn[place] == me || RING(me) ? [NONE]) ->
       RING(me) ? item;
       if
       :: item == NONE -> n = 0; item = 0; out[place]++; goto end
       :: item != NONE && pingpong && n != me -> n = 1 - n; item = 0; goto end
       :: else -> n = 1 - n; turn[place] = 1 - me
       fi;
       if
       :: PEERS == 1 -> finish(); goto end
       :: else
       fi
     }
     if
     :: COLLECTS -> collect()
     :: !COLLECTS -> leave()
     fi
  od
}

init {
  byte i;
  atomic {
    select(number : 0 .. LAST_CASE);
    first_item = first_items[number];
    items = item_counts[number];
    units = unit_counts[number];
    consumers = consumer_counts[number];
    slots = slot_counts[number];
    tickets = by_ticket[number];
    pingpong = in_turns[number];
    overlap = overlaps[number];
#ifdef RESIDENT
    resident = RESIDENT;
#else
    select(resident : 1 .. units);
#endif
    for (i : 0 .. resident - 1) {
      run Dispatcher(i);
      run Consumer(i, 0);
      if
      :: consumers == 2 -> run Consumer(i, 1)
      :: else
      fi
    }
  }
}
