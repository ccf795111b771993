/*
 * What short messages cost a program in C: ping-pong, windows, and exchanges, in use (each
 * message is written before it is sent, and read after it has come).
 *
 *     cc -O2 -o rates rates.c $(pkg-config --cflags --libs lmt)
 *     lmt run -n 2 -- ./rates [BYTES [ROUNDS]]
 */
#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <lmt.h>

enum { WINDOW = 64, MAX_BYTES = 4096 };

static lmt_endpoint *endpoint;
static lmt_peer other;
static uint32_t rank;
static size_t bytes = 8;
static unsigned char out[WINDOW][MAX_BYTES], in[WINDOW][MAX_BYTES];

static void check(lmt_code code, const char *what)
{
    if (code != LMT_OK) {
        fprintf(stderr, "%s: %s (%s)\n", what, lmt_last_error(), lmt_strerror(code));
        exit(1);
    }
}

static void fill(int at, unsigned value)
{
    memset(out[at], (int)(value & 0xff), bytes);
}

static void look(int at, unsigned value)
{
    for (size_t i = 0; i < bytes; i++)
        if (in[at][i] != (unsigned char)value) {
            fprintf(stderr, "byte %zu of a message is %u, and not %u\n", i, in[at][i], value & 0xff);
            exit(1);
        }
}

static void send_one(unsigned value)
{
    fill(0, value);
    check(lmt_send(endpoint, other, 1, out[0], bytes, 0), "sending");
}

static void receive_one(unsigned value)
{
    check(lmt_recv(endpoint, other, 1, 0, in[0], bytes, NULL), "receiving");
    look(0, value);
}

/* There and back. */
static void ping_pong(unsigned round)
{
    if (rank == 0) {
        send_one(round);
        receive_one(round);
    } else {
        receive_one(round);
        send_one(round);
    }
}

static void post(int at, lmt_request *request)
{
    check(lmt_irecv(endpoint, other, 2, 0, in[at], bytes, request), "beginning a receive");
}

static void begin(int at, unsigned value, lmt_request *request)
{
    fill(at, value);
    check(lmt_isend(endpoint, other, 2, out[at], bytes, 0, request), "beginning a send");
}

static void finish(const lmt_request *requests, int count)
{
    lmt_code codes[WINDOW];
    check(lmt_wait_all(endpoint, requests, (size_t)count, -1, codes, NULL), "waiting");
}

/* A window of messages one way, and an answer. */
static void window(unsigned round)
{
    lmt_request requests[WINDOW];
    if (rank == 0) {
        for (int at = 0; at < WINDOW; at++)
            begin(at, round + (unsigned)at, &requests[at]);
        finish(requests, WINDOW);
        receive_one(round);
    } else {
        for (int at = 0; at < WINDOW; at++)
            post(at, &requests[at]);
        finish(requests, WINDOW);
        for (int at = 0; at < WINDOW; at++)
            look(at, round + (unsigned)at);
        send_one(round);
    }
}

/* Two messages each way at once. */
static void exchange(unsigned round)
{
    lmt_request requests[4];
    for (int at = 0; at < 2; at++)
        post(at, &requests[at]);
    for (int at = 0; at < 2; at++)
        begin(at, round + (unsigned)at, &requests[2 + at]);
    finish(requests, 4);
    for (int at = 0; at < 2; at++)
        look(at, round + (unsigned)at);
}

/* Microseconds that one round takes. */
static double time_of(void (*pattern)(unsigned), unsigned rounds)
{
    struct timespec begin, end;
    for (unsigned round = 0; round < rounds / 10 + 1; round++)
        pattern(round);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (unsigned round = 0; round < rounds; round++)
        pattern(round);
    clock_gettime(CLOCK_MONOTONIC, &end);
    return ((double)(end.tv_sec - begin.tv_sec) * 1e6 + (double)(end.tv_nsec - begin.tv_nsec) / 1e3) / rounds;
}

int main(int count, char **arguments)
{
    uint32_t size;
    unsigned rounds = 100000;
    lmt_options *options;
    unsigned char address[LMT_ADDRESS_MAX_BYTES];
    size_t length;

    if (count > 1)
        bytes = strtoul(arguments[1], NULL, 10);
    if (count > 2)
        rounds = (unsigned)strtoul(arguments[2], NULL, 10);
    check(lmt_group(&rank, &size), "the group");
    if (size != 2 || bytes == 0 || bytes > MAX_BYTES || rounds == 0) {
        fprintf(stderr, "usage: lmt run -n 2 -- ./rates [BYTES, 1 to %d [ROUNDS, 1 or more]]\n", MAX_BYTES);
        return 2;
    }
    check(lmt_options_create(&options), "options");
    check(lmt_options_set_group_rank(options), "this rank's identity");
    check(lmt_endpoint_create(options, &endpoint), "creating the endpoint");
    check(lmt_options_destroy(options), "options");
    check(lmt_group_address(1 - rank, address, sizeof address, &length), "the other rank's address");
    check(lmt_peer_insert(endpoint, address, length, &other), "naming the other rank");

    double latency = time_of(ping_pong, rounds) / 2;
    double message = time_of(window, rounds / 10 + 1) / WINDOW;
    double both = time_of(exchange, rounds);
    check(lmt_endpoint_close(endpoint), "closing");
    if (rank == 0)
        printf("%zu B: ping-pong %.3f us half a round trip, window of %d %.3f us a message, exchange %.3f us\n",
               bytes, latency, WINDOW, message, both);
    return 0;
}
