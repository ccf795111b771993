/*
 * lmt moves messages, above all large ones, between the processes of one machine.
 * docs/c-interface.md says how this interface is used.
 *
 * Every function that returns lmt_code does nothing but what its code says; what was
 * wrong is told in a sentence by lmt_last_error(). Objects are opaque. A handle that is
 * NULL, closed, or of another kind is answered by a code, and so is one that another
 * thread is using.
 *
 * Each function says which codes it gives. Besides, each that takes a handle may give
 * LMT_ERR_FORKED (in a child of the process that made the object) and LMT_ERR_PANIC (a
 * fault inside the library: memory that was passed to operations stays in use until the
 * object is closed, and what a peer may be using beyond that, see lmt_endpoint_close);
 * and each that takes a pointer or a length gives LMT_ERR_INVALID where the pointer is
 * not aligned for its type or the length is more than an address space. Places for
 * answers may overlap each other, but not memory that is read or received into.
 */

#ifndef LMT_H
#define LMT_H

/* Made by cbindgen of the sources in capi/src (`make header`); do not edit. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/* Any peer that was inserted, where a source is asked for; and those that were not, by
 * lmt_options_set_hear_strangers. */
#ifdef __cplusplus
#define LMT_ANY_PEER (lmt_peer{0, UINT64_MAX})
#else
#define LMT_ANY_PEER ((lmt_peer){0, UINT64_MAX})
#endif

/* The request that names no operation: it counts as ended and as successful. */
#ifdef __cplusplus
#define LMT_REQUEST_NULL (lmt_request{0, 0})
#else
#define LMT_REQUEST_NULL ((lmt_request){0, 0})
#endif

/* What lmt_wait_any tells of a list in which nothing can end. */
#define LMT_NO_INDEX SIZE_MAX

// The major version: 0 until the interface is declared stable.
#define LMT_VERSION_MAJOR 0

// The minor version.
#define LMT_VERSION_MINOR 1

// The patch version.
#define LMT_VERSION_PATCH 0

// The longest address of an endpoint or a device layer, in bytes.
#define LMT_ADDRESS_MAX_BYTES 90

// The length of an identity, in bytes.
#define LMT_ID_BYTES 16

// The length of a region's key, in bytes.
#define LMT_REGION_KEY_BYTES 32

// The longest envelope of a device layer's message, in bytes.
#define LMT_ENVELOPE_MAX_BYTES 64

// The longest packet that a device layer hands to `lmt_send_packet`, in bytes.
#define LMT_PACKET_MAX_BYTES 512

// The room for the name of a path, with the zero behind it, in bytes.
#define LMT_NAME_BYTES 32

// Flag of a send: it is done when a receive has matched it, not as soon as its
// memory may be used again.
#define LMT_SEND_SYNCHRONOUS 1

// Flag of a message: its bytes are in the sender's cache.
#define LMT_HINT_WARM 2

// Flag of a message: its bytes were written long ago.
#define LMT_HINT_COLD 4

// Flag of a message: its memory takes part in no further one.
#define LMT_HINT_ONCE 8

// Flag of a message: its memory is sent from again and again.
#define LMT_HINT_AGAIN 16

// Flag of a message that is to be explained: it is several segments at the sender.
#define LMT_EXPLAIN_SEGMENTS 32

// Flag of a message that is to be explained: it is sent from memory of `lmt_alloc`.
#define LMT_EXPLAIN_SHARED_SENDER 64

// Flag of a message that is to be explained: it is received into memory of
// `lmt_alloc`.
#define LMT_EXPLAIN_SHARED_RECEIVER 128

// Flag of a region: peers may get from it.
#define LMT_REGION_READ 256

// Flag of a region: peers may put into it.
#define LMT_REGION_WRITE 512

// Flag of a region: the first get or put uses it up.
#define LMT_REGION_SINGLE_USE 1024

// Format of an explanation: in words.
#define LMT_FORMAT_TEXT 65536

// Format of an explanation: a JSON object.
#define LMT_FORMAT_JSON 131072

// What a function returns: 0 when it has done what was asked, below 0 if not.
// `lmt_strerror` has a sentence for each, `lmt_last_error` the one for what has
// just happened. Later versions may add codes.
enum lmt_code
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // It is done.
    LMT_OK = 0,
    // A pointer is NULL that must not be.
    LMT_ERR_NULL = -1,
    // An argument has a value that it cannot have.
    LMT_ERR_INVALID = -2,
    // This is no object of the kind that is asked for, or it was closed.
    LMT_ERR_HANDLE = -3,
    // Another thread is in a call with this object, or this is a callback of one.
    LMT_ERR_BUSY = -4,
    // The room for the answer is too short; its length was given.
    LMT_ERR_TOO_SHORT = -5,
    // The time is over; the operation goes on.
    LMT_ERR_TIMEOUT = -6,
    // A fault inside the library; the object that was used can only be closed.
    LMT_ERR_PANIC = -7,
    // This process was forked off the one that owns the object.
    LMT_ERR_FORKED = -8,
    // A setting cannot work.
    LMT_ERR_CONFIGURATION = -9,
    // These bytes are no address of an endpoint.
    LMT_ERR_ADDRESS = -10,
    // There is too little memory.
    LMT_ERR_NO_MEMORY = -11,
    // The system refused something.
    LMT_ERR_SYSTEM = -12,
    // There is no such peer of this object.
    LMT_ERR_UNKNOWN_PEER = -13,
    // There is no such request of this object, or its result was taken already.
    LMT_ERR_UNKNOWN_REQUEST = -14,
    // As much as is allowed waits for this peer already.
    LMT_ERR_WOULD_BLOCK = -15,
    // The message was longer than the receive's memory, which holds its beginning.
    LMT_ERR_TRUNCATED = -16,
    // The operation was cancelled before it was matched.
    LMT_ERR_CANCELLED = -17,
    // The peer's process died or closed its endpoint.
    LMT_ERR_PEER_DEAD = -18,
    // Nobody listens at the peer's address.
    LMT_ERR_PEER_UNREACHABLE = -19,
    // The connection was refused.
    LMT_ERR_PEER_REFUSED = -20,
    // The peer was removed while the operation was in flight.
    LMT_ERR_PEER_REMOVED = -21,
    // Operations with the peer are in flight, so it cannot be removed.
    LMT_ERR_PEER_BUSY = -22,
    // No mechanism could move the message.
    LMT_ERR_NO_MECHANISM = -23,
    // This message was taken from another endpoint or device layer.
    LMT_ERR_FOREIGN_MESSAGE = -24,
    // The region is not registered, or not any more.
    LMT_ERR_REGION_NOT_REGISTERED = -25,
    // The region was registered for a single use, and has been used.
    LMT_ERR_REGION_USED_UP = -26,
    // The region's protection forbids it.
    LMT_ERR_REGION_FORBIDDEN = -27,
    // The copy would leave the region.
    LMT_ERR_REGION_BOUNDS = -28,
    // No mechanism reaches the owner's memory.
    LMT_ERR_REGION_UNREACHABLE = -29,
    // As many regions are registered as there can be.
    LMT_ERR_REGION_TOO_MANY = -30,
    // The packet was not understood, and was ignored.
    LMT_ERR_BAD_PACKET = -31,
    // A callback has failed.
    LMT_ERR_CALLBACK = -32,
    // No launcher has started this process as a rank of a group.
    LMT_ERR_NO_GROUP = -33,
    // As many peers are known as `max_peers` allows.
    LMT_ERR_LIMIT = -34,
    // Another endpoint or device layer has this identity.
    LMT_ERR_NAME_IN_USE = -35,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum lmt_code lmt_code;
