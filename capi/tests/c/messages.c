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
        uint32_t flags = at % 3 == 1 ? LMT_SYNCHRONOUS | LMT_WARM : at % 3 == 2 ? LMT_COLD | LMT_AGAIN : 0;
        fill(out, sizes[at], at);
        memset(in, 0, sizes[at]);
        if (rank == 0)
            OK(lmt_send(endpoint, peer, at, out, sizes[at], flags));
        OK(lmt_recv(endpoint, at % 2 ? peer : LMT_ANY_PEER, at, 0, in, MOST, &status));
        if (rank == 1)
            OK(lmt_send(endpoint, peer, at, out, sizes[at], flags));
        check_filled(in, sizes[at], at);
        CHECK(status.peer.owner == peer.owner && status.peer.number == peer.number);
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
    enum { BYTES = 200000, PARTS = 20 };
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
    size_t index;
    GIVES(LMT_ERR_TIMEOUT, lmt_wait_any(endpoint, &request, 1, 0, &index));
    OK(lmt_cancel(endpoint, request));
    GIVES(LMT_ERR_CANCELLED, lmt_wait(endpoint, request, -1, NULL));
    done = false;
    GIVES(LMT_ERR_UNKNOWN_REQUEST, lmt_test(endpoint, request, &done, NULL));
    CHECK(done);
    OK(lmt_cancel(endpoint, request)); /* Nothing is left to be taken back. */
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
    struct address mine;
    lmt_peer myself;
    lmt_request request;
    OK(lmt_endpoint_address(endpoint, mine.bytes, sizeof mine.bytes, &mine.length));
    OK(lmt_peer_insert(endpoint, mine.bytes, mine.length, &myself));
    OK(lmt_irecv(endpoint, myself, 1, 0, in, 5, &request));
    OK(lmt_send(endpoint, myself, 1, "hello", 5, 0));
    OK(lmt_wait(endpoint, request, -1, NULL));
    CHECK(memcmp(in, "hello", 5) == 0);
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
    to_oneself();
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
