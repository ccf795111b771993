/*
 * A minimal device layer of a message-passing library over lmt: ranks that find each
 * other, dev_isend, dev_irecv with any source and any tag, dev_wait.
 *
 *     cc -o device_layer device_layer.c $(pkg-config --cflags --libs lmt)
 *     ./device_layer
 *
 * It starts two ranks, which is what a launcher does, and collects and hands out
 * their addresses, which is what a launcher's PMI does. Under `lmt run` neither is
 * needed: lmt_group() and lmt_group_address() know all.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <lmt.h>

enum { RANKS = 2, MESSAGES = 6 };

#define DEV_ANY_RANK (-1)
#define DEV_ANY_TAG (-1)

/* Ends the process with the sentence that lmt has for it. */
static void check(lmt_code code, const char *what)
{
    if (code != LMT_OK) {
        fprintf(stderr, "%s: %s (%s)\n", what, lmt_last_error(), lmt_strerror(code));
        exit(1);
    }
}

/* --- the device layer --- */

struct device {
    lmt_endpoint *endpoint;
    int rank, size;
    lmt_peer peers[RANKS];
};

struct dev_status {
    int rank, tag;
    size_t bytes;
};

/*
 * lmt matches 64 bits of tag: 16 of the communicator, 16 of the sender's rank, 32 of
 * the program's tag. What a receive takes from anybody it ignores.
 */
static uint64_t dev_label(unsigned communicator, int rank, int tag)
{
    return (uint64_t)communicator << 48 | (uint64_t)(uint16_t)rank << 32 | (uint32_t)tag;
}

struct address {
    size_t bytes;
    unsigned char data[LMT_ADDRESS_MAX_BYTES];
};

/* `launcher` takes this rank's address and gives those of all. */
static void dev_init(struct device *dev, int rank, int size, int launcher)
{
    struct address mine, all[RANKS];
    dev->rank = rank;
    dev->size = size;
    check(lmt_endpoint_create(NULL, &dev->endpoint), "creating the endpoint");
    check(lmt_endpoint_address(dev->endpoint, mine.data, sizeof mine.data, &mine.bytes), "the address");
    if (write(launcher, &mine, sizeof mine) != sizeof mine ||
        recv(launcher, all, sizeof all, MSG_WAITALL) != sizeof all) {
        perror("exchanging addresses");
        exit(1);
    }
    for (int other = 0; other < size; other++)
        check(lmt_peer_insert(dev->endpoint, all[other].data, all[other].bytes, &dev->peers[other]),
              "naming a peer");
}

static void dev_isend(struct device *dev, int to, int tag, const void *data, size_t bytes, lmt_request *request)
{
    lmt_code code;
    /* As many messages as are allowed wait for this peer: let them go. */
    while ((code = lmt_isend(dev->endpoint, dev->peers[to], dev_label(0, dev->rank, tag), data, bytes, 0,
                             request)) == LMT_ERR_WOULD_BLOCK)
        check(lmt_progress(dev->endpoint, NULL), "progress");
    check(code, "beginning a send");
}

static void dev_irecv(struct device *dev, int from, int tag, void *into, size_t capacity, lmt_request *request)
{
    lmt_peer source = from == DEV_ANY_RANK ? LMT_ANY_PEER : dev->peers[from];
    uint64_t ignore = (from == DEV_ANY_RANK ? (uint64_t)0xffff << 32 : 0) |
                      (tag == DEV_ANY_TAG ? (uint64_t)0xffffffff : 0);
    check(lmt_irecv(dev->endpoint, source, dev_label(0, from, tag), ignore, into, capacity, request),
          "beginning a receive");
}

static void dev_wait(struct device *dev, lmt_request request, struct dev_status *told)
{
    lmt_status status;
    check(lmt_wait(dev->endpoint, request, -1, &status), "waiting");
    if (told) {
        told->rank = (int)(status.tag >> 32 & 0xffff);
        told->tag = (int)(uint32_t)status.tag;
        told->bytes = status.bytes;
    }
}

