/* Sends and receives between two processes, from C. */
#include "check.h"

static const size_t sizes[] = {0, 1, 8, 40, 1000, 4096, 32768, 32769, 100001, 1 << 20, 5000000};
enum { SIZES = sizeof sizes / sizeof *sizes, MOST = 5000000 };

static lmt_endpoint *endpoint;
static lmt_peer peer;
static unsigned char *out, *in;

static void blocking(int rank)
{
    for (unsigned at = 0; at < SIZES; at++) {
        lmt_status status;
        uint32_t flags = at % 3 == 1 ? LMT_SEND_SYNCHRONOUS | LMT_HINT_WARM : at % 3 == 2 ? LMT_HINT_COLD | LMT_HINT_AGAIN : 0;
        fill(out, sizes[at], at);
        memset(in, 0, sizes[at]);
        if (rank == 0)
            OK(lmt_send(endpoint, peer, at, out, sizes[at], flags));
        OK(lmt_recv(endpoint, at % 2 ? peer : LMT_ANY_PEER, at, 0, in, MOST, &status));
        if (rank == 1)
            OK(lmt_send(endpoint, peer, at, out, sizes[at], flags));
        check_filled(in, sizes[at], at);
        CHECK(lmt_peer_equal(status.peer, peer));
        CHECK(status.tag == at && status.bytes == sizes[at] && status.message_bytes == sizes[at]);
    }
}

static void nonblocking(void)
{
    lmt_request sends[SIZES], receives[SIZES];
    lmt_code codes[SIZES];
    lmt_status statuses[SIZES];
    unsigned char *from[SIZES], *into[SIZES];
    for (unsigned at = 0; at < SIZES; at++) {
        from[at] = malloc(sizes[at] + 1);
        into[at] = malloc(sizes[at] + 1);
        fill(from[at], sizes[at], at + 1);
        into[at][sizes[at]] = 0xa5;
        /* The upper bits of the tag are ignored. */
        OK(lmt_irecv(endpoint, LMT_ANY_PEER, at, UINT64_MAX << 32, into[at], sizes[at], &receives[at]));
    }
    for (unsigned at = SIZES; at-- > 0;)
        OK(lmt_isend(endpoint, peer, (uint64_t)7 << 40 | at, from[at], sizes[at], 0, &sends[at]));
    size_t first;
    OK(lmt_wait_any(endpoint, receives, SIZES, -1, &first));
    CHECK(first < SIZES);
    bool done;
    OK(lmt_is_done(endpoint, receives[first], &done));
    CHECK(done);
    OK(lmt_test(endpoint, receives[first], &done, &statuses[first]));
    CHECK(done && statuses[first].tag == ((uint64_t)7 << 40 | first));
    GIVES(LMT_ERR_UNKNOWN_REQUEST, lmt_wait(endpoint, receives[first], 0, NULL));
    GIVES(LMT_ERR_UNKNOWN_REQUEST, lmt_wait_all(endpoint, receives, SIZES, -1, codes, statuses));
    OK(lmt_wait_all(endpoint, sends, SIZES, -1, codes, NULL));
    for (unsigned at = 0; at < SIZES; at++) {
        CHECK(codes[at] == LMT_OK);
        CHECK(statuses[at].bytes == sizes[at] && statuses[at].tag == ((uint64_t)7 << 40 | at));
        check_filled(into[at], sizes[at], at + 1);
        CHECK(into[at][sizes[at]] == 0xa5);
        free(from[at]);
        free(into[at]);
    }
}

/* 20 segments on one side, three on the other. */
static void segments(int rank)
{
    enum { BYTES = 400000, PARTS = 20 };
    struct iovec parts[PARTS];
    lmt_request request;
    lmt_status status;
    if (rank == 0) {
        fill(out, BYTES, 3);
        for (int at = 0; at < PARTS; at++)
            parts[at] = (struct iovec){out + at * (BYTES / PARTS), BYTES / PARTS};
        OK(lmt_isend_segments(endpoint, peer, 1, parts, PARTS, 0, &request));
    } else {
        memset(in, 0, BYTES);
        parts[0] = (struct iovec){in, 1};
        parts[1] = (struct iovec){NULL, 0};
        parts[2] = (struct iovec){in + 1, BYTES - 1};
        OK(lmt_irecv_segments(endpoint, peer, 1, 0, parts, 3, &request));
    }
    memset(parts, 0, sizeof parts); /* The list was copied. */
    OK(lmt_wait(endpoint, request, -1, &status));
    CHECK(status.bytes == BYTES);
    if (rank == 1)
        check_filled(in, BYTES, 3);
}

