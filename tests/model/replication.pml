/* A leader's lanes, log and commit; what a follower learns and reports (S6, S9, S11). */

/* S6: repair starts at the follower's commit, and needs all behind it to be in the own ring. */
inline connect(c, p) {
    assert(TO(c, p).landed <= replica[c].tail);    /* kept: a follower has committed nothing that its leader lacks */
    TO(c, p).last = 0;
#ifdef BUG_TAIL_MINUS_RING
    if
    :: TO(c, p).landed + RING < replica[c].tail ->
#else
    if
    :: TO(c, p).landed < replica[c].low ->
#endif
        printf("r%d no longer holds what r%d lacks\n", c + 1, p + 1);
        TO(c, p).state = ENDED;
        TO(c, p).landed = 0;
        TO(c, p).space = 0
    :: else ->
        printf("r%d has a lane to r%d from %d on\n", c + 1, p + 1, TO(c, p).landed);
        TO(c, p).state = OPEN;
#ifdef BUG_UNKNOWN_IS_LANDED
        if
        :: TO(c, p).known > TO(c, p).landed -> TO(c, p).landed = TO(c, p).known
        :: else
        fi;
#endif
        TO(c, p).known = TO(c, p).landed
    fi
}

/* What had been acknowledged counts no more (S6); another lane is asked for with a higher open number (S1). */
inline break_lane(c, p) {
    printf("the lane of r%d to r%d breaks\n", c + 1, p + 1);
    i = TO(c, p).open_number;
    at = TOP(c, p);
    end_lane(c, p);
    if
    :: i < OPENS ->
        TO(c, p).open_number = i + 1;
#ifdef BUG_UNKNOWN_IS_LANDED
        TO(c, p).known = at;
#endif
        TO(c, p).state = ASKED
    :: else -> TO(c, p).state = ENDED
    fi
}

#define ROOM(c) ((replica[c].tail > INDEX(BASE(replica[c].promised)) -> RING - RESERVE : RING))
/* S11: not over what an unfinished write reads. */
#ifdef BUG_UNFINISHED_OVERWRITTEN
#define IN_THE_WAY(c, p) false
#else
#define IN_THE_WAY(c, p) (TO(c, p).state == OPEN && replica[c].tail >= TO(c, p).known + RING)
#endif
/* S6: the first one is the no-op, once a majority holds what was adopted. */
#define HOLDS_ADOPTED(c, p) (TO(c, p).state == OPEN && TO(c, p).known == replica[c].tail)
#define MAY_APPEND(c, p, q) (replica[c].role == LEADER && replica[c].tail < ENTRIES && \
                             replica[c].tail < CONSUMED(c) + ROOM(c) && \
                             (replica[c].tail > INDEX(BASE(replica[c].promised)) || \
                              HOLDS_ADOPTED(c, p) || HOLDS_ADOPTED(c, q)) && \
                             !IN_THE_WAY(c, p) && !IN_THE_WAY(c, q))
inline append(c) {
    i = replica[c].tail + 1;
    printf("r%d appends %d\n", c + 1, i);
    if :: i > RING -> RAISE(replica[c].low, i - RING) :: else fi;
    put(c, i, ENTRY(replica[c].promised, i));
    replica[c].tail = i
}

#define LANDS(c, p) (STANDS(c, p) && TO(c, p).landed < TOP(c, p) || LINGERS(c, p))
inline find_next(c, p) {
    i = TO(c, p).landed + 1;
#ifdef BUG_NO_FENCE
    log_of(replica[c].promised, i)
#else
    log_of(replica[p].in_ballot, i)
#endif
}

inline land(c, p) {
    find_next(c, p);
    printf("entry %d of ballot %d lands on r%d\n", i, BALLOT(want), p + 1);
    if
    :: STANDS(c, p) -> assert(SLOT(c, i) == want)  /* ring: a write sends the entry that was posted */
    :: else
    fi;
    put(p, i, want);
    TO(c, p).landed = i;
    if
    :: replica[p].in_end == i ->
        replica[p].in_end = 0;
        TO(c, p).landed = 0
    :: else
    fi
}

/* A part of it lands: what was there is gone, and nothing verifies. */
inline tear(c, p) {
    find_next(c, p);
    if
    :: SLOT(p, i) != want ->
        printf("a part of entry %d of ballot %d lands on r%d\n", i, BALLOT(want), p + 1);
        put(p, i, 0)
    :: else
    fi
}

/* The completions of all that has landed. S6: what a majority holds is committed, if the own no-op is among it. */
inline complete(c, p) {
    TO(c, p).known = TO(c, p).landed;
    at = TO(c, p).known;
    printf("r%d hears that %d has landed on r%d\n", c + 1, at, p + 1);
    if
#ifdef BUG_OLD_BALLOT_COUNTS
    :: at > replica[c].commit ->
#else
    :: at > replica[c].commit && at > INDEX(BASE(replica[c].promised)) ->
#endif
        choose(c, at)
    :: else
    fi
}

inline choose(c, index) {
    printf("r%d commits up to %d\n", c + 1, index);
    i = replica[c].commit + 1;
    do
    :: i > index -> break
    :: else ->
        log_of(replica[c].promised, i);
        found = want;
        if
        :: chosen[i] == 0 ->
            chosen[i] = BALLOT(found);
            chosen_in[i] = replica[c].promised
        :: else ->
            assert(CHOSEN(i) == found);            /* agreement: never two entries at one index */
            if :: replica[c].promised < chosen_in[i] -> chosen_in[i] = replica[c].promised :: else fi
        fi;
        best = replica[c].promised + 1;
        do
        :: best > BALLOTS -> break
        :: else ->
            if
            :: base[best] != 0 ->
                log_of(best, i);
                assert(i <= INDEX(BASE(best)) && want == found)    /* kept: by those who lead already, too */
            :: else
            fi;
            best++
        od;
        i++
    od;
    replica[c].commit = index
}

/* S9: who has heard that an index is committed acts on it where its own chain has that entry. */
#ifdef BUG_CERTIFICATE_UNCHECKED
#define CERTIFIED(r, index) (chosen[index] != 0)
#else
#define CERTIFIED(r, index) (chosen[index] != 0 && SLOT(r, index) == CHOSEN(index))
#endif
#define MAY_LEARN(r) (replica[r].commit < ENTRIES && CERTIFIED(r, replica[r].commit + 1) && \
                      (replica[r].role == LEADER && replica[r].commit < replica[r].tail || \
                       replica[r].role == FOLLOWER && replica[r].in_ballot != 0))
inline learn(r) {
    i = replica[r].commit;
    scan(r);
    if
    :: INDEX(at) > i ->
        printf("r%d learns that %d is committed\n", r + 1, i + 1);
        assert(SLOT(r, i + 1) == CHOSEN(i + 1));   /* agreement: at a follower */
        replica[r].commit = i + 1
    :: else
    fi
}

/* S10: it counts about the lane that stands. It can be lost, and is repeated. */
#define WRITER(r) (owner[replica[r].in_ballot] - 1)
#define UNHEARD(r) (STANDS(WRITER(r), r) && TO(WRITER(r), r).space < replica[r].freed)
#define MAY_REPORT(r) (replica[r].role == FOLLOWER && replica[r].in_ballot != 0 && \
                       (replica[r].freed < CONSUMED(r) || UNHEARD(r)))
inline report(r) {
    free_consumed(r);
    if
    :: STANDS(WRITER(r), r) -> TO(WRITER(r), r).space = replica[r].freed
    :: else
    fi
}
