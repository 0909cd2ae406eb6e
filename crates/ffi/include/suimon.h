/* Suimon in a process that works on requests itself; docs/embedding-c.md shows a way in.
 * Written from crates/ffi by `cargo xtask docs`; do not edit.
 *
 * Functions return SUIMON_OK (0), another result (above 0) or a fault (below 0). Bytes are given with their
 * length and read during the call alone; NULL is allowed where the length is 0. A buffer may be uninitialised,
 * is not kept, and shares no bytes with what is given beside it. Any thread may call any function, several at a time. Nothing here throws or longjmps.
 */

#ifndef SUIMON_H
#define SUIMON_H

#include <stddef.h>
#include <stdint.h>

/*
 Done; of a request: it is let in.
 */
#define SUIMON_OK 0

/*
 Not decided yet.
 */
#define SUIMON_WAITS 1

/*
 Not let in: the answer is in the buffer.
 */
#define SUIMON_ANSWERED 2

/*
 There is nothing to tell, within the time or at all.
 */
#define SUIMON_NOTHING 3

/*
 An argument makes no sense; the buffer says which, as text.
 */
#define SUIMON_INVALID -1

/*
 There is no such request: it has ended.
 */
#define SUIMON_UNKNOWN -2

/*
 The buffer is too small; its `length` says what is needed. Nothing is lost: ask again.
 */
#define SUIMON_TOO_SMALL -3

/*
 A fault of ours, caught here.
 */
#define SUIMON_PANICKED -4

/*
 The server is closed.
 */
#define SUIMON_CLOSED -5

/*
 An event: suimon_gate_apply does what it says. The buffer has it.
 */
#define SUIMON_EVENT 1

/*
 A mark: what the gate had decided and answered by then.
 */
#define SUIMON_MARK 2

/*
 The end of the file; the buffer says why it ends, as text.
 */
#define SUIMON_END 3

/*
 Send this request to the application now; it has a slot until suimon_gate_end.
 */
#define SUIMON_START 1

/*
 Answer this request with a refusal. The gate has forgotten it.
 */
#define SUIMON_REFUSE 2

/*
 Answer this request with its position in line. The gate has forgotten it.
 */
#define SUIMON_WAIT 3

/*
 This request, which was suspended, has its slot again.
 */
#define SUIMON_RESUMED 4

/*
 Show this decision.
 */
#define SUIMON_DECIDED 5

/*
 A number that there is none of.
 */
#define SUIMON_NONE 4294967295

/*
 A route: a limit is found and enforced.
 */
#define SUIMON_ENFORCE 0

/*
 A route: it is measured, and nobody waits.
 */
#define SUIMON_OBSERVE -1

/*
 A route: it is only counted.
 */
#define SUIMON_OFF -2

/*
 A request of no session: it only passes the gate of its route.
 */
#define SUIMON_SESSIONLESS 0

/*
 A request that would begin a session of its kind.
 */
#define SUIMON_NEWCOMER 1

/*
 The same, which gets no position in line.
 */
#define SUIMON_WITHOUT_LINE 2

/*
 A request of a session that was admitted.
 */
#define SUIMON_MEMBER 3

/*
 Of a member: its session is proved, and known whatever the gate knows.
 */
#define SUIMON_LEASED 1

/*
 Of a member: once completed, it ends its session.
 */
#define SUIMON_ENDS 2

/*
 The application answered, and the client was there to receive it.
 */
#define SUIMON_COMPLETED 0

/*
 It answered that it does not do what was asked (4xx).
 */
#define SUIMON_DECLINED 1

/*
 It did not answer, or with an error of its own.
 */
#define SUIMON_FAILED 2

/*
 The client had gone before the answer was ready.
 */
#define SUIMON_ABANDONED 3

/*
 A gate. Any thread may use it; a lock inside lets in one at a time.
 */
typedef struct suimon_gate suimon_gate;

/*
 One file of a recording being read. Any thread may use it; a lock inside lets in one at a time.
 */
typedef struct suimon_recording suimon_recording;

/*
 A gateway in this process. Any thread may use it, several at a time.
 */
typedef struct suimon_server suimon_server;

/*
 Where bytes are written. `length` is what was or would have been written.
 */
