/* The log: which entry stands where, scan, changes of a ring. */

/* The entry at an index of the log that the leader of a ballot has, into `want`. */
inline log_of(ballot, index) {
    from = ballot;
    do
    :: from != 0 && index <= INDEX(BASE(from)) -> from = BALLOT(BASE(from))
    :: else -> break
    od;
    want = ENTRY(from, index)
}

/* S2: from the commit to the last entry that chains, whatever its ballot, into `at`. */
inline scan(r) {
    at = CHOSEN(replica[r].commit);
    do
    :: INDEX(at) == ENTRIES -> break
    :: else ->
        found = SLOT(r, INDEX(at) + 1);
        if
        :: found != 0 && INDEX(found) == INDEX(at) + 1 && BEFORE(found) == at -> at = found
        :: else -> break
        fi
    od
}

/* Changes a place of a ring; `entry` 0 is a part of one. */
inline put(r, index, entry) {
    if
    :: SLOT(r, index) != entry ->
        assert(index > replica[r].commit);         /* ring: a committed entry is not overwritten by another */
        assert(index <= APPLIED(r) + RING);        /* ring: nor is one of the lap before that is not applied */
        SLOT(r, index) = entry
    :: else
    fi
}
