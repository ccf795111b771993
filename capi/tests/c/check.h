/* What the programs of these tests share: checks, and two processes with a socket. */
#ifndef CHECK_H
#define CHECK_H

#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <lmt.h>

/* Nothing takes longer. */
#define TIME_LIMIT_S 40

#define CHECK(what)                                                                            \
    do {                                                                                       \
        if (!(what)) {                                                                         \
            fprintf(stderr, "%s:%d: %s (last error: %s)\n", __FILE__, __LINE__, #what,         \
                    lmt_last_error());                                                         \
            exit(1);                                                                           \
        }                                                                                      \
    } while (0)

/* The call gives this code. */
#define GIVES(code, call)                                                                      \
    do {                                                                                       \
        lmt_code given_ = (call);                                                              \
        if (given_ != (code)) {                                                                \
            fprintf(stderr, "%s:%d: %s gives %d (%s), not %s; last error: %s\n", __FILE__,     \
                    __LINE__, #call, (int)given_, lmt_strerror(given_), #code,                 \
                    lmt_last_error());                                                         \
            exit(1);                                                                           \
        }                                                                                      \
        if (given_ != LMT_OK)                                                                  \
            CHECK(strlen(lmt_last_error()) > 10);                                              \
    } while (0)

#define OK(call) GIVES(LMT_OK, call)

static inline void fill(void *memory, size_t bytes, unsigned seed)
{
    unsigned char *at = memory;
    for (size_t i = 0; i < bytes; i++)
        at[i] = (unsigned char)((i ^ i >> 8 ^ i >> 16) * 7 + seed);
}

static inline void check_filled(const void *memory, size_t bytes, unsigned seed)
{
    const unsigned char *at = memory;
    for (size_t i = 0; i < bytes; i++)
        CHECK(at[i] == (unsigned char)((i ^ i >> 8 ^ i >> 16) * 7 + seed));
}

static inline double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Sends bytes to the other process, and gets as many from it. */
static inline void swap(int socket, const void *mine, void *theirs, size_t bytes)
{
    CHECK(send(socket, mine, bytes, MSG_NOSIGNAL) == (ssize_t)bytes);
    CHECK(recv(socket, theirs, bytes, MSG_WAITALL) == (ssize_t)bytes);
}

/* Both have come here; who waits makes progress, which the other may need. */
static inline void meet(int socket, lmt_endpoint *endpoint)
{
    char byte = 1;
    ssize_t got;
    CHECK(send(socket, &byte, 1, MSG_NOSIGNAL) == 1);
    while ((got = recv(socket, &byte, 1, MSG_DONTWAIT)) != 1) {
        CHECK(got < 0 && errno == EAGAIN);
        OK(lmt_wait_for_progress(endpoint, 1, NULL));
    }
}

struct address {
    size_t length;
    unsigned char bytes[LMT_ADDRESS_MAX_BYTES];
};

/* An endpoint as its own peer. */
static inline lmt_peer insert_oneself(lmt_endpoint *endpoint)
{
    struct address mine;
    lmt_peer myself;
    OK(lmt_endpoint_address(endpoint, mine.bytes, sizeof mine.bytes, &mine.length));
    OK(lmt_peer_insert(endpoint, mine.bytes, mine.length, &myself));
    return myself;
}

/* An endpoint, and the other process as its peer. */
static inline lmt_endpoint *connect_endpoint(int socket, const lmt_options *options, lmt_peer *peer)
{
    lmt_endpoint *endpoint;
    struct address mine, theirs;
    OK(lmt_endpoint_create(options, &endpoint));
    memset(&mine, 0, sizeof mine);
    OK(lmt_endpoint_address(endpoint, mine.bytes, sizeof mine.bytes, &mine.length));
    swap(socket, &mine, &theirs, sizeof mine);
    OK(lmt_peer_insert(endpoint, theirs.bytes, theirs.length, peer));
    return endpoint;
}

/* The same of devices. */
static inline lmt_device *connect_device(int socket, lmt_send_packet send_packet, void *context, lmt_peer *peer)
{
    lmt_device *device;
    struct address mine, theirs;
    OK(lmt_device_create(NULL, send_packet, context, &device));
    memset(&mine, 0, sizeof mine);
    OK(lmt_device_address(device, mine.bytes, sizeof mine.bytes, &mine.length));
    swap(socket, &mine, &theirs, sizeof mine);
    OK(lmt_device_insert_peer(device, theirs.bytes, theirs.length, peer));
    return device;
}

/* Runs `body` in two processes that have a stream socket to each other, and ends with the
 * first failure. A rank whose bit is in `may_die` may be killed. */
static inline int run_pair(void (*body)(int rank, int socket), unsigned may_die)
{
    int pair[2], failed = 0;
    char pid[16];
    pid_t ranks[2];
    snprintf(pid, sizeof pid, "%ld", (long)getpid());
    setenv("LMT_LAUNCHER_PID", pid, 1);
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    for (int rank = 0; rank < 2; rank++) {
        ranks[rank] = fork();
        CHECK(ranks[rank] >= 0);
        if (ranks[rank] == 0) {
            close(pair[1 - rank]);
            alarm(TIME_LIMIT_S);
            body(rank, pair[rank]);
            exit(0);
        }
    }
    close(pair[0]);
    close(pair[1]);
    for (int ended = 0; ended < 2; ended++) {
        int status;
        pid_t who = wait(&status);
        int rank = who == ranks[1];
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
            continue;
        if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && may_die >> rank & 1)
            continue;
        fprintf(stderr, "rank %d ended with status %#x\n", rank, (unsigned)status);
        failed = 1;
        if (ended == 0)
            kill(ranks[1 - rank], SIGKILL);
    }
    return failed;
}

#endif
