/*
 * The core of the protocol: promise, fence, scan, adoption, repair, own no-op, commit, lanes re-opened in the same
 * ballot, writes of unknown outcome, a ring that wraps. Rules are cited by number (S1 ..., F1 ...) as in
 * docs/protocol.md; docs/testing.md says what the model leaves out. `run` beside this file checks it.
 *
 * Three replicas. An entry takes one place of the ring, so a position is an index. An entry is named by (ballot,
 * index): in place of the chain of checksums, the model knows from which entry a ballot's leader appended on, and so
 * what stands before each entry. Control messages may come at any time, again and again, or never; who may campaign
 * does so at any time. Landing, completion, break and report are steps of their own.
 */

#ifndef BALLOTS
#define BALLOTS 2       /* the first is led by replica 0 from the start, all lanes open */
#endif
#ifndef ENTRIES
#define ENTRIES 3       /* highest index */
#endif
#ifndef RING
#define RING 2          /* entries that a ring holds */
#endif
#ifndef OPENS
#define OPENS 1         /* lanes that a leader asks of a follower in one ballot */
#endif
#ifndef KEPT
#define KEPT 0          /* applied entries that are kept (S6) */
#endif
#ifndef RESERVE
#define RESERVE 0       /* places that commands leave to no-ops */
#endif

#define REPLICAS 3
#define ENTRY(ballot, index) ((ballot) * 8 + (index))
#define INDEX(entry) ((entry) & 7)
#define BALLOT(entry) ((entry) >> 3)

/* Roles. */
#define FOLLOWER 0
#define STARTED 1       /* has promised itself a ballot and asks others; its own fence is to come */
#define PREPARING 2
#define LEADER 3
#define IDLE 4          /* could not adopt */

/* What a leader or candidate knows of its lane to a peer. */
#define NONE 0
#define ASKED 1         /* a prepare is out */
#define SCANNED 2       /* only where the scan is planted before the fence */
#define ANSWERED 3      /* the peer has promised; that it has may not be known yet */
#define OPEN 4
#define ENDED 5         /* detached, or broken too often */

typedef Replica {
    unsigned promised : 3;
    unsigned role : 3;
    unsigned commit : 3;
    unsigned low : 3;          /* the low mark: entries above it are in the ring (S6) */
    unsigned freed : 3;        /* what it has reported as consumed */
    unsigned tail : 3;         /* leader: index of its last entry */
    unsigned in_ballot : 3;    /* of the lane into its ring; 0: none */
    unsigned in_open : 2;      /* that lane's open number */
    unsigned in_end : 3;       /* not 0: its writer has ended it, and what was posted up to here may yet land */
#ifdef SLOW_APPLY
    unsigned applied : 3;
#endif
    byte ring[RING]
}

typedef Lane {
    unsigned state : 3;
    unsigned open_number : 2;
    unsigned landed : 3;       /* in the peer's ring; first the commit that it answered */
    unsigned known : 3;        /* of it, what the writer has heard of */
    unsigned space : 3;        /* what the peer has reported as consumed */
    unsigned last : 6          /* entry: the end of the log that the peer answered */
}

Replica replica[REPLICAS];
Lane lane[REPLICAS * REPLICAS];
byte owner[BALLOTS + 1];       /* who has campaigned in a ballot, plus 1 */
byte base[BALLOTS + 1];        /* the entry behind which the ballot's leader appends, plus 1; 0: it has had no leader */

/* The checker's: what has been committed. */
byte chosen[ENTRIES + 1];      /* ballot of the entry at this index; 0: none yet */
byte chosen_in[ENTRIES + 1];   /* the lowest ballot whose leader has committed it */
#ifdef SETTLE
bool settled;                  /* faults and campaigns have ended */
#endif

hidden byte i, at, from, want, best, source, found, differs;

#define AT(c, p) ((c) * REPLICAS + (p))
#define TO(c, p) lane[AT(c, p)]
#define SLOT(r, index) replica[r].ring[(index) % RING]
#define BASE(ballot) (base[ballot] - 1)
#define BEFORE(entry) (INDEX(entry) == INDEX(BASE(BALLOT(entry))) + 1 -> BASE(BALLOT(entry)) : (entry) - 1)
#define CHOSEN(index) ENTRY(chosen[index], index)
#define SMALLER(a, b) ((a) < (b) -> (a) : (b))
#define RAISE(what, to) if :: what < (to) -> what = (to) :: else fi

#ifdef SLOW_APPLY
#define APPLIED(r) replica[r].applied
#else
#define APPLIED(r) replica[r].commit
#endif
#define CONSUMED(r) (APPLIED(r) > KEPT -> APPLIED(r) - KEPT : 0)

/* c's lane to p stands at both ends: what is posted lands, is read again from c's ring, and completes (F1, F9). */
#ifdef BUG_NO_FENCE
#define STANDS(c, p) (TO(c, p).state == OPEN && replica[p].in_ballot != 0)
#else
#define STANDS(c, p) (TO(c, p).state == OPEN && replica[p].in_ballot == replica[c].promised && \
                      replica[p].in_open == TO(c, p).open_number)
#endif
/* How far c may write on it: what it has, below the space that p has reported free (S11). */
#ifdef BUG_SPACE_IGNORED
#define TOP(c, p) replica[c].tail
#else
#define TOP(c, p) SMALLER(replica[c].tail, TO(c, p).space + RING)
#endif
/* c has ended a lane to p that p has not fenced: what was under way lands late, or never (F4). */
#define LINGERS(c, p) (replica[p].in_end != 0 && owner[replica[p].in_ballot] == (c) + 1)

