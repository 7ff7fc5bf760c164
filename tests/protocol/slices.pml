/* How the pieces of a tile finish it in slices: what src/kernel/reduction/separate_sums.cuh does with its one word, for every interleaving.
 * docs/protocol.md says what is left out.
 *
 * One tile, one consumer warpgroup: others have words of their own. One run of the checker goes through every number of pieces from 2 to
 * MOST_PIECES, every number of slices, and every number of places from 1 to as many as there are pieces; LAUNCHES follow one another in one
 * workspace. Any other name in capitals that nothing here defines is a bug planted by the test.
 */
byte pieces, slices, resident;
bool overlap; /* CTAs of the next launch start before the last of this one has ended */

/* The word, whose parts change together: how many pieces have come, how many of those that waited have gone on, whose slices are left to the
 * last one. */
byte came, went, abandoned;

byte sums[MOST_PIECES];     /* the launch that has left them, counted from 1 */
byte finished[MOST_PIECES]; /* slices */

byte starting, next_piece; /* the launch whose CTAs start, and which of them is next */
byte launch;               /* the launch at work: all before it are over */
byte ended;                /* CTAs of it that are */

inline give_up() {
#if defined(ABANDONED_IN_TWO_STEPS)
  before = came;
  atomic { went++; abandoned = abandoned | slice };
#elif defined(NOT_COUNTED_WHEN_IT_GIVES_UP)
  atomic { before = came; abandoned = abandoned | slice };
#else
  atomic { before = came; went++; abandoned = abandoned | slice };
#endif
  if
#ifndef GOES_WITHOUT_A_LOOK
  :: before == pieces -> mine = slice
#endif
  :: else
  fi
}

inline add_up() {
  d_step {
    for (i : 0 .. slices - 1) {
      if
      :: (mine >> i) & 1 ->
         for (j : 0 .. pieces - 1) { assert(sums[j] == launch + 1) }
         finished[i]++;
         assert(finished[i] == 1)
      :: else
      fi
    }
    i = 0; j = 0; mine = 0; slice = 0; before = 0
  }
}

inline check_what_a_launch_leaves() {
  assert(came == 0 && went == 0 && abandoned == 0);
  for (i : 0 .. slices - 1) { assert(finished[i] == 1); finished[i] = 0 }
  i = 0
}

proctype Place() {
  byte piece, of_launch, before, slice, mine, i, j;
  bit last;
  do
  :: atomic {
       starting < LAUNCHES && (overlap || starting == launch) ->
       piece = next_piece; of_launch = starting;
       next_piece++;
       if
       :: next_piece == pieces -> next_piece = 0; starting++
       :: else
       fi
     }
     /* When the launch before is over. The count publishes the sums (acq_rel): who sees it sees them, and so both are one step. */
#if defined(ABANDONED_SLICES_READ_LATER)
     d_step { launch == of_launch -> sums[piece] = launch + 1; before = came; came++; piece = 0; of_launch = 0 }
     mine = abandoned;
#elif defined(COUNT_OVERTAKES_SUMS)
     d_step { launch == of_launch -> before = came; mine = abandoned; came++ }
     d_step { sums[piece] = launch + 1; piece = 0; of_launch = 0 }
#else
     d_step { launch == of_launch -> sums[piece] = launch + 1; before = came; mine = abandoned; came++; piece = 0; of_launch = 0 }
#endif
     if
     :: before + slices < pieces -> mine = 0 /* those who come later will do */
     :: before + slices >= pieces && before + 1 < pieces ->
        slice = 1 << (before + slices - pieces); mine = 0;
        if
        :: came == pieces -> went++; mine = slice
#ifndef WAITS_FOR_EVER
        :: true -> /* has looked often enough */
           give_up()
#endif
        fi
     :: before + 1 == pieces ->
#ifdef ABANDONED_SLICES_NOT_FINISHED
        mine = 0;
#endif
        mine = mine | (1 << (slices - 1));
        last = 1
     fi;
     add_up();
     if
     :: last ->
#ifndef WORD_CLEARED_TOO_EARLY
        went + 1 == slices;
#endif
        d_step {
          last = 0;
#ifndef WORD_NOT_CLEARED
          came = 0; went = 0; abandoned = 0
#endif
        }
     :: else
     fi;
     d_step {
       ended++;
       if
       :: ended == pieces -> check_what_a_launch_leaves(); ended = 0; launch++
       :: else
       fi
     }
  :: starting == LAUNCHES -> break
  od
}

init {
  byte i;
  atomic {
    select(pieces : 2 .. MOST_PIECES);
    select(slices : 1 .. pieces);
    select(overlap : 0 .. 1);
#ifdef RESIDENT
    resident = RESIDENT;
#else
    select(resident : 1 .. pieces);
#endif
    for (i : 0 .. resident - 1) { run Place() }
  }
}
