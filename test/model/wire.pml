/*
 * The connection between the library and its agent, for SPIN: two threads of one process, the socket in both directions, the lane, and
 * the agent's loop. test/scenario/wire-model.test.ts explores it exhaustively.
 *
 * The names are those of provider/module/transport.c, lane.c and addon/core's frame loop. A message is a row of cells: one cell
 * is what a socket takes or gives in one piece. A short message has one cell and fits into the lane; a long one has LONG cells.
 * The socket holds CAPACITY cells in each direction. The agent stops reading while HIGH_WATER cells wait for the socket.
 *
 * What is checked: no ring and no other message gets between the cells of a message; each thread gets its own answer; no thread waits
 * for ever. The model has no deadlines and no naps: what only a timer would end is a deadlock here.
 *
 * There are two variants. The first one has socket and lane, and each thread makes CALLS calls. The second one (-DHELD) has the socket alone and
 * smaller bounds, but a call may have a long message ahead of it, whose answer is for nobody (held Inits), and thread 1 makes two calls.
 *
 * -DSMALL makes the bounds of the first one smaller: it takes seconds instead of half a minute, and not every defect shows in it.
 *
 * Each of these defects must be found:
 * -DLANE_BESIDE_OUTPUT: the agent uses the lane, and rings, while output waits for the socket.
 * -DWAIT_UNSEEN: (with -DCALLS=2) the bell does not change when output has to wait for the socket.
 * -DSLEEP_UNDRAINED: a leader sleeps at the lane although its last read left something in the socket.
 * -DLEAD_WHILE_SENT: (with -DHELD) a leader that is done makes a call the leader that is still being sent.
 * -DSEND_UNREAD: (with -DHELD) a sender whose socket is full reads nothing, even when no other thread reads.
 */
#ifdef HELD
#define LONG 2
#define CAPACITY 1
#define HIGH_WATER 1
#define TURNS 0
#define calls_of(i) ((i == 1) -> 2 : 1)
#else
#ifdef SMALL
#define LONG 2
#define CAPACITY 1
#define HIGH_WATER 1
#define TURNS 1
#else
#define LONG 4
#define CAPACITY 2
#define HIGH_WATER 2
/* How often the agent begins or ends to watch the lane: a loop that only does that for ever would hide a deadlock. */
#define TURNS 2
#endif
#ifndef CALLS
#define CALLS 1
#endif
#define calls_of(i) CALLS
#endif
#define RING 0
#define AHEAD 3 /* what goes ahead of a call */

mtype = { WAITING, LEADING, ANSWERED, IDLE }
mtype = { DEAF, LISTENING, ASLEEP }

/* The socket: cells of { message, which of its cells, the last one? }. Messages are named by their thread, 1 or 2;
 * RING is a ring. */
chan to_agent = [CAPACITY] of { byte, byte, bool };
chan to_library = [CAPACITY] of { byte, byte, bool };

/* The lane: one message in each direction, named as above; 0: none. */
byte asked;
byte answered;
mtype listening = DEAF;
bool watching;
byte bell;

/* The library. `lock` is modelled by atomic blocks. */
byte write_lock;
mtype state[3] = IDLE;
bool sending[3];
byte waiting[2];   /* the calls in the order in which they were linked; 0: none */
bool led;
byte reading;      /* whose message the reader is in the middle of; 0: between two messages */
byte read_cells;