#else
typedef int32_t lmt_code;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// What a packet meant that was handed to `lmt_device_on_packet`.
enum lmt_arrival_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // Something between the two device layers; nothing is to be done.
    LMT_HANDLED = 0,
    // A message to be matched: `announcement`, with its envelope and length.
    LMT_ANNOUNCED = 1,
    // A sender takes a message back: `withdrawal`.
    LMT_WITHDRAWN = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum lmt_arrival_kind lmt_arrival_kind;
#else
typedef int32_t lmt_arrival_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// A message that a peer's device layer has announced, to be matched.
typedef struct lmt_announcement lmt_announcement;

// The layer of large messages alone, for those who have packets and matching of
// their own. Used by one thread at a time.
typedef struct lmt_device lmt_device;

// One end of communication. Used by one thread at a time.
typedef struct lmt_endpoint lmt_endpoint;

// A message that `lmt_improbe` took out of matching.
typedef struct lmt_message lmt_message;

// Settings for endpoints and device layers to come.
typedef struct lmt_options lmt_options;

// A peer's question whether an announced message is still unmatched.
typedef struct lmt_withdrawal lmt_withdrawal;

// A peer of one endpoint or device layer; its members are nobody else's business, and
// `lmt_peer_equal` compares two.
typedef struct lmt_peer {
    // Whose it is.
    uint64_t owner;
    // What it is called there.
    uint64_t number;
} lmt_peer;

// An operation of one endpoint or device layer; its members are nobody else's business.
// `LMT_REQUEST_NULL` names none.
typedef struct lmt_request {
    // Whose it is.
    uint64_t owner;
    // What it is called there.
    uint64_t number;
} lmt_request;

// What an operation has done, or which message a probe has found.
typedef struct lmt_status {
    // The other side of the message.
    struct lmt_peer peer;
    // The message's tag; 0 of a device layer's, and of a get or a put.
    uint64_t tag;
    // The bytes that were sent, received or copied.
    uint64_t bytes;
    // The message's length in bytes: more than `bytes` if it was cut.
    uint64_t message_bytes;
} lmt_status;

// What went by one path: by the cells of inboxes (`eager`) or by a mechanism.
typedef struct lmt_counters {
    // The path's name, with a zero behind it.
    char path[LMT_NAME_BYTES];
    // Messages sent.
    uint64_t sent;
    // Their bytes.
    uint64_t sent_bytes;
    // Messages received.
    uint64_t received;
    // Their bytes.
    uint64_t received_bytes;
    // Of the received bytes, those that the sender's process has copied where
    // both ends copy.
    uint64_t by_sender_bytes;
    // How often the path could not go on, and another took over.
    uint64_t demotions;
} lmt_counters;

// A region's name, to be passed to peers as it is.
typedef struct lmt_region_key {
    // Of no meaning to anybody but this library.
    uint8_t bytes[LMT_REGION_KEY_BYTES];
} lmt_region_key;

// Carries a packet to a peer: `context` is what `lmt_device_create` was given,
// `packet` is good for the length of the call. Packets to one peer must arrive in
// the order of the calls, and none may be lost. Returns `LMT_OK` when the packet was
// taken, `LMT_ERR_WOULD_BLOCK` when there is no room now (it is tried again by the
// next `lmt_device_progress`), and anything else when it failed, which
// `lmt_device_progress` tells, and tries again too. It must return: an exception of
// C++ that leaves it ends the process. Calls with the same device layer are refused in it.
typedef int (*lmt_send_packet)(void *context, struct lmt_peer to, const void *packet, size_t bytes);

// What `lmt_device_on_packet` tells.
typedef struct lmt_arrival {
    // What the packet meant.
    lmt_arrival_kind kind;
    // The bytes of the envelope that are used.
    uint32_t envelope_bytes;
    // Who sent it.
    struct lmt_peer peer;
    // The announced message's length in bytes.
    uint64_t bytes;
    // The announced message, else NULL: for `lmt_device_matched` or
    // `lmt_announcement_drop`.
    struct lmt_announcement *announcement;
    // The question, else NULL: for `lmt_device_withdrawn`.
    struct lmt_withdrawal *withdrawal;
    // What the sender wrote on the announced message.
    uint8_t envelope[LMT_ENVELOPE_MAX_BYTES];
} lmt_arrival;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The sentence for a code, for the life of the program; for a number that is none
// of this version it says so. Never NULL.
const char *lmt_strerror(int code);

// What was wrong with the last call of this thread that failed, and what would be
// right, in one sentence; empty if none has. Never NULL. Good until the next call
// of this thread that fails: copy what is to be kept.
const char *lmt_last_error(void);

// The version of the library that is loaded; that of the header is
// `LMT_VERSION_MAJOR` and so on. Any of the places may be NULL.
//
// Errors: `LMT_ERR_INVALID`.
//
// # Safety
// Each place is NULL or memory for a number.
lmt_code lmt_version(uint32_t *major, uint32_t *minor, uint32_t *patch);

// Whether both name the same peer.
bool lmt_peer_equal(struct lmt_peer one, struct lmt_peer other);

// Whether a request is `LMT_REQUEST_NULL`, which names no operation.
bool lmt_request_is_null(struct lmt_request request);

// Makes settings, all as the environment, files and defaults say, to be changed by
// the functions below and given to `lmt_endpoint_create` or `lmt_device_create` as
// often as wanted. To be given back by `lmt_options_destroy`.
//
// Errors: `LMT_ERR_NULL`, `LMT_ERR_NO_MEMORY`.
//
// # Safety
// `options` is NULL or memory for a pointer.
lmt_code lmt_options_create(struct lmt_options **options);

// Gives settings back. What was created with them keeps its own.
//
// Errors: `LMT_ERR_NULL`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`.
//
// # Safety
// Any pointer will do.
lmt_code lmt_options_destroy(struct lmt_options *options);

