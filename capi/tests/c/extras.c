/* Waiting, explanations, statistics, shared memory and regions, between two processes. */
#include "check.h"

enum { BYTES = 1 << 20 };

static lmt_endpoint *endpoint;
static lmt_peer peer;

/* An event loop that sleeps in the wait descriptor. */
static void sleeping(int rank, int socket)
{
    int descriptor;
    lmt_request request;
    char byte = 0;
    bool done = false;
    OK(lmt_wait_descriptor(endpoint, &descriptor));
    meet(socket, endpoint);
    if (rank == 0) {
        usleep(100000);
        OK(lmt_send(endpoint, peer, 2, "x", 1, 0));
        return;
    }
    OK(lmt_irecv(endpoint, peer, 2, 0, &byte, 1, &request));
    double start = seconds();
    unsigned sleeps = 0;
    while (!done) {
        bool may_sleep;
        uint64_t limit_us;
        OK(lmt_prepare_to_sleep(endpoint, &may_sleep, &limit_us));
        if (may_sleep) {
            struct pollfd poll_on = {.fd = descriptor, .events = POLLIN};
            struct timespec limit = {(time_t)(limit_us / 1000000), (long)(limit_us % 1000000) * 1000};
            CHECK(ppoll(&poll_on, 1, &limit, NULL) >= 0);
            sleeps++;
        }
        OK(lmt_test(endpoint, request, &done, NULL));
    }
    CHECK(byte == 'x' && seconds() - start < 5);
    CHECK(sleeps > 0 && sleeps < 1000); /* It slept, and was woken. */
}

static void waiting_for_progress(void)
{
    bool moved = true;
    OK(lmt_progress(endpoint, &moved));
    OK(lmt_progress(endpoint, NULL));
    double start;
    do {
        start = seconds();
        OK(lmt_wait_for_progress(endpoint, 30, &moved));
    } while (moved);
    CHECK(seconds() - start >= 0.029);
    OK(lmt_wait_for_progress(endpoint, 0, NULL));
}

static void explaining(void)
{
    char text[8192], cut[10];
    size_t length, needed;
    OK(lmt_explain(endpoint, peer, 1 << 20, 0, LMT_FORMAT_TEXT, text, sizeof text, &length));
    CHECK(strlen(text) == length && strstr(text, "1048576 bytes") && strstr(text, "from"));
    GIVES(LMT_ERR_TOO_SHORT, lmt_explain(endpoint, peer, 1 << 20, 0, LMT_FORMAT_TEXT, cut, sizeof cut, &needed));
    CHECK(needed == length && strlen(cut) == 9 && memcmp(cut, text, 9) == 0);
    OK(lmt_explain(endpoint, peer, 1 << 20, LMT_HINT_WARM | LMT_EXPLAIN_SEGMENTS | LMT_EXPLAIN_SHARED_SENDER, LMT_FORMAT_JSON, text, sizeof text,
                   NULL));
    CHECK(text[0] == '{' && strstr(text, "\"bytes\":1048576"));
}

static void counting(int rank, int socket)
{
    lmt_counters paths[32];
    size_t count, needed;
    char *memory = malloc(BYTES);
    memset(memory, 1, BYTES);
    if (rank == 0)
        OK(lmt_send(endpoint, peer, 3, memory, BYTES, LMT_SEND_SYNCHRONOUS));
    else
        OK(lmt_recv(endpoint, peer, 3, 0, memory, BYTES, NULL));
    free(memory);
    meet(socket, endpoint);
    OK(lmt_statistics(endpoint, peer, paths, 32, &count));
    CHECK(count >= 2 && strcmp(paths[0].path, "eager") == 0);
    uint64_t large = 0, messages = 0;
    for (size_t at = 1; at < count; at++) {
        large += rank == 0 ? paths[at].sent_bytes : paths[at].received_bytes;
        messages += rank == 0 ? paths[at].sent : paths[at].received;
    }
    CHECK(large >= BYTES && messages >= 1);
    OK(lmt_statistics(endpoint, LMT_ANY_PEER, paths, 32, &needed));
    CHECK(needed == count);
    GIVES(LMT_ERR_TOO_SHORT, lmt_statistics(endpoint, peer, NULL, 0, &needed));
    CHECK(needed == count);
}

static void shared_memory(int rank)
{
    void *memory, *other;
    OK(lmt_alloc(BYTES, &memory));
    OK(lmt_alloc(100, &other));
    CHECK(memory != other && (uintptr_t)memory % 4096 == 0 && (uintptr_t)other % 64 == 0);
    for (int at = 0; at < BYTES; at += 1000)
        CHECK(((char *)memory)[at] == 0);
    if (rank == 0) {
        fill(memory, BYTES, 6);
        OK(lmt_send(endpoint, peer, 4, memory, BYTES, 0));
    } else {
        OK(lmt_recv(endpoint, peer, 4, 0, memory, BYTES, NULL));
        check_filled(memory, BYTES, 6);
    }
    GIVES(LMT_ERR_HANDLE, lmt_free((char *)memory + 1));
    OK(lmt_free(memory));
    GIVES(LMT_ERR_HANDLE, lmt_free(memory));
    OK(lmt_free(other));
}