#include "log.pml"
#include "election.pml"
#include "replication.pml"

/* With SETTLE: faults and campaigns may end at any time, and then, once nothing more happens, the newest ballot has
 * done what it can. */
inline check_settled() {
    best = BALLOTS;
    do
    :: owner[best] != 0 -> break
    :: else -> best--
    od;
    at = owner[best] - 1;
    assert(replica[at].role == LEADER || replica[at].role == IDLE);    /* end: a campaign ends */
    i = 0;
    do
    :: i == REPLICAS -> break
    :: else ->
        if
        :: i != at && replica[at].role == LEADER && TO(at, i).state == OPEN ->
            assert(replica[at].tail == ENTRIES || replica[at].tail > INDEX(BASE(best)));  /* end: the no-op is there */
            assert(TO(at, i).known == replica[at].tail);    /* end: all has landed */
            if
            :: replica[at].tail > INDEX(BASE(best)) ->
                assert(replica[at].commit == replica[at].tail);    /* end: all is committed */
                assert(replica[i].commit == replica[at].tail)    /* end: and known to be */
            :: else
            fi
        :: else
        fi;
        i++
    od
}

#ifdef SETTLE
#define DISTURBED (!settled)
#else
#define DISTURBED true
#endif
#ifdef WHOLE_LANES
#define FAULTS false
#else
#define FAULTS DISTURBED
#endif
/* Replicas 1 and 2 are alike until one of them campaigns: let that be 1. */
#define HAS_CAMPAIGNED(r) (owner[2] == (r) + 1 || owner[SMALLER(3, BALLOTS)] == (r) + 1 || \
                           owner[SMALLER(4, BALLOTS)] == (r) + 1)
#define MAY_CAMPAIGN(r, ballot) (DISTURBED && ballot <= BALLOTS && owner[SMALLER(ballot, BALLOTS)] == 0 && \
                                 replica[r].promised < ballot && (r < 2 || HAS_CAMPAIGNED(1)))

#define WITH_PEER(p, q) \
    :: d_step { MAY_PROMISE(me, p) -> promise(me, p, q) } \
    :: d_step { replica[me].role == PREPARING && TO(me, p).state == ANSWERED -> decide(me, p, q, true, false) } \
    :: d_step { replica[me].role == LEADER && TO(me, p).state == ANSWERED -> connect(me, p) } \
    :: d_step { FAULTS && TO(me, p).state == OPEN -> break_lane(me, p) } \
    :: d_step { TO(me, p).state == OPEN && TO(me, p).known < TO(me, p).landed -> complete(me, p) } \
    :: d_step { LANDS(me, p) -> land(me, p) } \
    :: d_step { FAULTS && LANDS(me, p) -> tear(me, p) }

proctype protocol(byte me; byte x; byte y) {
    do
    WITH_PEER(x, y)
    WITH_PEER(y, x)
    :: d_step { replica[me].role == PREPARING && TO(me, x).state == ANSWERED && TO(me, y).state == ANSWERED ->
                decide(me, x, y, true, true) }
    :: d_step { MAY_CAMPAIGN(me, 2) -> campaign(me, x, y, 2) }
#if BALLOTS > 2
    :: d_step { MAY_CAMPAIGN(me, 3) -> campaign(me, x, y, 3) }
    :: d_step { MAY_PROMISE_LATE(me, x, 2) -> promise_late(me, x, y, 2) }
    :: d_step { MAY_PROMISE_LATE(me, y, 2) -> promise_late(me, y, x, 2) }
#endif
#if BALLOTS > 3
    :: d_step { MAY_CAMPAIGN(me, 4) -> campaign(me, x, y, 4) }
    :: d_step { MAY_PROMISE_LATE(me, x, 3) -> promise_late(me, x, y, 3) }
    :: d_step { MAY_PROMISE_LATE(me, y, 3) -> promise_late(me, y, x, 3) }
#endif
    :: d_step { replica[me].role == STARTED -> fence(me); replica[me].role = PREPARING }
    :: d_step { MAY_APPEND(me, x, y) -> append(me) }
    :: d_step { MAY_LEARN(me) -> learn(me) }
    :: d_step { MAY_REPORT(me) -> report(me) }
#ifdef SLOW_APPLY
    :: d_step { replica[me].applied < replica[me].commit -> replica[me].applied = replica[me].commit }
#endif
#ifdef BUG_SCAN_BEFORE_FENCE
    :: d_step { TO(x, me).state == SCANNED && replica[x].promised == replica[me].promised -> answer(me, x) }
    :: d_step { TO(y, me).state == SCANNED && replica[y].promised == replica[me].promised -> answer(me, y) }
#endif
#ifdef SETTLE
    :: d_step { me == 0 && !settled -> settled = true }
    :: d_step { timeout -> check_settled(); i = 0 }; break
#else
    :: timeout -> break
#endif
    od
}

init {
    d_step {
        owner[1] = 1;
        base[1] = 1;
        replica[0].role = LEADER;
        i = 0;
        do
        :: i == REPLICAS -> break
        :: else ->
            replica[i].promised = 1;
            if
            :: i != 0 ->
                replica[i].in_ballot = 1;
                replica[i].in_open = 1;
                TO(0, i).state = OPEN;
                TO(0, i).open_number = 1
            :: else
            fi;
            i++
        od
    }
    atomic {
        run protocol(0, 1, 2);
        run protocol(1, 0, 2);
        run protocol(2, 0, 1)
    }
}