// Sets a key of docs/configuration.md, as its environment variable would, and
// outranking that: `lmt_options_set(options, "eager_max_bytes", "8KiB")`, or
// `"mechanisms"` and `"cma,shm"`. That a mechanism does not exist is told when
// an endpoint is created.
//
// Errors: `LMT_ERR_NULL`, `LMT_ERR_INVALID` (no UTF-8), `LMT_ERR_HANDLE`,
// `LMT_ERR_BUSY`, `LMT_ERR_CONFIGURATION` (no such key, or it cannot have that
// value).
//
// # Safety
// `key` and `value` are NULL or texts that end with a zero.
lmt_code lmt_options_set(struct lmt_options *options, const char *key, const char *value);

// Sets the identity, `LMT_ID_BYTES` bytes; random when it is not set. No two
// endpoints or device layers of a machine may have the same at a time: creating the second
// is answered by `LMT_ERR_NAME_IN_USE`.
//
// Errors: `LMT_ERR_NULL`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`.
//
// # Safety
// `id` is NULL or leads to `LMT_ID_BYTES` bytes.
lmt_code lmt_options_set_id(struct lmt_options *options, const void *id);

// Sets the identity of this process's rank in the group that `lmt run` started, at
// which the others find it by `lmt_group_address`.
//
// Errors: `LMT_ERR_NULL`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`, `LMT_ERR_NO_GROUP`,
// `LMT_ERR_CONFIGURATION` (variables that contradict each other).
//
// # Safety
// Any pointer will do.
lmt_code lmt_options_set_group_rank(struct lmt_options *options);

// Whether a table of what was moved is printed to standard error at the end,
// whatever `LMT_STATS` says.
//
// Errors: `LMT_ERR_NULL`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`.
//
// # Safety
// Any pointer will do.
lmt_code lmt_options_set_statistics(struct lmt_options *options, bool wanted);

// Whether `LMT_ANY_PEER` also takes messages of peers that have connected without
// having been inserted here; false when it is not set, and then such messages wait
// until `lmt_peer_insert` names their sender. For layers in which a message itself
// tells where an answer is to go. The status of such a message names its sender,
// who counts towards `max_peers` until `lmt_peer_remove`. A device layer does without.
//
// Errors: `LMT_ERR_NULL`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`.
//
// # Safety
// Any pointer will do.
lmt_code lmt_options_set_hear_strangers(struct lmt_options *options, bool wanted);

// This process's rank, from 0, and how many ranks `lmt run` has started.
//
// Errors: `LMT_ERR_NULL`, `LMT_ERR_INVALID`, `LMT_ERR_NO_GROUP`,
// `LMT_ERR_CONFIGURATION` (variables that contradict each other).
//
// # Safety
// Each place is NULL or memory for a number.
lmt_code lmt_group(uint32_t *rank, uint32_t *size);

// The address at which a rank of the group is reached that has created its
// endpoint, or its device layer, with `lmt_options_set_group_rank`. `length` may be NULL.
//
// Errors: `LMT_ERR_NULL`, `LMT_ERR_INVALID` (no such rank), `LMT_ERR_TOO_SHORT`
// (pass `LMT_ADDRESS_MAX_BYTES`), `LMT_ERR_NO_GROUP`, `LMT_ERR_CONFIGURATION`.
//
// # Safety
// `address` is NULL or memory for `capacity` bytes; `length` is NULL or memory for
// a number.
lmt_code lmt_group_address(uint32_t rank, void *address, size_t capacity, size_t *length);

// Lets the processes that this one's parent has started copy out of this one where
// Yama would keep them from it (`ptrace_scope` 1): for ranks that another launcher
// starts, an MPI's. `lmt run` names itself in `LMT_LAUNCHER_PID`; where that is set
// it alone counts. Where there is no Yama nothing is done and nothing is needed.
//
// Errors: none.
lmt_code lmt_admit_siblings(void);

// Creates an endpoint; `options` may be NULL. To be closed by
// `lmt_endpoint_close`.
//
// Errors: `LMT_ERR_NULL`, `LMT_ERR_INVALID`, `LMT_ERR_HANDLE`,
// `LMT_ERR_CONFIGURATION`, `LMT_ERR_NAME_IN_USE`, `LMT_ERR_NO_MEMORY`,
// `LMT_ERR_SYSTEM`.
//
// # Safety
// `endpoint` is NULL or memory for a pointer.
lmt_code lmt_endpoint_create(const struct lmt_options *options, struct lmt_endpoint **endpoint);

// Closes an endpoint: receives that nothing has matched are taken back, what still
// waits is sent for at most `close_timeout_ms`, regions are taken back, and peers
// are told goodbye. Its handle, peers and requests name nothing any more, and memory
// of `lmt_region_allocate` is gone. Messages of `lmt_improbe` are to be discarded
// all the same.
//
// After it this process copies nothing for the endpoint any more. But a peer that is
// in the middle of a copy goes on until it has read the goodbye: out of the memory
// of a send, into that of a receive, into or out of a registered region. So wait for
// the end of all requests first, and let peers say by a message that they are done
// with regions; what was still in flight keeps its memory, mapped and used for
// nothing else, until those peers have closed their endpoints or have ended.
//
// The endpoint is gone also where an error is told, but for `LMT_ERR_NULL`,
// `LMT_ERR_HANDLE` and `LMT_ERR_BUSY`. By `LMT_ERR_FORKED` a forked child has given
// its share back and its parent's is as it was. After `LMT_ERR_PANIC` of another
// call nothing is moved any more: peers are told goodbye at once.
//
// Errors: `LMT_ERR_NULL`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`, `LMT_ERR_FORKED`.
//
// # Safety
// Any pointer will do; nobody uses memory of `lmt_region_allocate` any more, nor
// that of requests that have not ended, as said above.
lmt_code lmt_endpoint_close(struct lmt_endpoint *endpoint);

// The bytes by which others reach this endpoint, to be passed to them in any way,
// unchanged: at most `LMT_ADDRESS_MAX_BYTES`. `length` may be NULL.
//
// Errors: `LMT_ERR_NULL`, `LMT_ERR_INVALID`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`,
// `LMT_ERR_TOO_SHORT`.
//
// # Safety
// `address` is NULL or memory for `capacity` bytes; `length` is NULL or memory for
// a number.
lmt_code lmt_endpoint_address(struct lmt_endpoint *endpoint,
                              void *address,
                              size_t capacity,
                              size_t *length);

// Names a peer by its address, for this endpoint; the same address gives the same
// peer. Does no I/O: the connection is made with the first operation. A peer that
// had died is tried again once it is named again.
//
// Errors: `LMT_ERR_NULL`, `LMT_ERR_INVALID`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`,
// `LMT_ERR_ADDRESS`, `LMT_ERR_FORKED`, `LMT_ERR_LIMIT`.
//
// # Safety
// `address` is NULL or leads to `length` bytes; `peer` is NULL or memory for one.
lmt_code lmt_peer_insert(struct lmt_endpoint *endpoint,
                         const void *address,
                         size_t length,
                         struct lmt_peer *peer);

