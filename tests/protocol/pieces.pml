/* How the pieces of a tile meet: what the dispatcher, the producer and the consumers of src/kernel do with flags, sums and the counter of
 * tickets, for every interleaving. docs/protocol.md says what is left out.
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
byte items, units, consumers, slots, room;
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
bit turn[MOST_UNITS], loads_for[MOST_UNITS]; /* pingpong: the consumer who may multiply, and the one whose tile is loaded next */
chan to[MOST_UNITS * 3] = [MOST_SLOTS] of { byte };
chan loaded[MOST_UNITS * 2] = [MOST_LOADS] of { bit, byte }; /* operands or sums, and of which item */

#define LOWER ((1 << place) - 1)
#define RING(taker) to[3 * place + (taker)] /* a consumer's or the producer's view of the ring of work tiles */
#define PRODUCER 2
#ifdef STARTS_BEFORE_THE_PREDECESSOR_HAS_ENDED
#define PREDECESSOR_HAS_ENDED true
#else
#define PREDECESSOR_HAS_ENDED (launch == launch_of[place])
#endif
/* A slot of the ring is free again when the producer and all consumers have released it. */
#define ROOM (len(RING(0)) < slots && len(RING(1)) < slots && len(RING(PRODUCER)) < slots)

/* The ring of stages. For an item that collects there are two loads: its operands, and behind them the sums that other pieces have left. */
#define STAGES(consumer) loaded[2 * place + (consumer)]
#define OPERANDS 0
#define SUMS 1
/* In pingpong a load is for one consumer. Otherwise it is for all of them, and free again when all have released it. */
#define STAGES_FREE \
  (pingpong -> len(STAGES(0)) + len(STAGES(1)) < room : len(STAGES(0)) < room && len(STAGES(1)) < room)
#define PARTS_HELD (pingpong -> 1 : consumers)

inline put(what) {
  RING(0) ! what;
  if
  :: consumers == 2 -> RING(1) ! what
  :: else
  fi
}