static void dev_finish(struct device *dev)
{
    check(lmt_endpoint_close(dev->endpoint), "closing");
}

/* --- a program that uses it --- */

static const size_t sizes[MESSAGES] = {0, 8, 4096, 65536, 1 << 20, 5000000};

static unsigned char byte_of(int rank, int tag, size_t at)
{
    return (unsigned char)(at * 31 + (size_t)rank * 7 + (size_t)tag);
}

static int program(int rank, int size, int launcher)
{
    struct device dev;
    lmt_request sends[MESSAGES], receives[MESSAGES];
    unsigned char *out[MESSAGES], *in[MESSAGES];
    size_t total = 0;
    int other = (rank + 1) % size;

    dev_init(&dev, rank, size, launcher);
    for (int tag = 0; tag < MESSAGES; tag++) {
        out[tag] = malloc(sizes[tag] + 1);
        in[tag] = calloc(sizes[tag] + 1, 1);
        if (!out[tag] || !in[tag])
            return 1;
        for (size_t at = 0; at < sizes[tag]; at++)
            out[tag][at] = byte_of(rank, tag, at);
        /* The first three by name, the others from anybody. */
        dev_irecv(&dev, tag < 3 ? other : DEV_ANY_RANK, tag, in[tag], sizes[tag], &receives[tag]);
    }
    for (int tag = MESSAGES - 1; tag >= 0; tag--)
        dev_isend(&dev, other, tag, out[tag], sizes[tag], &sends[tag]);
    for (int tag = 0; tag < MESSAGES; tag++) {
        struct dev_status status;
        dev_wait(&dev, receives[tag], &status);
        if (status.rank != other || status.tag != tag || status.bytes != sizes[tag]) {
            fprintf(stderr, "rank %d got tag %d of rank %d, %zu bytes\n", rank, status.tag, status.rank, status.bytes);
            return 1;
        }
        for (size_t at = 0; at < sizes[tag]; at++)
            if (in[tag][at] != byte_of(other, tag, at)) {
                fprintf(stderr, "rank %d: byte %zu of message %d is wrong\n", rank, at, tag);
                return 1;
            }
        total += status.bytes;
    }
    for (int tag = 0; tag < MESSAGES; tag++) {
        dev_wait(&dev, sends[tag], NULL);
        free(out[tag]);
        free(in[tag]);
    }
    dev_finish(&dev);
    printf("rank %d: %d messages, %zu bytes\n", rank, MESSAGES, total);
    return 0;
}

/* --- what a launcher does --- */

int main(void)
{
    int sockets[RANKS], failed = 0;
    char pid[16];
    struct address all[RANKS];

    /* Lets the ranks copy out of each other where Yama would keep them from it. */
    snprintf(pid, sizeof pid, "%ld", (long)getpid());
    setenv("LMT_LAUNCHER_PID", pid, 1);
    for (int rank = 0; rank < RANKS; rank++) {
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) {
            perror("socketpair");
            return 1;
        }
        switch (fork()) {
        case -1:
            perror("fork");
            return 1;
        case 0:
            close(pair[0]);
            exit(program(rank, RANKS, pair[1]));
        default:
            close(pair[1]);
            sockets[rank] = pair[0];
        }
    }
    for (int rank = 0; rank < RANKS; rank++)
        if (recv(sockets[rank], &all[rank], sizeof all[rank], MSG_WAITALL) != sizeof all[rank])
            failed = 1;
    for (int rank = 0; rank < RANKS; rank++) {
        if (!failed && write(sockets[rank], all, sizeof all) != sizeof all)
            failed = 1;
        /* If one is missing, the others see the end of their socket. */
        close(sockets[rank]);
    }
    for (int rank = 0; rank < RANKS; rank++) {
        int status;
        if (wait(&status) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
            failed = 1;
    }
    return failed;
}