// Forgets a peer, dead or alive: operations that name it end with
// `LMT_ERR_PEER_REMOVED`, and `peer` names nobody any more. Peers count towards
// `max_peers` until they are removed.
//
// Errors: `LMT_ERR_NULL`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`, `LMT_ERR_UNKNOWN_PEER`,
// `LMT_ERR_PEER_BUSY` (transfers with it are in flight), `LMT_ERR_FORKED`.
//
// # Safety
// Any pointer will do.
lmt_code lmt_peer_remove(struct lmt_endpoint *endpoint, struct lmt_peer peer);

// The identity of a peer, `LMT_ID_BYTES` bytes.
//
// Errors: `LMT_ERR_NULL`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`, `LMT_ERR_UNKNOWN_PEER`.
//
// # Safety
// `id` is NULL or memory for `LMT_ID_BYTES` bytes.
lmt_code lmt_peer_id(struct lmt_endpoint *endpoint, struct lmt_peer peer, void *id);

// Sends `bytes` bytes to `to` under `tag`, and waits until `data` may be used
// again; with `LMT_SEND_SYNCHRONOUS` among `flags`, until a receive has matched the
// message. `flags` may also hint at what helps to choose the path: `LMT_HINT_WARM`,
// `LMT_HINT_COLD`, `LMT_HINT_ONCE`, `LMT_HINT_AGAIN`.
//
// Errors: `LMT_ERR_NULL`, `LMT_ERR_INVALID`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`,
// `LMT_ERR_UNKNOWN_PEER`, `LMT_ERR_WOULD_BLOCK` (`pending_max_messages` wait for
// it), `LMT_ERR_FORKED`, and how an operation with a peer can end:
// `LMT_ERR_PEER_DEAD`, `LMT_ERR_PEER_UNREACHABLE`, `LMT_ERR_PEER_REFUSED`,
// `LMT_ERR_NO_MECHANISM`.
//
// # Safety
// `data` is NULL or leads to `bytes` bytes that nobody writes during the call.
lmt_code lmt_send(struct lmt_endpoint *endpoint,
                  struct lmt_peer to,
                  uint64_t tag,
                  const void *data,
                  size_t bytes,
                  uint32_t flags);

// Receives the first message from `source` whose tag equals `tag` in every bit that
// is not set in `ignore`, and waits for it. `LMT_ANY_PEER` is anybody who was
// inserted here; see also `lmt_options_set_hear_strangers`. `status` may be NULL.
//
// Errors: as `lmt_send`, and `LMT_ERR_TRUNCATED` when the message is longer than
// `capacity`; `into` holds its beginning then, and `status` tells how long it was.
//
// # Safety
// `into` is NULL or memory for `capacity` bytes that nobody else uses during the
// call; `status` is NULL or memory for one.
lmt_code lmt_recv(struct lmt_endpoint *endpoint,
                  struct lmt_peer source,
                  uint64_t tag,
                  uint64_t ignore,
                  void *into,
                  size_t capacity,
                  struct lmt_status *status);

// Begins a send; `flags` as for `lmt_send`. Until `lmt_wait`, `lmt_test` or
// `lmt_wait_all` has told the end of the request, or the endpoint is closed (see
// `lmt_endpoint_close`), `data` belongs to it: nobody frees or writes it. What is
// in flight moves in calls that make progress: `lmt_progress`, `lmt_test`,
// `lmt_wait` and their kin.
//
// Errors: `LMT_ERR_NULL`, `LMT_ERR_INVALID`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`,
// `LMT_ERR_UNKNOWN_PEER`, `LMT_ERR_WOULD_BLOCK` (make progress, and try again),
// `LMT_ERR_PEER_DEAD`, `LMT_ERR_FORKED`.
//
// # Safety
// `data` is NULL or leads to `bytes` bytes that nobody frees or writes until the
// request has ended or the endpoint was closed; `request` is NULL or memory for one.
lmt_code lmt_isend(struct lmt_endpoint *endpoint,
                   struct lmt_peer to,
                   uint64_t tag,
                   const void *data,
                   size_t bytes,
                   uint32_t flags,
                   struct lmt_request *request);

// As `lmt_isend`, of several segments as one message. The list itself is copied.
//
// Errors: as `lmt_isend`.
//
// # Safety
// `segments` is NULL or leads to `count` segments, of each of which holds what
// `lmt_isend` says of its data; `request` is NULL or memory for one.
lmt_code lmt_isend_segments(struct lmt_endpoint *endpoint,
                            struct lmt_peer to,
                            uint64_t tag,
                            const struct iovec *segments,
                            size_t count,
                            uint32_t flags,
                            struct lmt_request *request);

// Begins a receive; source, tag and ignore as for `lmt_recv`. Until `lmt_wait`,
// `lmt_test` or `lmt_wait_all` has told the end of the request, or the endpoint is
// closed (see `lmt_endpoint_close`), `into` belongs to it: nobody frees, reads or
// writes it.
//
// Errors: as `lmt_isend`; that the message was cut is told when it ends.
//
// # Safety
// `into` is NULL or memory for `capacity` bytes that nobody frees or uses until the
// request has ended or the endpoint was closed; `request` is NULL or memory for one.
lmt_code lmt_irecv(struct lmt_endpoint *endpoint,
                   struct lmt_peer source,
                   uint64_t tag,
                   uint64_t ignore,
                   void *into,
                   size_t capacity,
                   struct lmt_request *request);

// As `lmt_irecv`, into several segments, one after the other, which do not overlap.
// The list itself is copied.
//
// Errors: as `lmt_irecv`.
//
// # Safety
// `segments` is NULL or leads to `count` segments that do not overlap, of each of
// which holds what `lmt_irecv` says of its memory; `request` is NULL or memory for
// one.
lmt_code lmt_irecv_segments(struct lmt_endpoint *endpoint,
                            struct lmt_peer source,
                            uint64_t tag,
                            uint64_t ignore,
                            const struct iovec *segments,
                            size_t count,
                            struct lmt_request *request);

// Tells whether an operation has ended, after making progress once. If `done` is
// true, the code is what it ended with, `status` (which may be NULL) is written for
// `LMT_OK` and `LMT_ERR_TRUNCATED`, and the request names nothing any more. If it is
// false, the operation lives on, or this call cannot tell: the code is `LMT_OK`, or
// says why. `LMT_REQUEST_NULL` counts as ended: `LMT_OK`, and a status of zeros.
//
// Errors: `LMT_ERR_NULL`, `LMT_ERR_INVALID`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`,
// `LMT_ERR_FORKED`, `LMT_ERR_PANIC` (`done` is false where it can be written);
// `LMT_ERR_UNKNOWN_REQUEST`, and what the operation ended with (`done` is true): see
// `lmt_wait`.
//
// # Safety
// `done` and `status` are NULL or memory for one each.
lmt_code lmt_test(struct lmt_endpoint *endpoint,
                  struct lmt_request request,
                  bool *done,
                  struct lmt_status *status);