typedef struct {
  /*
   The room; nothing is read from it.
   */
  uint8_t *data;
  /*
   Its bytes.
   */
  size_t capacity;
  /*
   Bytes that were written, or are needed.
   */
  size_t length;
} suimon_buffer;

/*
 A request that arrives at a gate.
 */
typedef struct {
  /*
   Its route, as suimon_gate_route has given it.
   */
  uint32_t route;
  /*
   SUIMON_SESSIONLESS, SUIMON_NEWCOMER, SUIMON_WITHOUT_LINE or SUIMON_MEMBER.
   */
  uint32_t membership;
  /*
   The kind of its session, as suimon_gate_kind has given it; unless it is of none.
   */
  uint32_t kind;
  /*
   Of a member: SUIMON_LEASED and SUIMON_ENDS, added.
   */
  uint32_t flags;
  /*
   Of a member: its session.
   */
  uint64_t session;
} suimon_arrival;

/*
 What should happen. Which fields say something depends on `what`; the others are 0. Times are nanoseconds.
 */
typedef struct {
  /*
   SUIMON_START, SUIMON_REFUSE, SUIMON_WAIT, SUIMON_RESUMED or SUIMON_DECIDED.
   */
  uint32_t what;
  /*
   Of a refusal or a decision: why; suimon_reason has it as text.
   */
  uint32_t reason;
  /*
   All but decisions: the request.
   */
  uint64_t request;
  /*
   Of a start: the session it belongs to from now on; of a wait: the one that has begun for it. Only where
   `kind` is not SUIMON_NONE, or `has_session` not 0.
   */
  uint64_t session;
  /*
   Of a start: the kind of its session, or SUIMON_NONE; of a wait: the kind it waits to begin.
   */
  uint32_t kind;
  /*
   Whether `session` is one.
   */
  uint32_t has_session;
  /*
   Of a start, whether the answer should carry a lease: 0 no, 1 if nothing else identifies the visitor, 2 yes.
   */
  uint32_t lease;
  /*
   Of a start: the limit of its route, or SUIMON_NONE.
   */
  uint32_t limit;
  /*
   Of a start: requests of its route in the application; of a refusal: those who wait to begin a session; of a
   wait: people ahead.
   */
  uint64_t count;
  /*
   Of a start: how long it waited in all, ...
   */
  uint64_t waited;
  /*
   ... and before its session began.
   */
  uint64_t held;
  /*
   Of a refusal or a wait: when to come again.
   */
  uint64_t retry_after;
  /*
   Of a refusal: the wait predicted; of a wait: at most.
   */
  uint64_t predicted_wait;
  /*
   Of a wait: its number in line, ...
   */
  uint64_t position;
  /*
   ... and its lane, or SUIMON_NONE where it has no position.
   */
  uint32_t lane;
  /*
   Of a decision: 0 a route, 1 a kind of session, 2 a service; ...
   */
  uint32_t subject;
  /*
   ... its number; ...
   */
  uint32_t subject_number;
  /*
   ... and which of its quantities: 0 limit, 1 interval, 2 moving, 3 cap.
   */
  uint32_t quantity;
  /*
   Of a decision: when it was made.
   */
  uint64_t at;
  /*
   The value before, ...
   */
  double old;
  /*
   ... and from then on.
   */
  double new_;
} suimon_output;

/*
 A piece of a recording. Which fields say something depends on `what`; the others are 0.
 */
typedef struct {
  /*
   SUIMON_EVENT, SUIMON_MARK or SUIMON_END.
   */
  uint32_t what;
  /*
   Of a mark: events since the one before.
   */
  uint32_t events;
  /*
   Of an event: when it happened, nanoseconds.
   */
  uint64_t at;
  /*
   Of a mark: what suimon_gate_trace then was.
   */
  uint64_t trace;
  /*
   Of a mark: what suimon_gate_answers then was, of a gate restored from this file.
   */
  uint64_t answers;
} suimon_recording_part;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 Opens a gateway. `settings`: suimon.toml as text, with the same names as of `suimon serve`; what it says of
 listen, upstream, nodes and pools, of log.access and traces, is of no account. [admin] listens as usual unless
 `listen = "off"`. The log goes to standard error as `log.filter` says; the first server of a process decides.

 Returns NULL on failure, with all that is wrong as text in `error`, which may be NULL. Starts one background
 thread (two with the admin listener), and others for moments in which files are written.

 A process that forks has no gateway in the child.
 */
