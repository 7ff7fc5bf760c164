"""The schedules that the model is run over, and the bugs that it must find."""
import dataclasses

LAUNCHES = 2  # one after the other in the same workspace
RUN_AHEAD = 5  # items that a dispatcher may have taken before a consumer does: kWorkSlots in the ring, and one in its hand


@dataclasses.dataclass(frozen=True)
class Case:
    kind: str
    claim: str
    tiles: int
    k_tiles: int
    units: int  # CTAs of the launch
    splits: int = 1
    stream_k_tiles: int = 0
    regions: int = 1
    consumers: int = 1  # warpgroups of a CTA that consume: two share each tile, or
    pingpong: bool = False  # take the tiles in turn
    slots: int = 1  # items that the dispatcher may have taken before a consumer does
    room: int = 2  # loads that the ring of stages holds: a tile's operands are one, and the sums that others have left for it one
    overlap: bool = False  # CTAs of the next launch start before the last of this one has ended

    def arguments(self):
        return [str(x) for x in (self.kind, self.claim, self.tiles, self.k_tiles, self.units, self.splits, self.stream_k_tiles, self.regions)]


def split_k(claim, tiles, splits, units, **more):
    return Case("split-k", claim, tiles, splits, units, splits=splits, **more)


def stream_k(claim, tiles, k_tiles, units, **more):
    return Case("stream-k", claim, tiles, k_tiles, units, stream_k_tiles=tiles, **more)


def hybrid(claim, tiles, k_tiles, units, cut, **more):
    return Case("hybrid", claim, tiles, k_tiles, units, stream_k_tiles=cut, **more)


TURNS = {"consumers": 2, "pingpong": True}
SHARED = {"consumers": 2}

CASES = [
    Case("data-parallel", "fixed", 5, 1, 2),
    Case("data-parallel", "ticket", 5, 1, 3),
    Case("data-parallel", "ticket", 2, 1, 3),  # more CTAs than items
    split_k("ticket", 2, 3, 1),
    split_k("ticket", 2, 3, 2, overlap=True),
    split_k("ticket", 2, 2, 3),
    split_k("ticket", 2, 2, 2, slots=RUN_AHEAD, overlap=True),
    split_k("fixed", 1, 3, 3, overlap=True),
    split_k("fixed", 2, 2, 1, **TURNS),
    split_k("fixed", 4, 2, 2, **TURNS),
    split_k("ticket", 2, 2, 2, slots=RUN_AHEAD, **TURNS),
    split_k("ticket", 2, 2, 2, room=1, overlap=True, **TURNS),
    split_k("ticket", 1, 3, 2, **SHARED),
    split_k("ticket", 2, 2, 2, room=1, **SHARED),
    stream_k("fixed", 5, 4, 3, slots=RUN_AHEAD, overlap=True),
    stream_k("fixed", 9, 4, 4),  # the worked example: 2.25 tiles for each
    stream_k("fixed", 1, 4, 4),  # one tile for all
    stream_k("fixed", 2, 6, 4, regions=2),
    stream_k("ticket", 5, 4, 3),
    stream_k("ticket", 1, 3, 3),
    stream_k("fixed", 5, 4, 2, slots=RUN_AHEAD, room=RUN_AHEAD, overlap=True, **TURNS),
    stream_k("fixed", 5, 4, 2, room=1, **TURNS),
    stream_k("ticket", 5, 4, 2, overlap=True, **TURNS),
    stream_k("fixed", 3, 3, 2, **SHARED),
    stream_k("fixed", 5, 4, 3, room=1, **SHARED),
    hybrid("fixed", 7, 4, 3, cut=4),
    hybrid("ticket", 5, 4, 2, cut=3, slots=RUN_AHEAD),
    hybrid("fixed", 5, 4, 2, cut=3, **TURNS),
]
# Ways to deal split-K in fixed turn: those that check_scheduler() permits must be right.
FIXED_SPLIT_K = [split_k("fixed", tiles, splits, units) for tiles in range(1, 5) for splits in range(2, 5) for units in range(1, 4)]


@dataclasses.dataclass(frozen=True)
class Bug:
    name: str  # a #define of pieces.pml, or none and the case itself is the bug
    case: Case
    error: str  # regular expression: what the checker says
    resident: int = 0  # 0: any number
    permitted: bool = True  # by check_scheduler()


STANDS_STILL = "invalid end state"
FLAG_LEFT = r"assertion violated \(flag\[i\]==0\)|assertion violated \(flag\[[^]]*\]==0\)"
WRONG_SUMS = r"assertion violated \(sums\["
FINISHED = r"assertion violated \(*finished\["