inline link_call(i) {
  if
  :: waiting[0] == 0 -> waiting[0] = i
  :: else -> waiting[1] = i
  fi
}
inline unlink_call(i) {
  if
  :: waiting[0] == i -> waiting[0] = waiting[1]; waiting[1] = 0
  :: else -> assert(waiting[1] == i); waiting[1] = 0
  fi
}
inline lead_if_needed(i) {
  if
  :: !led && state[i] == WAITING -> led = true; state[i] = LEADING
  :: else
  fi
}
#ifdef LEAD_WHILE_SENT
#define may_lead(i) (i != 0)
#else
#define may_lead(i) (i != 0 && !sending[i])
#endif
/* The call that has waited longest, and is not being sent, becomes the leader. */
inline pass_on() {
  led = false;
  if
  :: may_lead(waiting[0]) -> state[waiting[0]] = LEADING; led = true
  :: !may_lead(waiting[0]) && may_lead(waiting[1]) -> state[waiting[1]] = LEADING; led = true
  :: else
  fi
}
/* Gives an answer to its thread. */
inline hand_over(leader, whose) {
  if
  :: whose == AHEAD
  :: else ->
    unlink_call(whose);
    if
    :: whose == leader -> own = true
    :: else -> state[whose] = ANSWERED
    fi
  fi
}
/* Reads one cell from the socket. */
inline receive(leader) {
  atomic {
    to_library ? whose, cell, last;
    if
    :: whose == RING -> assert(reading == 0)
    :: else ->
      if
      :: reading == 0 -> assert(cell == 0); reading = whose; read_cells = 0
      :: else -> assert(reading == whose && cell == read_cells)
      fi;
      read_cells++;
      if
      :: last -> reading = 0; hand_over(leader, whose)
      :: else
      fi
    fi;
    whose = 0; cell = 0; last = false
  }
}
inline fetch(leader) {
  atomic {
    if
    :: answered != 0 -> whose = answered; answered = 0; hand_over(leader, whose); whose = 0
    :: else
    fi
  }
}

proctype Thread(byte me) {
  byte calls = 0;
  byte cells;
  byte message; /* which is being sent: AHEAD, then the thread's own */
  byte length;
  byte sent;
  byte my_bell;
  byte whose;
  byte cell;
  byte rang;
  bool last;
  bool own;
  bool in_lane;
  bool drained = true; /* the last read found the socket's end */

  do
  :: calls == calls_of(me) -> break
  :: else ->
    own = false;
    in_lane = false;
    sent = 0;
    if
    :: cells = 1
    :: cells = LONG
    fi;
    atomic {
      state[me] = WAITING;
      sending[me] = true;
      link_call(me)
    }
    atomic {
      write_lock == 0 -> write_lock = me;
      message = me;
      length = cells;
#ifdef HELD
      if
      :: message = AHEAD; length = LONG
      :: skip
      fi
#endif
    }

    /* send_request */
    atomic {
      if
      :: cells == 1 && watching && asked == 0 && waiting[0] == me && waiting[1] == 0 ->
        in_lane = true;
        sending[me] = false;
        lead_if_needed(me)
      :: else
      fi
    }
    if
    :: in_lane ->
      listening = LISTENING;
      my_bell = bell;
      asked = me;
      atomic {
        if
        :: watching || full(to_agent)
        :: !watching && nfull(to_agent) -> to_agent ! RING, 0, true
        fi
      }
    :: else ->
      do
      :: sent == length && message == me -> break
      :: sent == length && message != me -> atomic { message = me; length = cells; sent = 0 }
      :: sent < length ->
        if
        :: atomic { nfull(to_agent) -> to_agent ! message, sent, (sent + 1 == length); sent++ }
#ifndef SEND_UNREAD
        :: atomic { full(to_agent) && (!led || state[me] == LEADING) -> lead_if_needed(me) }
          listening = DEAF;
          fetch(me);
          assert(!own);
          if
          :: nfull(to_agent)
          :: nempty(to_library) -> receive(me); assert(!own)
          fi
#endif
        fi
      od
    fi;
    write_lock = 0;
    if
    :: in_lane
    :: else -> atomic { sending[me] = false; lead_if_needed(me) }
    fi;

    /* await */
    if
    :: state[me] == ANSWERED
    :: state[me] == LEADING ->
      if
      :: in_lane -> listening = LISTENING
#ifndef HELD
      :: listening = LISTENING /* it spins */
#endif
      :: !in_lane -> listening = DEAF
      fi;
      do
      :: fetch(me);
        if
        :: own -> break
        :: else
        fi;
        if
        :: listening == LISTENING ->
          if
          :: nempty(to_library) -> receive(me)
          :: skip -> /* the end of the spinning: one more look after this */
            if
            :: in_lane -> listening = ASLEEP
            :: else -> listening = DEAF
            fi
          fi
        :: listening == ASLEEP ->
          if
          :: drained -> bell != my_bell
          :: !drained
          fi;
          atomic { rang = bell - my_bell; my_bell = bell }
          if
          :: drained && rang == 1 && answered != 0
          :: !(drained && rang == 1 && answered != 0) ->
            if
            :: nempty(to_library) -> receive(me)
            :: empty(to_library)
            fi
#ifndef SLEEP_UNDRAINED
            ; drained = (len(to_library) == 0)
#endif
          fi
        :: listening == DEAF -> nempty(to_library); receive(me)
        fi;
        if
        :: own -> break
        :: else
        fi
      od;
      atomic {
        pass_on();
        if
        :: !led -> listening = DEAF
        :: else
        fi
      }
    fi;
    atomic { state[me] = IDLE; calls++; rang = 0; my_bell = 0; cells = 0; message = 0; length = 0; sent = 0; own = false; in_lane = false; drained = true }
  od
}