suimon_server *suimon_server_open(const uint8_t *settings,
                                  size_t length,
                                  suimon_buffer *error);

/*
 Opens a gateway as suimon_server_open does, of a process all of whose requests are for paths below
 `mount_path`, such as "/shop": it stands for waiting_room.base_path where the settings do not give that.
 */
suimon_server *suimon_server_open_at(const uint8_t *settings,
                                     size_t length,
                                     const uint8_t *mount_path,
                                     size_t mount_path_length,
                                     suimon_buffer *error);

/*
 Takes in a request, before it is worked on.

 `head`: its head as HTTP/1.1 has it, "GET /a?b=1 HTTP/1.1\r\nhost: shop\r\n...\r\n\r\n", up to 64 KiB and 256
 lines, whichever protocol it came by. `address`: the client's, "192.0.2.7" or "2001:db8::1", in brackets and with
 a port where proxies write it so; what is none of these is an unknown client, and all unknown ones are taken for
 one network. `is_tls`: not 0 if it came by TLS. `request` gets a number for the calls below.

 SUIMON_OK: it is let in now; the buffer has lines "name: value\r\n" for the application (x-request-id, and
 where somebody waits, it waited itself, or it is to pause inside, suimon-waiting, suimon-held and suimon-pause).
 To be ended by suimon_server_end.
 SUIMON_WAITS: the result comes by suimon_server_next, perhaps to another thread before this one has returned: hold
 a lock until the number is put away, or keep what is told of numbers that are not known yet.
 SUIMON_ANSWERED: the buffer has the whole answer, "HTTP/1.1 503 ...\r\n...\r\n\r\nbody". The request is over.
 SUIMON_TOO_SMALL: the result is kept; suimon_server_result tells it.
 */
int32_t suimon_server_enter(const suimon_server *server,
                            const uint8_t *head,
                            size_t head_length,
                            const uint8_t *address,
                            size_t address_length,
                            uint32_t is_tls,
                            uint64_t *request,
                            suimon_buffer *out);

/*
 Waits up to `timeout_ms` milliseconds for a request that waited to be let in (SUIMON_OK) or answered
 (SUIMON_ANSWERED), and says which; the buffer is as after suimon_server_enter. Any thread may call it, usually
 one does in a loop, until SUIMON_CLOSED. SUIMON_NOTHING: nothing within the time.
 */
int32_t suimon_server_next(const suimon_server *server,
                           uint32_t timeout_ms,
                           uint64_t *request,
                           suimon_buffer *out);

/*
 Tells what suimon_server_enter, suimon_server_next, suimon_server_end_and_next or suimon_server_answer could not
 write because the buffer was too small, with the result that they would have had. SUIMON_WAITS: it is not decided yet. SUIMON_NOTHING:
 all was told.
 */
int32_t suimon_server_result(const suimon_server *server,
                             uint64_t request,
                             suimon_buffer *out);

/*
 Says that the client of a request has left. One that waits is over, and so is one whose result was not told
 yet: suimon_server_next will not name it. One that was let in keeps its slot until suimon_server_end.
 */
int32_t suimon_server_leave(const suimon_server *server, uint64_t request);

/*
 Says that the head of the application's answer is about to go out: its status, and those of its header lines,
 "name: value\r\n", that are named set-cookie, cache-control, cdn-cache-control, surrogate-control,
 content-type, x-accel-buffering or suimon-*; with `[response]` headers in the settings, also those of their names.

 The buffer gets what to change, a line each: "+name: value\r\n" add, "=name: value\r\n" set (all others of the
 name go), "-name\r\n" take out. Once for each request: what is said later changes nothing.
 */
int32_t suimon_server_answer(const suimon_server *server,
                             uint64_t request,
                             uint32_t status,
                             const uint8_t *lines,
                             size_t length,
                             suimon_buffer *out);

/*
 Asks whether the answer that suimon_server_answer told of is a stream, or opens one: event streams, gRPC, what
 is not to be buffered (x-accel-buffering: no), and upgrades (101). SUIMON_OK: it is, and needs a slot until its
 head alone, so call suimon_server_end now and go on with the answer. SUIMON_NOTHING: it is not, or has no head yet.
 */
