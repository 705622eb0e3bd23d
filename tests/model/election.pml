/* Campaign, promise, adoption (S1 to S6). */

inline end_lane(c, p) {
    if
    :: STANDS(c, p) && TOP(c, p) > TO(c, p).landed -> replica[p].in_end = TOP(c, p)
    :: else ->
        if
        :: LINGERS(c, p)
        :: else -> TO(c, p).landed = 0
        fi
    fi;
    TO(c, p).state = NONE;
    TO(c, p).open_number = 0;
    TO(c, p).known = 0;
    TO(c, p).space = 0;
    TO(c, p).last = 0
}

inline stop_leading(r, p, q) {
    if
    :: replica[r].role == LEADER && replica[r].tail > RING -> RAISE(replica[r].low, replica[r].tail - RING)
    :: else
    fi;
    end_lane(r, p);
    end_lane(r, q);
    replica[r].tail = 0
}

/* F3: nothing of the lane lands any more. The low mark is raised to what its writer may have overwritten (S6). */
inline fence(r) {
    if
    :: replica[r].in_end != 0 ->
        TO(owner[replica[r].in_ballot] - 1, r).landed = 0;
        replica[r].in_end = 0
    :: else
    fi;
    replica[r].in_ballot = 0;
    replica[r].in_open = 0;
    RAISE(replica[r].low, replica[r].freed)
}

/* The candidate's side of S2 is in two steps: others may promise before its own fence. */
inline campaign(r, p, q, ballot) {
    printf("r%d campaigns in ballot %d\n", r + 1, ballot);
    stop_leading(r, p, q);
    owner[ballot] = r + 1;
    replica[r].promised = ballot;
    replica[r].role = STARTED;
    TO(r, p).state = ASKED;
    TO(r, p).open_number = 1;
    TO(r, q).state = ASKED;
    TO(r, q).open_number = 1
}

/* S1: a higher ballot, or the same one with a higher open number. */
#define MAY_PROMISE(r, c) (TO(c, r).state == ASKED && \
                           (replica[c].promised > replica[r].promised || \
                            replica[c].promised == replica[r].promised && TO(c, r).open_number > replica[r].in_open))

inline note_scan(r, c) {
    scan(r);
    TO(c, r).last = at
}

/* S2: r promises c's ballot; the third replica is q. Nobody sees anything of r between these, so they are one step. */
inline promise(r, c, q) {
    stop_leading(r, c, q);
    replica[r].role = FOLLOWER;
    replica[r].promised = replica[c].promised;
#ifdef BUG_SCAN_BEFORE_FENCE
    TO(c, r).state = SCANNED;
    note_scan(r, c)
#else
    answer(r, c)
#endif
}

/* F7: a prepare comes whose sender is no longer in that ballot. Nobody will write on the lane, nor take the answer. */
#define MAY_PROMISE_LATE(r, c, ballot) (ballot <= BALLOTS && owner[SMALLER(ballot, BALLOTS)] == (c) + 1 && \
                                        replica[c].promised != ballot && replica[r].promised < ballot)
inline promise_late(r, p, q, ballot) {
    printf("r%d promises ballot %d, which is abandoned\n", r + 1, ballot);
    stop_leading(r, p, q);
    replica[r].role = FOLLOWER;
    replica[r].promised = ballot;
    fence(r);
    free_consumed(r);
    replica[r].in_ballot = ballot;
    replica[r].in_open = 1
}

/* What is answered or reported as consumed may be overwritten from then on (S6). */
inline free_consumed(r) {
    RAISE(replica[r].freed, CONSUMED(r));
    RAISE(replica[r].low, replica[r].freed)
}

inline answer(r, c) {
    fence(r);
#ifndef BUG_SCAN_BEFORE_FENCE
    note_scan(r, c);
#endif
    TO(c, r).state = ANSWERED;
    TO(c, r).landed = replica[r].commit;
#ifdef BUG_REPAIR_FROM_END
    TO(c, r).landed = INDEX(TO(c, r).last);
#endif
    TO(c, r).space = CONSUMED(r);
    free_consumed(r);
    replica[r].in_ballot = replica[c].promised;
    replica[r].in_open = TO(c, r).open_number;
    printf("r%d promises ballot %d to r%d, open %d: its log ends in %d at %d, committed up to %d\n", r + 1,
           replica[c].promised, c + 1, TO(c, r).open_number, BALLOT(TO(c, r).last), INDEX(TO(c, r).last),
           replica[r].commit)
}

/* S4: the higher (last ballot, last index). */
#ifdef BUG_INDEX_FIRST
#define RANK(entry) ENTRY(INDEX(entry), BALLOT(entry))
#else
#define RANK(entry) (entry)
#endif
inline consider(c, p) {
    if
    :: RANK(TO(c, p).last) > RANK(best) -> best = TO(c, p).last; source = p
    :: else
    fi
}

/* A majority is two of three: the own promise and p's, q's or both. */
inline decide(c, p, q, with_p, with_q) {
    scan(c);
    best = at;
    source = c;
    if :: with_p -> consider(c, p) :: else fi;
    if :: with_q -> consider(c, q) :: else fi;
    if
    :: source == c -> lead(c)
    :: else -> adopt(c, p, q)
    fi
}

/* S4: reads from the source's ring, verifies, and only then changes the own ring, from the first difference on. */
inline adopt(c, p, q) {
    at = best;
    do
    :: INDEX(at) > replica[c].commit && SLOT(source, INDEX(at)) == at -> at = BEFORE(at)
    :: else -> break
    od;
    if
    :: at == CHOSEN(replica[c].commit) ->
        install(c);
        if
        :: i > INDEX(best) -> lead(c)
        :: else -> replica[c].role = IDLE
        fi
    :: else -> replica[c].role = IDLE
    fi;
    if
    :: replica[c].role == IDLE ->
        printf("r%d cannot adopt\n", c + 1);
        end_lane(c, p);
        end_lane(c, q)
    :: else
    fi
}

/* As far as applied entries make room; what the source knew to be committed is applied on the way. */
inline install(c) {
    differs = 0;
    i = replica[c].commit + 1;
    do
    :: i > INDEX(best) -> break
    :: else ->
        found = SLOT(source, i);
        if :: SLOT(c, i) != found -> differs = 1 :: else fi;
        if
        :: i <= TO(c, source).landed + 1 -> RAISE(replica[c].commit, i - 1)
        :: else
        fi;
        if
        :: differs == 0
        :: differs == 1 && i <= APPLIED(c) + RING ->
            put(c, i, found);
            if :: i > RING -> RAISE(replica[c].low, i - RING) :: else fi
        :: else -> break
        fi;
        i++
    od
}

inline lead(c) {
    at = replica[c].promised;
    printf("r%d leads in ballot %d, its log ends in %d at %d\n", c + 1, at, BALLOT(best), INDEX(best));
    assert(base[at] == 0);                         /* one leader: a ballot is led once */
    base[at] = best + 1;
    replica[c].role = LEADER;
    replica[c].tail = INDEX(best);
    i = 1;
    do
    :: i > ENTRIES -> break
    :: else ->
        if
        :: chosen[i] != 0 && chosen_in[i] < at ->
            log_of(at, i);
            assert(i <= INDEX(best) && want == CHOSEN(i))      /* kept: what is committed, by every later leader */
        :: else
        fi;
        i++
    od
}