static void truncation(int rank)
{
    const size_t lengths[] = {100, 300000};
    for (int at = 0; at < 2; at++) {
        lmt_status status;
        lmt_request request;
        if (rank == 0) {
            fill(out, lengths[at], 9);
            OK(lmt_send(endpoint, peer, 5, out, lengths[at], 0));
            OK(lmt_send(endpoint, peer, 5, out, lengths[at], 0));
            continue;
        }
        memset(in, 0x77, 100);
        GIVES(LMT_ERR_TRUNCATED, lmt_recv(endpoint, peer, 5, 0, in, 60, &status));
        CHECK(status.bytes == 60 && status.message_bytes == lengths[at] && status.tag == 5);
        check_filled(in, 60, 9);
        CHECK(in[60] == 0x77);
        CHECK(strstr(lmt_last_error(), "cut to the 60 bytes"));
        OK(lmt_irecv(endpoint, peer, 5, 0, in, 60, &request));
        GIVES(LMT_ERR_TRUNCATED, lmt_wait(endpoint, request, -1, &status));
        CHECK(status.bytes == 60 && status.message_bytes == lengths[at]);
    }
}

static void cancelling(void)
{
    lmt_request request;
    lmt_code code;
    bool done;
    OK(lmt_irecv(endpoint, peer, 99, 0, in, 10, &request));
    OK(lmt_test(endpoint, request, &done, NULL));
    CHECK(!done);
    GIVES(LMT_ERR_TIMEOUT, lmt_wait(endpoint, request, 1, NULL));
    GIVES(LMT_ERR_TIMEOUT, lmt_wait_all(endpoint, &request, 1, 0, &code, NULL));
    CHECK(code == LMT_ERR_TIMEOUT);
    /* What does not exist is skipped. */
    lmt_request three[3] = {LMT_REQUEST_NULL, request, LMT_REQUEST_NULL};
    lmt_code codes[3];
    size_t index;
    GIVES(LMT_ERR_TIMEOUT, lmt_wait_any(endpoint, three, 3, 0, &index));
    GIVES(LMT_ERR_TIMEOUT, lmt_wait_all(endpoint, three, 3, 0, codes, NULL));
    CHECK(codes[0] == LMT_OK && codes[1] == LMT_ERR_TIMEOUT && codes[2] == LMT_OK);
    OK(lmt_cancel(endpoint, request));
    GIVES(LMT_ERR_CANCELLED, lmt_wait(endpoint, request, -1, NULL));
    done = false;
    GIVES(LMT_ERR_UNKNOWN_REQUEST, lmt_test(endpoint, request, &done, NULL));
    CHECK(done);
    OK(lmt_cancel(endpoint, request)); /* Nothing is left to be taken back. */
}

/* A list of which none ends takes its time limit, however long it is; what has ended is
 * told all the same. */
static void waiting_for_many(void)
{
    enum { MANY = 1000, LIMIT_MS = 20 };
    static lmt_request requests[MANY];
    static lmt_code codes[MANY];
    for (int at = 0; at < MANY; at++)
        OK(lmt_irecv(endpoint, peer, (uint64_t)1000 + (uint64_t)at, 0, NULL, 0, &requests[at]));
    OK(lmt_cancel(endpoint, requests[MANY - 1]));
    double start = seconds();
    GIVES(LMT_ERR_TIMEOUT, lmt_wait_all(endpoint, requests, MANY, LIMIT_MS, codes, NULL));
    /* A sleep of a millisecond for each would be a second. */
    CHECK(seconds() - start >= 0.001 * LIMIT_MS && seconds() - start < 0.5);
    for (int at = 0; at < MANY; at++) {
        CHECK(codes[at] == (at == MANY - 1 ? LMT_ERR_CANCELLED : LMT_ERR_TIMEOUT));
        OK(lmt_cancel(endpoint, requests[at]));
        if (at < MANY - 1)
            GIVES(LMT_ERR_CANCELLED, lmt_wait(endpoint, requests[at], -1, NULL));
    }
}