BUGS = [
    # An item that waits for a higher number.
    Bug("FIRST_PIECE_COLLECTS", split_k("ticket", 2, 2, 2), STANDS_STILL, resident=1),
    Bug("FIRST_PIECE_COLLECTS", split_k("fixed", 2, 2, 4), STANDS_STILL, resident=2),
    Bug("ITEMS_BACKWARDS", split_k("ticket", 2, 3, 2), STANDS_STILL),
    Bug("ITEMS_BACKWARDS", stream_k("ticket", 5, 4, 3), STANDS_STILL, resident=1),
    # Who takes what.
    Bug("", split_k("fixed", 3, 2, 2), STANDS_STILL, resident=1, permitted=False),
    Bug("", split_k("fixed", 2, 3, 4), STANDS_STILL, resident=1, permitted=False),
    Bug("CTAS_START_IN_REVERSE", stream_k("fixed", 5, 4, 3), STANDS_STILL, resident=1),
    Bug("CTAS_START_IN_REVERSE", split_k("fixed", 2, 2, 4), STANDS_STILL, resident=2),
    # The count.
    Bug("FLAG_RESET_BEFORE_THE_WAIT", split_k("ticket", 2, 2, 2), STANDS_STILL),
    Bug("FLAG_NOT_RESET", stream_k("fixed", 5, 4, 3), FLAG_LEFT),
    Bug("COUNTED_IN_TWO_STEPS", split_k("ticket", 1, 3, 3), STANDS_STILL),
    Bug("COUNT_OVERTAKES_SUMS", split_k("fixed", 1, 3, 3), WRONG_SUMS),
    Bug("WAITS_FOR_ONE_PIECE", split_k("ticket", 1, 3, 3), rf"{WRONG_SUMS}|{FLAG_LEFT}"),
    Bug("DOES_NOT_WAIT", stream_k("fixed", 5, 4, 3), WRONG_SUMS),
    Bug("WAITS_FOR_ITS_OWN_PART_ALONE", split_k("ticket", 1, 3, 2, **SHARED), WRONG_SUMS),
    Bug("WAITS_FOR_ITS_OWN_PART_ALONE", stream_k("fixed", 3, 3, 2, **SHARED), WRONG_SUMS),
    Bug("ONE_FLAG_FOR_BOTH_PARTS", split_k("ticket", 1, 3, 2, **SHARED), rf"{WRONG_SUMS}|{STANDS_STILL}|{FLAG_LEFT}"),
    # What the producer loads.
    Bug("SUMS_BEFORE_OPERANDS", stream_k("fixed", 5, 4, 3), r"assertion violated \(+what=="),
    Bug("SUMS_BEFORE_OPERANDS", split_k("fixed", 4, 2, 2, **TURNS), r"assertion violated \(+what=="),
    # The counter.
    Bug("COUNTER_NOT_RESET", split_k("ticket", 2, 2, 2), r"assertion violated \(counter==0\)"),
    Bug("COUNTER_RESET_BY_THE_FIRST_TO_FIND_NOTHING", split_k("ticket", 2, 2, 2), rf"{FINISHED}|{WRONG_SUMS}|\(counter==0\)"),
    Bug("TICKETS_DRAWN_IN_TWO_STEPS", Case("data-parallel", "ticket", 3, 1, 2), rf"{FINISHED}|{STANDS_STILL}|\(counter==0\)"),
    # Launches.
    Bug("STARTS_BEFORE_THE_PREDECESSOR_HAS_ENDED", split_k("ticket", 2, 2, 2, overlap=True), rf"{FINISHED}|{WRONG_SUMS}|\(counter==0\)|{FLAG_LEFT}"),
    Bug("PRODUCER_DOES_NOT_WAIT_FOR_THE_PREDECESSOR", split_k("fixed", 2, 2, 2, slots=2, room=3, overlap=True),
        rf"{WRONG_SUMS}|{STANDS_STILL}"),
]


@dataclasses.dataclass(frozen=True)
class ModelBug:
    name: str  # a #define of slices.pml or runs.pml
    error: str
    resident: int = 0  # 0: any number


# How many pieces at most, and launches. A launch begins with what an empty workspace has, as the check at its end says; so one is enough
# where two would be too many states.
SLICES = [(3, 2), (4, 1)]
WORD_LEFT = r"assertion violated \(+came==0"
ADDED_TOO_EARLY = r"assertion violated \(sums\["

SLICE_BUGS = [
    ModelBug("WAITS_FOR_EVER", STANDS_STILL, resident=1),
    ModelBug("WAITS_FOR_EVER", STANDS_STILL, resident=2),
    ModelBug("WORD_CLEARED_TOO_EARLY", rf"{WORD_LEFT}|{FINISHED}|{STANDS_STILL}"),
    ModelBug("WORD_NOT_CLEARED", WORD_LEFT),
    ModelBug("ABANDONED_SLICES_NOT_FINISHED", FINISHED),
    ModelBug("ABANDONED_SLICES_READ_LATER", FINISHED),
    ModelBug("ABANDONED_IN_TWO_STEPS", FINISHED),
    ModelBug("GOES_WITHOUT_A_LOOK", FINISHED),
    ModelBug("NOT_COUNTED_WHEN_IT_GIVES_UP", STANDS_STILL),
    ModelBug("COUNT_OVERTAKES_SUMS", ADDED_TOO_EARLY),
]

# Runs of attention: CTAs, runs and rows at most, and launches.
RUNS = [(3, 4, 1, 2), (3, 4, 2, 1)]
WORDS_LEFT = r"assertion violated \(+drawn==0"

RUN_BUGS = [
    ModelBug("WAITS_FOR_WHO_HAS_NOT_BEGUN", STANDS_STILL, resident=1),
    ModelBug("WHO_HAS_LEFT_IS_NOT_COUNTED", WORDS_LEFT),
    ModelBug("EVERYBODY_COUNTS_WHO_HAS_LEFT", WORDS_LEFT),
    ModelBug("LEAVES_IN_TWO_STEPS", WORDS_LEFT),
    ModelBug("LEAVES_WITHOUT_A_LAST_LOOK", WORDS_LEFT),
    ModelBug("WORDS_CLEARED_BY_THE_FIRST", rf"{WORDS_LEFT}|{FINISHED}"),
]
