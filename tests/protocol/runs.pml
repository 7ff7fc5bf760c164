/* How CTAs of the attention kernel take runs of chunks, and who brings their results together: what src/kernel/attention/work_list.cuh and
 * row_merge.cuh do with their two words, for every interleaving. docs/protocol.md says what is left out.
 *
 * One run of the checker goes through every number of CTAs up to MOST_CTAS, of runs up to MOST_RUNS, of rows up to MOST_ROWS and of places
 * from 1 to as many as there are CTAs; LAUNCHES follow one another in one workspace. Each row wants the results of all runs; a CTA has one
 * warp that brings rows together. Any other name in capitals that nothing here defines is a bug planted by the test.
 */
byte ctas, runs, rows, resident;
bool overlap; /* CTAs of the next launch start before the last of this one has ended */

/* The word that runs are drawn from, whose parts change together: those drawn, CTAs that have left, CTAs that have begun. */
byte drawn, went, begun;
byte counted; /* the other word: rows drawn, and one more for each CTA that has found none or has left */

byte results; /* that runs have left */
byte finished[MOST_ROWS];

byte starting, next_cta; /* the launch whose CTAs start, and which of them is next */
byte launch;             /* the launch at work: all before it are over */
byte ended;              /* CTAs of it that are */

inline check_what_a_launch_leaves() {
  assert(drawn == 0 && went == 0 && begun == 0 && counted == 0 && results == runs);
  results = 0;
  for (i : 0 .. MOST_ROWS - 1) { assert(finished[i] == (i < rows -> 1 : 0)); finished[i] = 0 }
  i = 0
}

proctype Place() {
  byte of_launch, mine, next, counts, i;
  bit all_begun;
  do
  :: atomic {
       starting < LAUNCHES && (overlap || starting == launch) ->
       mine = next_cta; of_launch = starting; /* a CTA's first run is that of its own number */
       next_cta++;
       if
       :: next_cta == ctas -> next_cta = 0; starting++
       :: else
       fi
     }
     /* When the launch before is over. */
     d_step {
       launch == of_launch -> of_launch = 0;
       counts = 1;
       if
#ifdef WHO_HAS_LEFT_IS_NOT_COUNTED
       :: false
#elif defined(EVERYBODY_COUNTS_WHO_HAS_LEFT)
       :: true -> counts = 1 + went
#else
       :: begun + 1 == ctas -> counts = 1 + went
#endif
       :: else
       fi;
       begun++
     }
     /* A run is drawn while the one before is under way. */
     do
     :: atomic { next = ctas + drawn; drawn++; all_begun = (begun == ctas) }
        atomic {
          results = results + (mine < runs -> 1 : 0); mine = next; next = 0;
          if
          :: mine < runs
          :: else -> mine = 0; break
          fi
        }
     od;
     if
     :: all_begun
     :: !all_begun && begun == ctas -> all_begun = 1 /* has looked again */
     :: !all_begun -> /* has looked often enough */
#ifdef WAITS_FOR_WHO_HAS_NOT_BEGUN
        all_begun = 1
#elif defined(LEAVES_IN_TWO_STEPS)
        all_begun = (begun == ctas);
        went++
#elif defined(LEAVES_WITHOUT_A_LAST_LOOK)
        went++
#else
        atomic { went++; all_begun = (begun == ctas) }
#endif
     fi;
     if
     :: all_begun ->
        do
        :: atomic { next = counted; counted++ }
           if
           :: next < rows ->
              atomic { results == runs -> finished[next]++; assert(finished[next] == 1) } /* waits */
           :: else -> break
           fi
        od;
        atomic {
          next++;
          if
          :: counts > 1 -> counted = counted + counts - 1; next = counted
          :: else
          fi
        }
        if
#ifdef WORDS_CLEARED_BY_THE_FIRST
        :: next == rows + 1 -> atomic { counted = 0; drawn = 0; went = 0; begun = 0 }
#else
        :: next == rows + ctas -> atomic { counted = 0; drawn = 0; went = 0; begun = 0 }
#endif
        :: else
        fi
     :: else
     fi;
     d_step {
       next = 0; counts = 0; all_begun = 0;
       ended++;
       if
       :: ended == ctas -> check_what_a_launch_leaves(); ended = 0; launch++
       :: else
       fi
     }
  :: starting == LAUNCHES -> break
  od
}

init {
  byte i;
  atomic {
    select(ctas : 1 .. MOST_CTAS);
    select(runs : 1 .. MOST_RUNS);
    select(rows : 0 .. MOST_ROWS);
    select(overlap : 0 .. 1);
#ifdef RESIDENT
    resident = RESIDENT;
#else
    select(resident : 1 .. ctas);
#endif
    for (i : 0 .. resident - 1) { run Place() }
  }
}