/* What waits in the agent for the socket. */
chan out = [2 * LONG + 2] of { byte, byte, bool };

inline write(whose_answer, which, is_last) {
  atomic {
    if
    :: empty(out) && nfull(to_library) -> to_library ! whose_answer, which, is_last; bell++
    :: nempty(out) || full(to_library) -> out ! whose_answer, which, is_last
#ifndef WAIT_UNSEEN
      ; bell++
#endif
    fi
  }
}
inline transmit(whose_answer) {
  if
  :: length = 1
  :: length = LONG
  fi;
#ifndef LANE_BESIDE_OUTPUT
  lane_is_open = (len(out) == 0);
#endif
  if
  :: length == 1 && listening != DEAF && answered == 0 && lane_is_open ->
    /* The library may stop listening here: Fits was asked, Put was not done. */
    answered = whose_answer;
    bell++;
    if
    :: listening == DEAF ->
#ifdef LANE_BESIDE_OUTPUT
      atomic {
        if
        :: nfull(to_library) -> to_library ! RING, 0, true
        :: full(to_library)
        fi
      }
#else
      write(RING, 0, true)
#endif
    :: else
    fi
  :: else ->
    which = 0;
    do
    :: which == length -> break
    :: else -> write(whose_answer, which, (which + 1 == length)); which++
    od
  fi;
  which = 0;
  length = 0
}
inline serve_lane() {
  if
  :: len(out) < HIGH_WATER && asked != 0 -> atomic { taken = asked; asked = 0 }
    transmit(taken);
    taken = 0
  :: len(out) >= HIGH_WATER || asked == 0
  fi
}

proctype Agent() {
  bool lane_is_open = true;
  byte turns;
  byte taken;
  byte whose;
  byte which;
  byte length;
  byte cell;
  bool last;

end:
  do
  /* From the socket. Whatever comes, the lane is looked at first. */
  :: len(out) < HIGH_WATER && nempty(to_agent) ->
    serve_lane();
    if
    :: len(out) >= HIGH_WATER
    :: len(out) < HIGH_WATER ->
      to_agent ? whose, cell, last;
      if
      :: whose == RING -> serve_lane()
      :: whose != RING && last -> transmit(whose)
      :: else
      fi;
      whose = 0; cell = 0; last = false
    fi
  :: watching && len(out) < HIGH_WATER && asked != 0 -> serve_lane()
  /* The socket has room again. A connection that was paused is looked at in the lane, too. */
  :: nempty(out) && nfull(to_library) ->
    atomic { out ? whose, cell, last; to_library ! whose, cell, last; whose = 0; cell = 0; last = false }
    bell++;
    serve_lane()
#if TURNS > 0
  :: !watching && turns < TURNS -> watching = true; turns++
  /* Said first, looked after that. */
  :: watching && turns < TURNS -> watching = false; turns++; serve_lane()
#endif
  od
}

init {
  atomic {
    run Thread(1);
    run Thread(2);
    run Agent()
  }
}