// Waits for the end of an operation, at most `timeout_ms` milliseconds; a negative
// number is no limit. The code is what it ended with; `status` (which may be NULL)
// is written for `LMT_OK` and `LMT_ERR_TRUNCATED`. The request names nothing any
// more then. It lives on, and its memory belongs to it, after `LMT_ERR_TIMEOUT`,
// `LMT_ERR_NULL`, `LMT_ERR_INVALID`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY` and
// `LMT_ERR_FORKED`, by which nothing was waited for, and after `LMT_ERR_PANIC` until
// the endpoint is closed. `LMT_REQUEST_NULL` counts as ended: `LMT_OK`, and a status
// of zeros.
//
// Errors: those, `LMT_ERR_UNKNOWN_REQUEST`, and what operations end with:
// `LMT_ERR_CANCELLED`, `LMT_ERR_TRUNCATED`, `LMT_ERR_PEER_DEAD`,
// `LMT_ERR_PEER_UNREACHABLE`, `LMT_ERR_PEER_REFUSED`, `LMT_ERR_PEER_REMOVED`,
// `LMT_ERR_NO_MECHANISM`, and of regions those of `lmt_region_get`.
//
// # Safety
// `status` is NULL or memory for one.
lmt_code lmt_wait(struct lmt_endpoint *endpoint,
                  struct lmt_request request,
                  int64_t timeout_ms,
                  struct lmt_status *status);

// Waits until one of `requests` has ended, at most `timeout_ms` milliseconds (a
// negative number is no limit), and tells its place. How it ended is told by
// `lmt_test` or `lmt_wait`, at once. One that was told before counts as ended.
// `LMT_REQUEST_NULL` is skipped; if the list has nothing else, or nothing, there is
// nothing to wait for and `index` becomes `LMT_NO_INDEX`.
//
// Errors: `LMT_ERR_NULL`, `LMT_ERR_INVALID`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`,
// `LMT_ERR_UNKNOWN_REQUEST` (one is of another endpoint), `LMT_ERR_TIMEOUT`,
// `LMT_ERR_FORKED`.
//
// # Safety
// `requests` is NULL or leads to `count` of them; `index` is NULL or memory for a
// number.
lmt_code lmt_wait_any(struct lmt_endpoint *endpoint,
                      const struct lmt_request *requests,
                      size_t count,
                      int64_t timeout_ms,
                      size_t *index);

// Waits until all of `requests` have ended, at most `timeout_ms` milliseconds (a
// negative number is no limit). `codes` says how each ended, and `LMT_ERR_TIMEOUT`
// of those that have not; `statuses` (which may be NULL) is written as by
// `lmt_wait`. `LMT_REQUEST_NULL` counts as ended. Returns `LMT_OK` when all ended
// so, else the first code that is another.
//
// Errors: those of `lmt_wait`; `codes` is not written where nothing was waited for,
// by `LMT_ERR_NULL`, `LMT_ERR_INVALID`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`,
// `LMT_ERR_FORKED`, or `LMT_ERR_UNKNOWN_REQUEST` where one is of another endpoint.
//
// # Safety
// `requests` is NULL or leads to `count` of them; `codes` and `statuses` are NULL or
// memory for as many.
lmt_code lmt_wait_all(struct lmt_endpoint *endpoint,
                      const struct lmt_request *requests,
                      size_t count,
                      int64_t timeout_ms,
                      lmt_code *codes,
                      struct lmt_status *statuses);

// Tells whether an operation has ended, without making progress, and without
// telling how. One that was told before counts as ended, and so does
// `LMT_REQUEST_NULL`.
//
// Errors: `LMT_ERR_NULL`, `LMT_ERR_INVALID`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`,
// `LMT_ERR_FORKED`, `LMT_ERR_UNKNOWN_REQUEST` (it is of another endpoint).
//
// # Safety
// `done` is NULL or memory for one.
lmt_code lmt_is_done(struct lmt_endpoint *endpoint, struct lmt_request request, bool *done);

// Asks for an operation to be taken back that nothing has matched yet. Its end is
// still to be waited for, and tells what became of it: `LMT_ERR_CANCELLED`, or what
// it did instead. Of an operation whose end was told before nothing is left to be
// taken back: `LMT_OK`.
//
// Errors: `LMT_ERR_NULL`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`, `LMT_ERR_FORKED`,
// `LMT_ERR_UNKNOWN_REQUEST` (it is of another endpoint, or `LMT_REQUEST_NULL`).
//
// # Safety
// Any pointer will do.
lmt_code lmt_cancel(struct lmt_endpoint *endpoint, struct lmt_request request);

// Looks for a message that a receive like this would match, without receiving it,
// after making progress once; others are let run as by `lmt_progress`. `status` (which
// may be NULL) tells its peer, tag and length when `found` is true.
//
// Errors: `LMT_ERR_NULL`, `LMT_ERR_INVALID`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`,
// `LMT_ERR_UNKNOWN_PEER`, `LMT_ERR_FORKED`.
//
// # Safety
// `found` and `status` are NULL or memory for one each.
lmt_code lmt_iprobe(struct lmt_endpoint *endpoint,
                    struct lmt_peer source,
                    uint64_t tag,
                    uint64_t ignore,
                    bool *found,
                    struct lmt_status *status);

// Takes a message out of matching that a receive like this would match, after
// making progress once, as `lmt_iprobe`: only `lmt_imrecv` gets it. `message` becomes
// NULL when there is none; else it is to be given to `lmt_imrecv` or
// `lmt_message_discard`, and `status` (which may be NULL) tells its peer, tag and length.
//
// Errors: as `lmt_iprobe`, and `LMT_ERR_NO_MEMORY`.
//
// # Safety
// `message` is NULL or memory for a pointer, `status` NULL or memory for one.
lmt_code lmt_improbe(struct lmt_endpoint *endpoint,
                     struct lmt_peer source,
                     uint64_t tag,
                     uint64_t ignore,
                     struct lmt_message **message,
                     struct lmt_status *status);

// Begins to receive a message that `lmt_improbe` took from this endpoint; else as
// `lmt_irecv`. `message` names nothing any more, unless the code is `LMT_ERR_NULL`,
// `LMT_ERR_INVALID`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY` or `LMT_ERR_FOREIGN_MESSAGE`
// (it is another endpoint's).
//
// Errors: those, and `LMT_ERR_FORKED`.
//
// # Safety
// As `lmt_irecv`.
lmt_code lmt_imrecv(struct lmt_endpoint *endpoint,
                    struct lmt_message *message,
                    void *into,
                    size_t capacity,
                    struct lmt_request *request);

// Gives up a message that `lmt_improbe` took: its sender's operation ends as if it
// had been received, once this process makes progress.
//
// Errors: `LMT_ERR_NULL`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`.
//
// # Safety
// Any pointer will do.
lmt_code lmt_message_discard(struct lmt_message *message);