static void probes(int rank)
{
    const size_t lengths[] = {64, 20000, 400000};
    for (int at = 0; at < 3; at++) {
        uint64_t tag = 30 + 2 * (uint64_t)at;
        lmt_status status;
        lmt_message *message = NULL;
        lmt_request request;
        bool found = false;
        if (rank == 0) {
            fill(out, lengths[at], 4);
            OK(lmt_isend(endpoint, peer, tag, out, lengths[at], 0, &request));
            OK(lmt_wait(endpoint, request, -1, NULL));
            OK(lmt_send(endpoint, peer, tag + 1, out, lengths[at], 0));
            continue;
        }
        while (!found)
            OK(lmt_iprobe(endpoint, LMT_ANY_PEER, tag, 0, &found, &status));
        CHECK(status.tag == tag && status.bytes == lengths[at] && status.peer.number == peer.number);
        OK(lmt_iprobe(endpoint, peer, 9, 0, &found, NULL));
        CHECK(!found);
        while (!message)
            OK(lmt_improbe(endpoint, peer, tag, 0, &message, &status));
        CHECK(status.bytes == lengths[at]);
        OK(lmt_iprobe(endpoint, peer, tag, 0, &found, NULL));
        CHECK(!found); /* It was taken. */
        memset(in, 0, lengths[at]);
        OK(lmt_imrecv(endpoint, message, in, MOST, &request));
        GIVES(LMT_ERR_HANDLE, lmt_imrecv(endpoint, message, in, MOST, &request));
        OK(lmt_wait(endpoint, request, -1, &status));
        CHECK(status.bytes == lengths[at] && status.tag == tag);
        check_filled(in, lengths[at], 4);
        message = NULL;
        while (!message)
            OK(lmt_improbe(endpoint, peer, tag + 1, 0, &message, NULL));
        OK(lmt_message_discard(message));
        GIVES(LMT_ERR_HANDLE, lmt_message_discard(message));
    }
}

static void to_oneself(void)
{
    lmt_peer myself = insert_oneself(endpoint);
    lmt_request request;
    OK(lmt_irecv(endpoint, myself, 1, 0, in, 5, &request));
    OK(lmt_send(endpoint, myself, 1, "hello", 5, 0));
    OK(lmt_wait(endpoint, request, -1, NULL));
    CHECK(memcmp(in, "hello", 5) == 0);
}

/* Of two endpoints only one has inserted the other. */
static void strangers(void)
{
    lmt_options *options;
    lmt_endpoint *hears, *waits, *stranger;
    lmt_endpoint *both[2];
    lmt_request receives[2], sends[2];
    char into[2][8];
    lmt_status status;
    bool done;
    OK(lmt_options_create(&options));
    OK(lmt_options_set_hear_strangers(options, true));
    OK(lmt_endpoint_create(options, &hears));
    OK(lmt_options_set_hear_strangers(options, false));
    OK(lmt_endpoint_create(options, &waits));
    OK(lmt_endpoint_create(NULL, &stranger));
    OK(lmt_options_destroy(options));
    both[0] = hears;
    both[1] = waits;
    for (int at = 0; at < 2; at++) {
        struct address address;
        lmt_peer to;
        OK(lmt_endpoint_address(both[at], address.bytes, sizeof address.bytes, &address.length));
        OK(lmt_peer_insert(stranger, address.bytes, address.length, &to));
        OK(lmt_irecv(both[at], LMT_ANY_PEER, 3, 0, into[at], 8, &receives[at]));
        OK(lmt_isend(stranger, to, 3, "unknown", 8, 0, &sends[at]));
    }
    for (bool sent[2] = {false, false}, heard = false; !heard || !sent[0] || !sent[1];) {
        OK(lmt_progress(waits, NULL));
        for (int at = 0; at < 2; at++)
            if (!sent[at])
                OK(lmt_test(stranger, sends[at], &sent[at], NULL));
        if (!heard)
            OK(lmt_test(hears, receives[0], &heard, &status));
    }
    CHECK(strcmp(into[0], "unknown") == 0 && status.bytes == 8);
    /* Its message has come to the other too, and waits until it is named. */
    for (int turn = 0; turn < 100; turn++) {
        OK(lmt_test(waits, receives[1], &done, NULL));
        CHECK(!done);
    }
    struct address address;
    lmt_peer named;
    OK(lmt_endpoint_address(stranger, address.bytes, sizeof address.bytes, &address.length));
    OK(lmt_peer_insert(waits, address.bytes, address.length, &named));
    OK(lmt_wait(waits, receives[1], -1, &status));
    CHECK(lmt_peer_equal(status.peer, named) && strcmp(into[1], "unknown") == 0);
    OK(lmt_endpoint_close(stranger));
    OK(lmt_endpoint_close(hears));
    OK(lmt_endpoint_close(waits));
}

static void body(int rank, int socket)
{
    endpoint = connect_endpoint(socket, NULL, &peer);
    out = malloc(MOST);
    in = malloc(MOST);
    blocking(rank);
    nonblocking();
    segments(rank);
    segments(1 - rank);
    truncation(rank);
    probes(rank);
    cancelling();
    waiting_for_many();
    to_oneself();
    strangers();
    meet(socket, endpoint);
    OK(lmt_endpoint_close(endpoint));
    GIVES(LMT_ERR_HANDLE, lmt_endpoint_close(endpoint));
    free(out);
    free(in);
}

int main(void)
{
    return run_pair(body, 0);
}