int32_t suimon_server_streams(const suimon_server *server,
                              uint64_t request);

/*
 Says that the work on a request is over: its slot is given back. Without suimon_server_answer before, the
 process has failed to answer. Each request that was let in is ended exactly once, by this function,
 suimon_server_end_without or suimon_server_fail; later calls get SUIMON_UNKNOWN. A request whose result did not fit
 into the buffer can be given up with it, too.
 */
int32_t suimon_server_end(const suimon_server *server,
                          uint64_t request);

/*
 As suimon_server_end, and then as suimon_server_next without waiting: `next` is a request that waited, mostly the
 one that gets the slot, and what is returned is its result. No other thread is woken for it. SUIMON_NOTHING:
 nobody is to be told of. The request is over, unless it is SUIMON_UNKNOWN or a place is NULL (SUIMON_INVALID).
 */
int32_t suimon_server_end_and_next(const suimon_server *server,
                                   uint64_t request,
                                   uint64_t *next,
                                   suimon_buffer *out);

/*
 As suimon_server_end, where the client was waited for `client_time` nanoseconds of the work: that is no time of the
 application's. To be called once a client takes its answer slowly: the slot goes to another request, and the
 rest of the answer needs none.
 */
int32_t suimon_server_end_without(const suimon_server *server,
                                  uint64_t request,
                                  uint64_t client_time);

/*
 As suimon_server_end, where the work has failed, whatever suimon_server_answer has said: perhaps in the middle of
 its answer.
 */
int32_t suimon_server_fail(const suimon_server *server,
                           uint64_t request);

/*
 Tells what `GET /api/state` of the admin listener answers, as JSON.
 */
int32_t suimon_server_state(const suimon_server *server, suimon_buffer *json);

/*
 Tells where the admin listener really is, as text: "127.0.0.1:8001" or "unix:/path". SUIMON_NOTHING: it is off.
 */
int32_t suimon_server_admin(const suimon_server *server,
                            suimon_buffer *address);

/*
 Refuses what comes, waits for what is under way up to `timeouts.drain`, writes what outlives the process, and
 ends all threads. Meanwhile other threads go on with all other calls, so that what is under way can end; what
 is not ended then is abandoned. A second call waits for the first. Every later one gets SUIMON_CLOSED. NULL is
 nothing to close.
 */
void suimon_server_close(suimon_server *server);

/*
 Opens a gate that knows no routes and no kinds of session yet. `settings`: suimon.toml as text, of which
 [gate] and what is below it count. Times are nanoseconds since an origin that the caller chooses; the gate
 reads no clock and starts no thread. Returns NULL on failure, and why as text in `error`, which may be NULL.
 */
suimon_gate *suimon_gate_open(const uint8_t *settings, size_t length, uint64_t now, suimon_buffer *error);

/*
 Opens a gate in the state that a file of a recording begins with, or that suimon_gate_save has written: it goes
 on exactly as that one would have. Only bytes of the same build are taken. What was in the application still
 holds its slot, and is ended by its number. Returns NULL on failure, as suimon_gate_open does.
 */
suimon_gate *suimon_gate_restore(const uint8_t *recording,
                                 size_t length,
                                 suimon_buffer *error);

/*
 Declares a route, whose number is written to `route`; they count up from 0. `mode`: SUIMON_ENFORCE,
 SUIMON_OBSERVE, SUIMON_OFF, or a fixed limit from 1 on.
 */
int32_t suimon_gate_route(suimon_gate *gate, uint64_t now, int32_t mode, uint32_t *route);

/*
 Declares a kind of session, whose number is written to `kind`; they count up from 0. `patience`: how long its
 visitors wait for an answer; 0: it is learned. `hold`: how long a newcomer is held at most; 0: 0.7 of the
 patience, at most 10 s.
 */
int32_t suimon_gate_kind(suimon_gate *gate, uint64_t now, uint64_t patience, uint64_t hold, uint32_t *kind);

/*
 Takes in a request, whose number is written to `request`. What becomes of it follows from suimon_gate_poll, at
 once or when its time has come.
 */
int32_t suimon_gate_arrive(suimon_gate *gate,
                           uint64_t now,
                           const suimon_arrival *arrival,
                           uint64_t *request);