// Moves messages: takes one that has come, and more where receives wait for them or
// something else is in flight, copies at most a quota of one transfer, writes what there
// is room for. Never waits; where call after call finds nothing, others are let run
// (sched_yield(2)). `moved` (which may be NULL) tells whether anything was moved.
//
// Errors: `LMT_ERR_NULL`, `LMT_ERR_INVALID`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`,
// `LMT_ERR_FORKED`.
//
// # Safety
// `moved` is NULL or memory for one.
lmt_code lmt_progress(struct lmt_endpoint *endpoint, bool *moved);

// Waits until something has moved, at most `timeout_ms` milliseconds; a negative
// number is no limit. `moved` (which may be NULL) tells whether anything has; that
// the time is over is no error.
//
// Errors: as `lmt_progress`.
//
// # Safety
// `moved` is NULL or memory for one.
lmt_code lmt_wait_for_progress(struct lmt_endpoint *endpoint, int64_t timeout_ms, bool *moved);

// A descriptor for event loops, readable when there may be something to do. It is
// the endpoint's: it is not to be closed, read or used after the endpoint. To be
// polled after `lmt_prepare_to_sleep`.
//
// Errors: `LMT_ERR_NULL`, `LMT_ERR_INVALID`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`.
//
// # Safety
// `descriptor` is NULL or memory for a number.
lmt_code lmt_wait_descriptor(struct lmt_endpoint *endpoint, int *descriptor);

// Gets ready for a sleep in the wait descriptor. If `may_sleep` is true, poll it for
// at most `limit_us` microseconds (for work for which nobody rings; the place may be
// NULL), and make progress after; if it is false, there is something to do at once.
//
// Errors: `LMT_ERR_NULL`, `LMT_ERR_INVALID`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`,
// `LMT_ERR_FORKED`.
//
// # Safety
// `may_sleep` and `limit_us` are NULL or memory for one each.
lmt_code lmt_prepare_to_sleep(struct lmt_endpoint *endpoint, bool *may_sleep, uint64_t *limit_us);

// Says which path a message of `bytes` bytes to a peer would take now, which rule
// says so, where that rule comes from, and why each other mechanism is not taken: in
// words (`LMT_FORMAT_TEXT`) or as JSON (`LMT_FORMAT_JSON`). `flags` say more of the
// message: those of hints, `LMT_EXPLAIN_SEGMENTS`, `LMT_EXPLAIN_SHARED_SENDER`,
// `LMT_EXPLAIN_SHARED_RECEIVER`. What works with a peer is known once the first
// operation has connected it.
//
// As much as there is room for is written, with a zero behind it; `length` (which
// may be NULL) tells the length of all of it without the zero, so that all of it
// needs room for one byte more.
//
// Errors: `LMT_ERR_NULL`, `LMT_ERR_INVALID`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`,
// `LMT_ERR_UNKNOWN_PEER`, `LMT_ERR_TOO_SHORT`.
//
// # Safety
// `text` is NULL or memory for `capacity` bytes, `length` NULL or memory for a
// number.
lmt_code lmt_explain(struct lmt_endpoint *endpoint,
                     struct lmt_peer peer,
                     uint64_t bytes,
                     uint32_t flags,
                     uint32_t format,
                     char *text,
                     size_t capacity,
                     size_t *length);

// What has gone by each path, to and from one peer since it connected, or with
// `LMT_ANY_PEER` to and from all: first by the cells of inboxes (`eager`), then by
// each mechanism that is known. `count` (which may be NULL) tells how many paths
// there are.
//
// Errors: `LMT_ERR_NULL`, `LMT_ERR_INVALID`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`,
// `LMT_ERR_UNKNOWN_PEER`, `LMT_ERR_TOO_SHORT` (nothing but `count` is written).
//
// # Safety
// `list` is NULL or memory for `capacity` counters, `count` NULL or memory for a
// number.
lmt_code lmt_statistics(struct lmt_endpoint *endpoint,
                        struct lmt_peer peer,
                        struct lmt_counters *list,
                        size_t capacity,
                        size_t *count);

// Allocates memory that peers can map, zeroed: messages from or to it are one copy
// in user space, by both ends where both are such. It begins at a cache line, from
// 4096 bytes on at a page. Allocating takes about as long as writing the bytes: use
// it again and again. A peer to or from which some of it has gone can read and write
// all of it at any time. To be given back by `lmt_free`. A forked child has none of
// it.
//
// Errors: `LMT_ERR_NULL`, `LMT_ERR_INVALID` (no bytes), `LMT_ERR_NO_MEMORY`,
// `LMT_ERR_SYSTEM`, `LMT_ERR_FORKED` (another thread was allocating at the fork).
//
// # Safety
// `memory` is NULL or memory for a pointer.
lmt_code lmt_alloc(size_t bytes, void **memory);

// Gives memory back that `lmt_alloc` gave, when no operation uses it any more. What
// a peer is still copying goes back when it is done or dead.
//
// Errors: `LMT_ERR_NULL`, `LMT_ERR_HANDLE` (it is not what `lmt_alloc` gave, or was
// freed before), `LMT_ERR_FORKED` (the parent of this process has allocated it).
//
// # Safety
// Any pointer will do; the memory that it leads to is used by nobody.
lmt_code lmt_free(void *memory);

// Declares memory of this process as a region: peers that are given the key may get
// from it (`LMT_REGION_READ`) and put into it (`LMT_REGION_WRITE`) without this
// process's help; with `LMT_REGION_SINGLE_USE` the first get or put uses it up. It
// is lent until `lmt_region_destroy` or the endpoint's end. A copy that a peer has
// just begun then goes on for the length of a system call: let peers say by a
// message that they are done, and destroy it after.
//
// Errors: `LMT_ERR_NULL`, `LMT_ERR_INVALID`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`,
// `LMT_ERR_REGION_TOO_MANY`, `LMT_ERR_NO_MEMORY`, `LMT_ERR_SYSTEM`,
// `LMT_ERR_FORKED`.
//
// # Safety
// `segments` is NULL or leads to `count` segments, each of memory that nobody frees
// before the region has ended and peers are done with it; `key` is NULL or memory
// for one.
lmt_code lmt_region_register(struct lmt_endpoint *endpoint,
                             const struct iovec *segments,
                             size_t count,
                             uint32_t flags,
                             struct lmt_region_key *key);

// Allocates zeroed memory that peers map, and declares it: reachable also where no
// mechanism reaches this process's own memory. `memory` (which may be NULL) is where
// it begins, until `lmt_region_destroy` or `lmt_endpoint_close`, which unmap it:
// nobody uses it then, and no request that it was passed to is in flight. Peers may
// change the bytes at any time, as their puts come. The first access by each peer
// needs this process to make progress once.
//
// Errors: as `lmt_region_register`; `LMT_ERR_INVALID` also of no bytes.
//
// # Safety
// `key` and `memory` are NULL or memory for one each.
lmt_code lmt_region_allocate(struct lmt_endpoint *endpoint,
                             size_t bytes,
                             uint32_t flags,
                             struct lmt_region_key *key,
                             void **memory);