/* That there is no more, nobody tells the producer: it is done when the consumers are, who wait for all that it loads. */
inline put_item() {
  RING(PRODUCER) ! item;
  put(item)
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
    :: PEERS > 0 -> put_item()
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
        :: atomic { item < items && ROOM -> put_item(); item = item + units; pass_over_empty_items() }
        :: item >= items -> break
        od
     fi;
     atomic { ROOM -> put(NONE); item = 0 }
     d_step {
       out[place] == consumers ->
       assert(empty(RING(PRODUCER)) && empty(STAGES(0)) && empty(STAGES(1)));
       out[place] = 0;
       turn[place] = 0;
       loads_for[place] = 0;
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
  atomic { !COLLECTS -> FLAG++ };
  d_step { write_sums(); item = 0 }
#elif defined(COUNTED_IN_TWO_STEPS)
  d_step { !COLLECTS -> write_sums(); i = FLAG };
  d_step { FLAG = i + 1; i = 0; item = 0 }
#else
  d_step { !COLLECTS -> write_sums(); FLAG++; item = 0 }
#endif
}

#if defined(WAITS_FOR_ONE_PIECE)
#define OTHERS_HAVE_COME (FLAG >= 1)
#elif defined(DOES_NOT_WAIT)
#define OTHERS_HAVE_COME true
#elif defined(WAITS_FOR_ITS_OWN_PART_ALONE)
#define OTHERS_HAVE_COME (part > 0 || FLAG == PEERS - 1)
#else
#define OTHERS_HAVE_COME (FLAG == PEERS - 1)
#endif

#ifdef PRODUCER_DOES_NOT_WAIT_FOR_THE_PREDECESSOR
#define FLAGS_MAY_BE_LOOKED_AT true
#else
#define FLAGS_MAY_BE_LOOKED_AT PREDECESSOR_HAS_ENDED
#endif

inline load(what) {
  if
  :: pingpong -> STAGES(loads_for[place]) ! what, item
  :: else ->
     STAGES(0) ! what, item;
     if
     :: consumers == 2 -> STAGES(1) ! what, item
     :: else
     fi
  fi
}

inline check_sums(and_set_to) {
  for (i : FIRST_LEFT .. FIRST_LEFT + PEERS - 2) {
    assert(sums[PLACE(i)] == SUMS_OF(i));
    sums[PLACE(i)] = and_set_to
  }
  i = 0
}

/* The copy engine reads the sums at some time between now and when they are added: they must be there now, and still be there then. */
inline fetch() {
  for (part : 0 .. PARTS_HELD - 1) { check_sums(SUMS_OF(i)) }
  part = 0;
  load(SUMS)
}

inline next_item() {
  loads_for[place] = (pingpong -> 1 - loads_for[place] : 0); item = 0
}

/* Loads items in their order. It takes one when there is room for its operands: no consumer can release the item before it. */
proctype Producer(byte place) {
  byte item, part, i;
end:
  do
  :: atomic {
       nempty(RING(PRODUCER)) && STAGES_FREE ->
       RING(PRODUCER) ? item;
       if
       :: PEERS == 1 || !COLLECTS -> load(OPERANDS); next_item(); goto end
       :: else
       fi
#ifndef SUMS_BEFORE_OPERANDS
       ; load(OPERANDS)
#endif
     }
     /* Waits for the flags of all parts that the CTA holds, one after the other. Nobody else touches a flag that is complete, so that
      * resetting it, and fetching when it is the last, are one step with seeing it. The room for the sums comes from consumers of its own
      * CTA alone: whether it waits for that before or behind the flag, no other CTA could tell. */
     do
     ::
#ifdef FLAG_RESET_BEFORE_THE_WAIT
        FLAG = 0;
#endif
        atomic {
          FLAGS_MAY_BE_LOOKED_AT && OTHERS_HAVE_COME && STAGES_FREE ->
#if !defined(FLAG_RESET_BEFORE_THE_WAIT) && !defined(FLAG_NOT_RESET)
          FLAG = 0;
#endif
          part++;
          if
          :: part == PARTS_HELD -> part = 0; fetch()
#ifdef SUMS_BEFORE_OPERANDS
             ; STAGES_FREE -> load(OPERANDS)
#endif
             ; next_item(); break
          :: else
          fi
        }
     od
  od
}

inline take_stages(wanted) {
  STAGES(me) ? what, whose;
  assert(what == wanted && whose == item);
  what = 0; whose = 0
}

inline collect() {
  d_step {
    COLLECTS && nempty(STAGES(me)) ->
    take_stages(SUMS);
    check_sums(0);
    finish()
  }
}

proctype Consumer(byte place, me) {
  byte item, i, whose;
  bit what;
  byte part = (pingpong -> 0 : me);
  bit n; /* work tiles so far, odd or even */
end:
  do
  :: atomic { /* multiplies: when that is loaded, in pingpong when its turn has come, which it then passes on */
       PREDECESSOR_HAS_ENDED && nempty(RING(me)) &&
         (RING(me) ? [NONE] || (pingpong && n != me) || (nempty(STAGES(me)) && (!pingpong || turn[place] == me))) ->
       RING(me) ? item;
       if
       :: item == NONE -> n = 0; item = 0; out[place]++; goto end
       :: item != NONE && pingpong && n != me -> n = 1 - n; item = 0; goto end
       :: else -> take_stages(OPERANDS); n = 1 - n; turn[place] = 1 - me
       fi;
       if
       :: PEERS == 1 -> finish(); goto end
       :: else
       fi
     }
     if
     :: collect()
     :: leave()
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
    room = room_for_loads[number];
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
      run Producer(i);
      run Consumer(i, 0);
      if
      :: consumers == 2 -> run Consumer(i, 1)
      :: else
      fi
    }
  }
}