/*
 Gives back the slot of a request that was started. `outcome`: SUIMON_COMPLETED, SUIMON_DECLINED, SUIMON_FAILED
 or SUIMON_ABANDONED. SUIMON_UNKNOWN: it has none.
 */
int32_t suimon_gate_end(suimon_gate *gate,
                        uint64_t now,
                        uint64_t request,
                        uint32_t outcome);

/*
 Says that the client of a request has left. One that waits is forgotten; one in the application keeps its slot.
 */
int32_t suimon_gate_depart(suimon_gate *gate,
                           uint64_t now,
                           uint64_t request);

/*
 Suspends a request: the application waits for its client, who was waited for `client_time` nanoseconds of its
 stay so far. It holds no slot from now on.
 */
int32_t suimon_gate_suspend(suimon_gate *gate, uint64_t now, uint64_t request, uint64_t client_time);

/*
 Says that the client of a suspended request is waited for no longer: SUIMON_RESUMED follows once it has a slot.
 */
int32_t suimon_gate_resume(suimon_gate *gate,
                           uint64_t now,
                           uint64_t request);

/*
 Does what is due: the time of suimon_gate_next_timeout has come.
 */
int32_t suimon_gate_tick(suimon_gate *gate, uint64_t now);

/*
 Does what a recorded event says; see suimon_recording_next. Every call of a gate can be one, those of lines,
 services, nodes and workers, too.
 */
int32_t suimon_gate_apply(suimon_gate *gate, uint64_t now, const uint8_t *event, size_t length);

/*
 Tells the next thing that should happen. To be called after every call that can change something, until
 SUIMON_NOTHING.
 */
int32_t suimon_gate_poll(suimon_gate *gate, suimon_output *output);

/*
 Tells when suimon_gate_tick is due, if nothing else happens before. SUIMON_NOTHING: never.
 */
int32_t suimon_gate_next_timeout(const suimon_gate *gate, uint64_t *at);

/*
 Tells everything that can be seen of a gate, as JSON.
 */
int32_t suimon_gate_state(const suimon_gate *gate, uint64_t now, suimon_buffer *json);

/*
 Writes all that later decisions can rest on, for suimon_gate_restore. Outputs that were not polled are not in it: poll
 all of them first.
 */
int32_t suimon_gate_save(const suimon_gate *gate,
                         uint64_t now,
                         suimon_buffer *state);

/*
 Tells the hash of all decisions so far: the same calls give the same hash, on every machine.
 */
int32_t suimon_gate_trace(const suimon_gate *gate, uint64_t *trace);

/*
 Tells the hash of all starts, refusals and positions since the gate was opened or restored.
 */
int32_t suimon_gate_answers(const suimon_gate *gate, uint64_t *answers);

/*
 Ends a gate. The pointer is dead then: no other call with it may be under way, or come later. NULL is nothing to
 end.
 */
void suimon_gate_close(suimon_gate *gate);

/*
 Tells the short name of a reason, which never changes: docs/reasons.md has them all.
 */
int32_t suimon_reason(uint32_t number, suimon_buffer *text);

/*
 Opens one file of a recording (`suimon serve --record`, or `record.file` in the settings), given as its bytes,
 which are copied. Returns NULL on failure, and why as text in `error`, which may be NULL.
 */
suimon_recording *suimon_recording_open(const uint8_t *recording,
                                        size_t length,
                                        suimon_buffer *error);

/*
 Tells the next piece: an event, with its bytes in the buffer; a mark; or the end, after which there is
 SUIMON_NOTHING. SUIMON_INVALID: the file is damaged there, and the buffer says how.
 */
int32_t suimon_recording_next(suimon_recording *recording, suimon_recording_part *part, suimon_buffer *out);

/*
 Tells what a recording says of itself, as JSON: program, run, segment, when it begins (`at`, nanoseconds of the
 gate's clock), names of routes and kinds.
 */
int32_t suimon_recording_header(const suimon_recording *recording,
                                suimon_buffer *json);

/*
 Ends the reading of a recording. The pointer is dead then: no other call with it may be under way, or come later. NULL is nothing to
 end.
 */
void suimon_recording_close(suimon_recording *recording);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* SUIMON_H */