// Takes a region of this endpoint back: no copy begins any more. One that a peer has
// just begun goes on for the length of a system call, so peers are to be done with
// registered memory before. Memory of `lmt_region_allocate` is unmapped; what a peer
// is just putting into it goes into memory that nobody reads.
//
// Errors: `LMT_ERR_NULL`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`,
// `LMT_ERR_REGION_NOT_REGISTERED`, `LMT_ERR_FORKED`.
//
// # Safety
// `key` is NULL or leads to one. Memory of `lmt_region_allocate` is used by nobody any
// more, nor passed to a request that has not ended.
lmt_code lmt_region_destroy(struct lmt_endpoint *endpoint, const struct lmt_region_key *key);

// The length of the region of a key, in bytes.
//
// Errors: `LMT_ERR_NULL`, `LMT_ERR_INVALID`.
//
// # Safety
// `key` is NULL or leads to one; `bytes` is NULL or memory for a number.
lmt_code lmt_region_bytes(const struct lmt_region_key *key, uint64_t *bytes);

// Begins to fill segments from a region, from `offset` on, without the owner's help;
// the owner's address must have been inserted. How it ended is told like that of a
// receive.
//
// Errors: as `lmt_irecv`; when it ends also `LMT_ERR_REGION_NOT_REGISTERED`,
// `LMT_ERR_REGION_USED_UP`, `LMT_ERR_REGION_FORBIDDEN`, `LMT_ERR_REGION_BOUNDS`,
// `LMT_ERR_REGION_UNREACHABLE`.
//
// # Safety
// `key` is NULL or leads to one; `segments` and `request` as for
// `lmt_irecv_segments`.
lmt_code lmt_region_get(struct lmt_endpoint *endpoint,
                        const struct lmt_region_key *key,
                        uint64_t offset,
                        const struct iovec *segments,
                        size_t count,
                        struct lmt_request *request);

// Begins to copy segments into a region, from `offset` on; else as `lmt_region_get`.
// When it has ended the bytes are there: a message sent after it finds them.
//
// Errors: as `lmt_region_get`.
//
// # Safety
// `key` is NULL or leads to one; `segments` and `request` as for
// `lmt_isend_segments`.
lmt_code lmt_region_put(struct lmt_endpoint *endpoint,
                        const struct lmt_region_key *key,
                        uint64_t offset,
                        const struct iovec *segments,
                        size_t count,
                        struct lmt_request *request);

// Opens a device layer: the layer of large messages alone, under packets and matching of
// the caller's own. `options` may be NULL. `send_packet` carries packets to
// peers, and is called with `context` within `lmt_device_progress`. To be closed by
// `lmt_device_close`.
//
// Errors: as `lmt_endpoint_create`.
//
// # Safety
// `send_packet` is NULL or keeps to what its type says, and can be called until the
// device layer is closed, by each thread that uses it; `device` is NULL or memory for a
// pointer.
lmt_code lmt_device_create(const struct lmt_options *options,
                           lmt_send_packet send_packet,
                           void *context,
                           struct lmt_device **device);

// Closes a device layer: what is in flight ends, and peers are told goodbye. Call it when
// all requests have ended and no packet waits (`unsent` of `lmt_device_peer`). Its
// handle, peers and requests name nothing any more; announcements and withdrawals
// are to be dropped all the same. `send_packet` is not called.
//
// After it this process copies nothing for the device layer any more; what a peer was in the
// middle of copying keeps its memory as `lmt_endpoint_close` says, and the device layer is
// gone also where an error is told, with the same exceptions.
//
// Errors: `LMT_ERR_NULL`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`, `LMT_ERR_FORKED`.
//
// # Safety
// Any pointer will do; memory of requests that have not ended is left alone as said
// above.
lmt_code lmt_device_close(struct lmt_device *device);

// The bytes by which others reach this device layer, as `lmt_endpoint_address`.
//
// Errors: as `lmt_endpoint_address`.
//
// # Safety
// `address` is NULL or memory for `capacity` bytes; `length` is NULL or memory for
// a number.
lmt_code lmt_device_address(struct lmt_device *device,
                            void *address,
                            size_t capacity,
                            size_t *length);

// Names a peer by its device layer's address and begins to connect to it, which goes on in
// `lmt_device_progress`. The same address gives the same peer; one that is gone is
// tried again.
//
// Errors: as `lmt_peer_insert`.
//
// # Safety
// `address` is NULL or leads to `length` bytes; `peer` is NULL or memory for one.
lmt_code lmt_device_insert_peer(struct lmt_device *device,
                                const void *address,
                                size_t length,
                                struct lmt_peer *peer);

// What the device layer knows of a peer. `is_connected` tells whether the connection is
// made; `unsent` how many sends and packets wait for it or for room in
// `send_packet`: who must keep packets of its own in order with announcements holds
// them back until it is 0. Both may be NULL. The code tells why there is no
// connection any more: `LMT_ERR_PEER_DEAD`, `LMT_ERR_PEER_UNREACHABLE`,
// `LMT_ERR_PEER_REFUSED`; both places are written then too. Receives that wait for
// this peer are to be ended with it by the program, whose matching they are in.
//
// Errors: those, and `LMT_ERR_NULL`, `LMT_ERR_INVALID`, `LMT_ERR_HANDLE`,
// `LMT_ERR_BUSY`, `LMT_ERR_UNKNOWN_PEER`.
//
// # Safety
// `is_connected` and `unsent` are NULL or memory for one each.
lmt_code lmt_device_peer(struct lmt_device *device,
                         struct lmt_peer peer,
                         bool *is_connected,
                         size_t *unsent);

// Moves bytes and packets (by `send_packet`), and makes connections. Never waits; where
// nothing moves of what is in flight, call after call, others are let run
// (sched_yield(2)). `moved` (which may be NULL) tells whether anything was moved.
//
// Errors: `LMT_ERR_NULL`, `LMT_ERR_INVALID`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY` (also
// within `send_packet`), `LMT_ERR_FORKED`, `LMT_ERR_CALLBACK` (`send_packet`
// answered something else than `LMT_OK` and `LMT_ERR_WOULD_BLOCK`; the packet is
// tried again).
//
// # Safety
// `moved` is NULL or memory for one.
lmt_code lmt_device_progress(struct lmt_device *device, bool *moved);

// A descriptor that is readable when connections need progress; packets of the
// program's own and transfers in flight do not make it so. It is the device layer's, as
// that of `lmt_wait_descriptor` is the endpoint's. `limit_us` (which may be NULL)
// tells for how many microseconds at most to sleep before the next progress.
//
// Errors: `LMT_ERR_NULL`, `LMT_ERR_INVALID`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`.
//
// # Safety
// `descriptor` and `limit_us` are NULL or memory for a number each.
lmt_code lmt_device_wait_descriptor(struct lmt_device *device, int *descriptor, uint64_t *limit_us);