static lmt_code copy(bool is_put, const lmt_region_key *key, uint64_t offset, void *memory, size_t bytes)
{
    struct iovec parts[2] = {{memory, bytes / 2}, {(char *)memory + bytes / 2, bytes - bytes / 2}};
    lmt_request request;
    if (is_put)
        OK(lmt_region_put(endpoint, key, offset, parts, 2, &request));
    else
        OK(lmt_region_get(endpoint, key, offset, parts, 2, &request));
    return lmt_wait(endpoint, request, 10000, NULL);
}

/* The owner declares, the other gets and puts. */
static void regions(int rank)
{
    lmt_region_key keys[4];
    char word[4];
    if (rank == 0) {
        char *memory = malloc(BYTES), *once = malloc(8);
        void *mapped;
        struct iovec parts[2] = {{memory, 1000}, {memory + 1000, BYTES - 1000}}, one = {once, 8};
        uint64_t bytes;
        fill(memory, BYTES, 1);
        fill(once, 8, 2);
        OK(lmt_region_register(endpoint, parts, 2, LMT_REGION_READ | LMT_REGION_WRITE, &keys[0]));
        OK(lmt_region_register(endpoint, &one, 1, LMT_REGION_READ | LMT_REGION_SINGLE_USE, &keys[1]));
        OK(lmt_region_allocate(endpoint, 5000, LMT_REGION_READ | LMT_REGION_WRITE, &keys[2], &mapped));
        OK(lmt_region_register(endpoint, &one, 1, LMT_REGION_READ, &keys[3]));
        OK(lmt_region_destroy(endpoint, &keys[3]));
        GIVES(LMT_ERR_REGION_NOT_REGISTERED, lmt_region_destroy(endpoint, &keys[3]));
        OK(lmt_region_bytes(&keys[0], &bytes));
        CHECK(bytes == BYTES);
        fill(mapped, 5000, 3);
        OK(lmt_send(endpoint, peer, 5, keys, sizeof keys, 0));
        OK(lmt_recv(endpoint, peer, 6, 0, word, sizeof word, NULL));
        if (memcmp(word, "done", 4) == 0)
            check_filled(memory + 999, 3000, 7);
        check_filled((char *)mapped + 100, 200, 8);
        OK(lmt_region_destroy(endpoint, &keys[0]));
        OK(lmt_region_destroy(endpoint, &keys[1]));
        OK(lmt_region_destroy(endpoint, &keys[2]));
        free(memory);
        free(once);
        return;
    }
    unsigned char *memory = malloc(BYTES);
    const char *answer = "done";
    OK(lmt_recv(endpoint, peer, 5, 0, keys, sizeof keys, NULL));
    lmt_code code = copy(false, &keys[0], 0, memory, BYTES);
    if (code == LMT_ERR_REGION_UNREACHABLE) {
        printf("SKIPPED: declared memory: %s\n", lmt_last_error());
        answer = "none";
    } else {
        CHECK(code == LMT_OK);
        check_filled(memory, BYTES, 1);
        fill(memory, 3000, 7);
        OK(copy(true, &keys[0], 999, memory, 3000));
        GIVES(LMT_ERR_REGION_FORBIDDEN, copy(true, &keys[1], 0, memory, 8));
        OK(copy(false, &keys[1], 0, memory, 8));
        check_filled(memory, 8, 2);
        GIVES(LMT_ERR_REGION_USED_UP, copy(false, &keys[1], 0, memory, 8));
        GIVES(LMT_ERR_REGION_NOT_REGISTERED, copy(false, &keys[3], 0, memory, 8));
    }
    OK(copy(false, &keys[2], 0, memory, 5000));
    check_filled(memory, 5000, 3);
    fill(memory, 200, 8);
    OK(copy(true, &keys[2], 100, memory, 200));
    GIVES(LMT_ERR_REGION_BOUNDS, copy(false, &keys[2], 4999, memory, 2));
    OK(lmt_send(endpoint, peer, 6, answer, 4, 0));
    free(memory);
}

static void body(int rank, int socket)
{
    endpoint = connect_endpoint(socket, NULL, &peer);
    sleeping(rank, socket);
    waiting_for_progress();
    meet(socket, endpoint);
    counting(rank, socket);
    explaining();
    shared_memory(rank);
    /* The owner makes progress while the other copies. */
    regions(rank);
    meet(socket, endpoint);
    OK(lmt_endpoint_close(endpoint));
}

int main(void)
{
    return run_pair(body, 0);
}