// As `lmt_explain`, of a device layer: short messages are the program's own, so nothing is
// eager.
//
// Errors: as `lmt_explain`.
//
// # Safety
// As `lmt_explain`.
lmt_code lmt_device_explain(struct lmt_device *device,
                            struct lmt_peer peer,
                            uint64_t bytes,
                            uint32_t flags,
                            uint32_t format,
                            char *text,
                            size_t capacity,
                            size_t *length);

// What each mechanism has moved, with all peers; else as `lmt_statistics`.
//
// Errors: `LMT_ERR_NULL`, `LMT_ERR_INVALID`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`,
// `LMT_ERR_TOO_SHORT` (nothing but `count` is written).
//
// # Safety
// As `lmt_statistics`.
lmt_code lmt_device_statistics(struct lmt_device *device,
                               struct lmt_counters *list,
                               size_t capacity,
                               size_t *count);

// Begins to send segments as one message, announced to the peer's matching with
// `envelope`, at most `LMT_ENVELOPE_MAX_BYTES`. `flags` may hint: `LMT_HINT_WARM`,
// `LMT_HINT_COLD`, `LMT_HINT_ONCE`, `LMT_HINT_AGAIN`. The segments belong to the
// request until `lmt_device_test` has told its end or the device layer is closed; the list and
// the envelope are copied.
//
// Errors: `LMT_ERR_NULL`, `LMT_ERR_INVALID` (flags; an envelope that is too long),
// `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`, `LMT_ERR_UNKNOWN_PEER`, `LMT_ERR_WOULD_BLOCK`,
// `LMT_ERR_PEER_DEAD` and its kin, `LMT_ERR_FORKED`.
//
// # Safety
// `envelope` is NULL or leads to `envelope_bytes` bytes; `segments` and `request` as
// for `lmt_isend_segments`.
lmt_code lmt_device_send(struct lmt_device *device,
                         struct lmt_peer to,
                         const void *envelope,
                         size_t envelope_bytes,
                         const struct iovec *segments,
                         size_t count,
                         uint32_t flags,
                         struct lmt_request *request);

// Takes a packet that the peer's `send_packet` was given, and tells what it meant.
// An announcement is to be matched (`lmt_device_matched`) or given up
// (`lmt_announcement_drop`); a withdrawal is to be answered (`lmt_device_withdrawn`).
//
// Errors: `LMT_ERR_NULL`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`, `LMT_ERR_UNKNOWN_PEER`,
// `LMT_ERR_INVALID`, `LMT_ERR_NO_MEMORY` (there are too many announcements; the
// packet was not taken, hand it over again), `LMT_ERR_BAD_PACKET`: it was ignored,
// also since the connection with that peer has ended (`lmt_device_peer` tells).
//
// # Safety
// `packet` is NULL or leads to `bytes` bytes; `arrival` is NULL or memory for one.
lmt_code lmt_device_on_packet(struct lmt_device *device,
                              struct lmt_peer from,
                              const void *packet,
                              size_t bytes,
                              struct lmt_arrival *arrival);

// The program's matching has found the receive for an announced message: it goes
// into the segments, cut to their length if need be (`LMT_ERR_TRUNCATED` when it
// ends). They belong to the request as those of `lmt_irecv` do. `announcement` names
// nothing any more, unless the code is `LMT_ERR_NULL`, `LMT_ERR_INVALID`,
// `LMT_ERR_HANDLE`, `LMT_ERR_BUSY` or `LMT_ERR_FOREIGN_MESSAGE` (another device layer was
// told of it).
//
// Errors: those, `LMT_ERR_PEER_DEAD` and its kin (the connection over which it was
// announced has ended), `LMT_ERR_FORKED`.
//
// # Safety
// `segments` and `request` as for `lmt_irecv_segments`.
lmt_code lmt_device_matched(struct lmt_device *device,
                            struct lmt_announcement *announcement,
                            const struct iovec *segments,
                            size_t count,
                            struct lmt_request *request);

// Gives up an announced message without matching it: its sender waits until it
// cancels or the connection ends. For messages of a peer that is gone.
//
// Errors: `LMT_ERR_NULL`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`.
//
// # Safety
// Any pointer will do.
lmt_code lmt_announcement_drop(struct lmt_announcement *announcement);

// Tells whether an announced message is the one that a sender takes back.
//
// Errors: `LMT_ERR_NULL`, `LMT_ERR_INVALID`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`.
//
// # Safety
// `is_it` is NULL or memory for one.
lmt_code lmt_announcement_is(struct lmt_announcement *announcement,
                             struct lmt_withdrawal *withdrawal,
                             bool *is_it);

// Answers a withdrawal: whether the message was found unmatched and is forgotten
// (its announcement is then to be given up too). `withdrawal` names nothing any
// more, unless the code is `LMT_ERR_NULL`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY` or
// `LMT_ERR_FOREIGN_MESSAGE` (another device layer was asked).
//
// Errors: those.
//
// # Safety
// Any pointer will do.
lmt_code lmt_device_withdrawn(struct lmt_device *device,
                              struct lmt_withdrawal *withdrawal,
                              bool found);

// Gives up a withdrawal that is not to be answered any more, since its device layer is
// closed; while that is open its sender waits for the answer.
//
// Errors: `LMT_ERR_NULL`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`.
//
// # Safety
// Any pointer will do.
lmt_code lmt_withdrawal_drop(struct lmt_withdrawal *withdrawal);

// Asks for a send of a device layer to be taken back if the peer has not matched it; its end
// tells what became of it. Of an operation whose end was told before nothing is left
// to be taken back: `LMT_OK`.
//
// Errors: `LMT_ERR_NULL`, `LMT_ERR_HANDLE`, `LMT_ERR_BUSY`, `LMT_ERR_FORKED`,
// `LMT_ERR_UNKNOWN_REQUEST` (it is of another device layer, or `LMT_REQUEST_NULL`).
//
// # Safety
// Any pointer will do.
lmt_code lmt_device_cancel(struct lmt_device *device, struct lmt_request request);

// Tells whether an operation of a device layer has ended; makes no progress, which is
// `lmt_device_progress`'s, as that calls `send_packet`. `done`, `status`, the code and
// `LMT_REQUEST_NULL` are as for `lmt_test`.
//
// Errors: as `lmt_test`; operations of device layers are not `LMT_ERR_PEER_REMOVED`.
//
// # Safety
// `done` and `status` are NULL or memory for one each.
lmt_code lmt_device_test(struct lmt_device *device,
                         struct lmt_request request,
                         bool *done,
                         struct lmt_status *status);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* LMT_H */
